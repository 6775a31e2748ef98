"""Tables in dask arrays: sums over blocks are tasks, and only sums move.

A block is a chunk of samples with all its columns, or with those that are asked for,
dense or sparse. The sums of blocks are added up by a tree, where the blocks are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..validation import FloatArray
from .kinds import is_sparse, refuse_dtype, refuse_shape
from .tables import ALL, Index, Tick, is_all, no_tick

T = TypeVar("T")
ARITY = 8  # of the tree that adds up sums


def dask_table(X: Any, argument: str) -> DaskTable:
    """Return the table that a dask array is."""
    refuse_dtype(X.dtype, argument)
    if any(math.isnan(length) for length in X.shape):
        raise ValueError(
            f"{argument} is a dask array with chunks of unknown sizes and cannot be "
            f"read; use {argument}.compute_chunk_sizes() first."
        )
    refuse_shape(X.shape, argument)
    return DaskTable(X)


class DaskTable:
    """A dask array of dense or scipy sparse chunks."""

    remote = True
    wants_factor = False

    def __init__(self, X: Any) -> None:
        self.X = X
        n, d = X.shape
        self.shape = (int(n), int(d))
        self.sparse = is_sparse(X._meta)

    def again(self) -> DaskTable:
        """Return the table itself: nothing is kept of it."""
        return self

    @property
    def joins(self) -> int:
        """Roundings that join the sums of all blocks."""
        lines = len(self.X.chunks[0])
        return (ARITY - 1) * max(1, math.ceil(math.log(max(2, lines), ARITY)))

    def total(
        self,
        of_block: Callable[[Any, int], T],
        columns: Index = ALL,
        tick: Tick = no_tick,
    ) -> T:
        """Return Σ of_block(block, number of its first sample) over all blocks."""
        from dask.base import compute
        from dask.delayed import delayed

        edges = np.cumsum([0, *self.X.chunks[1]])
        # Chunks without any of these columns are not computed.
        index = np.arange(self.shape[1])[columns]
        used = np.unique(np.searchsorted(edges, index, side="right") - 1)
        kept = np.concatenate([np.arange(edges[c], edges[c + 1]) for c in used])
        places = None if is_all(columns) else np.searchsorted(kept, index)
        parts, start = [], 0
        for line, rows in zip(self.X.to_delayed(), self.X.chunks[0], strict=True):
            block = delayed(joined)([line[c] for c in used], places)
            parts.append(delayed(of_block)(block, start))
            start += rows
        tick(0, 1)
        total = delayed(partial(reduce, add))
        while len(parts) > 1:
            groups = range(0, len(parts), ARITY)
            parts = [total(parts[i : i + ARITY]) for i in groups]
        (result,) = compute(parts[0])
        tick(1, 1)
        return result

    def take(self, columns: Index, rows: slice) -> FloatArray:
        """Return X[rows, columns], dense, as a float64 array of the caller's own."""
        values = self.X[rows][:, columns].compute()
        dense = values.toarray() if is_sparse(values) else values
        return np.array(dense, dtype=np.float64, order="C")


def joined(chunks: list[Any], columns: Any) -> Any:
    """Return chunks of the same samples as one block, as float64."""
    if is_sparse(chunks[0]):
        from scipy.sparse import csr_array, hstack

        block = csr_array(hstack(chunks), dtype=np.float64)
        block.sum_duplicates()
        return block if columns is None else block[:, columns]
    dense = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    dense = dense if columns is None else dense[:, columns]
    return np.ascontiguousarray(dense, dtype=np.float64)
