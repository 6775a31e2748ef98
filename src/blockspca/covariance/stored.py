"""Reads dense and sparse tables in HDF5 or Zarr files, in blocks of rows.

They are recognised by type and read through what h5py, zarr and anndata have in common,
so that none of them is imported. A sparse table is a group of `data`, `indices` and
`indptr`, as AnnData writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .._validation import FloatArray
from .ingest import refuse_nonfinite
from .sources import sample_parts

#: Stored entries of a sparse table that are read at a time: 32 MiB with their indices.
ENTRIES_AT_ONCE = 2**21
#: The same for a table by columns, where every block of rows takes a whole pass.
ENTRIES_BY_COLUMN = 2**24


def as_stored(X: Any) -> StoredRows | StoredSparse | None:
    """Return the table in a file that X stands for; None if it is none.

    An `h5py.Dataset` or `zarr.Array` of two dimensions, a group that AnnData wrote, or
    the sparse `X` of a backed AnnData.
    """
    if isinstance(X, (StoredRows, StoredSparse)):
        return X
    library = type(X).__module__.split(".")[0]
    if library == "anndata" and hasattr(X, "group") and hasattr(X, "to_memory"):
        return StoredSparse(X.group)
    if library not in ("h5py", "zarr"):
        return None
    if hasattr(X, "dtype") and len(X.shape) == 2 and np.dtype(X.dtype).kind in "fiub":
        return StoredRows(X)
    if hasattr(X, "keys") and all(name in X for name in ("data", "indices", "indptr")):
        return StoredSparse(X)
    return None


class StoredRows:
    """A dense table in a file; `table[rows]` and `table[rows, columns]` read it."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        n, d = dataset.shape
        self.shape = (int(n), int(d))
        self.dtype = np.dtype(dataset.dtype)
        self.size = int(n) * int(d)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not isinstance(rows, slice):
            return np.asarray(self.dataset[rows])[..., columns]
        start, stop, _ = rows.indices(self.shape[0])
        # Files give whole rows fast and single columns slowly, h5py only in order.
        parts = [
            np.asarray(self.dataset[start + p.start : start + p.stop])[:, columns]
            for p in sample_parts(stop - start, self.shape[1])
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def to_memory(self) -> np.ndarray:
        """Return all of it."""
        return np.asarray(self.dataset[:])

    def columns_of(self, columns: np.ndarray) -> FloatArray:
        """Return some columns, of all samples."""
        return self[:, columns].astype(np.float64)


class StoredSparse:
    """A sparse table in a file, by rows (CSR) or by columns (CSC).

    To read a block of rows of a CSC table takes a pass over all of it, so that blocks
    are larger.
    """

    def __init__(self, group: Any) -> None:
        self.group = group
        kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format")))
        self.by_column = "csc" in kind
        self.pointers = np.asarray(group["indptr"][:]).astype(np.int64)
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        n, d = (int(size) for size in shape)
        self.shape = (n, d)
        self.dtype = np.dtype(group["data"].dtype)
        self.nnz = int(self.pointers[-1])
        self.size = self.nnz

    def to_memory(self) -> Any:
        """Return all of it, as a scipy sparse array."""
        from scipy.sparse import csc_array, csr_array

        kind = csc_array if self.by_column else csr_array
        parts = (self.group["data"][:], self.group["indices"][:], self.pointers)
        return kind(parts, shape=self.shape)

    def bounds(self) -> list[slice]:
        """Blocks of rows, each with about ENTRIES_AT_ONCE stored entries."""
        n = self.shape[0]
        if self.by_column:  # entries for each row are not known: blocks of equal length
            count = max(1, -(-self.nnz // ENTRIES_BY_COLUMN))
            edges = np.linspace(0, n, min(count, n) + 1).astype(int)
        else:
            edges = _stretches(self.pointers, ENTRIES_AT_ONCE)
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows in turn, as float64 in CSR, indices ascending."""
        for rows in self.bounds():
            yield rows, self.read(rows)

    def read(self, rows: slice) -> Any:
        """Return a block of rows; refuses what is not finite."""
        block = self._by_column(rows) if self.by_column else self._by_row(rows)
        # Files may store an entry twice; and kernels rely on ascending indices.
        block.sum_duplicates()
        where = f"the entries stored in rows {rows.start} to {rows.stop - 1}"
        refuse_nonfinite(block, "X", where)
        return block

    def _by_row(self, rows: slice) -> Any:
        from scipy.sparse import csr_array

        pointers = self.pointers[rows.start : rows.stop + 1]
        data, indices = self._entries(int(pointers[0]), int(pointers[-1]))
        shape = (rows.stop - rows.start, self.shape[1])
        return csr_array((data, indices, pointers - pointers[0]), shape=shape)

    def _by_column(self, rows: slice) -> Any:
        from scipy.sparse import coo_array

        found: list[tuple[np.ndarray, ...]] = []
        edges = _stretches(self.pointers, ENTRIES_AT_ONCE)
        for first, last in pairwise(edges):
            pointers = self.pointers[first : last + 1]
            data, indices = self._entries(int(pointers[0]), int(pointers[-1]))
            columns = np.repeat(
                np.arange(first, last, dtype=np.int32), np.diff(pointers)
            )
            inside = (indices >= rows.start) & (indices < rows.stop)
            found.append((data[inside], indices[inside] - rows.start, columns[inside]))
        data, at_row, at_column = (np.concatenate(p) for p in zip(*found, strict=True))
        shape = (rows.stop - rows.start, self.shape[1])
        return coo_array((data, (at_row, at_column)), shape=shape).tocsr()

    def _entries(self, low: int, high: int) -> tuple[FloatArray, np.ndarray]:
        data = np.asarray(self.group["data"][low:high]).astype(np.float64)
        return data, np.asarray(self.group["indices"][low:high]).astype(np.int32)

    def columns_of(self, columns: np.ndarray) -> FloatArray:
        """Return some columns, of all samples, as a dense array."""
        blocks = [block[:, columns].toarray() for _, block in self.parts()]
        return np.concatenate(blocks)


def _stretches(pointers: np.ndarray, entries: int) -> np.ndarray:
    """Bounds of stretches of rows that store at most so many entries, or one row."""
    edges, last = [0], len(pointers) - 1
    while edges[-1] < last:
        behind = np.searchsorted(pointers, pointers[edges[-1]] + entries, side="right")
        edges.append(min(last, max(edges[-1] + 1, int(behind) - 1)))
    return np.array(edges)
