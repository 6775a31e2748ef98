"""What convex relaxations share: projections, rounding, and when to stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from .._validation import FloatArray, check_positive, check_positive_integer
from ..bounds.closed_form import largest_eigenvalue_bound
from ..numerics.linalg import leading_eigenvector
from ..result import Status, relative_gap
from ._heuristic import Incumbent
from .base import Deadline, Guarantee, Limits, Solution

CHECK_EVERY = 20  # iterations between two evaluations of the bound
PATIENCE = 5  # evaluations over which the bound must have become better
PROVED = 1e-9  # relative gap that counts as none


class Relaxation(ABC):
    """Iterates of a relaxation over X ⪰ 0, tr X = 1, each with a bound from its dual.

    A subclass defines `_iterate`. Rounding: the k largest entries of the diagonal of X,
    of its leading eigenvector and of that of A.

    Parameters
    ----------
    tolerance : float
        Stop when 100 iterations have lowered the bound by less than this share of it.
    max_iterations : int
    """

    name: str
    guarantee: Guarantee
    requires_psd = False

    def __init__(self, tolerance: float = 1e-4, max_iterations: int = 2000) -> None:
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        check_positive(self.tolerance, "tolerance")
        check_positive_integer(self.max_iterations, "max_iterations")
        deadline = Deadline(limits.time)
        best = Incumbent(A, k)
        best.offer(leading_eigenvector(A))
        ceiling = largest_eigenvalue_bound(A)
        bounds = [math.inf]
        status, nodes = Status.FEASIBLE, 0
        budget = min(self.max_iterations, limits.nodes or self.max_iterations)
        goal = max(PROVED, limits.gap or 0.0)
        try:
            solved = relative_gap(best.objective, ceiling) <= goal  # as for k = d
            for X, evaluate in () if solved else self._iterate(A, k):
                nodes += 1
                stopped = nodes >= budget or deadline.passed()
                if nodes % CHECK_EVERY and not stopped:
                    continue
                best.offer(np.diagonal(X))
                best.offer(leading_eigenvector(X))
                if not deadline.passed():  # it costs as much as some iterations
                    bounds.append(min(evaluate(), bounds[-1]))
                bound = min(ceiling, bounds[-1])
                if relative_gap(best.objective, bound) <= goal:
                    break
                if incumbent is not None and bound <= incumbent:
                    break
                if deadline.passed():
                    status = Status.TIME_LIMIT
                    break
                if stopped:
                    limited = budget < self.max_iterations
                    status = Status.NODE_LIMIT if limited else status
                    break
                if len(bounds) > PATIENCE:
                    gain = bounds[-1 - PATIENCE] - bounds[-1]
                    if gain <= self.tolerance * abs(bounds[-1]):
                        break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        bound = max(min(ceiling, bounds[-1]), best.objective)
        gap = relative_gap(best.objective, bound)
        if gap <= PROVED:
            status = Status.OPTIMAL
        elif limits.gap is not None and gap <= limits.gap:
            status = Status.GAP_LIMIT
        return Solution(best.x, bound, status, nodes)

    @abstractmethod
    def _iterate(
        self, A: FloatArray, k: int
    ) -> Iterator[tuple[FloatArray, Callable[[], float]]]:
        """Yield, at every iteration, X and how to compute a valid bound, at will."""


def centred(A: FloatArray) -> tuple[FloatArray, float]:
    """Return (A − min_i A_ii · I) / s and s, its largest entry: what steps suit.

    tr X = 1 makes the shift a constant; s = 1 if A is a multiple of the identity.
    """
    shifted = A - np.diagonal(A).min() * np.eye(len(A))
    scale = float(np.abs(shifted).max()) or 1.0
    return shifted / scale, scale


def dual_value(A: FloatArray, dual: FloatArray, constant: float) -> float:
    """Return λmax(A − dual) + constant, the rounding of all three included."""
    size = float(np.abs(A).max() + np.abs(dual).max()) + abs(constant)
    rounding = 8 * len(A) * float(np.finfo(float).eps) * size
    return largest_eigenvalue_bound(A - dual) + constant + rounding


def onto_simplex(values: FloatArray) -> FloatArray:
    """Project onto {v ≥ 0, Σv = 1}."""
    ordered = -np.sort(-values)
    excess = np.cumsum(ordered) - 1
    last = np.flatnonzero(ordered * np.arange(1, len(values) + 1) > excess)[-1]
    projected: FloatArray = np.maximum(values - excess[last] / (last + 1), 0)
    return projected


def onto_spectrahedron(X: FloatArray) -> FloatArray:
    """Project onto {X ⪰ 0, tr X = 1}: the eigenvalues onto the simplex."""
    eigenvalues, vectors = np.linalg.eigh(X)
    eigenvalues = onto_simplex(eigenvalues)
    kept = eigenvalues > 0
    return (vectors[:, kept] * eigenvalues[kept]) @ vectors[:, kept].T


def onto_l1_ball(Y: FloatArray, radius: float) -> FloatArray:
    """Project onto {Σ|Y_ij| ≤ radius}."""
    size = np.abs(Y)
    if size.sum() <= radius:
        return Y
    shrunk = onto_simplex(size.ravel() / radius) * radius
    return np.sign(Y) * shrunk.reshape(Y.shape)


def onto_l1_cones(Y: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Project each row (y, s) onto {‖y‖₁ ≤ s}."""
    size = -np.sort(-np.abs(Y), axis=1)
    counts = np.arange(1, Y.shape[1] + 1)
    levels = (np.cumsum(size, axis=1) - s[:, None]) / (counts + 1)
    last = np.maximum((size > levels).sum(axis=1) - 1, 0)
    level = np.maximum(levels[np.arange(len(s)), last], 0.0)
    polar = size[:, 0] <= -s
    level = np.where(size.sum(axis=1) <= s, 0.0, np.where(polar, np.inf, level))
    projected: FloatArray = np.sign(Y) * np.maximum(np.abs(Y) - level[:, None], 0.0)
    return projected, np.where(polar, 0.0, s + np.where(polar, 0.0, level))


def onto_second_order_cones(
    Y: FloatArray, s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Project each row (y, s) onto {‖y‖₂ ≤ s}."""
    length = np.sqrt(np.einsum("ij,ij->i", Y, Y))
    mean = (length + s) / 2
    inside, polar = length <= s, length <= -s
    top = np.where(inside, s, np.where(polar, 0.0, mean))
    factor = np.where(inside, 1.0, top / np.where(length > 0, length, 1.0))
    return Y * factor[:, None], top
