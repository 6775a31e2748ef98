"""Tables of samples × features: arrays and sparse matrices in memory, memory maps.

A table hands out blocks of samples in their order, as float64: dense arrays in C order,
or CSR if `sparse`. With `columns` a sparse block may be CSC. Files and clusters have
tables of their own (`files.py`, `dask_table.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..validation import FloatArray

T = TypeVar("T")
#: of features: integers or a slice; tables get integers or `ALL`
Index = NDArray[np.intp] | slice
Tick = Callable[[int, int], None]

ALL = slice(None)
ENTRIES = 2**22  # of a block: 32 MiB as float64
STORED = 2**21  # entries of a sparse block: 24 MiB with their indices


def is_all(columns: Index) -> bool:
    """Tell whether an index takes all features."""
    return isinstance(columns, slice) and columns == ALL


def no_tick(done: int, total: int) -> None:
    """Show nothing."""


class Table(Protocol):
    """Samples × features, wherever they are."""

    shape: tuple[int, int]
    sparse: bool
    #: whether blocks are worked on elsewhere, so that `of_block` cannot write here
    remote: bool
    #: whether a factor in memory saves work and takes little
    wants_factor: bool

    @property
    def joins(self) -> int:
        """Roundings that join the sums of all blocks."""
        ...

    def total(
        self,
        of_block: Callable[[Any, int], T],
        columns: Index = ALL,
        tick: Tick = no_tick,
    ) -> T:
        """Return Σ of_block(block, number of its first sample) over all blocks."""
        ...

    def take(self, columns: Index, rows: slice) -> FloatArray:
        """Return X[rows, columns], dense, as a float64 array of the caller's own."""
        ...

    def again(self) -> Table:
        """Return the table without copies of it, to read the data as they are."""
        ...


class LocalTable:
    """A table whose blocks are worked on here; subclasses have `blocks`."""

    shape: tuple[int, int]
    sparse = False
    remote = False
    wants_factor = False

    def bounds(self, columns: Index = ALL) -> list[slice]:
        """Return the stretches of samples of the blocks."""
        n, d = self.shape
        width = d if isinstance(columns, slice) else len(columns)
        step = max(1, ENTRIES // max(width, 1))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    @property
    def joins(self) -> int:
        """Roundings that join the sums of all blocks."""
        return len(self.bounds())

    def again(self) -> Table:
        """Return the table without copies of it, to read the data as they are."""
        return self  # type: ignore[return-value]

    def within(self, rows: slice) -> list[slice]:
        """Return some samples in stretches of a block at most."""
        return [
            slice(max(part.start, rows.start), min(part.stop, rows.stop))
            for part in self.bounds()
            if part.start < rows.stop and rows.start < part.stop
        ]

    def block(self, rows: slice, columns: Index) -> Any:
        """Return X[rows, columns]; the caller does not write to it."""
        raise NotImplementedError

    def total(
        self,
        of_block: Callable[[Any, int], T],
        columns: Index = ALL,
        tick: Tick = no_tick,
    ) -> T:
        """Return Σ of_block(block, number of its first sample) over all blocks."""
        bounds = self.bounds(columns)
        result: Any = None
        for done, rows in enumerate(bounds):
            tick(done, len(bounds))
            part = of_block(self.block(rows, columns), rows.start)
            if result is None:
                result = part
            else:
                result += part
        return result


class ArrayTable(LocalTable):
    """A two-dimensional array in memory or in a `.npy` file, read in place."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape
        n, d = X.shape
        # It takes as much as X, or as one block.
        as_large = X.dtype == np.float64 and not isinstance(X, np.memmap)
        self.wants_factor = n <= d and (as_large or n * d <= ENTRIES)

    def block(self, rows: slice, columns: Index) -> FloatArray:
        """Return X[rows, columns]; the caller does not write to it."""
        return np.ascontiguousarray(self.X[rows, columns], dtype=np.float64)

    def take(self, columns: Index, rows: slice) -> FloatArray:
        """Return X[rows, columns], dense, as a float64 array of the caller's own."""
        return np.array(self.X[rows, columns], dtype=np.float64, order="C")


class SparseTable(LocalTable):
    """A scipy sparse matrix in memory: the caller's orientation and one of our own."""

    sparse = True

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape

    @cached_property
    def by_rows(self) -> Any:
        """X in CSR."""
        return self.X if self.X.format == "csr" else self.X.tocsr()

    @cached_property
    def by_columns(self) -> Any:
        """X in CSC."""
        return self.X if self.X.format == "csc" else self.X.tocsc()

    def again(self) -> Table:
        return SparseTable(self.X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the other orientation, which can be made again."""
        return {"X": self.X, "shape": self.shape}

    def bounds(self, columns: Index = ALL) -> list[slice]:
        """Return one stretch, or several if their numbers have to be converted."""
        if self.X.dtype == np.float64 or not isinstance(columns, slice):
            return [slice(0, self.shape[0])]
        return list(stretches(self.by_rows.indptr, STORED))

    def block(self, rows: slice, columns: Index) -> Any:
        """Return X[rows, columns] in CSR, in CSC for some columns."""
        if not isinstance(columns, slice):
            block = self.by_columns[:, columns]
        elif rows == slice(0, self.shape[0]):
            block = self.by_rows
        else:
            block = self.by_rows[rows]
        return block.astype(np.float64, copy=False)

    def take(self, columns: Index, rows: slice) -> FloatArray:
        """Return X[rows, columns], dense, as a float64 array of the caller's own."""
        if isinstance(columns, slice):
            return self.by_rows[rows][:, columns].astype(np.float64).toarray()
        return self.by_columns[:, columns][rows].astype(np.float64).toarray()


class Scaled(LocalTable):
    """Another table with column j times 2^−e_j, exactly.

    Only for `scale=True`, where any unit of a column gives the same correlations, and
    only for numbers whose squares would not be floats.
    """

    def __init__(self, table: Table, exponents: NDArray[np.intc]) -> None:
        self.table, self.exponents = table, exponents
        self.shape, self.sparse, self.remote = table.shape, table.sparse, table.remote

    @property
    def joins(self) -> int:
        """Roundings that join the sums of all blocks."""
        return self.table.joins

    def total(
        self,
        of_block: Callable[[Any, int], T],
        columns: Index = ALL,
        tick: Tick = no_tick,
    ) -> T:
        """Return Σ of_block(block, number of its first sample) over all blocks."""
        e = self.exponents[columns]

        def of_scaled(block: Any, start: int) -> T:
            if not isinstance(block, np.ndarray):
                at = block.indices
                if block.format == "csc":
                    at = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))
                parts = (np.ldexp(block.data, -e[at]), block.indices, block.indptr)
                return of_block(type(block)(parts, shape=block.shape), start)
            return of_block(np.ldexp(block, -e), start)

        return self.table.total(of_scaled, columns, tick)

    def take(self, columns: Index, rows: slice) -> FloatArray:
        """Return X[rows, columns], dense, as a float64 array of the caller's own."""
        return np.ldexp(self.table.take(columns, rows), -self.exponents[columns])


def stretches(pointers: NDArray[Any], stored: int) -> Iterator[slice]:
    """Yield stretches of rows that store at most so many entries, or one row."""
    start, last = 0, len(pointers) - 1
    while start < last:
        behind = int(np.searchsorted(pointers, pointers[start] + stored, "right")) - 1
        stop = min(last, max(start + 1, behind))
        yield slice(start, stop)
        start = stop
