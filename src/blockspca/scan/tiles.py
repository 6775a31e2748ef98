"""The dense pass of a scan: tiles of A = C'C, by BLAS, features by falling variance."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..numerics.rounding import EPS

if TYPE_CHECKING:
    from .passes import Pass


def still_open(
    rows: NDArray[Any], columns: NDArray[Any], floors: NDArray[Any], norms: FloatArray
) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """Return the rows and columns of a tile into whose lists an entry may still go.

    And whether the whole tile is to be computed: one large product is faster than two
    small ones of half its work. `floors` are the last values of all lists; `norms`, the
    roots of all variances, fall along rows and along columns.
    """
    # No entry of row i exceeds its norm times the largest one of the columns.
    open_rows = rows[floors[rows] < norms[rows] * norms[columns[0]]]
    open_columns = columns[floors[columns] < norms[columns] * norms[rows[0]]]
    parts = len(open_rows) * len(columns) + len(rows) * len(open_columns)
    return open_rows, open_columns, 2 * parts > len(rows) * len(columns)


class Tiles:
    """What the workers of a pass share: strips of features of similar variance, locks.

    Two workers may have tiles of the same strip, so its lists are written under its
    lock, for a short time compared with the product.
    """

    def __init__(self, job: Pass) -> None:
        self.job = job
        self.size = min(job.tile_size, job.d)
        self.samples = job.samples_at_once()
        order = np.argsort(-job.diagonal, kind="stable").astype(np.int64)
        self.strips = [order[i : i + self.size] for i in range(0, job.d, self.size)]
        self.locks = [Lock() for _ in self.strips]
        # A margin for the rounding of variances, so that the comparison is safe.
        n = job.cov.n_samples or 1
        self.deviation = np.sqrt(np.maximum(job.diagonal, 0.0)) * (1 + (n + 8) * EPS)

    def pass_over(self) -> None:
        n_strips = len(self.strips)
        # Largest variances first: they raise the floors of all lists, so that most of
        # the later tiles are skipped.
        pairs = [(a, b) for a in range(n_strips) for b in range(a, n_strips)]
        self.job.distribute(pairs, lambda: TileWorker(self))


class TileWorker:
    """Computes tiles A[rows, columns] into one buffer and enters them in the lists."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.job = tiles.job
        size, job = tiles.size, tiles.job
        in_parts = (job.cov.n_samples or 1) > tiles.samples
        self.out = np.empty(size**2)
        self.part = np.empty(size**2 if in_parts else 0)
        self.floors = np.empty(size, dtype=np.int64)
        self.left: tuple[int, FloatArray | None] = (-1, None)

    def __call__(self, pair: tuple[int, int]) -> None:
        """Compute what can still enter a list: all of a tile, or two parts of it."""
        a, b = pair
        rows, columns = self.tiles.strips[a], self.tiles.strips[b]
        if self.left[0] != a:
            self.left = (a, self.panel(rows))
        left = self.left[1]
        if a == b:
            self.enter(a, self.product(rows, rows, left), rows, rows)
            return
        open_rows, open_columns, whole = still_open(
            rows, columns, self.job.values[:, -1], self.tiles.deviation
        )
        if whole:
            block = self.product(rows, columns, left)
            if len(open_rows):
                self.enter(a, block, rows, columns)
            if len(open_columns):
                self.enter(b, block, rows, columns, by_column=True)
            return
        if len(open_rows):
            block = self.product(open_rows, columns, None)
            self.enter(a, block, open_rows, columns)
        if len(open_columns):
            block = self.product(rows, open_columns, left)
            self.enter(b, block, rows, open_columns, by_column=True)

    def panel(self, rows: NDArray[np.int64]) -> FloatArray | None:
        """Gather the columns of the data once for a strip, if they fit."""
        n = self.job.cov.n_samples or 0
        return self.gather(rows, 0, n) if n <= self.tiles.samples else None

    def gather(self, index: NDArray[np.int64], start: int, stop: int) -> FloatArray:
        if self.job.features is not None:
            index = self.job.features[index]
        return self.job.cov.columns(index, start, stop)

    def product(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        left: FloatArray | None,
    ) -> FloatArray:
        """A[rows, columns] in the buffer, samples in parts that fit."""
        n = self.job.cov.n_samples or 0
        shape = (len(rows), len(columns))
        area = shape[0] * shape[1]
        out = self.out[:area].reshape(shape)
        in_parts = len(self.part) > 0
        part = self.part[:area].reshape(shape) if in_parts else out
        for start in range(0, n, self.tiles.samples):
            stop = min(start + self.tiles.samples, n)
            if start:  # a tile of many samples takes seconds
                self.job.check_within_task()
            mine = self.gather(rows, start, stop) if left is None else left
            other = mine if columns is rows else self.gather(columns, start, stop)
            np.dot(mine.T, other, out=part)
            if in_parts and start == 0:
                out[...] = part
            elif in_parts:
                out += part
        return out

    def enter(
        self,
        strip: int,
        block: FloatArray,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        *,
        by_column: bool = False,
    ) -> None:
        """Put block = A[rows, columns] into the lists of its rows, or its columns."""
        lists = (block.view(np.int64), rows, columns, self.job.bits, self.job.indices)
        with self.tiles.locks[strip]:
            if by_column:
                from .._kernels.columntops import add_columns

                add_columns(*lists, self.floors)
            else:
                from .._kernels.rowtops import add_rows

                add_rows(*lists)
