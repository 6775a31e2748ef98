"""Paths that are searched and not proved, for curves over k."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..heuristics.extend import extended
from ..heuristics.pool import first_pool, leading_pair
from ..heuristics.swap import Swapped, swapped
from ..limits import Budget, LimitReached, Limits
from ..numerics.blas import single_threaded
from ..numerics.linalg import OnSupport, vector_on, with_sign
from ..numerics.rounding import in_units, power_of_two
from ..result import Result
from ..scan.lists import scan, scan_kernels
from ..sparsity_path import SparsityPath
from ..status import Status

N_STARTS = 10  # rows of A that are looked at, at each of a few k


def searched_path(
    cov: Covariance, k_max: int, seconds: float | None = None
) -> SparsityPath:
    """Return good components for k = 1, …, k_max without proving that they are best.

    Every k starts from the component of k − 1 with one feature more, and from the best
    truncated row of A, and swaps features while that helps; on the way back, from the
    component of k + 1 with one feature less. Once the seconds are over, features are
    only added.
    """
    results = {}
    for k, found in enumerate(searched(cov, k_max, seconds), 1):
        results[k] = Result(
            x=vector_on(found.support, with_sign(found.loadings), cov.n_features),
            support=np.sort(found.support),
            objective=found.objective,
            upper_bound=math.inf,
            status=Status.FEASIBLE,
            k=k,
            n_features=cov.n_features,
            solver="searched path",
            feature_names=cov.feature_names,
        )
    return SparsityPath(results, cov)


def searched(cov: Covariance, k_max: int, seconds: float | None) -> list[OnSupport]:
    """The components of `searched_path`, for k = 1, 2, …, k_max."""
    budget = Budget(Limits(time=seconds))
    pool, starts = _pool(cov, k_max, budget)
    A = cov.submatrix(pool)
    unit = power_of_two(float(np.abs(A).max()))
    A = in_units(A, unit)
    with single_threaded():
        path = _upwards(A, k_max, np.searchsorted(pool, starts), budget)
        _downwards(A, path, budget)
    features = pool.astype(np.intp)
    return [OnSupport(features[support], x, value * unit) for support, value, x in path]


def _upwards(
    A: FloatArray, k_max: int, starts: NDArray[np.int64], budget: Budget
) -> list[Swapped]:
    """Add a feature at a time and swap, or begin anew from row k of the starts."""
    path: list[Swapped] = []
    best: Swapped = (np.empty(0, dtype=np.int64), -math.inf, np.empty(0))
    for k in range(1, k_max + 1):
        pair = (best[1], best[2]) if k > 1 else None
        best = swapped(A, extended(A, best[0], k, pair), stop=budget.passed)
        if k <= len(starts) and not budget.passed():
            row = starts[k - 1, :k]
            if leading_pair(A, row)[0] > best[1]:
                best = _better(best, swapped(A, row, stop=budget.passed))
        path.append(best)
    return path


def _downwards(A: FloatArray, path: list[Swapped], budget: Budget) -> None:
    """Leave a feature out of a component where that is better than what k has.

    With x of value λ on S, x without i has the Rayleigh quotient
    (λ − 2 λ x_i² + A_ii x_i²) / (1 − x_i²), as (A x)_i = λ x_i.
    """
    diagonal = A.diagonal()
    for k in range(len(path) - 1, 0, -1):
        support, value, x = path[k]
        squares = x * x
        with np.errstate(divide="ignore", invalid="ignore"):
            left = value + squares * (diagonal[support] - 2 * value)
            left = np.where(squares < 1, left / (1 - squares), -np.inf)
        if budget.passed() or not left.max() > path[k - 1][1]:
            continue
        rest = np.delete(support, left.argmax())
        path[k - 1] = _better(path[k - 1], swapped(A, rest, stop=budget.passed))


def _better(one: Swapped, other: Swapped) -> Swapped:
    return one if one[1] >= other[1] else other


def _pool(
    cov: Covariance, k_max: int, budget: Budget
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Features to choose from, ascending, and for each k a row {i, partners of i}.

    The features are those of the rows, and those whose variance and strongest
    covariances weigh most; if the time does not do for a scan, those of the largest
    variances, without rows.
    """
    diagonal = cov.diagonal()
    largest = np.argsort(-diagonal, kind="stable")[:k_max]
    none = np.empty((0, 1), dtype=np.int64)
    if k_max < 2:
        return np.sort(largest), none
    try:
        budget.wait_for(load, *scan_kernels(cov))
        found = scan(cov, k_max - 1, budget.check)
    except LimitReached:
        return np.sort(largest), none
    partners = found.indices[:, : k_max - 1]
    weights = np.cumsum(found.values[:, : k_max - 1] ** 2, axis=1)
    weights += (np.maximum(diagonal, 0.0) ** 2)[:, None]
    size = min(first_pool(k_max), len(weights))
    heaviest = np.argpartition(-weights[:, -1], size - 1)[:size]
    # A row whose list is shorter than k_max − 1 is no set of k features for every k.
    full = np.flatnonzero(partners[:, -1] >= 0)
    if len(full) == 0:
        return np.unique(np.concatenate([heaviest, largest])), none
    # Rows that are heavy for a small k and for a large one are others; powers of two
    # see both.
    at = [min(2**level, k_max - 1) - 1 for level in range(k_max.bit_length())]
    n = min(N_STARTS, len(full))
    chosen = np.argpartition(-weights[np.ix_(full, at)], n - 1, axis=0)[:n]
    seeds = full[np.unique(chosen)]
    starts = _best_rows(cov, np.column_stack([seeds, partners[seeds]]))
    return np.unique(np.concatenate([starts.ravel(), heaviest, largest])), starts


def _best_rows(cov: Covariance, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """For k = 1, 2, …, the row that is best if only its k first features are used.

    Row i with its k − 1 strongest partners is judged by the Rayleigh quotient of
    r = (A_ii, A_ij, …), which for all k are sums over the leading squares of r r' ∘ A.
    """
    features = np.unique(rows)
    A = cov.submatrix(features)
    A /= power_of_two(float(np.abs(A).max()))
    quotients = np.empty(rows.shape)
    for place, row in enumerate(np.searchsorted(features, rows)):
        within = A.take(row, 0).take(row, 1)
        r = within[0]
        products = np.cumsum(np.cumsum(within * np.outer(r, r), axis=0), axis=1)
        norms = np.cumsum(r * r)
        quotients[place] = products.diagonal() / np.where(norms > 0, norms, 1.0)
    return rows[quotients.argmax(axis=0)]
