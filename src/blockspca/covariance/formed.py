"""Forms A once, in memory, from data with more samples than features.

Then every k, component and bound reads d × d entries instead of n samples. Products are
added up in blocks of samples, so that their rounding grows with √n, not with n: with n
terms in blocks of b, a sum errs by (b + n/b) u. For sparse data the sums of blocks are
compensated, and their rounding does not grow at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._kernels.loading import load
from .._validation import FloatArray
from ..limits import Budget, Deadline
from ..numerics import cost as _cost
from ..numerics.threads import scan_threads
from ..progress import Event, Listener
from . import device_gram
from .dask_source import DaskSource, dask_gram
from .pairwise import PairwiseSource
from .rounding import additions
from .sources import (
    DenseDataSource,
    MappedDataSource,
    MomentSource,
    Source,
    SparseDataSource,
)
from .sparse_chunks import SparseChunksSource, Tick, _no_tick

if TYPE_CHECKING:
    from .covariance import Covariance

#: Bytes that A may take if no limit on memory is given: 11,585 features.
MEMORY = 2**30
_FEATURES_AT_ONCE = 256  # rows of A: wide enough for BLAS, few enough for the cache
# Sums of so many products go to A at a time, which costs d operations: a 64th part.
_PRODUCTS_AT_ONCE = 64


def worth_forming(
    source: Source, deadline: Deadline | None, memory: int | None
) -> bool:
    """Tell whether A is smaller than the data, and fits the memory and time there are.

    Under a limit on memory A may take half of it, as deflation makes a copy.
    """
    d = source.n_features
    # `n_samples` is None for data with gaps.
    n = len(source.X) if isinstance(source, PairwiseSource) else source.n_samples
    most = MEMORY if memory is None else memory // 2
    if n is None or n <= d or 8 * d * d > most:
        return False
    seconds = seconds_to_form(source)
    if not math.isfinite(seconds):
        return False
    # As much again is left for the proof.
    return deadline is None or deadline.affords(2 * seconds)


def seconds_to_form(source: Source) -> float:
    """Seconds that `form` takes, or infinity for what it does not form."""
    d, n = source.n_features, source.n_samples
    if isinstance(source, SparseChunksSource):  # as if all samples stored as many
        pairs = source.stored**2 / source.n_samples
        return _cost.sparse_gram(pairs) + _cost.passes(4, d * d * source.chunks.joins)
    if isinstance(source, SparseDataSource):
        stored = np.bincount(source.X.indices, minlength=n or 0).astype(float)
        return _cost.sparse_gram(float((stored**2).sum())) + _cost.passes(4, d * d)
    dense = (DenseDataSource, MappedDataSource, DaskSource)
    if isinstance(source, dense) and n is not None:
        return _cost.product(d, n, d) / 2 + _cost.passes(4, d * d)
    if isinstance(source, PairwiseSource):
        # Products of values, of what is observed, and of the two with each other.
        return 4 * _cost.product(d, len(source.X), d) + _cost.passes(8, d * d)
    return math.inf


def form(source: Source, tick: Tick = _no_tick) -> MomentSource:
    """Form A from data; `tick` is told of the work done, and may raise."""
    if isinstance(source, SparseChunksSource):
        A, error = _from_chunks(source, tick)
    elif isinstance(source, SparseDataSource):
        A, error = _from_sparse(source, tick)
    elif isinstance(source, (DenseDataSource, MappedDataSource)):
        A, error = _from_dense(source, tick)
    elif isinstance(source, DaskSource):
        A, error = dask_gram(source, tick), source.rounding_of(source.additions())
    elif isinstance(source, PairwiseSource):
        A, error = _from_gaps(source, tick), source.entry_error()
    else:
        raise TypeError(
            f"source = {type(source).__name__} is not data that A is formed of"
        )
    _mirror(A)
    formed = MomentSource(A, error, psd=source.known_psd, computed_from=source)
    formed.made_from = "data with more samples than features"
    return formed


def _from_dense(
    source: DenseDataSource | MappedDataSource, tick: Tick
) -> tuple[FloatArray, float]:
    """The upper half of C'C, in blocks of samples, and the error of an entry."""
    n, d = source.n_samples, source.n_features
    if isinstance(source, MappedDataSource):  # read once, in parts of all features
        block, features = next(iter(source.parts())).stop, d
        error = source.entry_error()  # accounts for the same parts
    else:
        block, features = block_size(n), _FEATURES_AT_ONCE
        error = source.rounding_of(additions(n, block))
    if isinstance(source, DenseDataSource) and source.on_device:
        return _dense_on_device(source, block, tick), error
    A = np.zeros((d, d))
    for i in range(0, d, features):
        rows = slice(i, min(i + features, d))
        for start in range(0, n, block):
            tick(i * n + start * (rows.stop - i), d * n)
            stop = min(start + block, n)
            C = source.columns(slice(i, d), start, stop)
            for j in range(i, rows.stop, _FEATURES_AT_ONCE):
                beside = slice(j - i, j - i + _FEATURES_AT_ONCE)
                target = A[j : min(j + _FEATURES_AT_ONCE, d), j:]
                target += C[:, beside].T @ C[:, j - i :]
    return A, error


def _dense_on_device(source: DenseDataSource, block: int, tick: Tick) -> FloatArray:
    """C'C by the GPU that the data came from, in the same blocks of samples."""
    n, d = source.n_samples, source.n_features

    def blocks() -> Iterator[FloatArray]:
        for start in range(0, n, block):
            tick(start, n)
            yield source.columns(slice(None), start, min(start + block, n))

    return device_gram.dense_gram(blocks(), d)


def _from_gaps(source: PairwiseSource, tick: Tick) -> FloatArray:
    """The upper half of A, each entry from the samples that have both features."""
    d = source.n_features
    A = np.empty((d, d))
    for i in range(0, d, _FEATURES_AT_ONCE):
        tick(i, d)
        rows = slice(i, min(i + _FEATURES_AT_ONCE, d))
        A[rows, i:] = source.submatrix(rows, slice(i, d))
    A[np.arange(d), np.arange(d)] = source.diagonal()
    return A


def block_size(n: int) -> int:
    """Samples in a block: about √n, and not so few that BLAS is slow."""
    return max(256, math.isqrt(n))


def _from_sparse(source: SparseDataSource, tick: Tick) -> tuple[FloatArray, float]:
    A = _products(source.X, scan_threads(), source.on_device, tick)
    _centre(A, source)
    stored = source.longest
    products = stored if stored <= _PRODUCTS_AT_ONCE else _PRODUCTS_AT_ONCE + 4
    return A, source.rounding_of(products)


def _from_chunks(source: SparseChunksSource, tick: Tick) -> tuple[FloatArray, float]:
    """X'X of each chunk where it is, added up: a rounding more for each addition."""
    # A worker of a cluster has a core; here there may be more.
    threads = scan_threads() if source.chunks.is_local else 1
    of_chunk = partial(chunk_gram, threads, source.on_device)
    A = source.chunks.total(of_chunk, tick)
    _centre(A, source)
    joins = source.chunks.joins
    return A, source.rounding_of(_PRODUCTS_AT_ONCE + 4 + joins)


def chunk_gram(threads: int, on_device: bool, block: Any, start: int) -> FloatArray:
    """The upper half of X'X of a chunk of sparse samples (CSR)."""
    return _products(block, threads, on_device, _no_tick)


def arrays_of(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pointers, indices and values of a CSR or CSC matrix, as kernels take them."""
    indices = X.indices.astype(np.int32, copy=False)
    return X.indptr.astype(np.int64), indices, np.ascontiguousarray(X.data)


def _products(X: Any, threads: int, on_device: bool, tick: Tick) -> FloatArray:
    """The upper half of X'X, X sparse: by threads, or to the same bit by a GPU."""
    by_sample = X.tocsr()
    by_sample.sort_indices()
    given = (*arrays_of(by_sample), *arrays_of(X.tocsc().sorted_indices()))
    if on_device:
        return device_gram.sparse_gram(given, _PRODUCTS_AT_ONCE, tick)
    load("sparse_gram")
    d = X.shape[1]
    A = np.zeros((d, d))

    def rows(start: int) -> None:
        from .._kernels.sparse_gram import add_rows

        stop = min(start + _FEATURES_AT_ONCE, d)
        add_rows(start, stop, _PRODUCTS_AT_ONCE, *given, np.empty(d), np.empty(d), A)

    starts = range(0, d, _FEATURES_AT_ONCE)
    with ThreadPoolExecutor(threads) as pool:
        try:
            for done, _ in enumerate(pool.map(rows, starts)):
                tick(done, len(starts))
        except BaseException:
            # Or Ctrl-C would wait for all rows that are left.
            pool.shutdown(cancel_futures=True)
            raise
    return A


def _centre(A: FloatArray, source: SparseDataSource) -> None:
    """Turn the upper half of X'X into that of A = D (X'X − n μμ') D, in place."""
    d, mean, factor = source.n_features, source.mean, source.factor
    for start in range(0, d, _FEATURES_AT_ONCE):
        stop = min(start + _FEATURES_AT_ONCE, d)
        finish = A[start:stop, start:]
        finish -= np.outer(source.n_samples * mean[start:stop], mean[start:])
        finish *= factor[start:stop, None]
        finish *= factor[start:]
    # Subtracting nμ² loses digits; the two-pass variance does not.
    A[np.arange(d), np.arange(d)] = source.diagonal()


def _mirror(A: FloatArray) -> None:
    """Copy the upper half of A to the lower one, by tiles that fit the cache."""
    d, step = len(A), _FEATURES_AT_ONCE
    for i in range(0, d, step):
        rows = slice(i, min(i + step, d))
        square = A[rows, rows]
        upper = np.triu(square)
        A[rows, rows] = upper + np.triu(square, 1).T
        for j in range(i + step, d, step):
            columns = slice(j, min(j + step, d))
            A[columns, rows] = A[rows, columns].T


def formed_or_interrupted(
    cov: Covariance, budget: Budget, tell: Listener
) -> tuple[Covariance, Listener]:
    """Return A in memory where that saves work, and the listener for what follows.

    Ctrl-C meanwhile is passed on to the solve, which can return what it has: the
    listener then raises it again at the first event.
    """
    try:
        return cov.formed(budget, budget.limits.memory, tell), tell
    except KeyboardInterrupt:
        return cov, _interrupt


def _interrupt(event: Event) -> None:
    raise KeyboardInterrupt
