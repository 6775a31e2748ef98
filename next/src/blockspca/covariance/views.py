"""Changes of a matrix that are computed entry by entry: subset, low rank, raised.

**Theorem (raised).** If M_ij ≥ A_ij for all i ≠ j and M_ii = A_ii, then x'Ax ≤ x'Mx
for every x ≥ 0. So the optimum over all vectors for M bounds that over non-negative
ones for A. max(a, 0) changes by no more than a does, so that entries of M have the
error of those of A.

**Theorem (contrast).** If A_b is positive semidefinite and g ≥ 0, then
x'(A_t − g A_b)x ≤ x'A_t x for every x: what bounds the target's optimum bounds the
contrast's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..linalg.rounding import EPS
from ..validation import FloatArray, Indices, check_real
from .covariance import Covariance, as_covariance
from .data import STRIPE, mirror
from .sources import Factor, Matrix, Source, picked
from .tables import ALL, Index

if TYPE_CHECKING:
    from ..scan import Lists


class View(Source):
    """Another source, changed; in memory if that one is, or may be, in memory."""

    def __init__(self, base: Source) -> None:
        self.base = base
        self.n_features = base.n_features

    def error(self) -> float:
        return self.base.error()

    def largest(self) -> float:
        return self.base.largest()

    def formed(self, run: Run) -> Source:
        base = self.base.formed(run)
        view = self
        if base is not self.base:
            view = copy(self)
            view.base = base
        return in_memory(view, run) if base.in_memory else view


def in_memory(view: Source, run: Run) -> Source:
    """Return a view as a matrix if that fits the memory."""
    d = view.n_features
    if 16 * d * d > run.memory:
        return view
    A = np.empty((d, d))

    def rows(i: int) -> None:
        run.check()
        at = np.arange(i, min(i + STRIPE, d))
        A[at] = view.block(at, ALL)

    run.map(rows, range(0, d, STRIPE))
    mirror(A)
    return Matrix(A, view.error(), psd=view.known_psd)


class Subset(View):
    """A[indices, indices]."""

    def __init__(self, base: Source, indices: NDArray[np.intp]) -> None:
        self.base, self.indices = base, indices
        self.n_features, self.known_psd = len(indices), base.known_psd
        self.n_samples = base.n_samples

    def diagonal(self) -> FloatArray:
        return self.base.diagonal()[self.indices]

    def block(self, rows: Index, columns: Index) -> FloatArray:
        at = self.indices[rows]
        return self.base.block(at, at if rows is columns else self.indices[columns])

    @property
    def factor(self) -> Factor | None:
        factor = self.base.factor
        return None if factor is None else SomeColumns(factor, self.indices)

    def subset(self, indices: NDArray[np.intp]) -> Source:
        return self.base.subset(self.indices[indices])

    def formed(self, run: Run) -> Source:
        base = self.base.formed(run)
        if base is not self.base:
            return base.subset(self.indices)
        n = self.n_samples
        return in_memory(self, run) if n is not None and n > self.n_features else self


class SomeColumns(Factor):
    """Some columns of another factor."""

    def __init__(self, factor: Factor, indices: NDArray[np.intp]) -> None:
        self.factor, self.indices = factor, indices
        self.n, self.n_features = factor.n, len(indices)
        self.error, self.size = factor.error, factor.size

    def columns(self, indices: Index) -> FloatArray:
        return self.factor.columns(self.indices[indices])


class LowRank(View):
    """A − (L R' + R L'); what errs in L and R changes no entry by more than `error`."""

    def __init__(
        self,
        base: Source,
        left: FloatArray,
        right: FloatArray,
        *,
        psd: bool = False,
        error: float = 0.0,
        factor: Factor | None = None,
    ) -> None:
        super().__init__(base)
        self.left, self.right, self.own_error = left, right, error
        self.known_psd, self._factor = psd, factor
        self.n_samples = None if factor is None else base.n_samples
        # Σ_l max |L_il| max |R_jl| bounds either term of an entry.
        sizes = np.abs(left).max(axis=0) * np.abs(right).max(axis=0)
        self.term = float(sizes.sum())

    def error(self) -> float:
        # Each of 2m products and differences errs by u of a partial sum, or of itself.
        m = self.left.shape[1]
        rounding = EPS * (2 * m + 2) * (self.base.largest() + 2 * self.term)
        return (self.base.error() + self.own_error + rounding) * (1 + 8 * EPS)

    def largest(self) -> float:
        return self.base.largest() + 2 * self.term

    def diagonal(self) -> FloatArray:
        return self.base.diagonal() - 2 * np.einsum("ij,ij->i", self.left, self.right)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        block = np.array(self.base.block(rows, columns))
        # Elementwise, not by BLAS: an entry equals its mirror image to the last bit.
        for left, right in zip(self.left.T, self.right.T, strict=True):
            term = np.multiply.outer(left[rows], right[columns])
            term += np.multiply.outer(right[rows], left[columns])
            block -= term
        return block

    def matvec(self, x: FloatArray) -> FloatArray:
        taken = self.left @ (self.right.T @ x) + self.right @ (self.left.T @ x)
        return self.base.matvec(x) - taken

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        return self.base.lists_of_view(self, width, run, features)

    @property
    def factor(self) -> Factor | None:
        return self._factor


class Raised(View):
    """Negative entries off the diagonal raised to 0, but for the pairs in `kept`."""

    def __init__(self, base: Source, kept: NDArray[np.intp]) -> None:
        super().__init__(base)
        self.kept = kept

    def diagonal(self) -> FloatArray:
        return self.base.diagonal()

    def block(self, rows: Index, columns: Index) -> FloatArray:
        block = np.array(self.base.block(rows, columns))
        i, j = (picked(index, self.n_features) for index in (rows, columns))
        stays = i[:, None] == j
        for a, b in self.kept:
            stays |= np.logical_and.outer(i == a, j == b)
            stays |= np.logical_and.outer(i == b, j == a)
        block[~stays & (block < 0)] = 0.0
        return block


class Contrast(View):
    """A_t − g A_b."""

    def __init__(self, base: Source, background: Source, weight: float) -> None:
        super().__init__(base)
        self.background, self.weight = background, weight
        self.terms = base, background

    def error(self) -> float:
        errors = self.base.error() + self.weight * self.background.error()
        return errors * (1 + 4 * EPS) + 2 * EPS * self.largest()

    def largest(self) -> float:
        return self.base.largest() + self.weight * self.background.largest()

    def diagonal(self) -> FloatArray:
        return self.base.diagonal() - self.weight * self.background.diagonal()

    def block(self, rows: Index, columns: Index) -> FloatArray:
        less = self.weight * self.background.block(rows, columns)
        return self.base.block(rows, columns) - less

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.base.matvec(x) - self.weight * self.background.matvec(x)

    def formed(self, run: Run) -> Source:
        terms = self.base.formed(run), self.background.formed(run)
        view = self if terms == self.terms else Contrast(*terms, self.weight)
        return in_memory(view, run) if all(t.in_memory for t in terms) else view


def low_rank(
    cov: Covariance,
    left: FloatArray,
    right: FloatArray,
    *,
    psd: bool = False,
    error: float = 0.0,
) -> Covariance:
    """Return A − (L R' + R L') for d × m matrices L and R.

    `psd` promises that the result is positive semidefinite; `error` bounds by how much
    an entry changes if L and R are not the exact ones.
    """
    return cov.derived(LowRank(cov._current, left, right, psd=psd, error=error))


def raised(cov: Covariance, kept: Sequence[tuple[int, int]] = ()) -> Covariance:
    """Return A with negative entries raised to 0, except the pairs in `kept`."""
    pairs = np.array(kept, dtype=np.intp).reshape(-1, 2)
    return cov.derived(Raised(cov._current, pairs))


def contrastive(target: Any, background: Any, weight: float = 1.0) -> Covariance:
    """Return A_t − g A_b, for sparse PCA of what the background does not have.

    Parameters
    ----------
    target, background : Covariance, or what `as_covariance` reads
        Of the same features.
    weight : float
        g ≥ 0; 0 is the target alone.

    Returns
    -------
    Covariance
        Indefinite in general; `target` is its attribute if the background is known to
        be positive semidefinite, as bounds for the target then bound the contrast.

    References
    ----------
    A. Abid, M. Zhang, V. Bagaria, J. Zou, "Exploring patterns enriched in a dataset
    with contrastive principal component analysis", Nature Communications 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance import contrastive
    >>> target, background = np.diag([5.0, 4.0, 1.0]), np.diag([5.0, 0.0, 0.0])
    >>> contrastive(target, background).diagonal()
    array([0., 4., 1.])
    """
    first, second = as_covariance(target), as_covariance(background)
    weight = check_real(weight, "weight", minimum=0.0, maximum=2.0**200)
    if first.n_features != second.n_features:
        raise ValueError(
            f"background has {second.n_features} features and must have "
            f"{first.n_features}; use the features of the target."
        )
    names, own = first.feature_names, second.feature_names
    if names is not None and own is not None and names != own:
        j = next(j for j in range(len(names)) if names[j] != own[j])
        raise ValueError(
            f"feature {j} is {own[j]!r} in background and must be {names[j]!r}; use "
            "the features of the target, in the same order."
        )
    if weight == 0:
        return first
    contrast = Contrast(first._current, second._current, weight)
    result = Covariance(contrast, names if names is not None else own)
    result.origins = first.origins + second.origins
    if second.known_psd:
        result.target = first
    return result
