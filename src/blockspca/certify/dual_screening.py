"""Screening by the direction dual: features that no set above a given level contains.

For a k-set S that contains i, only the other k − 1 features need the penalty ρ:

    λmax(A_SS) ≤ (k − 1)ρ + λmax(G − κ_i z_i z_i' + c_i c_i'),    G = Σ κ_j z_j z_j',

without the term in κ_i where ‖c_i‖² ≤ ρ. So i is in no set above the level τ if, with
s = τ − (k − 1)ρ > λmax(G) and R = (sI − G)⁻¹,

    c_i' R c_i − κ_i (c_i' R z_i)² / (1 + κ_i z_i' R z_i) < 1,

which costs one n × n eigendecomposition for all features together. Unlike nested
screening it asks for no bound on opt(k − 1), and it gains strength with k.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance, as_covariance
from .direction_dual import best_directions, direction_weights
from .dual_bound import Part
from .dual_problem import Problem, make_problem

_MARGIN = 1e-8  # relative to 1 in the test above; its rounding error is far smaller
_CHUNK = 4096


@dataclass(frozen=True)
class DualScreening:
    """What is left after screening at a level.

    Attributes
    ----------
    survivors : array of int
        Every k-set of a value above the level lies within these features. Empty if the
        bound itself is below the level: there is no such set.
    bound : float
        An upper bound on opt(k) over all features, as long as it is above the level.
    rounds : int
    elapsed : float
    """

    survivors: NDArray[np.intp]
    bound: float
    rounds: int
    elapsed: float


def dual_screen(
    cov: Covariance | FloatArray,
    k: int,
    level: float,
    *,
    start: Sequence[int] | NDArray[np.intp] | None = None,
    survivors: Sequence[int] | NDArray[np.intp] | None = None,
    time_limit: float = 10.0,
    iterations: int = 60,
) -> DualScreening:
    """Remove the features that are in no k-set of a value above `level`.

    Parameters
    ----------
    cov : Covariance or array
    k : int
    level : float
        Usually the value of the best known support, or (1 + gap) times it.
    start : sequence of int, optional
        That support.
    survivors : sequence of int, optional
        Features that are left from another screening at the same level.
    time_limit, iterations : float, int
        `iterations` is per round; there is another round as long as features fall.
    """
    started = time.monotonic()
    cov = as_covariance(cov)
    left = (
        np.arange(cov.n_features)
        if survivors is None
        else np.sort(np.asarray(survivors, dtype=np.intp))
    )
    best, rounds = np.inf, 0
    while len(left) > k:
        problem = make_problem(cov, k, start, left)
        if problem is None:
            break
        target = level / problem.unit + problem.shift - problem.slack
        part = Part(problem)
        part.ascend(iterations, target * (1 - _MARGIN), started + time_limit)
        rounds += 1
        value = (part.proved() + problem.slack - problem.shift) * problem.unit
        best = min(best, float(value))
        if best <= level:
            left = left[:0]
            break
        fallen = _falls(cov, left, problem, part, target)
        left = left[~fallen]
        if fallen.sum() <= 0.02 * len(left) or time.monotonic() > started + time_limit:
            break
    bound = max(best, level)
    return DualScreening(left, bound, rounds, time.monotonic() - started)


def _falls(
    cov: Covariance,
    features: NDArray[np.intp],
    problem: Problem,
    part: Part,
    level: float,
) -> NDArray[np.bool_]:
    """Tell which of the features are in no k-set above the level."""
    assert part.density is not None
    weights, basis = part.density
    penalty, norms = part.point_penalty, problem.norms
    count = int(np.searchsorted(-norms, -penalty))
    rotated = basis.T @ problem.C
    Z, _ = best_directions(rotated[:, :count], weights, penalty)
    kappa = direction_weights(rotated[:, :count], norms[:count], Z, penalty)
    values, vectors = np.linalg.eigh((Z * kappa) @ Z.T)
    room = level - (problem.k - 1) * penalty - values
    fallen = np.zeros(len(features), dtype=bool)
    if room[-1] <= _MARGIN * abs(level):
        return fallen
    inverse = 1 / room[:, None]
    columns, directions = vectors.T @ rotated, vectors.T @ Z
    test = (columns**2 * inverse).sum(axis=0)
    across = (columns[:, :count] * directions * inverse).sum(axis=0)
    along = (directions**2 * inverse).sum(axis=0)
    test[:count] -= kappa * across**2 / (1 + kappa * along)
    place = np.searchsorted(features, problem.chosen)
    fallen[place] = test < 1 - _MARGIN
    # The others have ‖c‖² ≤ floor ≤ ρ, and c'Rc ≤ ‖c‖² / room.
    others = np.setdiff1d(np.arange(len(features)), place)
    variance = (cov.diagonal()[features[others]] / problem.unit) + problem.shift
    short = variance < (1 - _MARGIN) * room[-1]
    fallen[others[short]] = True
    if problem.same_basis:
        into_basis = (basis @ vectors).T / np.sqrt(problem.unit)
        rest = others[~short]
        for first in range(0, len(rest), _CHUNK):
            some = rest[first : first + _CHUNK]
            columns = into_basis @ cov.factor_columns(features[some])
            fallen[some] = (columns**2 * inverse).sum(axis=0) < 1 - _MARGIN
    return fallen
