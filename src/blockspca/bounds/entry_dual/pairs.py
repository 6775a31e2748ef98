"""The strong entries of A: all |A_ij| above ℓ_i ℓ_j, found by one pass over A.

Where A is positive semidefinite, A_ij² ≤ A_ii A_jj, so that a feature of small variance
has no strong entry and is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.contrast import made_of
from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics import cost as _cost
from ...numerics.blas import single_threaded
from ...numerics.rounding import EPS
from ...numerics.threads import scan_threads

_TILE = 1024  # features: a tile of 8 MiB
_PASSES = 1.5  # over the entries of a tile: sizes, products of levels, comparison
_LEAST_ROOM = 1e-12  # relative, for roots of products of variances


class OutOfTime(Exception):
    """The deadline passed during the pass over A."""


@dataclass(frozen=True)
class Pairs:
    """Entries A_ij, i < j, of which each pair is listed once.

    Every pair that is not listed has |A_ij| ≤ ℓ_i ℓ_j for the levels ℓ that the list
    was made with, up to the error of the entries.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def where(self, chosen: NDArray[np.bool_]) -> Pairs:
        return Pairs(self.rows[chosen], self.columns[chosen], self.values[chosen])

    def above(self, levels: FloatArray) -> Pairs:
        """Those with |A_ij| > ℓ_i ℓ_j."""
        product = levels[self.rows] * levels[self.columns]
        return self.where(np.abs(self.values) > product)

    def outside(self, members: NDArray[np.bool_]) -> Pairs:
        """Those that are not between two members of a set."""
        return self.where(~(members[self.rows] & members[self.columns]))


def seconds_of_pass(cov: Covariance) -> float:
    """Seconds that `strong_pairs` takes at most, on one core.

    Infinite for a dask array, of which every tile would be computed by itself. An entry
    of a contrast is computed from one of either matrix.
    """
    both = made_of(cov)
    if both:
        return sum(seconds_of_pass(one) for one in both)
    if cov.dask_source() is not None:
        return np.inf
    stored = cov.stored_entries()
    if stored is not None:
        return _cost.passes(_PASSES, stored.nnz)
    d = cov.n_features
    seconds = _cost.passes(_PASSES, d * d / 2)
    sparse = cov.sparse_data()
    if sparse is not None:
        per_sample = np.diff(sparse[0].tocsr().indptr).astype(np.float64)
        return seconds + _cost.sparse_gram(float(per_sample @ per_sample))
    if not cov.in_memory:
        seconds += _cost.product(d, cov.n_samples or d, d) / 2
    return seconds


def strong_pairs(
    cov: Covariance, levels: FloatArray, deadline: Deadline | None = None
) -> Pairs:
    """List the pairs with |A_ij| > ℓ_i ℓ_j, ascending, for levels ℓ ≥ 0.

    Raises `OutOfTime` if the deadline passes.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> A = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, -0.7], [0.1, -0.7, 1.0]])
    >>> pairs = strong_pairs(Covariance.from_matrix(A), np.full(3, 0.6))
    >>> pairs.rows.tolist(), pairs.columns.tolist(), pairs.values.tolist()
    ([0, 1], [1, 2], [0.5, -0.7])
    """
    stored = cov.stored_entries()
    if stored is not None:
        entries = stored.tocoo()
        upper = entries.row < entries.col
        return Pairs(
            entries.row[upper].astype(np.intp),
            entries.col[upper].astype(np.intp),
            np.asarray(entries.data[upper], dtype=np.float64),
        ).above(levels)
    features = _with_strong_entries(cov, levels)
    strips = [features[i : i + _TILE] for i in range(0, len(features), _TILE)]
    tiles = [(a, b) for a in range(len(strips)) for b in range(a, len(strips))]

    def entries_of(tile: tuple[int, int]) -> Pairs:
        if deadline is not None and deadline.passed():
            raise OutOfTime
        rows, columns = strips[tile[0]], strips[tile[1]]
        values = cov.submatrix(rows, columns)
        strong = np.abs(values) > levels[rows][:, None] * levels[columns]
        if tile[0] == tile[1]:
            strong = np.triu(strong, 1)
        i, j = np.nonzero(strong)
        return Pairs(rows[i], columns[j], values[i, j])

    found = _applied(entries_of, tiles, scan_threads() if cov.has_columns else 1)
    if not found:
        return Pairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    return Pairs(
        np.concatenate([part.rows for part in found]),
        np.concatenate([part.columns for part in found]),
        np.concatenate([part.values for part in found]),
    )


def _applied(
    function: Callable[[tuple[int, int]], Pairs],
    tiles: list[tuple[int, int]],
    threads: int,
) -> list[Pairs]:
    """Apply it to all, in threads if there are many; the order is that of the tiles."""
    with single_threaded():
        if threads == 1 or len(tiles) < 4:
            return [function(tile) for tile in tiles]
        with ThreadPoolExecutor(threads) as pool:
            try:
                return list(pool.map(function, tiles))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _with_strong_entries(cov: Covariance, levels: FloatArray) -> NDArray[np.intp]:
    """Features that may have one: of a PSD matrix, those of large variance."""
    d = cov.n_features
    if not cov.known_psd:
        return np.arange(d)
    # Computed variances, and what is computed of them, may be a little small.
    room = _LEAST_ROOM + (cov.n_samples or 0) * EPS
    deviations = np.sqrt(np.maximum(cov.diagonal(), 0.0) + cov.entry_error) * (1 + room)
    with np.errstate(divide="ignore", invalid="ignore"):
        steepest = float(np.nanmax(deviations / levels, initial=0.0))
    return np.flatnonzero(~(deviations * steepest <= levels))
