"""Optimise the direction dual: mirror ascent over densities, and parts of the sphere.

If the density ends up spread over two directions, the relaxation mixes vectors y that
differ in them.  Cut their plane into wedges, and the sphere with it: y is in the wedge
between two lines exactly when y'My ≥ 0, M = ab' + ba', with a and b the normals of the
lines, pointing inwards.  On that part of the sphere, adding ηM to the sum for any η ≥ 0
keeps the bound valid; the largest of the parts' bounds is a bound for all y.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance, as_covariance
from .direction_dual import rounding_of_sum, supergradient
from .dual_problem import Problem, make_problem
from .eigenvalues import eigenvalue_ceiling

_BELOW_ONE = 1 - 1e-5
_PATIENCE = 30  # steps without progress of one part in 10,000
_SAMPLE = 4000  # columns of a sample, on which a step costs little
_SCOUTING = 0.35  # of the time
_SCOUT_PATIENCE = 12
_UNSEEN = 0.003  # share of the uniform density after a sample
_FEW = 40  # steps: fewer are not worth the sample's
_WEDGES = 6  # fewer than three cannot cut off a density without correlation


@dataclass(frozen=True)
class DualBound:
    """An upper bound on opt(k) and how it came about.

    Attributes
    ----------
    value : float
        opt(k) ≤ value, rounding included.
    penalty : float
        The ρ of the bound (of the weakest part, if there are several).
    iterations, parts : int
        Steps of ascent, and parts of the sphere that were bounded apart.
    elapsed : float
        Seconds.
    """

    value: float
    penalty: float
    iterations: int
    parts: int
    elapsed: float


def dual_bound(
    cov: Covariance | FloatArray,
    k: int,
    *,
    start: Sequence[int] | NDArray[np.intp] | None = None,
    survivors: Sequence[int] | NDArray[np.intp] | None = None,
    target: float = -np.inf,
    time_limit: float = 10.0,
    iterations: int = 150,
    parts: int = 1,
) -> DualBound:
    """Bound opt(k) by the direction dual, with ρ and the directions optimised.

    Parameters
    ----------
    cov : Covariance or array
        Made from data, or a matrix; an indefinite one is shifted by its smallest
        eigenvalue, which x'x = 1 makes harmless.
    k : int
    start : sequence of int, optional
        A good support. The better it is, the fewer steps are needed; the bound holds
        for any.
    survivors : sequence of int, optional
        Bound the optimum over these features only.
    target : float
        Stop as soon as the bound is this low.
    time_limit, iterations : float, int
        Where to stop; `iterations` is per part.
    parts : int
        How many parts of the sphere may be bounded apart: 1, or 7 and more.

    Notes
    -----
    A step costs O(n² p) for the p features with A_ii > ρ, and the result is valid
    whenever it stops.
    """
    started = time.monotonic()
    cov = as_covariance(cov)
    problem = make_problem(cov, k, start, survivors)
    if problem is None:
        elapsed = time.monotonic() - started
        return DualBound(np.inf, 0.0, 0, 1, elapsed)
    deadline = started + time_limit
    target = target / problem.unit + problem.shift - problem.slack
    root = Part(problem)
    sample = problem.sample(_SAMPLE)
    if sample is not None and iterations > _FEW:
        # What it finds is no bound, only a place to start from.
        scout = Part(sample)
        ends = time.monotonic() + _SCOUTING * time_limit
        scout.ascend(iterations, -np.inf, ends, patience=_SCOUT_PATIENCE)
        root.start_from(scout)
    root.ascend(iterations, target, deadline)
    steps = root.steps
    # The weakest part first; the second entry settles ties.
    order = itertools.count()
    heap: list[tuple[float, int, Part]] = [(-root.bound, next(order), root)]
    while (
        len(problem.C) > 1
        and len(heap) + _WEDGES <= parts
        and -heap[0][0] > target
        and time.monotonic() < deadline
    ):
        _, _, weakest = heapq.heappop(heap)
        for child in weakest.split():
            child.ascend(iterations, target, deadline)
            steps += child.steps
            heapq.heappush(heap, (-child.bound, next(order), child))
    value = max(part.proved() for _, _, part in heap)
    return DualBound(
        float((value + problem.slack - problem.shift) * problem.unit),
        float(heap[0][2].best_penalty * problem.unit),
        steps,
        len(heap),
        time.monotonic() - started,
    )


@dataclass
class Part:
    """Mirror ascent for the vectors y with y'My ≥ 0 for each M in `sides`."""

    problem: Problem
    sides: list[FloatArray] = field(default_factory=list)
    multipliers: list[float] = field(default_factory=list)
    log_density: FloatArray | None = None
    penalty: float = 0.0
    value: float = np.inf
    best_penalty: float = 0.0
    best_total: FloatArray | None = None
    point_value: float = np.inf
    point_penalty: float = 0.0
    density: tuple[FloatArray, FloatArray] | None = None
    size_of_sides: float = 0.0
    steps: int = 0
    parent: Part | None = None

    def __post_init__(self) -> None:
        if self.log_density is None:
            n = len(self.problem.C)
            y = self.problem.leading
            # The logarithm of (3/10) yy' + (7/10) I/n, up to a constant
            self.log_density = np.log1p(3 * n / 7) * np.outer(y, y)
            self.penalty = max(self.problem.penalty, self.problem.floor)

    def ascend(
        self,
        iterations: int,
        target: float,
        deadline: float,
        patience: int = _PATIENCE,
    ) -> None:
        """Take up to `iterations` steps; stop at the target or when they stall."""
        problem, k = self.problem, self.problem.k
        H = self.log_density
        assert H is not None
        latest, mean, mean_penalty = 0, np.zeros_like(H), 0.0
        for step in range(iterations):
            logs, basis = np.linalg.eigh(H)
            weights = np.exp(np.maximum(logs - logs[-1], -27.0))
            weights /= weights.sum()
            # Above the longest column the bound would be kρ, whatever the density.
            self.penalty = min(self.penalty, _BELOW_ONE * float(problem.norms[0]))
            self.penalty = max(self.penalty, problem.floor, np.finfo(float).tiny)
            found = supergradient(
                problem.C,
                problem.norms,
                weights,
                basis,
                self.penalty,
                copies=problem.copies,
                deadline=deadline,
            )
            if found is None:
                break
            total, support_size, estimate = found
            for side, multiplier in zip(self.sides, self.multipliers, strict=True):
                total += multiplier * side
            value = k * self.penalty + float(np.linalg.eigvalsh(total)[-1])
            self.steps += 1
            before = self.value
            if value < self.point_value:
                self.point_value, self.point_penalty = value, self.penalty
                self.density = (weights, basis)
            self.keep(value, total, self.penalty)
            # What holds for each step holds for their mean, which does not oscillate.
            share = 2 / (step + 2)
            mean = (1 - share) * mean + share * total
            mean_penalty = (1 - share) * mean_penalty + share * self.penalty
            if value > self.value or step == iterations - 1:
                value_of_mean = k * mean_penalty + float(np.linalg.eigvalsh(mean)[-1])
                self.keep(value_of_mean, mean, mean_penalty)
            if self.value < before - 1e-4 * abs(self.value):
                latest = step
            reference = max(abs(k * self.penalty + estimate), 1e-300)
            if self.value <= target or time.monotonic() > deadline:
                break
            if step - latest > patience or (
                not self.sides and self.value - reference < 1e-5 * reference
            ):
                break
            size = 2.0 / (1 + step / 50)
            far = value > 2 * reference  # then the full step would overshoot
            H = (basis * np.log(weights)) @ basis.T
            H += size / (value if far else reference) * total
            for q, side in enumerate(self.sides):
                slope = float(((side @ basis) * basis).sum(axis=0) @ weights)
                self.multipliers[q] = max(
                    0.0, self.multipliers[q] - 0.1 * size * reference * slope
                )
            change = (support_size / k) ** 0.3
            self.penalty *= min(max(change, 0.8), 1.25)
        self.log_density = H

    def start_from(self, other: Part) -> None:
        """Take over where another part, with the same coordinates, was best.

        A little of the uniform density is mixed in, for the directions of columns that
        a sample has not seen.
        """
        if other.density is not None:
            weights, basis = other.density
            weights = (1 - _UNSEEN) * weights + _UNSEEN / len(weights)
            self.log_density = (basis * np.log(weights)) @ basis.T
            self.penalty = other.point_penalty

    def keep(self, value: float, total: FloatArray, penalty: float) -> None:
        """Remember the sum and the penalty if they give the best bound so far."""
        if value < self.value:
            self.value, self.best_penalty, self.best_total = value, penalty, total
            self.size_of_sides = sum(2 * abs(eta) for eta in self.multipliers)

    def split(self) -> list[Part]:
        """Cut the plane of the two leading directions of the density into wedges."""
        assert self.density is not None  # there is time left, so steps were taken
        _, basis = self.density
        plane = basis[:, [-1, -2]]
        edges = np.arange(_WEDGES + 1) * np.pi / _WEDGES
        inwards = plane @ np.stack([-np.sin(edges), np.cos(edges)])
        children = []
        for q in range(_WEDGES):
            M = np.outer(inwards[:, q], -inwards[:, q + 1])
            child = Part(
                self.problem,
                [*self.sides, M + M.T],
                [*self.multipliers, 0.0],
                self.log_density,
                self.best_penalty,
                parent=self,
            )
            children.append(child)
        return children

    @property
    def bound(self) -> float:
        """The bound of this part or of one that contains it, but for rounding."""
        return self.value if self.parent is None else min(self.value, self.parent.bound)

    def proved(self) -> float:
        """Return the bound of this part, rounding included."""
        if self.parent is not None and self.parent.bound <= self.value:
            return self.parent.proved()
        if self.best_total is None:  # stopped before the first step
            return np.inf
        constant = self.problem.k * self.best_penalty
        value = constant + eigenvalue_ceiling(self.best_total)
        size = constant + 4 * self.size_of_sides
        return value + rounding_of_sum(self.problem.C, self.best_total, size)
