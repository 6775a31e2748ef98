"""Builds the threshold path from a scan, exact down to a given largest block size.

A scan with lists of K entries is complete above ε₀ only, and longer lists cost much
more. But the entries listed below ε₀ are edges too: their forest gives an ε₁ below
which some block is larger than wanted, so that only the edges above ε₁ are needed. An
edge that is missing joins two rows whose lists are full of stronger entries. Those few
rows are computed again, with each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..numerics import cost as _cost
from ..scan.lists import Scan
from .threshold_path import (
    BATCH_SECONDS,
    ThresholdPath,
    path_from_scan,
    strongest_forest,
)

ROWS_AT_ONCE = 2**11
COPIES = 4  # of a part of A, while its edges are collected


def path_to_size(
    cov: Covariance,
    found: Scan,
    max_block_size: int,
    check: Callable[[], None] = lambda: None,
    memory: int | None = None,
) -> ThresholdPath:
    """Return the threshold path down to blocks of more than `max_block_size` features.

    `found` is a scan of `cov` with lists of any length; `check` is called now and then
    and raises to stop; `memory` is for the part of A that is held at a time, 128 MiB by
    default.

    Notes
    -----
    O(m²) entries of A are computed, m the number of rows whose last listed entry is
    above ε₁, a part at a time; with lists of more than `max_block_size` entries m = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> from blockspca.blocks.forest import path_to_size
    >>> from blockspca.scan import scan
    >>> cov = Covariance.from_data(np.random.default_rng(0).normal(size=(9, 50)))
    >>> path = path_to_size(cov, scan(cov, 2), max_block_size=20)
    >>> path.threshold_for(20) == path.complete_above, path.crowded_below
    (True, 21)
    """
    path = path_from_scan(found)
    if path.complete_above == 0 or path.crowded_below > max_block_size:
        return path
    d = len(found.diagonal)
    # A list that is not full is complete.
    last = np.where(found.indices[:, -1] >= 0, found.values[:, -1], 0.0)
    incomplete = np.argsort(-last, kind="stable")[: np.count_nonzero(last)]
    forest = _listed_forest(found, max_block_size, check)
    floor = forest.threshold_for(max_block_size)
    at_once = ENTRIES_AT_ONCE
    if memory is not None:
        at_once = min(at_once, memory // (8 * COPIES))
    if cov.sparse_data() is None:  # an entry of dense data takes n multiplications
        entry = _cost.product(1, cov.n_samples or 1, 1)
        at_once = min(at_once, int(BATCH_SECONDS / entry))
    done = 0
    while done < len(incomplete) and last[incomplete[done]] > floor:
        check()
        # Each row is computed with all rows before it.
        stop = done + max(1, at_once // (done + ROWS_AT_ONCE))
        # `incomplete` is sorted by last entry: leave out rows below the floor.
        stop = done + int(np.searchsorted(-last[incomplete[done:stop]], -floor))
        edges, weights = _edges_above(cov, incomplete[:stop], done, floor)
        grown = strongest_forest(
            d,
            np.concatenate([forest.edges, edges]),
            np.concatenate([forest.weights, weights]),
        )
        # Equal weights mean equal blocks at every threshold.
        if not np.array_equal(grown.weights, forest.weights):
            forest = grown
            floor = forest.threshold_for(max_block_size)
        done = stop
    kept = forest.weights > floor
    crowd = max_block_size + 1 if floor > 0 else 0
    return ThresholdPath(d, forest.weights[kept], forest.edges[kept], floor, crowd)


def count_above(cov: Covariance, found: Scan, epsilon: float) -> int:
    """Count the entries with |A_ij| > ε, diagonal included, from a scan of `cov`.

    A pair above ε that is not listed has two incomplete rows, whose last listed entries
    are above ε. Those rows are computed with each other; others come from the lists.

    Examples
    --------
    >>> from blockspca import Covariance
    >>> from blockspca.blocks.forest import count_above
    >>> from blockspca.scan import scan
    >>> cov = Covariance.from_matrix([[2.0, 1.0, 3.0], [1.0, 2.0, 0.1], [3.0, 0.1, 0]])
    >>> count_above(cov, scan(cov, 1), 0.5)
    6
    """
    full = found.indices[:, -1] >= 0
    incomplete = full & (found.values[:, -1] > epsilon)
    count = np.count_nonzero(np.abs(found.diagonal) > epsilon)
    row, place = np.nonzero((found.values > epsilon) & ~incomplete[:, None])
    # A pair of which one row is incomplete is counted in the list of the other, twice.
    count += len(row) + np.count_nonzero(incomplete[found.indices[row, place]])
    rows = np.flatnonzero(incomplete)
    at_once = max(1, ENTRIES_AT_ONCE // max(1, len(rows)))
    for start in range(0, len(rows), at_once):
        part = rows[: start + at_once]
        count += 2 * len(_edges_above(cov, part, start, epsilon)[1])
    return int(count)


def _listed_forest(
    found: Scan, max_block_size: int, check: Callable[[], None]
) -> ThresholdPath:
    """The forest of the strongest listed entries, until a block is too large."""
    d = len(found.diagonal)
    ranked = np.sort(found.values, axis=None)[::-1]
    ranked = ranked[ranked > 0]
    count = 4 * d
    while True:
        check()
        least = float(ranked[count]) if count < len(ranked) else 0.0
        forest = strongest_forest(d, *found.edges(least))
        if least == 0.0 or forest.largest_block(0.0) > max_block_size:
            return forest
        count *= 4


def _edges_above(
    cov: Covariance, features: NDArray[np.int64], start: int, floor: float
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the pairs above `floor` of features[start:] with those before them."""
    entries = np.abs(cov.submatrix(features[start:], features))
    entries *= np.tri(len(features) - start, len(features), start - 1, dtype=bool)
    i, j = np.nonzero(entries > floor)
    return np.stack([features[start + i], features[j]], axis=1), entries[i, j]
