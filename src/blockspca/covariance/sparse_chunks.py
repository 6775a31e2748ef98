"""Covariances of sparse data in chunks of samples, in a file or in a dask array.

A = D (X'X − n μμ') D. All that is needed of X are sums over its chunks: of columns and
their squares, of X'X, of products with vectors. `Chunks` computes them in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from .._validation import FloatArray, describe
from .fingerprint import Fingerprint, mixed_bits, refuse_change, sample_weights
from .ingest import (
    Preparation,
    refuse_out_of_range,
    refuse_overflow,
    sparse_scales,
    warn_of_means,
)
from .rounding import additions_by_levels, column_sums, out_of_range
from .sources import Indices, SparseDataSource, image_of_rows
from .stored import StoredSparse

#: Told (chunks done, chunks in all).
Tick = Callable[[int, int], None]


def _no_tick(done: int, total: int) -> None:
    """Show nothing."""


class Chunks(Protocol):
    """Sparse samples, some rows at a time."""

    shape: tuple[int, int]
    #: Whether chunks are worked on here, or by the workers of a cluster.
    is_local: bool
    #: Whether they are on GPUs, which then form X'X.
    on_device: bool
    #: The most roundings in the sum of the results of all chunks.
    joins: int

    def total(self, of_chunk: Callable[[Any, int], Any], tick: Tick = _no_tick) -> Any:
        """Return Σ of_chunk(chunk, first row) over the chunks, each in CSR."""
        ...

    def rows(self, start: int, stop: int, columns: Any) -> FloatArray:
        """Return X[start:stop, columns], dense."""
        ...


class FileChunks:
    """Blocks of rows of a table in a file."""

    is_local = True
    on_device = False

    def __init__(self, table: StoredSparse) -> None:
        self.table = table
        self.shape = table.shape
        self.joins = len(table.bounds())

    def total(self, of_chunk: Callable[[Any, int], Any], tick: Tick = _no_tick) -> Any:
        total: Any = None
        for done, (rows, block) in enumerate(self.table.parts()):
            tick(done, self.joins)
            one = of_chunk(block, rows.start)
            if total is None:
                total = one
            else:  # in place, where it is an array
                total += one
        tick(self.joins, self.joins)
        return total

    def rows(self, start: int, stop: int, columns: Any) -> FloatArray:
        found = []
        for rows in self.table.bounds():
            low, high = max(start, rows.start), min(stop, rows.stop)
            if low < high:
                block = self.table.read(rows)[low - rows.start : high - rows.start]
                found.append(block[:, columns].toarray())
        return np.concatenate(found)


@dataclass
class ColumnSums:
    """Sums, counts and extremes of the stored entries of columns, and fingerprints."""

    total: FloatArray
    stored: np.ndarray
    high: FloatArray
    low: FloatArray
    seen: Fingerprint

    def __add__(self, other: ColumnSums) -> ColumnSums:
        """The same for these samples and those of `other`."""
        return ColumnSums(
            self.total + other.total,
            self.stored + other.stored,
            np.maximum(self.high, other.high),
            np.minimum(self.low, other.low),
            self.seen + other.seen,
        )


def chunk_sums(block: Any, start: int) -> ColumnSums:
    """Sums over a chunk whose first sample is `start` of all."""
    columns = block.tocsc()
    d = columns.shape[1]
    stored = np.diff(columns.indptr)
    used = stored > 0
    first = columns.indptr[:-1][used]
    high, low = np.full(d, -np.inf), np.full(d, np.inf)
    high[used] = np.maximum.reduceat(columns.data, first)
    low[used] = np.minimum.reduceat(columns.data, first)
    return ColumnSums(
        column_sums(columns.data, columns.indptr),
        stored.astype(np.int64),
        high,
        low,
        chunk_fingerprint(columns, start),
    )


def chunk_fingerprint(columns: Any, start: int) -> Fingerprint:
    """The fingerprint of sparse samples (CSC), equal to that of the same dense ones."""
    columns = columns.tocsc()
    weights = sample_weights(start, start + columns.shape[0])
    terms = mixed_bits(columns.data + 0.0) * weights[columns.indices]  # −0 is 0
    sums = np.zeros(columns.shape[1], dtype=np.uint64)
    used = np.diff(columns.indptr) > 0
    if used.any():
        sums[used] = np.add.reduceat(terms, columns.indptr[:-1][used])
    return sums


def chunk_squares(mean: FloatArray, block: Any, start: int) -> FloatArray:
    """Σ (x − μ)² over the entries that a chunk stores."""
    columns = block.tocsc()
    owner = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
    return column_sums((columns.data - mean[owner]) ** 2, columns.indptr)


def chunk_product(rows: Any, columns: Any, block: Any, start: int) -> FloatArray:
    """(X'X)[rows, columns] of a chunk."""
    by_column = block.tocsc()
    left, right = by_column[:, rows], by_column[:, columns]
    return (left.T @ right).toarray().astype(np.float64, copy=False)


class SparseChunksSource(SparseDataSource):
    """Sparse data that stay where they are; X is never in memory as a whole.

    `seen` is their fingerprint, `longest` the most entries stored of a column, and
    `given_moments` the means and what columns are divided by.
    """

    made_from = "sparse data on disk or in dask"

    def __init__(
        self,
        chunks: Chunks,
        mean: FloatArray,
        variance: FloatArray,
        factor: FloatArray,
        sums: ColumnSums,
    ) -> None:
        self.chunks = chunks
        self.mean, self.factor = mean, factor
        self._diagonal = variance
        self.n_samples, self.n_features = chunks.shape
        self.seen = sums.seen
        self.given_moments = (mean, np.ones(len(mean)))
        self.on_device = chunks.on_device
        self.stored = int(sums.stored.sum())
        self.longest = int(sums.stored.max()) + chunks.joins
        self.sums = additions_by_levels(self.longest) + chunks.joins

    def sparse_parts(self) -> None:
        """None: X is not in memory."""

    def check_unchanged(self) -> None:
        """Compare with the fingerprint `seen`, by one more pass over the data."""
        refuse_change(self.seen, self.chunks.total(chunk_fingerprint))

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        block = self.chunks.rows(start, stop, index)
        block -= self.mean[index]
        block *= self.factor[index]
        return block

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        product = self.chunks.total(partial(chunk_product, rows, columns))
        return self.centred(product, rows, columns)

    def centred_image(self, x: FloatArray, shift: Any) -> FloatArray:
        image: FloatArray
        image = self.chunks.total(partial(image_of_rows, x, shift, self.mean))
        return image


def chunks_data(chunks: Chunks, prepare: Preparation) -> SparseChunksSource:
    """Means and variances by two passes over the chunks.

    Unlike columns in memory these are not shifted. `entry_error` includes what means
    that are large beside the deviations cost, and a warning says so where it is much.
    """
    n, d = chunks.shape
    sums: ColumnSums = chunks.total(chunk_sums)
    # Entries that are not stored are zeros.
    some = sums.stored < n
    high = np.where(some, np.maximum(sums.high, 0.0), sums.high)
    low = np.where(some, np.minimum(sums.low, 0.0), sums.low)
    mean = np.zeros(d)
    if prepare.center:
        constant = high == low
        mean = np.where(constant, high, sums.total / n)
    else:
        constant = (high == 0) & (low == 0)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        squares = chunks.total(partial(chunk_squares, mean))
        squares = squares + (n - sums.stored) * mean**2
    squares[constant] = 0.0
    variance = squares / (n - prepare.ddof)
    refuse_out_of_range(variance, constant, prepare)
    lost = out_of_range(variance) & ~constant
    if prepare.scale and lost.any():
        bad = describe(np.flatnonzero(lost).tolist(), prepare.names)
        raise ValueError(
            f"X holds numbers of feature(s) {bad} whose squares leave the range of "
            "float64; rescale X, or read it into memory first."
        )
    scales, variance, factor = sparse_scales(prepare, variance, constant, n)
    source = SparseChunksSource(chunks, mean, variance, factor, sums)
    if prepare.scale:
        source.given_moments = (mean, scales)
    refuse_overflow(source)
    warn_of_means(source, "Subtract a constant, or read X into memory.")
    return source
