"""The dense pass of a scan: tiles of A = C'C, by BLAS, features by falling variance."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.sources import EPS
from ..numerics.rounding import power_of_two

if TYPE_CHECKING:
    from .passes import Pass


def single_rounding(n: int, deviation: float) -> float:
    """Bound the error of Σ c_si c_sj in float32, for |c_i| |c_j| ≤ deviation².

    Both factors are rounded, then n products are summed; twice that, to cover terms of
    second order and underflow.
    """
    return 2 * (n + 4) * 2.0**-24 * deviation**2


class Tiles:
    """What the workers of a pass share: the order, the strips of features, the locks.

    A strip is a stretch of features next to each other in variance; a tile belongs to
    two of them. Two workers may hold tiles of the same strip, so its lists are written
    under its lock, which is short beside the product.
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
        # In float32 the data are divided by a power of two, so that nothing overflows.
        self.unit = 1.0
        if job.single:
            largest = float(self.deviation.max())
            self.unit = power_of_two(largest)
            job.rounding += single_rounding(n, largest)

    def pass_over(self) -> None:
        n_strips = len(self.strips)
        pairs = [(a, b) for a in range(n_strips) for b in range(a, n_strips)]
        if len(pairs) == 1 or self.job.threads == 1:
            self.job.distribute(pairs, lambda: TileWorker(self), threads=1)
            return
        from threadpoolctl import threadpool_limits

        # One thread of BLAS for each worker: its own threads, waiting for the next
        # product, would take the cores from the lists.
        with threadpool_limits(1, user_api="blas"):
            self.job.distribute(pairs, lambda: TileWorker(self))


class TileWorker:
    """Computes tiles A[rows, columns] into one buffer and enters them in the lists."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.job = tiles.job
        size, job = tiles.size, tiles.job
        in_parts = job.single or (job.cov.n_samples or 1) > tiles.samples
        self.out = np.empty(size**2)
        self.part = np.empty(
            size**2 if in_parts else 0, dtype=np.float32 if job.single else np.float64
        )
        self.span = np.zeros(2 + size, dtype=np.int64)
        self.left: tuple[int, FloatArray | None] = (-1, None)

    def __call__(self, pair: tuple[int, int]) -> None:
        """Compute what can still enter a list: all of a tile, or two parts of it."""
        a, b = pair
        job, deviation = self.job, self.tiles.deviation
        rows, columns = self.tiles.strips[a], self.tiles.strips[b]
        if self.left[0] != a:
            self.left = (a, self.panel(rows))
        left = self.left[1]
        if a == b:
            self.enter_rows(a, self.product(rows, rows, left), rows, rows)
            return
        # No entry of row i here exceeds sd_i times the largest sd of the columns.
        floors = job.values[:, -1]
        open_rows = rows[floors[rows] < deviation[rows] * deviation[columns[0]]]
        open_columns = columns[
            floors[columns] < deviation[columns] * deviation[rows[0]]
        ]
        whole = len(rows) * len(columns)
        parts = len(open_rows) * len(columns) + len(rows) * len(open_columns)
        if 2 * parts > whole:
            block = self.product(rows, columns, left)
            if len(open_rows):
                self.enter_rows(a, block, rows, columns)
            if len(open_columns):
                self.enter_columns(b, block, rows, columns)
            return
        if len(open_rows):
            block = self.product(open_rows, columns, None)
            self.enter_rows(a, block, open_rows, columns)
        if len(open_columns):
            block = self.product(rows, open_columns, left)
            self.enter_columns(b, block, rows, open_columns)

    def panel(self, rows: NDArray[np.int64]) -> FloatArray | None:
        """Gather the columns of the data once for a strip, if they fit."""
        n = self.job.cov.n_samples or 0
        return self.gather(rows, 0, n) if n <= self.tiles.samples else None

    def gather(self, index: NDArray[np.int64], start: int, stop: int) -> FloatArray:
        if self.job.features is not None:
            index = self.job.features[index]
        block = self.job.cov.columns(index, start, stop)
        if not self.job.single:
            return block
        return (block / self.tiles.unit).astype(np.float32)

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
            if start:  # with many samples a tile takes seconds
                self.job.check_within_task()
            mine = self.gather(rows, start, stop) if left is None else left
            other = mine if columns is rows else self.gather(columns, start, stop)
            np.dot(mine.T, other, out=part)
            if in_parts and start == 0:
                out[...] = part
            elif in_parts:
                out += part
        if self.tiles.unit != 1.0:
            out *= self.tiles.unit**2
        return out

    def enter_rows(
        self,
        strip: int,
        block: FloatArray,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> None:
        from .._kernels.rowtops import add_rows

        with self.tiles.locks[strip]:
            add_rows(
                block.view(np.int64), rows, columns, self.job.bits, self.job.indices
            )

    def enter_columns(
        self,
        strip: int,
        block: FloatArray,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> None:
        from .._kernels.columntops import add_columns

        self.span[:2] = 0, len(columns)
        with self.tiles.locks[strip]:
            add_columns(
                block.view(np.int64),
                rows,
                columns,
                self.job.bits,
                self.job.indices,
                self.span,
            )
