"""Chunks of a dask array that hold sparse samples: sums over them are dask tasks.

Each chunk gives its sums, its squares or its X'X where it is, and a tree adds them up;
d numbers, or d × d for X'X, go over the network for a chunk, never the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._validation import FloatArray, is_sparse
from .device_data import is_on_device, on_host
from .ingest import refuse_nonfinite
from .sparse_chunks import Tick, _no_tick
from .task_tree import TREE_ARITY, bounds, summed, tree


def has_sparse_chunks(X: Any) -> bool:
    """Tell whether the chunks of a dask array are sparse, of scipy or of cupyx."""
    return is_sparse(on_host(X._meta))


class DaskChunks:
    """Sparse samples in the chunks of a dask array, of rows and perhaps of columns."""

    is_local = False

    def __init__(self, X: Any) -> None:
        self.X = X
        n, d = X.shape
        self.shape = (int(n), int(d))
        levels = math.ceil(math.log(max(2, X.numblocks[0]), TREE_ARITY))
        self.joins = (TREE_ARITY - 1) * levels
        self.on_device = is_on_device(X._meta)

    def lines(self) -> list[tuple[int, int, Any]]:
        """Where each chunk of rows begins and ends, and the chunk as a task, in CSR."""
        import dask

        edges = bounds(self.X.chunks[0])
        return [
            (start, stop, dask.delayed(_beside)(list(line)))
            for (start, stop), line in zip(edges, self.X.to_delayed(), strict=True)
        ]

    def total(self, of_chunk: Callable[[Any, int], Any], tick: Tick = _no_tick) -> Any:
        import dask

        of_line = dask.delayed(of_chunk)
        parts = [of_line(line, start) for start, _, line in self.lines()]
        tick(0, 1)
        (found,) = dask.compute(tree(parts, summed))
        tick(1, 1)
        if isinstance(found, np.ndarray) and not found.flags.writeable:
            return found.copy()  # it came from another process as it was sent
        return found

    def rows(self, start: int, stop: int, columns: Any) -> FloatArray:
        import dask

        found = []
        for first, last, line in self.lines():
            low, high = max(start, first), min(stop, last)
            if low < high:
                take = dask.delayed(_some)(line, low - first, high - first, columns)
                found.append(take)
        return np.concatenate(dask.compute(*found))


def _beside(line: list[Any]) -> Any:
    """Chunks of the same rows as one, float64, in CSR; refuses what is not finite."""
    from scipy.sparse import csr_array, hstack

    line = [on_host(block) for block in line]
    whole = line[0] if len(line) == 1 else hstack(line)
    block = csr_array(whole, dtype=np.float64, copy=True)  # the user's stay as they are
    block.sum_duplicates()
    refuse_nonfinite(block, "X", "the stored entries of a chunk")
    return block


def _some(block: Any, low: int, high: int, columns: Any) -> FloatArray:
    return block[low:high][:, columns].toarray()
