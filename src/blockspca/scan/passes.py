"""One pass of a scan over A: by rows, stored entries, sparse products or tiles."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, MemoryLimitError
from ..covariance.covariance import Covariance
from ..covariance.dask_source import DaskSource, dask_tops
from ..covariance.formed import arrays_of
from ..numerics.rounding import EPS
from ..numerics.threads import blas_limited_to, scan_threads
from .cuda_kernels import CudaKernels
from .device import CAPACITY, DeviceTiles
from .single import MOST_SAMPLES, SINGLE_FROM, SPARE, SingleTiles, single_bytes
from .tiles import Tiles

TILE_SIZE = 1024  # a tile of 8 MiB stays in cache between the product and the lists
SMALLEST_TILE = 64  # features: BLAS and threads gain nothing by smaller ones
SMALLEST_WIDTH = 8  # a limit on memory shortens the lists, but not below this
PANEL_BYTES = 2**25  # of data gathered for one side of a tile
SECONDS_BETWEEN_TICKS = 0.1  # how soon Ctrl-C and limits are noticed
SPARSE_SLICE = 2**21  # pairs of nonzeros between two calls of `check`
NANOSECONDS_PER_PAIR = 4.0  # of the sparse kernel, against n / 8 for an entry by BLAS

ALONE_UP_TO = 1000  # features; up to here another thread takes longer to start

Progress = Callable[[int, int], None]


class PassStopped(Exception):
    """Raised in a worker once the pass has been stopped; it ends the worker."""


class Pass:
    """One pass: its limits, its lists, and the method that suits the source of A."""

    def __init__(
        self,
        cov: Covariance,
        width: int,
        check: Callable[[], None] | None,
        features: NDArray[np.int64] | None,
        memory: int | None,
        progress: Progress | None,
    ) -> None:
        self.cov = cov
        self.features = features
        self.d = cov.n_features if features is None else len(features)
        self.memory = memory
        self.threads = 1 if self.d <= ALONE_UP_TO else scan_threads()
        self._check = check
        self._progress = progress
        self.width = max(1, min(width, self.d - 1))
        diagonal = np.array(cov.diagonal(), dtype=np.float64)
        self.diagonal = diagonal if features is None else diagonal[features]
        # An entry computed twice differs by at most twice its error.
        self.rounding = 2 * cov.entry_error
        self.tile_size = TILE_SIZE
        self.stopped = threading.Event()
        self._own_thread = threading.get_ident()  # where `check` may be called

    def run(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64], float]:
        """Return the diagonal, the lists (values, indices) and the rounding error."""
        pass_over = self.choose()
        shape = (self.d, self.width)
        self.values = np.zeros(shape)
        self.bits = self.values.view(np.int64)
        self.indices = np.full(shape, -1, dtype=np.int64)
        if self.d > 1:
            if self.threads == 1:
                pass_over()
            else:
                with ThreadPoolExecutor(self.threads) as self.pool:
                    pass_over()
        return self.diagonal, self.values, self.indices, self.rounding

    # -- the plan ------------------------------------------------------------------

    def choose(self) -> Callable[[], None]:
        """Choose the method and fit it into the memory allowed."""
        remote = self.cov.dask_source()
        if remote is not None:
            self.fit(0)
            return lambda: self.dask_data(remote)
        corrected = self.cov.dask_correction()
        if corrected is not None:
            self.fit(0)
            return lambda: self.dask_data(corrected[0], corrected[1:])
        stored = self.cov.stored_entries()
        if stored is not None:
            self.fit(0)
            return lambda: self.sparse_matrix(stored)
        sparse = self.cov.sparse_data()
        if sparse is not None and self.products_pay(sparse[0]):
            nonzeros = sparse[0].nnz
            self.fit(40 * nonzeros + 8 * self.d * (self.threads + 8))
            return lambda: self.sparse_data(*sparse)
        left_over = self.cov.sparse_correction()
        if left_over is not None:  # cheaper than strips, which compute all entries
            per_feature = self.threads + 12 + 4 * left_over[3].shape[1]
            self.fit(40 * left_over[0].nnz + 8 * self.d * per_feature)
            return lambda: self.corrected_sparse_data(*left_over)
        C = self.cov.dense_factor()
        if C is not None and self.single_pays(len(C)):
            if self.cov.on_device and self.width + SPARE <= CAPACITY // 2:
                self.fit(20 * self.d * (self.width + SPARE))  # what comes back
                return lambda: DeviceTiles(self, C).pass_over(CudaKernels())
            self.fit(single_bytes(self, len(C)))
            return lambda: SingleTiles(self, C).pass_over()
        if self.cov.has_columns:
            self.fit_tiles()
            return lambda: Tiles(self).pass_over()
        self.fit(8 * self.d * (4 if self.cov.in_memory else 12))
        return self.strips

    def fit(self, needed: int) -> None:
        """Shorten the lists until they and `needed` bytes fit into the memory."""
        if self.memory is None:
            return
        shortest = min(self.width, SMALLEST_WIDTH)
        room = (self.memory - needed) // (16 * self.d)
        if room < shortest:
            least = needed + 16 * self.d * shortest
            raise MemoryLimitError(
                f"the memory limit of {self.memory:,} bytes is too small for one pass "
                f"over {self.d:,} features, which needs at least {least:,} above the "
                "data; raise limits.memory."
            )
        self.width = int(min(self.width, room))

    def fit_tiles(self) -> None:
        if self.memory is None:
            return
        lists = 16 * self.d * self.width
        while self.tile_size > SMALLEST_TILE and (
            self.tile_bytes() + lists > self.memory
        ):
            self.tile_size //= 2
        self.fit(self.tile_bytes())

    def tile_bytes(self) -> int:
        """Bytes of panels and tiles, two tiles a worker if samples come in parts."""
        size = min(self.tile_size, self.d)
        n = self.cov.n_samples or 1
        tiles = 2 if n > self.samples_at_once() else 1
        panels = 4 * size * min(n, self.samples_at_once())
        worker = tiles * size**2 + panels + 8 * size
        return 8 * (self.threads * worker + 4 * self.d)

    def samples_at_once(self) -> int:
        """How many samples a panel of the current tile size holds."""
        budget = PANEL_BYTES
        if self.memory is not None:
            budget = min(budget, self.memory // 8)
        return max(64, budget // (8 * self.tile_size))

    def products_pay(self, X: Any) -> bool:
        """Whether the sparse kernel beats BLAS on tiles."""
        per_sample = np.diff(X.tocsr().indptr).astype(np.float64)
        pairs = float((per_sample**2).sum()) * (self.d / self.cov.n_features) ** 2
        # Tiles compute half of A, at n / 8 ns an entry, and pass over its lists.
        return pairs * NANOSECONDS_PER_PAIR < self.d**2 * (1 + X.shape[0] / 16)

    def single_pays(self, n: int) -> bool:
        """Whether to use single precision for entries that are not listed."""
        if n > MOST_SAMPLES or self.d < SINGLE_FROM or not self.diagonal.max() > 0:
            return False
        lists = 16 * self.d * self.width
        return self.memory is None or single_bytes(self, n) + lists <= self.memory

    # -- the passes ----------------------------------------------------------------

    def tick(self, done: int, total: int) -> None:
        if self._check is not None:
            self._check()
        if self._progress is not None:
            self._progress(done, total)

    def check_within_task(self) -> None:
        """Raise if the pass is to stop; to be called within long tasks."""
        if self.stopped.is_set():
            raise PassStopped
        if self._check is not None and threading.get_ident() == self._own_thread:
            self._check()

    def each(self, parts: int, work: Callable[[int, int], Any]) -> None:
        """Run work(start, stop) over equal parts of range(parts) on the threads."""
        if self.threads == 1 or parts < SMALLEST_TILE:
            work(0, parts)
            return
        bounds = np.linspace(0, parts, self.threads + 1).astype(int).tolist()
        list(self.pool.map(lambda pair: work(*pair), pairwise(bounds)))

    def distribute(
        self,
        tasks: Sequence[Any],
        make_worker: Callable[[], Callable[[Any], None]],
    ) -> None:
        """Have workers, one on each thread, take the tasks in order.

        This thread calls `tick`; if that raises, no further task begins.
        """
        total = len(tasks)
        threads = min(self.threads, total)
        if threads == 1:
            work = make_worker()
            for done, task in enumerate(tasks):
                self.tick(done, total)
                work(task)
            self.tick(total, total)
            return
        # Its popleft is atomic: workers need no lock.
        waiting = deque(tasks)

        def loop() -> None:
            work = make_worker()
            while True:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                try:
                    work(task)
                except PassStopped:
                    return

        try:
            # One BLAS thread for each worker: idle BLAS threads would take the cores
            # from workers that fill lists.
            with blas_limited_to(1):
                pending = {self.pool.submit(loop) for _ in range(threads)}
                while pending:
                    self.tick(max(0, total - len(waiting) - threads), total)
                    ended, pending = wait(
                        pending, SECONDS_BETWEEN_TICKS, return_when=FIRST_EXCEPTION
                    )
                    for future in ended:
                        future.result()
        except BaseException:
            # So that workers end within their tasks and the pool need not wait.
            self.stopped.set()
            raise
        finally:
            waiting.clear()
        self.tick(total, total)

    def strips(self) -> None:
        """Whole rows, some at a time: a matrix in memory, or data with gaps."""
        from .._kernels.rowtops import add_rows

        labels = np.arange(self.d)
        # 8 MiB of a matrix in memory, which is not copied, shared among the threads.
        at_once = max(1, 2**17 // self.d) * 8
        if not self.cov.in_memory:  # enough for a matrix product, 4 MiB
            at_once = max(1, 2**19 // self.d)
        if not self.cov.in_memory and self.memory is not None:
            room = self.memory - 16 * self.d * self.width
            at_once = max(1, min(at_once, room // (64 * self.d)))
        for start in range(0, self.d, at_once):
            self.tick(start, self.d)
            rows = labels[start : start + at_once]
            strip = self.strip(start, start + len(rows)).view(np.int64)
            self.each(
                len(rows),
                lambda a, b, rows=rows, strip=strip: add_rows(  # type: ignore[misc]
                    strip[a:b], rows[a:b], labels, self.bits, self.indices
                ),
            )

    def strip(self, start: int, stop: int) -> FloatArray:
        if self.features is None:
            return np.ascontiguousarray(self.cov.rows(slice(start, stop)))
        return np.ascontiguousarray(self.entries(np.arange(start, stop)))

    def entries(self, rows: NDArray[np.int64]) -> FloatArray:
        """Whole rows of A, or of the part of it that is scanned."""
        if self.features is None:
            return self.cov.rows(rows)
        return self.cov.submatrix(self.features[rows], self.features)

    def dask_data(
        self,
        source: DaskSource,
        correction: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        """Tiles as dask tasks, merged by a tree."""
        tops = dask_tops(source, self.width, self.features, self.tick, correction)
        self.values[:], self.indices[:] = tops

    def sparse_matrix(self, A: Any) -> None:
        """A sparse matrix in memory: its stored entries."""
        from .._kernels.sparse_tops import add_stored

        if self.features is not None:
            A = A[self.features][:, self.features]
        A.sum_duplicates()
        arrays = (*arrays_of(A), self.values, self.indices)
        self.tick(0, 1)
        self.each(self.d, lambda a, b: add_stored(a, b, *arrays))

    def sparse_data(self, X: Any, mean: FloatArray, factor: FloatArray) -> None:
        """Sparse data: rows of X'X by the samples that have the feature."""
        from .._kernels.sparse_tops import add_products

        X, mean, factor = self.scanned(X, mean, factor)
        shift = mean * factor * np.sqrt(X.shape[0])
        # By falling mean, so that the means' term bounds the rest of a row.
        order = np.argsort(-np.abs(shift), kind="stable").astype(np.int64)
        nonnegative = X.nnz == 0 or X.data.min() >= 0
        largest = float(factor.max()) if nonnegative else np.inf
        self.sparse_rows(
            add_products, X, order, factor[order], shift[order], order, largest
        )

    def corrected_sparse_data(
        self,
        X: Any,
        mean: FloatArray,
        factor: FloatArray,
        left: FloatArray,
        right: FloatArray,
    ) -> None:
        """Sparse data less a low rank, as residual components have them."""
        from .._kernels.corrected_tops import add_corrected

        X, mean, factor, left, right = self.scanned(X, mean, factor, left, right)
        shift = mean * factor * np.sqrt(X.shape[0])
        # |A_ij| ≤ sqrt(A_ii A_jj) holds for the exact matrix, whose variances differ by
        # the error of an entry; the factor below covers rounding of roots and norms.
        deviation = np.full(self.d, np.inf)
        if self.cov.known_psd:
            deviation = np.sqrt(np.maximum(self.diagonal, 0.0) + self.cov.entry_error)
        norm = np.linalg.norm(np.column_stack([shift, left, right]), axis=1)
        features = np.column_stack([factor, shift, deviation, norm])
        features[:, 2:] *= 1 + (2 * left.shape[1] + 8) * EPS
        order = np.argsort(-norm, kind="stable").astype(np.int64)
        per_feature = map(
            np.ascontiguousarray, (features[order], left[order], right[order])
        )
        self.sparse_rows(add_corrected, X, order, *per_feature, order)

    def scanned(self, X: Any, *per_feature: FloatArray) -> tuple[Any, ...]:
        """Restrict X and arrays by feature to the features that are scanned."""
        if self.features is None:
            return X, *per_feature
        return X[:, self.features], *(values[self.features] for values in per_feature)

    def sparse_rows(
        self, add: Callable[..., None], X: Any, order: NDArray[np.int64], *others: Any
    ) -> None:
        """Enter rows by a kernel that takes X by samples and by features, in order."""
        self.check_within_task()  # each conversion takes a part of a second
        by_feature = X.tocsc()[:, order]
        self.check_within_task()
        by_sample = by_feature.tocsr()
        by_sample.sum_duplicates()
        layout = (*arrays_of(by_sample), *arrays_of(by_feature), *others)
        self.check_within_task()
        cost = self.pair_counts(by_sample, by_feature)
        bounds = _equal_shares(cost, SPARSE_SLICE)
        lists = (self.values, self.indices)

        def worker() -> Callable[[tuple[int, int]], None]:
            total = np.zeros(self.d)
            return lambda rows: add(*rows, *layout, total, *lists)

        self.distribute(list(pairwise(bounds.tolist())), worker)

    def pair_counts(self, by_sample: Any, by_feature: Any) -> FloatArray:
        """Pairs of nonzeros that each row of A takes, and the pass over its shifts."""
        per_sample = np.diff(by_sample.indptr).astype(np.float64)
        running = np.concatenate([[0.0], np.cumsum(per_sample[by_feature.indices])])
        return np.diff(running[by_feature.indptr]) + self.d / 4


def _equal_shares(cost: FloatArray, share: float) -> NDArray[np.int64]:
    """Bounds of stretches of rows that cost about `share` each."""
    running = np.cumsum(cost)
    n_parts = max(1, int(np.ceil(running[-1] / share)))
    targets = running[-1] * np.arange(1, n_parts) / n_parts
    inner = np.searchsorted(running, targets)
    return np.unique(np.concatenate([[0], inner, [len(cost)]])).astype(np.int64)
