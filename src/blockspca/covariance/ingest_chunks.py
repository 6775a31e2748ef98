"""Accumulates means and moments of samples that come in chunks, each seen once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import (
    FloatArray,
    MemoryLimitError,
    describe,
    is_sparse,
    numeric_array,
    split_names,
)
from .ingest import Preparation, refuse_out_of_range
from .rounding import column_exponents, in_units, moment_error, out_of_range
from .sources import MomentSource


class _Moments:
    """Mean and centred moments of the samples so far, relative to a fixed point.

    The point, near the mean of the first chunk, is subtracted from every sample, and
    each chunk is centred twice, so that all terms are of the size of deviations.

    Notes
    -----
    With `c` chunks of m samples at the most and in units of u · `largest`, the largest
    moment about the point: products, sums and merges are n + 2c + 6 additions of
    positive terms. The means err by (m + 2c + 4) u, which by Cauchy–Schwarz over the
    merges, Σ nm/(n+m) step² being part of the moments, counts once for each feature.
    Together below 8 (n + 4c + 4), scales included: `moment_error` for n + 4c samples.
    """

    def __init__(self, block: FloatArray, prepare: Preparation) -> None:
        d = block.shape[1]
        self.center = prepare.center
        self.first = block[0].copy()
        self.constant = np.ones(d, dtype=bool)
        self.n = self.n_chunks = 0
        # Any unit of a feature gives the same correlations: a power of two near the
        # first numbers that are not zero.
        self.units = np.zeros(d, dtype=np.intc) if prepare.scale else None
        self.without_unit = np.ones(d, dtype=bool)
        self.point = np.zeros(d)
        if prepare.center:
            same = (block == self.first).all(axis=0)
            shown = self._in_units(block)
            self.point = np.where(same, shown[0], shown.mean(axis=0))
        self.moments, self.mean = np.zeros((d, d)), np.zeros(d)

    def _in_units(self, block: FloatArray) -> FloatArray:
        if self.units is not None and self.without_unit.any():
            largest = np.abs(block).max(axis=0)
            found = self.without_unit & (largest > 0)
            self.units[found] = column_exponents(largest[found])
            self.without_unit &= ~found
        return in_units(block, self.units)

    def add(self, block: FloatArray) -> None:
        """Merge the samples of a chunk."""
        self.constant &= (block == self.first).all(axis=0)
        n, m = self.n, len(block)
        block = self._in_units(block)
        if self.center:
            centred = block - self.point
            own = centred.mean(axis=0)
            centred -= own
            again = centred.mean(axis=0)
            centred -= again
            self.moments += centred.T @ centred
            step = own + again - self.mean
            self.moments += np.outer(step, step) * (n * m / (n + m))
            self.mean += step * (m / (n + m))
        else:
            self.moments += block.T @ block
        self.n, self.n_chunks = n + m, self.n_chunks + 1


def accumulate(
    chunks: Iterable[Any],
    prepare: Preparation,
    memory_limit: int | None,
) -> tuple[MomentSource, tuple[str, ...] | None]:
    """Moments of chunks of samples, each merged into those before it."""
    if hasattr(chunks, "shape") or not hasattr(chunks, "__iter__"):
        raise TypeError(
            f"chunks is of type {type(chunks).__name__}; pass several tables of rows, "
            "such as [X[:1000], X[1000:]], or one table to Covariance.from_data."
        )
    ddof = prepare.ddof
    sums: _Moments | None = None
    d, names = 0, None
    for n_chunks, chunk in enumerate(chunks):
        values, chunk_names = split_names(chunk)
        block = values.toarray() if is_sparse(values) else values
        block = numeric_array(block, "a chunk")
        if sums is None:
            d, names = block.shape[1], chunk_names
            if memory_limit is not None and 16 * d**2 > memory_limit:
                raise MemoryLimitError(
                    f"memory_limit = {memory_limit:,} bytes is too small: {d:,} "
                    f"features need {16 * d**2:,}; raise it, or pass all data at once "
                    "to Covariance.from_data, which forms no d × d matrix."
                )
        if block.shape[1] != d:
            raise ValueError(
                f"chunk {n_chunks} has {block.shape[1]} columns and the first has {d}; "
                "pass chunks of rows with the same features."
            )
        if not np.isfinite(block).all():
            raise ValueError(
                f"chunk {n_chunks} has missing or infinite values; fill or drop them."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            if sums is None:
                sums = _Moments(block, prepare)
            sums.add(block)
    n = 0 if sums is None else sums.n
    if n - ddof < 1 or sums is None:
        raise ValueError(
            f"the chunks hold {n} sample(s), too few for ddof = {ddof}; pass at least "
            f"{ddof + 1} rows."
        )
    known = names if prepare.names is None else prepare.names
    return _finished(sums, replace(prepare, names=known)), names


def _finished(sums: _Moments, prepare: Preparation) -> MomentSource:
    """Divide by n − ddof and by the scales; bound the error of an entry."""
    moments, n, ddof = sums.moments, sums.n, prepare.ddof
    moments /= n - ddof
    if prepare.center:  # exactly, whatever the rounding of their means
        moments[sums.constant], moments[:, sums.constant] = 0.0, 0.0
        still = sums.constant
    else:
        still = sums.constant & (sums.first == 0)
    variances = moments.diagonal().copy()
    refuse_out_of_range(variances, still, prepare)
    if prepare.scale and (lost := out_of_range(variances) & ~still).any():
        bad = describe(np.flatnonzero(lost).tolist(), prepare.names)
        raise ValueError(
            f"the chunks hold numbers of feature(s) {bad} that are too far apart for "
            "the sums of float64; rescale them, or pass all data at once to "
            "Covariance.from_data."
        )
    sizes = variances + n / (n - ddof) * sums.mean**2
    if prepare.scale:
        scales = prepare.scales(variances, still)
        moments /= scales
        moments /= scales[:, None]
        np.fill_diagonal(moments, np.where(still, 0.0, 1.0))
        sizes /= scales**2
    error = moment_error(n + 4 * sums.n_chunks, float(sizes.max()))
    return MomentSource(moments, error, psd=True)
