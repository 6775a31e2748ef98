"""The dense pass of a scan in single precision, with the listed entries in double.

Most entries are not listed. All are computed in single precision, at twice the speed,
into lists a few places longer than asked for; then the listed ones in double.

**What single precision misses.** Let A = C'C with columns c_i, in a unit in which the
longest has norm 1 at the most, v = 2⁻²⁴ the unit roundoff, and η = 2⁻¹²⁶, below which
numbers may be rounded to anything smaller (a processor may flush them to zero). Stored
are ĉ with |ĉ − c| ≤ v |c| + η for each number. A sum of n products, in any order and
with or without fused operations, errs by n v / (1 − n v) Σ |ĉ_i ĉ_j| + 2nη. With
Cauchy–Schwarz, and as norms are at most 1,

    |p_ij − c_i'c_j| ≤ δ_i = ε ‖c_i‖ max ‖c_j‖ + 8nη,
                         ε = (n + 2) v (1 + 2 (n + 4) v),

where 2 of n + 2 stand for the rounding of ĉ_i and ĉ_j, and the last factor for all
terms of second order while n v ≤ 1/8. So an entry that is not listed is at most

    β_i = (last value of the list, in single precision) + δ_i.

The m-th largest |A_ij| of row i is then at most the larger of β_i and of the m-th
largest among the listed ones in double. So values in a list that are below β_i are
raised to it. With the few places to spare, these are not among those asked for, unless
entries are within δ of each other.

A list that is not full has all entries that are not zero in single precision. As these
may be nonzero in double, such rows are computed again, in double.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..numerics.rounding import EPS, power_of_two
from .tiles import still_open

if TYPE_CHECKING:
    from .passes import Pass

UNIT_ROUNDOFF = 2.0**-24  # v
FLUSHED = 2.0**-126  # η
#: Features from which it pays: with fewer, a scan takes some hundredths of a second.
SINGLE_FROM = 4096
MOST_SAMPLES = 2**16  # n v ≤ 2⁻⁸
TILE_SIZE = 512  # a tile of 1 MiB stays in the second cache between product and lists
SPARE = 4  # places beside those asked for: entries this close are rare

Floats32 = NDArray[np.float32]


def single_error(n: int) -> float:
    """ε: the error of an entry in single precision, in units of ‖c_i‖ ‖c_j‖.

    Examples
    --------
    >>> from blockspca.scan.single import single_error
    >>> f"{single_error(100):.1e}"
    '6.1e-06'
    """
    v = UNIT_ROUNDOFF
    return (n + 2) * v * (1 + 2 * (n + 4) * v)


def single_bytes(job: Pass, n: int) -> int:
    """Bytes that the pass needs in addition to the lists of the result."""
    copies = 12 * n * job.d  # the data in both precisions
    lists = 20 * job.d * (job.width + SPARE)
    return copies + lists + 4 * job.threads * TILE_SIZE**2


class SingleLists:
    """Data and order of a pass in single precision, and how its lists are finished.

    Features are numbered by their place in `order`.
    """

    def __init__(self, job: Pass, C: FloatArray, order: NDArray[np.int64]) -> None:
        self.job, self.C, self.order = job, C, order
        norms = np.sqrt(np.maximum(job.diagonal[self.order], 0.0))
        norms *= 1 + (len(C) + 8) * EPS
        # A power of two, so that dividing by it is exact; norms are then at most 1.
        self.unit = 2 * power_of_two(float(norms.max()))
        self.norms = norms / self.unit
        self.width = min(job.width + SPARE, job.d - 1)

    def columns(self) -> NDArray[np.int64]:
        """The columns of C in the order of features here."""
        features = self.job.features
        return self.order if features is None else features[self.order]

    def finish(
        self, exact: FloatArray, indices: NDArray[np.int32], last: FloatArray
    ) -> None:
        """Order the lists by `exact`, their values in double; raise those below β.

        `last` are the last values of the lists in single precision.
        """
        job, width = self.job, self.job.width
        settle(exact, indices, last + self.missed())
        job.values[self.order] = exact[:, :width] * self.unit**2
        listed = indices[:, :width].astype(np.int64)
        job.indices[self.order] = np.where(listed < 0, -1, self.order[listed])
        # Entries that vanish in single precision may still be entries.
        short = (indices[:, -1] < 0) & (self.norms > 0)
        self.again(self.order[short])

    def missed(self) -> FloatArray:
        """δ of every row, in the unit, rounded upwards."""
        n = len(self.C)
        error = single_error(n) * float(self.norms.max())
        return (error * self.norms + 8 * n * FLUSHED) * (1 + 8 * EPS)

    def again(self, rows: NDArray[np.int64]) -> None:
        """Compute whole rows in double, for lists that are not full."""
        from .._kernels.rowtops import add_rows

        job = self.job
        job.values[rows], job.indices[rows] = 0.0, -1
        labels = np.arange(job.d)
        at_once = max(1, 2**19 // job.d)
        for start in range(0, len(rows), at_once):
            job.check_within_task()
            some = rows[start : start + at_once]
            strip = np.ascontiguousarray(job.entries(some))
            add_rows(strip.view(np.int64), some, labels, job.bits, job.indices)


class SingleTiles(SingleLists):
    """What the workers of a pass share: data by falling variance, lists, locks."""

    def __init__(self, job: Pass, C: FloatArray) -> None:
        order = np.argsort(-job.diagonal, kind="stable").astype(np.int64)
        super().__init__(job, C, order)
        d = job.d
        self.values: Floats32 = np.zeros((d, self.width), dtype=np.float32)
        self.bits = self.values.view(np.int32)
        self.indices = np.full((d, self.width), -1, dtype=np.int32)
        self.labels = np.arange(d, dtype=np.int32)
        self.strips = [slice(i, min(i + TILE_SIZE, d)) for i in range(0, d, TILE_SIZE)]
        self.locks = [Lock() for _ in self.strips]

    def pass_over(self) -> None:
        """Fill the lists, then compute what they list in double."""
        self.data = self.by_feature(np.float32)
        pairs = [
            (a, b) for a in range(len(self.strips)) for b in range(a, len(self.strips))
        ]
        self.job.distribute(pairs, lambda: SingleWorker(self))
        # Free these before the data in double are made.
        del self.data
        self.finish(self.exact(), self.indices, self.values[:, -1].astype(np.float64))

    def by_feature(self, kind: type) -> NDArray[Any]:
        """Rows of C', by falling variance, in the unit."""
        columns = self.columns()
        data: NDArray[Any] = np.empty((self.job.d, len(self.C)), dtype=kind)
        for start in range(0, len(columns), 4 * TILE_SIZE):
            part = columns[start : start + 4 * TILE_SIZE]
            data[start : start + len(part)] = self.C[:, part].T / self.unit
        return data

    def exact(self) -> FloatArray:
        """The listed entries in double."""
        from .._kernels.single_tops import listed_entries

        job = self.job
        exact = np.empty(self.values.shape)
        given = (self.by_feature(np.float64), self.indices, exact)
        job.each(job.d, lambda a, b: listed_entries(a, b, *given))
        job.check_within_task()
        return exact


def settle(values: FloatArray, indices: NDArray[np.int32], bound: FloatArray) -> None:
    """Order lists by their values, and raise those below `bound`, in place.

    Entries that are not listed are at most their row's `bound`. Lists that are not full
    are left to the caller.
    """
    # Lists are in order already, except for entries that are very close.
    rows = np.flatnonzero((np.diff(values, axis=1) > 0).any(axis=1))
    order = np.argsort(-values[rows], axis=1, kind="stable")
    values[rows] = np.take_along_axis(values[rows], order, axis=1)
    indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
    full = indices[:, -1] >= 0
    np.maximum(values, np.where(full, bound, 0.0)[:, None], out=values)


class SingleWorker:
    """Computes tiles in single precision into one buffer, and enters them in lists."""

    def __init__(self, tiles: SingleTiles) -> None:
        self.tiles = tiles
        self.out = np.empty(TILE_SIZE**2, dtype=np.float32)
        self.floors = np.empty(TILE_SIZE, dtype=np.int32)

    def __call__(self, pair: tuple[int, int]) -> None:
        """Compute what can still enter a list: all of a tile, or two parts of it."""
        from .._kernels.single_tops import COLUMNS, ROWS

        tiles, (a, b) = self.tiles, pair
        at_rows = tiles.labels[tiles.strips[a]]
        at_columns = tiles.labels[tiles.strips[b]]
        if a == b:
            self.enter((a,), at_rows, at_columns, ROWS)
            return
        open_rows, open_columns, whole = still_open(
            at_rows, at_columns, tiles.values[:, -1], tiles.norms
        )
        if whole:
            sides = ROWS * (len(open_rows) > 0) + COLUMNS * (len(open_columns) > 0)
            self.enter(pair, at_rows, at_columns, sides)
            return
        if len(open_rows):
            self.enter((a,), open_rows, at_columns, ROWS)
        if len(open_columns):
            self.enter((b,), at_rows, open_columns, COLUMNS)

    def enter(
        self,
        strips: tuple[int, ...],
        rows: NDArray[np.int32],
        columns: NDArray[np.int32],
        sides: int,
    ) -> None:
        """Put A[rows, columns] into the lists of its rows, its columns, or both."""
        from .._kernels.single_tops import add_tile

        tiles = self.tiles
        shape = (len(rows), len(columns))
        tile = self.out[: shape[0] * shape[1]].reshape(shape)
        np.dot(self.rows_of(rows), self.rows_of(columns).T, out=tile)
        with ExitStack() as held:
            for strip in strips:  # in ascending order, so that there is no deadlock
                held.enter_context(tiles.locks[strip])
            add_tile(
                tile.view(np.int32),
                rows,
                columns,
                tiles.bits,
                tiles.indices,
                self.floors,
                sides,
            )

    def rows_of(self, features: NDArray[np.int32]) -> Floats32:
        """The data of some features: a view where they are next to each other."""
        first, last = int(features[0]), int(features[-1])
        if last - first + 1 == len(features):
            return self.tiles.data[first : last + 1]
        return self.tiles.data[features]
