"""Tables in dask arrays: sums over blocks are tasks, and only sums move.

A block is a chunk of samples with all its columns, or with those that are asked for,
dense or sparse. The sums of blocks are added up by a tree, where the blocks are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
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

        starts = np.cumsum([0, *self.X.chunks[0]])
        # Chunks of columns that nobody asks for are not computed.
        edges = list(pairwise(np.cumsum([0, *self.X.chunks[1]]).tolist()))
        index = None if is_all(columns) else np.arange(self.shape[1])[columns]
        parts = []
        for start, line in zip(starts, self.X.to_delayed(), strict=False):
            chunks, places = list(line), index
            if index is not None:
                used = [np.isin(np.arange(*edge), index).any() for edge in edges]
                chunks = [c for c, is_used in zip(line, used, strict=True) if is_used]
                at = [np.arange(*e) for e, u in zip(edges, used, strict=True) if u]
                place = np.zeros(self.shape[1], dtype=np.intp)
                kept = np.concatenate(at)
                place[kept] = np.arange(len(kept))
                places = place[index]
            block = delayed(joined)(chunks, places)
            parts.append(delayed(of_block)(block, int(start)))
        tick(0, 1)
        while len(parts) > 1:
            parts = [
                delayed(added)(parts[i : i + ARITY])
                for i in range(0, len(parts), ARITY)
            ]
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


def added(parts: list[Any]) -> Any:
    """Return the sum of some results."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result
