"""Lists from a dense factor C of A = C'C: tiles of the symmetric half of A, by BLAS.

Features are sorted by falling norm and taken a panel of rows at a time. A tile is
skipped if |A_ij| ≤ ‖c_i‖ ‖c_j‖ shows that none of its entries can enter a list. A task
multiplies the panel with one block of columns. It owns the lists of the block, and has
a copy of the lists of the panel. After a wave of tasks the copies are merged in order.
So lists do not depend on the number of cores or on the order in which tasks end.

Wide data take single precision, see `single`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..linalg.rounding import gamma
from ..progress import Event
from ..validation import FloatArray, Indices
from .lists import Lists
from .single import exact_lists, is_single, single_data
from .sweep import ENTRIES, FEW, padded_lists, slices, sorted_lists, sweep

Columns = Callable[[Indices], FloatArray]

ROWS, COLUMNS = 1, 2  # sides of a tile, as in `_kernels.tiles`
TILE = 512  # a tile of 1 or 2 MiB stays in cache between product and lists
PANEL = 4  # tiles of a panel: tasks take some milliseconds
WAVE = 64  # tasks between two merges; the first waves are shorter, as lists are empty


def factor_lists(
    columns: Columns,
    n: int,
    d: int,
    width: int,
    run: Run,
    features: Indices | None = None,
) -> Lists:
    """Return the largest entries of A = C'C; see `Lists`.

    ``columns(indices)`` returns columns of C, n × m in float64. Several threads call it
    at a time. C counts as exact. A scan in single precision may raise the last values
    of a list if they nearly tie.
    """
    chosen = np.arange(d) if features is None else features
    norms = np.empty(len(chosen))

    def measure(part: slice) -> None:
        C = columns(chosen[part])
        norms[part] = np.sqrt(np.einsum("ij,ij->j", C, C)) * (1 + gamma(n + 4))

    sweep(run, measure, slices(len(chosen), 8 * ENTRIES // n))
    places = np.argsort(-norms, kind="stable")
    norms, order = norms[places], chosen[places]
    listed = min(width, max(len(chosen) - 1, 1))
    error = gamma(n) * float(norms[0]) ** 2 * (1 + 1e-9)

    lists: tuple[NDArray[Any], NDArray[Any]]
    if len(chosen) <= FEW and n * len(chosen) <= 8 * ENTRIES:
        C = columns(order)
        lists = sorted_lists(C.T @ C, listed)
    elif is_single(n, len(chosen), listed, float(norms[0]), run):
        data, unit, longer = single_data(columns, order, norms, n, listed, run)
        lists = HalfPass(
            data.__getitem__, norms / unit, longer, np.float32, TILE
        ).lists(run)
        del data
        lists = exact_lists(columns, order, norms, n, listed, lists, unit, run)
    else:
        tile = min(TILE, max(64, 2**22 // n))  # of 32 MiB at most, with all samples
        lists = HalfPass(
            lambda rows: np.ascontiguousarray(columns(order[rows]).T),
            norms, listed, np.float64, tile,
        ).lists(run)  # fmt: skip
    values, indices = lists
    return padded_lists(values, indices, width, error, features, places)


class HalfPass:
    """Lists of the products of all pairs of rows of data, each computed once.

    ``take(rows)`` returns rows of data of dtype `kind`, in C order. `norms` are upper
    bounds on their norms, in descending order.
    """

    def __init__(
        self,
        take: Callable[[slice], NDArray[Any]],
        norms: FloatArray,
        width: int,
        kind: type,
        tile: int,
    ) -> None:
        from .._kernels.tiles import tile_kernels

        bits = 8 * np.dtype(kind).itemsize
        self.add_tile, self.merge, self.none = tile_kernels(bits)
        self.integer = np.int32 if bits == 32 else np.int64
        self.take, self.norms, self.tile = take, norms, tile
        self.values: NDArray[Any] = np.zeros((len(norms), width), dtype=kind)
        self.patterns = self.values.view(self.integer)
        self.indices = np.full(self.values.shape, -1, dtype=self.integer)
        self.labels = np.arange(len(norms))

    def lists(self, run: Run) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return values and indices."""
        panels = slices(len(self.norms), PANEL * self.tile)
        wave = 4
        for number, panel in enumerate(panels):
            run.check()
            run.tell(Event(stage="scan", done=number, total=len(panels)))
            left, todo = self.take(panel), self.open_blocks(panel)
            while todo:
                blocks, todo = todo[:wave], todo[wave:]
                wave = min(2 * wave, WAVE)
                before = self.values[panel].copy(), self.indices[panel].copy()
                task = partial(self.enter, run, panel, left, before)
                shared = self.patterns[panel], self.indices[panel]
                for block, new in zip(blocks, run.map(task, blocks), strict=True):
                    self.merge(*shared, *new, block.start, block.stop)
        run.tell(Event(stage="scan", done=len(panels), total=len(panels)))
        return self.values, self.indices

    def open_blocks(self, panel: slice) -> list[slice]:
        """Return the blocks of columns with entries that may enter a list."""
        d = len(self.norms)
        starts = np.arange(panel.start, d, self.tile)
        last = self.values[:, -1]
        reach = self.norms[panel.start] * self.norms[starts]
        least = np.minimum.reduceat(last[panel.start :], starts - panel.start)
        is_open = (np.minimum(least, last[panel].min()) < reach) | (starts < panel.stop)
        return [slice(a, min(a + self.tile, d)) for a in starts[is_open].tolist()]

    def enter(
        self,
        run: Run,
        panel: slice,
        left: NDArray[Any],
        before: tuple[NDArray[Any], NDArray[Any]],
        block: slice,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Enter A[panel, block] into the lists of the block and copies of the panel's.

        Returns the copies.
        """
        run.check()
        own, places = before[0].copy(), before[1].copy()
        lists = (own.view(self.integer), places, self.patterns, self.indices)
        right, norms = self.take(block), self.norms
        floors = np.empty(len(right), dtype=self.integer)
        for part in slices(len(left), self.tile):
            rows = slice(panel.start + part.start, panel.start + part.stop)
            if rows.start > block.start:
                break
            is_open = own[part, -1] < norms[rows] * norms[block.start]
            sides = ROWS * bool(is_open.any())
            if rows.start < block.start:
                is_open = self.values[block, -1] < norms[block] * norms[rows.start]
                sides += COLUMNS * bool(is_open.any())
            if sides:
                tile = (left[part] @ right.T).view(self.integer)
                labels = self.labels[rows], self.labels[block]
                self.add_tile(
                    tile, *labels, panel.start, *lists, floors, sides, self.none
                )
        return lists[:2]
