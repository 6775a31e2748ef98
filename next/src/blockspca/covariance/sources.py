"""Sources of the entries of A: a matrix or a dense factor in memory.

A source trusts its arguments. `Covariance` validates them and is the only caller; no
other room asks for the kind of a source. `data.py` has tables, `views.py` changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..linalg.rounding import EPS
from ..validation import FloatArray, Indices
from .tables import ALL, Index

if TYPE_CHECKING:
    from ..scan import Lists

ENTRIES = 2**22  # of rows of A, or of columns of C, at a time: 32 MiB


def picked(index: Index, d: int) -> NDArray[np.intp]:
    """Return an index as integers."""
    return np.arange(d)[index]


class Factor(ABC):
    """C with A = C'C, n samples × d features."""

    n: int
    n_features: int
    #: bound on the spectral norm of the rounding error of C
    error: float
    #: ‖C‖_F, or a bound on it
    size: float

    @abstractmethod
    def columns(self, indices: Index) -> FloatArray:
        """Return C[:, indices]; the caller does not write to it."""

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return C diag(weights) C', n × n."""
        result = np.zeros((self.n, self.n))
        used, step = np.flatnonzero(weights), max(1, ENTRIES // self.n)
        for part in (used[at : at + step] for at in range(0, len(used), step)):
            C = self.columns(part)
            result += (C * weights[part]) @ C.T
        return result


class DenseFactor(Factor):
    """A factor that is a dense array in memory."""

    def __init__(self, C: FloatArray, error: float, size: float) -> None:
        self.C, self.error, self.size = C, error, size
        self.n, self.n_features = C.shape

    def columns(self, indices: Index) -> FloatArray:
        return self.C[:, indices]


class Source(ABC):
    """Entries of a symmetric matrix A, each known to ± `error`."""

    n_features: int
    n_samples: int | None = None
    known_psd = False
    in_memory = False  # whether A itself is a dense array

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the A_ii, in an array of the caller's own."""

    @abstractmethod
    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return A[rows, columns]; the caller does not write to it."""

    @abstractmethod
    def error(self) -> float:
        """Bound |computed A_ij − A_ij|; see `rounding`."""

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return A x from rows of A, some at a time."""
        d = self.n_features
        step = max(1, ENTRIES // d)
        stripes = (np.arange(at, min(at + step, d)) for at in range(0, d, step))
        return np.concatenate([self.block(rows, ALL) @ x for rows in stripes])

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        """Return the largest entries of rows; see `scan.Lists`."""
        from ..scan import block_lists

        lists = block_lists(self.block, self.n_features, width, run, features)
        return self.with_error(lists)

    def with_error(self, lists: Lists) -> Lists:
        """Return lists of computed entries with the error of these entries added."""
        return replace(lists, error=(lists.error + self.error()) * (1 + EPS))

    def lists_of_view(
        self, view: Any, width: int, run: Run, features: Indices | None
    ) -> Lists:
        """Return the lists of a low-rank change of this source."""
        return Source.lists(view, width, run, features)

    @property
    def factor(self) -> Factor | None:
        """C with A = C'C, if one is known."""
        return None

    @property
    def columns(self) -> Columns | None:
        """The source itself if C is a dense array in memory, else None."""
        return None

    def largest(self) -> float:
        """Bound |A_ij| from above, up to `error`; this is for semidefinite A."""
        return float(self.diagonal().max())  # |A_ij| ≤ √(A_ii A_jj)

    def subset(self, indices: NDArray[np.intp]) -> Source:
        """Return the source of A[indices, indices]."""
        from .views import Subset

        return Subset(self, indices)

    def formed(self, run: Run) -> Source:
        """Return A in memory if that saves work, else this source."""
        return self

    def marks(self) -> NDArray[np.uint64] | None:
        """Return the fingerprint of data that are read in place, None if none are."""
        return None


class Matrix(Source):
    """A symmetric matrix in memory, dense or scipy sparse (CSR)."""

    def __init__(
        self,
        A: Any,
        error: float = 0.0,
        *,
        psd: bool = False,
        n_samples: int | None = None,
    ) -> None:
        self.A, self._error, self.known_psd = A, error, psd
        self.n_samples = n_samples
        self.n_features = A.shape[0]
        self.in_memory = isinstance(A, np.ndarray)
        if self.in_memory:
            A.flags.writeable = False

    def diagonal(self) -> FloatArray:
        return np.array(self.A.diagonal(), dtype=np.float64)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        if not self.in_memory:
            return np.asarray(self.A[rows][:, columns].toarray())
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.asarray(self.A[rows, columns])
        return np.asarray(self.A[rows[:, None], columns])

    def matvec(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.A @ x)

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        from ..scan import matrix_lists, stored_lists

        scan = matrix_lists if self.in_memory else stored_lists
        return self.with_error(scan(self.A, width, run, features))

    def error(self) -> float:
        return self._error

    def largest(self) -> float:
        values = self.A if self.in_memory else self.A.data
        return float(max(values.max(initial=0.0), -values.min(initial=0.0)))

    def subset(self, indices: NDArray[np.intp]) -> Source:
        if self.in_memory:
            A = self.block(indices, indices)
        else:
            A = self.A[indices][:, indices]
        return Matrix(A, self._error, psd=self.known_psd, n_samples=self.n_samples)


class Columns(Source):
    """A = C'C, with C a dense array in memory; entries err by `error` at most."""

    known_psd = True

    def __init__(
        self,
        C: FloatArray,
        diagonal: FloatArray,
        error: float,
        norm_error: float,
        column_error: float,
    ) -> None:
        C.flags.writeable = False
        self.C, self._diagonal, self._error = C, diagonal, error
        self.column_error = column_error  # bound on the norm of that of a column
        self._factor = DenseFactor(C, norm_error, float(np.sqrt(diagonal.sum())))
        self.n_samples, self.n_features = C.shape

    def diagonal(self) -> FloatArray:
        return self._diagonal.copy()

    def block(self, rows: Index, columns: Index) -> FloatArray:
        left = self.C[:, rows]
        # With the same array on both sides BLAS returns an exactly symmetric product.
        right = left if columns is rows else self.C[:, columns]
        return left.T @ right

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.C.T @ (self.C @ x)

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        from ..scan import factor_lists

        n, d = self.C.shape
        columns = self._factor.columns
        return self.with_error(factor_lists(columns, n, d, width, run, features))

    def error(self) -> float:
        return self._error

    @property
    def factor(self) -> Factor:
        return self._factor

    def subset(self, indices: NDArray[np.intp]) -> Source:
        C = np.ascontiguousarray(self.C[:, indices])
        errors = self._error, self._factor.error, self.column_error
        return Columns(C, self._diagonal[indices], *errors)

    @property
    def columns(self) -> Columns:
        return self
