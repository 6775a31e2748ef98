"""Paths that are searched and not proved: what curves over k are made of."""

from __future__ import annotations

import numpy as np

from ..certify.results import certified_results
from ..certify.screening import Screening
from ..covariance.covariance import Covariance
from ..heuristics.pool import best_supports
from ..limits import Limits
from ..numerics.rounding import power_of_two
from ..scan.lists import scan
from ..sparsity_path import SparsityPath

N_STARTS = 30  # rows of A that searches start from


def searched_path(
    cov: Covariance, k_max: int, seconds: float | None = None
) -> SparsityPath:
    """Return good components for k = 1, …, k_max without proving that they are best.

    Every k starts from the component of k − 1 and from the best truncated row of A, and
    swaps features while that helps.
    """
    starts = row_starts(cov, k_max)
    limits = Limits(time=seconds)
    results = certified_results(cov, 1, k_max, limits, starts, prove=False)
    return SparsityPath(results, cov)


def row_starts(cov: Covariance, k_max: int) -> dict[int, list[int]]:
    """For each k, a feature with its k − 1 strongest partners, the best of 30 sets.

    The features are those whose variance and strongest covariances weigh most.
    """
    if k_max < 2:
        return {}
    found = scan(cov, k_max - 1)
    screening = Screening(found, power_of_two(found.max_abs))
    sets = {k: screening.row_supports(k, N_STARTS) for k in range(2, k_max + 1)}
    sets = {k: rows for k, rows in sets.items() if len(rows)}
    if not sets:
        return {}
    pool = np.unique(np.concatenate([rows.ravel() for rows in sets.values()]))
    A = cov.submatrix(pool)
    return {
        k: pool[best_supports(A, np.searchsorted(pool, rows), 1)[0]].tolist()
        for k, rows in sets.items()
    }
