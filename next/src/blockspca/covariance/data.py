"""Sources that read a table when an entry is asked for, and form A of it.

A = C'C with C = √w (X − 1μ') D. Dense blocks are centred before the product, so that
large means cost no digits; sparse ones after it, A = D (X'WX − n μμ') D.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..validation import FloatArray, Indices
from .moments import Moments, arrays_of, marks_of
from .rounding import additions, centred_error, factor_error, moment_error
from .sources import Columns, Factor, Matrix, Source, picked
from .tables import ALL, Index, SparseTable, Table, is_all

if TYPE_CHECKING:
    from ..scan import Lists

STRIPE = 256  # rows of A: wide enough for BLAS, few enough for the cache
CACHE = 2**15  # numbers that several passes read while they are in the cache
PRODUCTS = 64  # that a kernel adds up before it adds to A


@dataclass(frozen=True)
class Centring:
    """The arithmetic that turns columns of X into columns of C."""

    mean: FloatArray
    rest: FloatArray | None
    factor: FloatArray
    root: FloatArray | None

    def __call__(
        self, block: FloatArray, start: int, out: FloatArray | None = None
    ) -> FloatArray:
        """Return √w (x − mean − rest) · factor for a block of samples."""
        C = np.subtract(block, self.mean, out=out)
        if self.rest is not None:
            C -= self.rest
        C *= self.factor
        if self.root is not None:
            C *= self.root[start : start + len(C), None]
        return C


def centring(m: Moments, columns: Index = ALL, *, twice: bool = False) -> Centring:
    """Return the centring of some columns, `twice` even if entries do not need it."""
    once = m.table.sparse or (m.negligible and not twice)
    rest = None if once else m.rest[columns]
    return Centring(m.mean[columns], rest, m.factor[columns], m.root)


class TableFactor(Factor):
    """C, computed from a table by columns."""

    def __init__(self, m: Moments) -> None:
        self.m = m
        self.n, self.n_features = m.table.shape
        self.error = factor_error(m.table.joins, float(m.uncentred.sum()))
        self.size = math.sqrt(float(m.variance.sum()))

    def columns(self, indices: Index) -> FloatArray:
        X = self.m.table.take(indices, slice(0, self.n))
        return centring(self.m, indices, twice=True)(X, 0)


class OfTable(Source):
    """A = C'C, computed from a table and its moments."""

    known_psd = True

    def __init__(self, m: Moments, original: Table) -> None:
        self.m, self.table, self.original = m, m.table, original
        self.n_samples, self.n_features = m.table.shape

    def diagonal(self) -> FloatArray:
        return self.m.variance.copy()

    @property
    def factor(self) -> Factor:
        return TableFactor(self.m)

    def marks(self) -> NDArray[np.uint64]:
        return marks_of(self.original.again())

    def reads(self, rows: Index, columns: Index) -> tuple[Index, Index, Index]:
        """Return the features to read, and the places of rows and columns there."""
        left = picked(rows, self.n_features)
        if is_all(columns):
            return ALL, ALL if is_all(rows) else left, ALL
        if columns is rows:
            return left, ALL, ALL
        both = np.concatenate([left, picked(columns, self.n_features)])
        return both, slice(0, len(left)), slice(len(left), None)

    def formed(self, run: Run) -> Source:
        """Return A in memory if it is smaller than the data and fits the memory."""
        n, d = self.table.shape
        if n <= d or 16 * d * d > run.memory:
            return self
        A, error = self.form(run)
        mirror(A)
        np.fill_diagonal(A, self.m.variance)
        return Matrix(A, error, psd=True, n_samples=n)

    def error(self) -> float:
        return self.error_of(self.table.shape[0] + self.table.joins)

    @abstractmethod
    def error_of(self, products: int) -> float:
        """Bound the error of an entry whose sum takes so many roundings."""

    @abstractmethod
    def form(self, run: Run) -> tuple[FloatArray, float]:
        """Return the upper half of A, and the error of an entry."""


class DenseData(OfTable):
    """A dense table."""

    def block(self, rows: Index, columns: Index) -> FloatArray:
        features, left, right = self.reads(rows, columns)
        product = partial(dense_product, centring(self.m, features), left, right)
        return self.table.total(product, features)

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.table.total(partial(dense_image, centring(self.m), x))

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        from ..scan import factor_lists

        n, d = self.table.shape
        if self.table.remote:
            return super().lists(width, run, features)
        columns = self.factor.columns
        return self.with_error(factor_lists(columns, n, d, width, run, features))

    def error_of(self, products: int) -> float:
        m = self.m
        largest, uncentred = float(m.variance.max()), float(m.uncentred.max())
        return centred_error(products, m.table.joins, largest, uncentred, m.scaled)

    def form(self, run: Run) -> tuple[FloatArray, float]:
        n, d = self.table.shape
        step = max(STRIPE, math.isqrt(n))
        centre = centring(self.m)
        if self.table.remote:
            A = self.table.total(partial(dense_product, centre, ALL, ALL))
            return A, self.error()
        A = np.zeros((d, d))

        def add(block: FloatArray, start: int) -> int:
            """Add C'C of a block to the upper half, some rows of A at a time."""
            C = centre(block, start)

            def add_rows(i: int) -> None:
                for s in range(0, len(C), step):
                    part = C[s : s + step]
                    A[i : i + STRIPE, i:] += part[:, i : i + STRIPE].T @ part[:, i:]

            run.map(add_rows, range(0, d, STRIPE))
            return 0

        self.table.total(add, tick=lambda done, total: run.check())
        return A, self.error_of(additions(n, step) + self.table.joins)

    def in_columns(self) -> Columns:
        """Return the same with C computed once, in memory."""
        m, n = self.m, self.table.shape[0]
        C = np.empty(self.table.shape)
        centre = centring(m, twice=True)

        step = max(1, CACHE // self.n_features)

        def write(block: FloatArray, start: int) -> int:
            for at in range(0, len(block), step):
                part = block[at : at + step]
                centre(part, start + at, C[start + at : start + at + len(part)])
            return 0

        self.table.total(write)
        column = factor_error(self.table.joins, float(m.uncentred.max()))
        error, norm_error = self.error_of(n), TableFactor(m).error
        return Columns(C, m.variance, error, norm_error, column)


class SparseData(OfTable):
    """A sparse table."""

    def block(self, rows: Index, columns: Index) -> FloatArray:
        features, left, right = self.reads(rows, columns)
        product = partial(sparse_product, self.m.root, left, right)
        A: FloatArray = self.table.total(product, features)
        at, beside = (picked(index, self.n_features) for index in (rows, columns))
        centre_product(A, self.m, at, columns if features is ALL else beside)
        # Subtracting n μ² loses digits; the variance of two passes does not.
        if features is ALL:
            A[np.arange(len(at)), at] = self.m.variance[at]
        else:
            i, j = np.nonzero(at[:, None] == beside)
            A[i, j] = self.m.variance[at[i]]
        return A

    def matvec(self, x: FloatArray) -> FloatArray:
        m = self.m
        D = m.factor if x.ndim == 1 else m.factor[:, None]
        y = D * x
        image = partial(sparse_image, m.weights, y, m.mean @ y)
        parts: FloatArray = self.table.total(image)
        mean = m.mean if x.ndim == 1 else m.mean[:, None]
        return D * (parts[:-1] - mean * parts[-1])

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        return self.lists_of_view(self, width, run, features)

    def lists_of_view(
        self, view: Any, width: int, run: Run, features: Indices | None
    ) -> Lists:
        from ..scan import sparse_lists

        if not isinstance(self.table, SparseTable):
            return Source.lists(view, width, run, features)
        m = self.m
        X = with_root(m.root, self.table.block(slice(0, self.table.shape[0]), ALL), 0)
        lists = sparse_lists(
            X, m.factor, m.factor * m.mean * math.sqrt(m.n), width, run,
            low_rank=None if view is self else (view.left, view.right),
            diagonal=view.diagonal() + view.error() if view.known_psd else None,
            features=features,
        )  # fmt: skip
        return view.with_error(lists)

    def error_of(self, products: int) -> float:
        moments = float(self.m.uncentred.max())
        return moment_error(products, self.table.joins, moments)

    def form(self, run: Run) -> tuple[FloatArray, float]:
        mapper = None if self.table.remote else run.map
        A: FloatArray = self.table.total(
            partial(sparse_gram, self.m.root, mapper),
            tick=lambda done, total: run.check(),
        )
        if not A.flags.writeable:
            A = A.copy()  # it came from another process
        for i in range(0, len(A), STRIPE):
            rows = np.arange(i, min(i + STRIPE, len(A)))
            centre_product(A[i : i + STRIPE, i:], self.m, rows, slice(i, None))
        return A, self.error_of(PRODUCTS + 4 + self.table.joins)


def dense_product(
    centre: Centring, left: Index, right: Index, block: FloatArray, start: int
) -> FloatArray:
    """Return C'C of a block of samples, for some rows and columns."""
    C = centre(block, start)
    # With the same array on both sides BLAS returns an exactly symmetric product.
    L = C[:, left]
    R = L if left is right else C[:, right]
    return L.T @ R


def dense_image(
    centre: Centring, x: FloatArray, block: FloatArray, start: int
) -> FloatArray:
    """Return C'C x of a block of samples."""
    C = centre(block, start)
    return C.T @ (C @ x)


def with_root(root: FloatArray | None, block: Any, start: int) -> Any:
    """Return a sparse block with its samples times √w."""
    if root is None:
        return block
    samples = block.tocoo().row if block.format == "csr" else block.indices
    data = block.data * root[start + samples]
    parts = (data, block.indices, block.indptr)
    return type(block)(parts, shape=block.shape)


def sparse_product(
    root: FloatArray | None, left: Index, right: Index, block: Any, start: int
) -> FloatArray:
    """Return X'WX of a block of samples, for some rows and columns."""
    X = with_root(root, block, start)
    return np.asarray((X[:, left].T @ X[:, right]).toarray())


def sparse_image(
    weights: FloatArray | None, y: FloatArray, shift: Any, block: Any, start: int
) -> FloatArray:
    """Return X'W s and Σ W s for s = X y − shift, of a block of samples."""
    scores = block @ y - shift
    if weights is not None:
        w = weights[start : start + len(scores)]
        scores *= w if y.ndim == 1 else w[:, None]
    return np.concatenate([block.T @ scores, scores.sum(axis=0, keepdims=True)])


def sparse_gram(
    root: FloatArray | None, mapper: Callable[..., Any] | None, block: Any, start: int
) -> FloatArray:
    """Return the upper half of X'WX of a block of samples (CSR)."""
    from .._kernels.sparse_gram import add_rows

    X = with_root(root, block, start)
    X = X if X.has_sorted_indices else X.sorted_indices()
    parts = (*arrays_of(X), *arrays_of(X.tocsc()))
    d = X.shape[1]
    A = np.zeros((d, d))

    def rows(i: int) -> None:
        scratch = np.empty(d), np.empty(d)
        add_rows(i, min(i + STRIPE, d), PRODUCTS, *parts, *scratch, A)

    list((mapper or map)(rows, range(0, d, STRIPE)))
    return A


def centre_product(
    A: FloatArray, m: Moments, rows: NDArray[np.intp], columns: Index
) -> None:
    """Turn (X'WX)[rows, columns] into D (X'WX − n μμ') D, in place."""
    # In this order an entry equals its mirror image to the last bit.
    A -= m.n * np.outer(m.mean[rows], m.mean[columns])
    A *= np.outer(m.factor[rows], m.factor[columns])


def mirror(A: FloatArray) -> None:
    """Copy the upper half of A to the lower one, by tiles that fit the cache."""
    d = len(A)
    for i in range(0, d, STRIPE):
        rows = slice(i, min(i + STRIPE, d))
        square = np.triu(A[rows, rows])
        A[rows, rows] = square + np.triu(square, 1).T
        for j in range(rows.stop, d, STRIPE):
            columns = slice(j, min(j + STRIPE, d))
            A[columns, rows] = A[rows, columns].T
