"""Tables in HDF5 and Zarr files, dense or sparse, read in blocks of samples.

They are read through what h5py, zarr and anndata have in common, so that none of them
is imported. A sparse table is a group of `data`, `indices` and `indptr`, by rows or by
columns, as AnnData writes it, or the sparse X of an AnnData that is backed by a file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..validation import FloatArray
from .kinds import refuse_dtype, refuse_shape, sparse_matrix
from .tables import (
    ALL,
    STORED,
    ArrayTable,
    Index,
    LocalTable,
    SparseTable,
    Table,
    stretches,
)

SMALL = 2**28  # bytes of numbers; a smaller table is read into memory


def file_table(X: Any, argument: str) -> Table:
    """Return the table that a dataset, array or group in a file is."""
    group = X.group if hasattr(X, "group") and hasattr(X, "to_memory") else X
    if hasattr(group, "dtype") and hasattr(group, "shape"):
        refuse_dtype(group.dtype, argument)
        refuse_shape(group.shape, argument)
        is_small = 8 * math.prod(group.shape) <= SMALL
        return ArrayTable(np.asarray(group[:])) if is_small else FileTable(group)
    if hasattr(group, "keys") and {"data", "indices", "indptr"} <= set(group.keys()):
        refuse_dtype(group["data"].dtype, argument)
        table = SparseFileTable(group)
        # A block of rows of a table by columns would take a pass over all of it.
        if 16 * group["data"].shape[0] <= SMALL or table.by_columns:
            return SparseTable(sparse_matrix(table.whole(), argument))
        return table
    raise TypeError(
        f"{argument} is a {type(X).__name__} and must be a table; use a dataset of two "
        "dimensions, or a group of data, indices and indptr."
    )


class FileTable(LocalTable):
    """A dense dataset of h5py or Zarr."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        n, d = dataset.shape
        self.shape = (int(n), int(d))

    def bounds(self, columns: Index = ALL) -> list[slice]:
        """Return the stretches of samples of the blocks: whole rows are read."""
        return super().bounds(ALL)

    def block(self, rows: slice, columns: Index) -> FloatArray:
        # Files give whole rows fast, and single columns slowly or only in order.
        block = np.asarray(self.dataset[rows])[:, columns]
        return np.ascontiguousarray(block, dtype=np.float64)

    def take(self, columns: Index, rows: slice) -> FloatArray:
        return np.concatenate([self.block(p, columns) for p in self.within(rows)])


class SparseFileTable(LocalTable):
    """A sparse group of h5py or Zarr, by rows (CSR) or by columns (CSC)."""

    sparse = True

    def __init__(self, group: Any) -> None:
        self.group = group
        attributes = dict(group.attrs)
        shape = attributes.get("shape", attributes.get("h5sparse_shape"))
        if shape is None:
            raise ValueError(
                "X is a sparse group without the attribute 'shape' and cannot be read; "
                "use a group that anndata wrote."
            )
        self.shape = (int(shape[0]), int(shape[1]))
        self.pointers = np.asarray(group["indptr"][:], dtype=np.int64)
        text = str(attributes.get("encoding-type", attributes.get("h5sparse_format")))
        self.by_columns = "csc" in text

    def whole(self) -> Any:
        """Return the table in memory."""
        from scipy.sparse import csc_array, csr_array

        parts = (self.group["data"][:], self.group["indices"][:], self.pointers)
        kind = csc_array if self.by_columns else csr_array
        return kind(parts, shape=self.shape)

    def bounds(self, columns: Index = ALL) -> list[slice]:
        """Return the stretches of samples of the blocks."""
        return list(stretches(self.pointers, STORED))

    def block(self, rows: slice, columns: Index) -> Any:
        from scipy.sparse import csr_array

        pointers = self.pointers[rows.start : rows.stop + 1]
        low, high = int(pointers[0]), int(pointers[-1])
        data = np.asarray(self.group["data"][low:high], dtype=np.float64)
        indices = np.asarray(self.group["indices"][low:high], dtype=np.int32)
        shape = (rows.stop - rows.start, self.shape[1])
        block = csr_array((data, indices, pointers - low), shape=shape)
        block.sum_duplicates()
        return block[:, columns]

    def take(self, columns: Index, rows: slice) -> FloatArray:
        parts = [self.block(part, columns) for part in self.within(rows)]
        return np.concatenate([part.toarray() for part in parts])
