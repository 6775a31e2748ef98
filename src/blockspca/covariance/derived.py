"""Matrices derived from another without forming them: fewer features, less variance.

Each function takes a `Covariance` A and returns one whose entries are computed from
those of A when they are asked for. From data, nothing of size d × d is ever stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .covariance import Covariance
from .dominance import Dominance
from .rounding import SMALLEST
from .sources import (
    EPS,
    DenseDataSource,
    Indices,
    MatrixSource,
    MomentSource,
    Source,
)


class DerivedCovariance(Covariance):
    """A `Covariance` computed from another one."""

    is_derived = True
    #: The covariance before features were masked, and those that were not.
    cut_from: tuple[Covariance, NDArray[np.intp]] | None = None

    def __init__(
        self,
        source: Source,
        feature_names: tuple[str, ...] | None,
        origin: str,
        dominance: Dominance | None = None,
    ) -> None:
        super().__init__(source, feature_names)
        self.origin = origin
        self.dominance = dominance

    def __repr__(self) -> str:
        return f"Covariance(n_features={self.n_features}, {self.origin})"


def restricted(cov: Covariance, keep: NDArray[np.intp]) -> Covariance:
    """Return A[keep, keep], the problem in which the other features do not exist.

    Of a contrast the target is restricted too.
    """
    names = None if cov.feature_names is None else tuple(cov.names_of(keep))
    origin = f"{len(keep)} of {cov.n_features} features"
    source = cov._source
    chosen: Source
    if isinstance(source, DenseDataSource):
        C = np.ascontiguousarray(source.C[:, keep])
        chosen = source.changed(C, lambda values: values[keep])
    elif isinstance(source, MomentSource):
        A, error = source.A[np.ix_(keep, keep)], source.entry_error()
        chosen = source.computed(A, error, psd=source.known_psd)
    elif isinstance(source, MatrixSource) and not source.sparse:
        chosen = MatrixSource(source.A[np.ix_(keep, keep)])
    else:
        chosen = SubsetSource(source, keep)
    whole = cov.dominance
    within = None if whole is None else RestrictedDominance(whole, keep)
    new = DerivedCovariance(chosen, names, origin, within)
    new.is_contrast = cov.is_contrast
    return new


class RestrictedDominance(Dominance):
    """Dominance restricted to some features: A ⪯ D + δI holds for submatrices too."""

    def __init__(self, whole: Dominance, keep: NDArray[np.intp]) -> None:
        self.whole, self.keep = whole, keep

    @cached_property
    def matrix(self) -> Covariance:
        return restricted(self.whole.matrix, self.keep)

    @property
    def seconds(self) -> float:
        return self.whole.seconds

    @property
    def excess(self) -> float:
        return self.whole.excess


def masked(cov: Covariance, used: NDArray[np.intp]) -> Covariance:
    """Return A with some features cut off from the rest and too small to be chosen.

    Rows and columns of `used` are zero, except for their diagonal: 0 if A is known to
    be positive semidefinite, the smallest variance of the other features if not. No
    sparse component can gain from such a feature, so A with `used` masked has the same
    optimum as A without them, and keeps the numbering of the features.
    """
    base = cov._source
    if isinstance(base, DenseDataSource):
        # Its rounding error is that of the features that are left, as in `restricted`.
        C = base.C.copy()
        C[:, used] = 0.0
        left = np.ones(base.n_features)
        left[used] = 0.0
        source: Source = base.changed(C, lambda values: left * values)
    elif isinstance(base, MomentSource) and base.known_psd:
        A = base.A.copy()
        A[used] = 0.0
        A[:, used] = 0.0
        source = base.computed(A, base.entry_error(), psd=True)
    else:
        source = MaskedSource(base, used)
    new = DerivedCovariance(source, cov.feature_names, f"{len(used)} features cut off")
    keep = np.setdiff1d(np.arange(cov.n_features), used).astype(np.intp)
    new.cut_from = (cov, keep)
    return new


def corrected(
    cov: Covariance, left: FloatArray, right: FloatArray, *, psd: bool, origin: str
) -> Covariance:
    """Return A − (L R' + R L'), with L and R of shape (d, m)."""
    source = cov._source
    new: Source = LowRankSource(source, left, right, psd)
    if isinstance(source, MatrixSource) and not source.sparse:
        cross = left @ right.T
        matrix = source.A - (cross + cross.T)
        if isinstance(source, MomentSource):  # its entries are known to an error
            new = source.computed(matrix, new.entry_error(), psd=psd)
        else:
            new = MatrixSource(matrix)
            new.known_psd = psd
    return DerivedCovariance(new, cov.feature_names, origin)


def correction_error(terms: int, size: float) -> float:
    """Bound the rounding of A_ij − Σ (L_il R_jl + R_il L_jl), the terms as many as l.

    With `size` ≥ |A_ij| + 2 Σ |L_il R_jl|, no intermediate result is larger. Each of
    2m products errs by u of itself, each of at most 2m sums and differences by u of
    what comes out: together (2m + 1) u of `size`, in any order. That is a quarter of
    what is returned, the rest being room for sizes that are rounded themselves.
    """
    return 4 * (terms + 1) * EPS * size


def projected(cov: Covariance, basis: FloatArray, origin: str) -> Covariance:
    """Return P A P with P = I − QQ', Q = `basis` having orthonormal columns."""
    source = cov._source
    if isinstance(source, DenseDataSource):
        # PAP = (CP)'(CP): the data projected once are exact data of their own.
        C = source.C - (source.C @ basis) @ basis.T
        new = DenseDataSource(C, on_device=source.on_device)
        return DerivedCovariance(new, cov.feature_names, origin)
    right = projection_term(cov, basis)
    return corrected(cov, basis, right, psd=cov.known_psd, origin=origin)


def projection_term(cov: Covariance, basis: FloatArray) -> FloatArray:
    """Return H with P A P = A − (Q H' + H Q'), namely H = AQ − Q (Q'AQ) / 2."""
    image = cov.matvec(basis)
    within = basis.T @ image
    return image - basis @ ((within + within.T) / 4)


class ResidualDataSource(DenseDataSource):
    """A = C'C with columns that are off by `column_errors`, in norm; see `residual`."""

    def __init__(
        self, C: FloatArray, column_errors: FloatArray, on_device: bool = False
    ) -> None:
        super().__init__(C, on_device=on_device)
        self.column_errors = column_errors

    def changed(
        self, C: FloatArray, of_columns: Callable[[FloatArray], FloatArray]
    ) -> ResidualDataSource:
        return ResidualDataSource(C, of_columns(self.column_errors), self.on_device)

    def entry_error(self) -> float:
        return self.rounding_of(self.n_samples)

    def rounding_of(self, products: int) -> float:
        """Bound the error of an entry whose sum of products takes so many roundings."""
        return products_error(
            self._diagonal, self.column_errors, self.n_samples, products
        )

    def factor_error(self) -> float:
        return float(np.linalg.norm(self.column_errors)) * (1 + self.n_features * EPS)


def products_error(
    diagonal: FloatArray, errors: FloatArray, n: int, roundings: int
) -> float:
    """Bound |ĉ_i'ĉ_j as computed − r_i'r_j|, of n products, where ‖ĉ_i − r_i‖ ≤ ε_i.

    ‖ĉ_i‖ ε_j + ε_i (‖ĉ_j‖ + ε_j), and u ‖ĉ_i‖ ‖ĉ_j‖ for each rounding, with as much
    again for the diagonal as computed, and what underflows. The largest ε is mostly
    that of a feature of which little is left.
    """
    # The diagonal was added up as it came, by n roundings.
    squares = diagonal * (1 + (n + 2) * EPS)
    norms, largest = np.sqrt(squares), float(squares.max())
    # For every i, with the worst j.
    crossed = norms * errors.max() + errors * (norms.max() + errors.max())
    summed = (roundings + 4) * EPS * largest + SMALLEST * (n + 4)
    return float(crossed.max()) * (1 + 8 * EPS) + summed


class DerivedSource(Source):
    """A source whose entries are those of `base` or zero, with the same error."""

    def __init__(self, base: Source) -> None:
        self.base = base
        self.has_columns = base.has_columns
        self.known_psd = base.known_psd
        self.n_samples = base.n_samples
        self.n_features = base.n_features

    def gram(self, weights: FloatArray) -> FloatArray:
        return self.base.gram(weights)

    def entry_error(self) -> float:
        return self.base.entry_error()

    def factor_error(self) -> float:
        return self.base.factor_error()

    def check_unchanged(self) -> None:
        self.base.check_unchanged()


class SubsetSource(DerivedSource):
    """Some features of another source."""

    def __init__(self, base: Source, keep: NDArray[np.intp]) -> None:
        super().__init__(base)
        self.keep = keep
        self.n_features = len(keep)

    def diagonal(self) -> FloatArray:
        return self.base.diagonal()[self.keep]

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        at_rows = self.keep[rows]
        at_columns = at_rows if columns is rows else self.keep[columns]
        return self.base.submatrix(at_rows, at_columns)

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.base.matvec(self._lift(x))[self.keep]

    def gram(self, weights: FloatArray) -> FloatArray:
        return self.base.gram(self._lift(weights))

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        return self.base.columns(self.keep[index], start, stop)

    def sparse_parts(self) -> tuple[Any, FloatArray, FloatArray] | None:
        parts = self.base.sparse_parts()
        if parts is None:
            return None
        X, mean, factor = parts
        return X[:, self.keep], mean[self.keep], factor[self.keep]

    def sparse_correction(self) -> tuple[Any, ...] | None:
        found = self.base.sparse_correction()
        if found is None:
            return None
        X, *others = found
        return X[:, self.keep], *(values[self.keep] for values in others)

    def _lift(self, x: FloatArray) -> FloatArray:
        lifted = np.zeros((self.base.n_features, *x.shape[1:]))
        lifted[self.keep] = x
        return lifted


class MaskedSource(DerivedSource):
    """Another source with some features cut off; see `masked`."""

    def __init__(self, base: Source, used: NDArray[np.intp]) -> None:
        super().__init__(base)
        self.used = np.zeros(base.n_features, dtype=bool)
        self.used[used] = True
        self.fill = 0.0
        if not base.known_psd and not self.used.all():
            self.fill = float(base.diagonal()[~self.used].min())

    def diagonal(self) -> FloatArray:
        return np.where(self.used, self.fill, self.base.diagonal())

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        block = np.array(self.base.submatrix(rows, columns))
        block[self.used[rows]] = 0.0
        block[:, self.used[columns]] = 0.0
        index = np.arange(self.n_features)
        same = index[rows][:, None] == index[columns]
        block[same & self.used[columns]] = self.fill
        return block

    def matvec(self, x: FloatArray) -> FloatArray:
        used = self.used if x.ndim == 1 else self.used[:, None]
        image = self.base.matvec(np.where(used, 0.0, x))
        return np.where(used, self.fill * x, image)

    def gram(self, weights: FloatArray) -> FloatArray:
        return self.base.gram(np.where(self.used, 0.0, weights))

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        return np.where(self.used[index], 0.0, self.base.columns(index, start, stop))

    def sparse_parts(self) -> tuple[Any, FloatArray, FloatArray] | None:
        """As those of the base, D being 0 where features are cut off."""
        parts = self.base.sparse_parts()
        if parts is None or self.fill != 0:
            return None
        X, mean, factor = parts
        return X, mean, np.where(self.used, 0.0, factor)


class LowRankSource(Source):
    """A − (L R' + R L'), entry by entry; errors in L and R change none by over `error`.

    A correction that takes most of A away leaves the rounding errors of the larger
    matrix, which `entry_error` includes. No factor is known, so it has no samples.
    """

    no_factor = "this one has a low-rank correction, and its factor is not known"

    def __init__(
        self,
        base: Source,
        left: FloatArray,
        right: FloatArray,
        psd: bool,
        error: float = 0.0,
    ) -> None:
        self.base, self.left, self.right = base, left, right
        self.known_psd, self.error = psd, error
        self.n_features = base.n_features

    @cached_property
    def size(self) -> float:
        """A bound on |A_ij| + 2 Σ |L_il R_jl|; see `correction_error`."""
        largest = np.abs(self.left).max(axis=0) * np.abs(self.right).max(axis=0)
        return Covariance(self.base).max_abs() + 2 * float(largest.sum())

    def entry_error(self) -> float:
        rounding = correction_error(self.left.shape[1], self.size)
        return self.base.entry_error() + rounding + self.error

    def diagonal(self) -> FloatArray:
        both = np.einsum("ij,ij->i", self.left, self.right)
        return self.base.diagonal() - 2 * both

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        block = np.array(self.base.submatrix(rows, columns))
        # Elementwise, not by BLAS: an entry and its mirror image come out the same, to
        # the last bit, in every tile.
        for left, right in zip(self.left.T, self.right.T, strict=True):
            term = np.multiply.outer(left[rows], right[columns])
            term += np.multiply.outer(right[rows], left[columns])
            block -= term
        return block

    def sparse_correction(self) -> tuple[Any, ...] | None:
        parts = self.base.sparse_parts()
        return None if parts is None else (*parts, self.left, self.right)

    def check_unchanged(self) -> None:
        self.base.check_unchanged()

    def matvec(self, x: FloatArray) -> FloatArray:
        correction = self.left @ (self.right.T @ x) + self.right @ (self.left.T @ x)
        return self.base.matvec(x) - correction
