"""The dense pass of a scan on a GPU: products, and lists of the largest entries.

A tile of products never leaves the device. Entries that exceed the floor of their row
or column (the last value of that list when it was last ordered) are appended to the
list; a list that fills up is ordered and cut. The tiles on the diagonal come first, so
that later few entries exceed the floors.

A list has room for CAPACITY entries. If a tile would overflow one, its entries are
removed again and the tile is entered in parts that cannot overflow, so that no entry is
lost, whatever the data.

The same steps run on any `Kernels`: those of `cuda_kernels` on a GPU, and, for tests,
those of `tests/host_kernels.py`, which say in NumPy what the former do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .single import SingleLists

if TYPE_CHECKING:
    from .passes import Pass

TILE_SIZE = 8192  # features: 256 MiB of products, against which a launch is nothing
CAPACITY = 128  # entries of a list before it is cut
ROWS, COLUMNS = 1, 2


@dataclass
class Lists:
    """Lists of the largest entries of all rows, on the device.

    `keys` (d × CAPACITY) hold the bits of |A_ij| in single precision, times 2³², plus
    j; `counts` how many of them; `floors` the bits that an entry has to exceed.
    """

    keys: Any
    counts: Any
    floors: Any


class Kernels(Protocol):
    """The operations that a device provides."""

    def load(self, C: FloatArray, columns: NDArray[np.int64], unit: float) -> None:
        """Take the data, a feature in each row, divided by `unit`."""
        ...

    def empty_lists(self, d: int) -> Lists: ...

    def product(self, rows: slice, columns: slice) -> Any:
        """Return the tile A[rows, columns], in single precision."""
        ...

    def append(
        self, tile: Any, lists: Lists, corner: tuple[int, int], part: Any, sides: int
    ) -> Any:
        """Append entries of `part` of a tile whose first one is A[corner].

        Those that exceed the floors, to the lists of their rows, of their columns, or
        both, and never to a place beyond CAPACITY; `counts` says how many there would
        be. Returns the largest count that changed, as an array of one number, which
        need not be there yet.
        """
        ...

    def compact(self, lists: Lists, rows: slice, width: int) -> None:
        """Order the lists of some rows, cut them to `width`, and set their floors."""
        ...

    def listed(
        self, lists: Lists, width: int
    ) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """Return indices, the last values in single precision, and A_ij in double."""
        ...


class DeviceTiles(SingleLists):
    """A pass whose products and lists are on a device; every tile is computed."""

    def __init__(self, job: Pass, C: FloatArray) -> None:
        super().__init__(job, C, np.arange(job.d))

    def pass_over(self, kernels: Kernels) -> None:
        """Fill the lists on the device; finish them on the host."""
        kernels.load(self.C, self.columns(), self.unit)
        lists = device_lists(kernels, self.job.d, self.width, self.job.tick)
        indices, last, exact = kernels.listed(lists, self.width)
        self.job.check_within_task()
        self.finish(exact, indices, last)


def device_lists(
    kernels: Kernels, d: int, width: int, tick: Callable[[int, int], None]
) -> Lists:
    """Fill the lists, `width` entries in each row, by one pass over the half of A."""
    strips = [slice(i, min(i + TILE_SIZE, d)) for i in range(0, d, TILE_SIZE)]
    lists = kernels.empty_lists(d)
    total = len(strips) * (len(strips) + 1) // 2
    done = 0
    for own in strips:
        tick(done, total)
        _narrow(kernels, kernels.product(own, own), lists, (own, own), width, ROWS)
        done += 1
    for a, rows in enumerate(strips):
        for columns in strips[a + 1 :]:
            tick(done, total)
            _enter(kernels, lists, (rows, columns), width)
            done += 1
    for own in strips:
        kernels.compact(lists, own, width)
    tick(total, total)
    return lists


def _enter(
    kernels: Kernels, lists: Lists, pair: tuple[slice, slice], width: int
) -> None:
    """Enter a tile off the diagonal into the lists of its rows and of its columns."""
    rows, columns = pair
    tile = kernels.product(rows, columns)
    before = [lists.counts[strip].copy() for strip in pair]
    whole = (slice(0, tile.shape[0]), slice(0, tile.shape[1]))
    corner = (rows.start, columns.start)
    most = int(kernels.append(tile, lists, corner, whole, ROWS + COLUMNS))
    if most > CAPACITY:
        # Resetting the counts removes the entries.
        for strip, counts in zip(pair, before, strict=True):
            lists.counts[strip] = counts
        _narrow(kernels, tile, lists, pair, width, ROWS + COLUMNS)
    elif most > CAPACITY // 2:
        for strip in pair:
            kernels.compact(lists, strip, width)


def _narrow(
    kernels: Kernels,
    tile: Any,
    lists: Lists,
    pair: tuple[slice, slice],
    width: int,
    sides: int,
) -> None:
    """Enter a tile in parts so narrow that no list can overflow."""
    rows, columns = pair
    corner = (rows.start, columns.start)
    all_rows, all_columns = slice(0, tile.shape[0]), slice(0, tile.shape[1])
    step = CAPACITY - width
    for side, strip, across in ((ROWS, rows, 1), (COLUMNS, columns, 0)):
        if not sides & side:
            continue
        kernels.compact(lists, strip, width)
        for start in range(0, tile.shape[across], step):
            stretch = slice(start, min(start + step, tile.shape[across]))
            part = (all_rows, stretch) if side == ROWS else (stretch, all_columns)
            kernels.append(tile, lists, corner, part, side)
            kernels.compact(lists, strip, width)
