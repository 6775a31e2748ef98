"""Where the entries of A come from: a matrix, or data in memory or on disk.

Each kind of input is a `Source`. It trusts its arguments; `Covariance` validates them
and is the only caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .fingerprint import Fingerprint, part_fingerprint, refuse_change
from .rounding import (
    EPS,
    additions,
    additions_by_levels,
    factor_norm_error,
    factored_error,
    in_units,
    moment_error,
)

Indices = NDArray[np.intp]
PART_BYTES = 2**25  # of samples read from disk at a time
ENTRIES_AT_ONCE = 2**22  # of rows of A held in memory: 32 MiB


def sample_parts(n: int, d: int) -> Iterator[slice]:
    """Stretches of n samples of d features that take about PART_BYTES each."""
    step = max(1, PART_BYTES // (8 * d))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


class Source(ABC):
    """What `Covariance` asks about a matrix; the defaults are those without data."""

    made_from = "another matrix"
    known_psd = False
    n_features: int
    n_samples: int | None = None
    has_columns = False  #: whether `columns` gives those of C, A = C'C
    no_factor = ""  #: why no such C is known
    on_device = False  #: whether the data came from a GPU, which then does the work
    #: means of the data, and what columns are divided by, where data stay in place
    given_moments: tuple[FloatArray, FloatArray] | None = None

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the A_ii, in an array of the caller's own."""

    @abstractmethod
    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        """Return A[rows, columns]; possibly a view, so the caller does not write."""

    @abstractmethod
    def entry_error(self) -> float:
        """Bound |computed A_ij − A_ij|; see `rounding`."""

    def matvec(self, x: FloatArray) -> FloatArray:
        """A x from rows of A, some at a time."""
        d = self.n_features
        step = max(1, ENTRIES_AT_ONCE // d)
        parts = (slice(i, i + step) for i in range(0, d, step))
        return np.concatenate([self.submatrix(part, slice(None)) @ x for part in parts])

    def gram(self, weights: FloatArray) -> FloatArray:
        raise ValueError(
            "gram needs a covariance made from data (Covariance.from_data); "
            f"{self.no_factor}."
        )

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        """Return C[start:stop, index], dense."""
        raise ValueError(
            "columns needs a covariance made from complete data (Covariance.from_data)."
        )

    def factor_error(self) -> float:
        """Bound ‖error of C‖, from centring and scaling."""
        return 0.0

    def sparse_parts(self) -> tuple[Any, FloatArray, FloatArray] | None:
        """X, μ and D of A = D (X'X − n μμ') D, where X is sparse and in memory."""
        return None

    def sparse_correction(self) -> tuple[Any, ...] | None:
        """X, μ, D, L and R of A = D (X'X − n μμ') D − (L R' + R L'), X as above."""
        return None

    def check_unchanged(self) -> None:
        """Raise `DataChangedError` if data that are read in place have changed."""
        return


class MatrixSource(Source):
    """A symmetric matrix that is in memory, dense or scipy sparse (CSR).

    A dense one is made read-only, as results computed from it are kept.
    """

    made_from = "a matrix"
    no_factor = "this one was made from a matrix, whose factor is not known"

    def __init__(self, A: Any) -> None:
        self.A = A
        self.sparse = not isinstance(A, np.ndarray)
        self.n_features = A.shape[0]
        if not self.sparse:
            A.flags.writeable = False

    def diagonal(self) -> FloatArray:
        return np.array(self.A.diagonal(), dtype=np.float64)

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        if self.sparse:
            return self.A[rows][:, columns].toarray()
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self.A[rows, columns]
        return self.A[rows[:, None], columns]

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.A @ x

    def entry_error(self) -> float:
        return 0.0

    def computed(self, A: FloatArray, error: float, *, psd: bool) -> MomentSource:
        """Return a source for a matrix that was computed from this one."""
        return MomentSource(A, error, psd=psd)


class DenseDataSource(Source):
    """A = C'C, with C the centred, scaled data divided by sqrt(n − ddof).

    `uncentred` are the A_jj before the second of two centrings, from which the error of
    C follows; A_jj itself if C is exact. `squares` is the number of roundings in the
    sum of squares behind a standard deviation; n if not known.
    """

    made_from = "dense data"
    known_psd = True
    has_columns = True
    n_samples: int

    def __init__(
        self,
        C: FloatArray,
        uncentred: FloatArray | None = None,
        diagonal: FloatArray | None = None,
        squares: int | None = None,
        on_device: bool = False,
    ) -> None:
        C.flags.writeable = False
        self.squares = squares
        self.on_device = on_device
        self.C = C
        self.n_samples, self.n_features = C.shape
        known = np.einsum("ij,ij->j", C, C) if diagonal is None else diagonal
        self._diagonal: FloatArray = known
        self.uncentred = known if uncentred is None else uncentred

    def is_same(self, other: DenseDataSource) -> bool:
        """Whether all numbers are equal to those of another source."""
        return (
            np.array_equal(self.C, other.C)
            and np.array_equal(self._diagonal, other._diagonal)
            and np.array_equal(self.uncentred, other.uncentred)
        )

    def changed(
        self, C: FloatArray, of_columns: Callable[[FloatArray], FloatArray]
    ) -> DenseDataSource:
        """Return a source with columns C, made from some of this one's or from all.

        `of_columns` makes of numbers, one for each old column, those for the new ones.
        """
        return DenseDataSource(C, of_columns(self.uncentred), on_device=self.on_device)

    def diagonal(self) -> FloatArray:
        return self._diagonal.copy()

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        return self.C[start:stop, index]

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        left = self.C[:, rows]
        # With the same array on both sides BLAS returns an exactly symmetric product.
        right = left if columns is rows else self.C[:, columns]
        return left.T @ right

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.C.T @ (self.C @ x)

    def gram(self, weights: FloatArray) -> FloatArray:
        return (self.C * weights) @ self.C.T

    def factor_error(self) -> float:
        return factor_norm_error(self.n_samples, float(self.uncentred.sum()))

    def entry_error(self) -> float:
        return self.rounding_of(self.n_samples)

    def rounding_of(self, products: int) -> float:
        """Bound the error of an entry whose sum of products takes so many roundings."""
        n, uncentred = self.n_samples, float(self.uncentred.max())
        largest = float(self._diagonal.max())
        squares = n if self.squares is None else self.squares
        return factored_error(
            n, largest, uncentred, n, products=products, squares=squares
        )


class MappedDataSource(Source):
    """A = C'C with C = (X − μ) D computed from X, on disk, when it is needed.

    X is memory-mapped and never copied as a whole; samples are read in parts. The mean
    is `mean` + `rest`, where None stands for a negligible rest, in units of 2^`units`
    for each feature, if given; `given_moments` are in units of X.
    """

    made_from = "data on disk"
    known_psd = True
    has_columns = True
    n_samples: int

    def __init__(
        self,
        X: Any,
        mean: FloatArray,
        factor: FloatArray,
        rest: FloatArray | None,
        units: np.ndarray | None,
    ) -> None:
        self.X, self.mean, self.factor = X, mean, factor
        self.rest, self.units = rest, units
        self.seen: Fingerprint | None = None
        self.given_moments = (mean, np.ones(len(mean)))
        self.n_samples, self.n_features = X.shape
        self._diagonal: FloatArray | None = None

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        block = np.asarray(self.X[start:stop, index], dtype=np.float64)
        if self.units is not None:
            block = in_units(block, self.units[index])
        block = block - self.mean[index]
        if self.rest is not None:
            block -= self.rest[index]
        block *= self.factor[index]
        return block

    def check_unchanged(self) -> None:
        """Compare with the fingerprint `seen`, by one more pass over the data."""
        total = np.zeros(self.n_features, dtype=np.uint64)
        for part in self.parts():
            total += part_fingerprint(self.X[part], part.start)
        if self.seen is not None:
            refuse_change(self.seen, total)

    def parts(self) -> Iterator[slice]:
        """Stretches of samples of about PART_BYTES."""
        return sample_parts(self.n_samples, self.n_features)

    def diagonal(self) -> FloatArray:
        if self._diagonal is None:
            total = np.zeros(self.n_features)
            for part in self.parts():
                C = self.columns(slice(None), part.start, part.stop)
                total += np.einsum("ij,ij->j", C, C)
            self._diagonal = total
        return self._diagonal.copy()

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        product: Any = 0.0
        for part in self.parts():
            left = self.columns(rows, part.start, part.stop)
            same = columns is rows
            right = left if same else self.columns(columns, part.start, part.stop)
            product = product + left.T @ right
        return product

    def matvec(self, x: FloatArray) -> FloatArray:
        product: Any = 0.0
        for part in self.parts():
            C = self.columns(slice(None), part.start, part.stop)
            product = product + C.T @ (C @ x)
        return product

    def gram(self, weights: FloatArray) -> FloatArray:
        gram = np.zeros((self.n_samples, self.n_samples))
        step = max(1, PART_BYTES // (8 * self.n_samples))
        for j in range(0, self.n_features, step):
            index = slice(j, min(j + step, self.n_features))
            C = self.columns(index, 0, self.n_samples)
            gram += (C * weights[index]) @ C.T
        return gram

    def factor_error(self) -> float:
        return factor_norm_error(self.n_samples, float(self._uncentred().sum()))

    def _uncentred(self) -> FloatArray:
        if self.rest is None:
            return self.diagonal()
        return self.diagonal() + self.n_samples * (self.rest * self.factor) ** 2

    def entry_error(self) -> float:
        # The mean is that of x − x₀, with x₀ the first sample, and |x₀ − μ| ≤ ‖z‖. A
        # `rest` left out is worth one eps of A_jj.
        n = self.n_samples
        added = additions(n, next(iter(self.parts())).stop)
        summed = (added + 3) * (1 + float(np.sqrt(n)))
        largest = float(self.diagonal().max())
        uncentred = float(self._uncentred().max())
        error = factored_error(
            n, largest, uncentred, int(summed), products=added, squares=added
        )
        return error + EPS * largest


class MomentSource(MatrixSource):
    """A matrix in memory that was computed, its entries known to ± `error`.

    `computed_from` is the source of the data behind it, if those may be read in place.
    """

    made_from = "chunks of data"
    # of pickles that earlier versions wrote
    known_psd = True
    computed_from: Source | None = None

    def __init__(
        self,
        A: FloatArray,
        error: float,
        *,
        psd: bool,
        computed_from: Source | None = None,
    ) -> None:
        super().__init__(A)
        self._error = error
        self.known_psd = psd
        self.computed_from = computed_from

    def entry_error(self) -> float:
        return self._error

    def check_unchanged(self) -> None:
        if self.computed_from is not None:
            self.computed_from.check_unchanged()

    def computed(self, A: FloatArray, error: float, *, psd: bool) -> MomentSource:
        new = MomentSource(A, error, psd=psd, computed_from=self.computed_from)
        new.made_from = self.made_from
        return new


class UncentredSource(Source):
    """A = C'C with C = (X − μ) D, of which X is multiplied and nμμ' then subtracted."""

    known_psd = True
    has_columns = True
    n_samples: int
    mean: FloatArray
    factor: FloatArray
    _diagonal: FloatArray

    def diagonal(self) -> FloatArray:
        return self._diagonal.copy()

    def moments(self) -> FloatArray:
        """‖D x_j‖², before nμμ' is subtracted: a large mean costs digits."""
        return self._diagonal + self.n_samples * (self.mean * self.factor) ** 2

    def factor_error(self) -> float:
        """Bound ‖error of C‖: every entry carries the rounding of its mean."""
        return factor_norm_error(self.n_samples, float(self.moments().sum()))

    def matvec(self, x: FloatArray) -> FloatArray:
        weights = self.factor if x.ndim == 1 else self.factor[:, None]
        scaled = weights * x
        return np.asarray(weights * self.centred_image(scaled, self.mean @ scaled))

    @abstractmethod
    def centred_image(self, x: FloatArray, shift: Any) -> FloatArray:
        """Return (X − 1μ')'(X x − shift), x a vector or the columns of a matrix."""


def image_of_rows(
    x: FloatArray, shift: Any, mean: FloatArray, X: Any, start: int = 0
) -> FloatArray:
    """(X − 1μ')'(X x − shift) for some rows of X; the first is `start` of all."""
    scores = X @ x - shift
    total = scores.sum(axis=0)
    back = X.T @ scores
    return back - (mean * total if x.ndim == 1 else np.outer(mean, total))


def is_all(index: Indices | slice) -> bool:
    """Whether an index takes everything."""
    return isinstance(index, slice) and index == slice(None)


class SparseDataSource(UncentredSource):
    """A = D (X'X − n μμ') D / (n − ddof), X sparse, D the scaling; X stays sparse."""

    made_from = "sparse data"

    def __init__(
        self, X: Any, mean: FloatArray, variance: FloatArray, factor: FloatArray
    ) -> None:
        # factor_j = 1 / (scale_j sqrt(n − ddof)): column j of C is factor_j (x_j − μ_j)
        self.X = X.tocsc()
        self.mean = mean
        self.factor = factor
        self._diagonal = variance
        self.n_samples, self.n_features = X.shape

    @cached_property
    def longest(self) -> int:
        """The most stored entries of a column, and so the most terms of a sum."""
        return int(np.diff(self.X.indptr).max())

    @cached_property
    def sums(self) -> int:
        """Roundings in the sum of a column."""
        return additions_by_levels(self.longest)

    @cached_property
    def _by_rows(self) -> Any:
        return self.X.tocsr()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copy of X by rows."""
        return {key: one for key, one in vars(self).items() if key != "_by_rows"}

    def sparse_parts(self) -> tuple[Any, FloatArray, FloatArray] | None:
        return self.X, self.mean, self.factor

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        block = self.X[:, index][start:stop].toarray()
        block -= self.mean[index]
        block *= self.factor[index]
        return block

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        left = self.X[:, rows]
        # CSR for all columns: each product would convert X, which is most of the work
        # for a few rows of A (Dorothea: 60 % of 94 s).
        right = self._by_rows if is_all(columns) else self.X[:, columns]
        product = (left.T @ right).toarray().astype(np.float64, copy=False)
        return self.centred(product, rows, columns)

    def centred(
        self, product: FloatArray, rows: Indices | slice, columns: Indices | slice
    ) -> FloatArray:
        """Turn (X'X)[rows, columns] into A[rows, columns], in place."""
        product -= np.outer(self.n_samples * self.mean[rows], self.mean[columns])
        product *= self.factor[rows][:, None]
        product *= self.factor[columns]
        # Subtracting nμ² loses digits; the two-pass variance does not.
        index = np.arange(self.n_features)
        at = index[rows]
        if is_all(columns):
            product[np.arange(len(at)), at] = self._diagonal[at]
            return product
        at_row, at_column = np.nonzero(at[:, None] == index[columns])
        product[at_row, at_column] = self._diagonal[at[at_row]]
        return product

    def centred_image(self, x: FloatArray, shift: Any) -> FloatArray:
        return image_of_rows(x, shift, self.mean, self.X)

    def gram(self, weights: FloatArray) -> FloatArray:
        # From centred columns: subtracting products of large means would cancel.
        n = self.n_samples
        gram = np.zeros((n, n))
        used = np.flatnonzero(weights)
        step = max(1, PART_BYTES // (8 * n))
        for j in range(0, len(used), step):
            index = used[j : j + step]
            C = self.columns(index, 0, n)
            gram += (C * weights[index]) @ C.T
        return gram

    def entry_error(self) -> float:
        return self.rounding_of(self.longest)  # only what is stored is added up

    def rounding_of(self, products: int) -> float:
        """Bound the error of an entry whose sum of products takes so many roundings."""
        largest, factor = float(self.moments().max()), float(self.factor.max())
        n = self.n_samples
        return moment_error(n, largest, factor, products=products, sums=self.sums)
