"""Selects the features that can be in a better support, without forming A."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..numerics.linalg import largest_entries, on_support
from ..numerics.rounding import EPS
from .base import Deadline

TOLERANCE = 1e-10  # relative; supports that are better by less count as equal


def rounding_error(k: int, eigen_size: int, value: float, scale: float) -> float:
    """Bound on what rounding adds to the bounds of a node; see `BranchAndBound`."""
    return 4 * (max(k, eigen_size) + 2) ** 2 * EPS * (abs(value) + scale)


def tolerance(k: int, eigen_size: int, reached: float, scale: float) -> float:
    """By how much a support must be better; nodes are dropped at half of it."""
    rounding = rounding_error(k, eigen_size, reached, scale)
    return max(TOLERANCE * abs(reached), 2 * rounding)


def ascend(cov: Covariance, x: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Improve x by truncated power iteration with products of A alone."""
    best, best_value = np.flatnonzero(x), -math.inf
    while True:
        better, value = on_support(cov, best)
        if value <= best_value:
            return x, best_value
        x, best_value = better, value
        best = largest_entries(cov.matvec(x), k)


def reduce_features(
    cov: Covariance,
    k: int,
    eigen_size: int,
    reached: float,
    bound: float,
    deadline: Deadline,
) -> tuple[NDArray[np.intp] | None, float, float]:
    """Return the features of supports better than `reached`, a bound, and max |A_ij|.

    One pass over the rows of A, in batches. With c_j² the sum of the k − 1 largest
    A_jl² and `rest` a bound for k − 1 features, a support with j reaches no more than
    λmax [[A_jj, c_j], [c_j, rest]].
    """
    d = cov.n_features
    variances = cov.diagonal()
    sums, shorter, squares = np.empty(d), np.empty(d), np.empty(d)
    scale = float(np.abs(variances).max())
    step = max(1, ENTRIES_AT_ONCE // d)
    for start in range(0, d, step):
        if deadline.passed():
            return None, bound, scale
        batch = np.arange(start, min(start + step, d))
        rows = np.abs(cov.rows(batch))
        if not cov.known_psd:
            scale = max(scale, float(rows.max()))
        rows[np.arange(len(batch)), batch] = 0.0
        largest = (
            np.partition(rows, d - k + 1, axis=1)[:, d - k + 1 :]
            if k > 1
            else (np.zeros((len(batch), 1)))
        )
        sums[batch] = variances[batch] + largest.sum(axis=1)
        shorter[batch] = sums[batch] - largest.min(axis=1)
        squares[batch] = (largest**2).sum(axis=1)
    least = tolerance(k, eigen_size, reached, scale)
    tau = reached + least / 2
    highest = float(sums.max())
    highest += rounding_error(k, 0, highest, scale)
    bound = min(bound, max(reached + least, highest))
    rest = float(shorter.max())
    keep = np.ones(d, dtype=bool)
    if cov.known_psd:  # the trace bounds both the whole and the rest
        order = np.sort(variances)[::-1]
        rest = min(rest, float(order[: k - 1].sum()))
        keep = order[: k - 1].sum() + np.minimum(variances, order[k - 1]) > tau
    if rest < tau:
        room = tau - variances
        keep &= (room <= 0) | (squares > room * (tau - rest))
    return np.flatnonzero(keep), bound, scale
