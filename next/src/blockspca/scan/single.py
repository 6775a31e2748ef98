"""Single precision for entries that are not listed; listed entries in double.

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

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..linalg.rounding import EPS
from ..validation import FloatArray, Indices
from .sweep import ENTRIES, slices, sweep

UNIT_ROUNDOFF = 2.0**-24  # v
FLUSHED = 2.0**-126  # η
LEAST_FEATURES = 4096  # with fewer a scan takes some hundredths of a second
MOST_SAMPLES = 2**16  # n v ≤ 2⁻⁸
SPARE = 4  # places beside those asked for: entries this close are rare


def is_single(n: int, d: int, width: int, largest_norm: float, run: Run) -> bool:
    """Tell whether a scan takes single precision, for which a copy of C must fit."""
    size = 8 * n * d + 20 * d * (width + SPARE)
    fits = run.limits.memory is None or size <= run.memory
    return fits and n <= MOST_SAMPLES and d >= LEAST_FEATURES and largest_norm > 0


def single_error(n: int) -> float:
    """Return ε: the error of an entry, in units of ‖c_i‖ ‖c_j‖.

    Examples
    --------
    >>> from blockspca.scan.single import single_error
    >>> f"{single_error(100):.1e}"
    '6.1e-06'
    """
    return (n + 2) * UNIT_ROUNDOFF * (1 + 2 * (n + 4) * UNIT_ROUNDOFF)


def by_feature(
    columns: Callable[[Indices], FloatArray],
    order: Indices,
    n: int,
    unit: float,
    kind: type,
    run: Run,
) -> NDArray[Any]:
    """Return rows of C' / unit in that order."""
    data: NDArray[Any] = np.empty((len(order), n), dtype=kind)

    def fill(part: slice) -> None:
        data[part] = columns(order[part]).T / unit

    sweep(run, fill, slices(len(order), ENTRIES // n))
    return data


def single_data(
    columns: Callable[[Indices], FloatArray],
    order: Indices,
    norms: FloatArray,
    n: int,
    width: int,
    run: Run,
) -> tuple[NDArray[Any], float, int]:
    """Return data in single precision, their unit, and the width of lists."""
    # A power of two above all norms, so that the division is exact.
    unit = math.ldexp(1.0, math.frexp(float(norms[0]))[1])
    data = by_feature(columns, order, n, unit, np.float32, run)
    return data, unit, min(width + SPARE, len(order) - 1)


def exact_lists(
    columns: Callable[[Indices], FloatArray],
    order: Indices,
    norms: FloatArray,
    n: int,
    width: int,
    lists: tuple[NDArray[Any], NDArray[Any]],
    unit: float,
    run: Run,
) -> tuple[FloatArray, Indices]:
    """Return lists in double precision from those in single precision."""
    from .._kernels.tiles import ROWS, tile_kernels

    d = len(order)
    last, found = lists[0][:, -1].astype(np.float64), lists[1]
    error = single_error(n) * float(norms[0] / unit)
    missed = (error * (norms / unit) + 8 * n * FLUSHED) * (1 + 8 * EPS)
    bound = np.where(found[:, -1] >= 0, last + missed, 0.0) * unit**2 * (1 + EPS)
    data = by_feature(columns, order, n, 1.0, np.float64, run)
    values, indices = np.empty((d, width)), np.empty((d, width), dtype=np.int64)

    def compute(rows: slice) -> None:
        at = found[rows].astype(np.int64)
        entries = np.abs(np.matmul(data[at], data[rows, :, None])[:, :, 0])
        entries[at < 0] = 0.0
        best = np.argsort(-entries, axis=1, kind="stable")[:, :width]
        entries = np.take_along_axis(entries, best, axis=1)
        indices[rows] = np.take_along_axis(at, best, axis=1)
        values[rows] = np.maximum(entries, bound[rows, None])

    sweep(run, compute, slices(d, ENTRIES // (n * found.shape[1])))

    short = np.flatnonzero((found[:, -1] < 0) & (norms > 0))
    values[short], indices[short] = 0.0, -1
    add_tile, _, none = tile_kernels(64)
    every = np.arange(d)

    def again(part: slice) -> None:
        product = (data[short[part]] @ data.T).view(np.int64)
        listed = (values.view(np.int64), indices)
        floors = np.empty(d, dtype=np.int64)
        lists = (*listed, *listed)
        add_tile(product, short[part], every, 0, *lists, floors, ROWS, none)

    if len(short):
        sweep(run, again, slices(len(short), ENTRIES // d))
    return values, indices
