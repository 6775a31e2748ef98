"""Base class of convex relaxations, with projections, rounding and stopping."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from .._validation import FloatArray
from ..bounds.closed_form import largest_eigenvalue_bound
from ..numerics.linalg import leading_eigenvector
from ..numerics.rounding import EPS
from ..status import SEARCH_GAP, Status, relative_gap
from .template import BaseSolver, SolverRun

CHECK_EVERY = 20  # iterations between two evaluations of the bound
PATIENCE = 5  # evaluations over which the bound must have become better


class Relaxation(BaseSolver):
    """Iterates of a relaxation over X ⪰ 0, tr X = 1, each with a bound from its dual.

    A subclass defines `_iterate`. Rounding: the k largest entries of the diagonal of X,
    of its leading eigenvector and of that of A.
    """

    _positive_integers = ("max_iterations",)
    _positive_numbers = ("tolerance",)

    def __init__(self, tolerance: float = 1e-4, max_iterations: int = 2000) -> None:
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        limits = run.limits
        run.offer_variances()
        run.offer_vector(leading_eigenvector(A))
        run.tighten(largest_eigenvalue_bound(A))
        goal = max(SEARCH_GAP, limits.gap or 0.0)
        if relative_gap(run.objective, run.upper_bound) <= goal:  # as for k = d
            return
        budget = min(self.max_iterations, limits.nodes or self.max_iterations)
        bounds = [math.inf]
        for X, evaluate in self._iterate(A, k):
            run.nodes += 1
            last = run.nodes >= budget or run.deadline.passed()
            if run.nodes % CHECK_EVERY and not last:
                continue
            # Two ways to round X, neither of which is always better.
            run.offer_vector(np.diagonal(X))
            run.offer_vector(leading_eigenvector(X))
            if not run.deadline.passed():  # the bound takes as long as some iterations
                bounds.append(min(evaluate(), bounds[-1]))
                run.tighten(bounds[-1])
            if relative_gap(run.objective, run.upper_bound) <= goal:
                return
            # What is below the incumbent is of no use.
            if run.upper_bound <= run.incumbent or run.time_is_up():
                return
            if last:
                if budget < self.max_iterations:
                    run.stopped = Status.NODE_LIMIT
                return
            if len(bounds) > PATIENCE:
                gain = bounds[-1 - PATIENCE] - bounds[-1]
                if gain <= self.tolerance * abs(bounds[-1]):
                    return

    @abstractmethod
    def _iterate(
        self, A: FloatArray, k: int
    ) -> Iterator[tuple[FloatArray, Callable[[], float]]]:
        """Yield, at every iteration, X and a function that computes a valid bound."""


def centred(A: FloatArray) -> tuple[FloatArray, float]:
    """Return (A − min_i A_ii · I) / s and s, its largest entry, for the step sizes.

    As tr X = 1, the shift is a constant; s = 1 if A is a multiple of the identity.
    """
    shifted = A - np.diagonal(A).min() * np.eye(len(A))
    scale = float(np.abs(shifted).max()) or 1.0
    return shifted / scale, scale


def dual_value(A: FloatArray, dual: FloatArray, constant: float) -> float:
    """Return λmax(A − dual) + constant, the rounding of all three included."""
    size = float(np.abs(A).max() + np.abs(dual).max()) + abs(constant)
    rounding = 8 * len(A) * EPS * size
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
