"""The direction dual for r components on one support: a Ky Fan sum in place of λmax.

With A = C'C and c_i the columns of C, the sum F_r(S) of the r largest eigenvalues of
A_SS is max Σ_{i∈S} c_i'Pc_i over projections P of rank r. For ρ > 0 and z_i, κ_i as in
`bounds.direction_dual.relaxation`, c_i c_i' − κ_i z_i z_i' ⪯ ρ uu' for a unit vector u:
on the plane of c_i and z_i, κzz' + ρI − cc' is singular and positive, so that ρ is the
one positive eigenvalue of cc' − κzz', at the most. As u'Pu ≤ 1 whatever the rank of P,

    c_i'Pc_i ≤ ρ + κ_i z_i'Pz_i,

and where ‖c_i‖² ≤ ρ, c_i'Pc_i ≤ ρ anyway. Adding up, with features I that are in S,

    F_r(S) ≤ (k − |I|) ρ + (sum of the r largest eigenvalues of
                            Σ_{i∈I} c_i c_i' + Σ_{i∉I} κ_i z_i z_i').

Any ρ and z_i give a bound. The best z_i for X with 0 ⪯ X ⪯ I, tr X = r, are those of
the density X/r in the case of one component, since κ_i z_i'Xz_i is of degree one in X;
the sum is a supergradient of a concave function of X. Mirror steps with the entropy
stay in the set by capping: eigenvalues min(1/r, t w_l), the sum being 1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.direction_dual.columns import Columns
from ..bounds.direction_dual.density import Density
from ..bounds.direction_dual.problem import Problem
from ..bounds.direction_dual.relaxation import Relaxation, relax, rounding_of_sum
from ..bounds.direction_dual.step_size import StepSize
from ..limits import Deadline
from ..numerics.rounding import EPS, TINY
from ..numerics.upper_eigenvalues import ky_fan_ceiling

FIRST_WEIGHT = 0.03  # least weight of a direction to begin with, of 1/n
WARM_UP = 10  # steps with it
NEAR = 0.03  # of the gap, that is left to gain when an ascent ends
PATIENCE = 40  # steps that gain little, after which it ends
LITTLE = 0.002  # of the gap
SETTLED = 0.02  # log(Σ z / k): ρ is as good as the best
# Margins in a claim, so that another LAPACK confirms it; one is needed. The ceiling of
# a Ky Fan sum may be 8 n eps of it higher there, which this is more than.
CLAIMED = 40.0
LEAST_VALUE = 1e-6  # of the largest eigenvalue: with less than r columns one is 0
HIGHEST_LOG = 30.0  # of a weight beside that of direction r: it is capped anyway


@dataclass(frozen=True)
class DualPoint:
    """ρ and a density that prove a bound, in the units of the columns."""

    value: float  #: an estimate of the bound
    multiplier: float  #: ρ
    density: Density  #: X/r


@dataclass
class SharedNode:
    """Sets that hold `inside` and k − |inside| of `undecided`, by column."""

    inside: NDArray[np.intp]
    undecided: NDArray[np.intp]
    density: Density
    multiplier: float
    bound: float = np.inf
    z: FloatArray | None = None  # how much of each undecided column is taken


class SharedAscent:
    """Mirror ascent at a node, where at most so many columns are still to be taken."""

    def __init__(
        self, problem: Problem, rank: int, node: SharedNode, still: int
    ) -> None:
        self.problem, self.rank, self.node = problem, rank, node
        self.columns: Columns = problem.columns.take(node.undecided)
        self.k = still
        n = problem.columns.shape[0]
        self.base, self.base_size = np.zeros((n, n)), 0.0
        if len(node.inside):
            inside = problem.columns.take(node.inside)
            self.base = inside.gram(np.ones(len(node.inside)))
            self.base_size = float((inside.sizes**2).sum())
        self.best: DualPoint | None = None
        self.steps = 0
        self.has_converged = False
        self._height = -np.inf  # at most what any point of the dual can prove
        self._since = 0  # steps, since the bound was lowered by more than a little
        self._control = StepSize()
        self._min_weight = FIRST_WEIGHT
        self._last: Relaxation | None = None

    def run(self, steps: int, target: float, deadline: Deadline) -> None:
        """Take steps until the bound is at the target, converged, or time is up."""
        for _ in range(steps):
            if not deadline.affords_step() or not self._step(target, deadline):
                break
            assert self.best is not None
            gap = self.best.value - target
            near = self.best.value - self._height <= NEAR * gap
            self.has_converged = near or self._since > PATIENCE
            if gap <= 0 or self.has_converged:
                break
        if self.best is not None:
            self.node.density = self.best.density
            self.node.multiplier = self.best.multiplier
            self.node.bound = min(self.node.bound, self.proved())

    def _step(self, target: float, deadline: Deadline) -> bool:
        started = time.perf_counter()
        node, r = self.node, self.rank
        rho = node.multiplier = self._clamped(node.multiplier)
        found = relax(self.columns, node.density, rho, deadline, self._last)
        if found is None or not found.is_finite:
            return False
        self._last = found
        self.steps += 1
        M = found.total + self.base
        values = np.linalg.eigvalsh(M)[::-1]
        value = self.k * rho + float(values[:r].sum())
        self._since += 1
        if self.best is None or value < self.best.value:
            self._control.on_success()
            before = np.inf if self.best is None else self.best.value
            if value < before - LITTLE * (before - target):
                self._since = 0
            self.best = DualPoint(value, rho, node.density)
            node.z = r * found.relaxed_z
        # The concave function at X: r times the means at the density X/r.
        mean = float(found.mu.sum()) + _mean(node.density, self.base)
        height = self.k * rho + r * mean
        # Directions at the cap stay there: what a step is to be small beside is the
        # least eigenvalue that counts, and not their mean.
        size = self._control.length(height, self.best.value) * abs(height)
        least = float(values[min(r, len(values)) - 1])
        size /= max(least, LEAST_VALUE * float(values[0]), TINY)
        if self._control.moves >= WARM_UP:
            gap = max(self.best.value - target, 0.0) if np.isfinite(target) else np.inf
            self._min_weight = self._control.lower_weight(self._min_weight, gap / r)
        self._control.moves += 1
        node.density = capped_step(node.density, M, size, self._min_weight, r)
        # Of X/r the relaxation says how μ changes with ρ, and r μ is what counts.
        taken = r * float(found.relaxed_z.sum())
        excess = float(np.log(max(taken, 1e-3) / self.k))
        if abs(excess) < SETTLED:  # ρ is the best one for X: the least of the function
            self._height = max(self._height, height)
        share = self.k / self.problem.k
        node.multiplier = self._clamped(
            self._control.update_multiplier(rho, excess, share)
        )
        deadline.step_took(time.perf_counter() - started)
        return True

    def _clamped(self, multiplier: float) -> float:
        largest = float(self.columns.norms.max(initial=0.0))
        return max(min(multiplier, 0.999 * largest), self.problem.min_multiplier, TINY)

    def proved(self) -> float:
        """Return the bound at the best point, rounding included."""
        assert self.best is not None
        return proved_at(
            self.columns,
            self.k,
            self.rank,
            self.best,
            self.base,
            self.base_size,
            len(self.node.inside),
            CLAIMED,
        )


def proved_at(
    columns: Columns,
    k: int,
    rank: int,
    point: DualPoint,
    base: FloatArray,
    base_size: float,
    inside: int,
    margin: float = 1.0,
) -> float:
    """Return k ρ + the Ky Fan sum at a point, with so many margins for rounding.

    `k` features are to be chosen beside those in `base`. The sum is off by the rounding
    of its terms, in norm, so that r eigenvalues are off by r times that.
    """
    found = relax(columns, point.density, point.multiplier)
    assert found is not None
    n, p = columns.shape
    fixed = k * point.multiplier
    size = found.size + base_size + fixed
    rounding = rank * rounding_of_sum(n, p + inside, size) + 8 * EPS * size
    return float(fixed + ky_fan_ceiling(found.total + base, rank) + margin * rounding)


def capped_step(
    density: Density, B: FloatArray, size: float, min_weight: float, rank: int
) -> Density:
    """Return exp(log X + size B) with weights of 1/r at the most, and of trace 1.

    No direction gets less than the share `min_weight` of 1/n.
    """
    n = density.order
    own = np.log(density.weights / density.rest)
    logs, Q = np.linalg.eigh((density.Q * own) @ density.Q.T + size * B)
    logs, Q = logs[::-1], Q[:, ::-1]
    weights = np.exp(np.clip(logs - logs[min(rank, n) - 1], -27.0, HIGHEST_LOG))
    weights = capped(weights, 1.0 / min(rank, n))
    weights = np.maximum(weights, min_weight / n)
    weights = capped(weights, 1.0 / min(rank, n))
    return Density(Q, weights, float(weights[-1]))


def capped(weights: FloatArray, cap: float) -> FloatArray:
    """Return min(cap, t w), the sum being 1; the weights w descend."""
    n = len(weights)
    tails = np.cumsum(weights[::-1])[::-1]
    for full in range(n):  # so many are at the cap
        t = (1 - full * cap) / max(tails[full], TINY)
        if t * weights[full] <= cap * (1 + 1e-12):
            return np.concatenate([np.full(full, cap), t * weights[full:]])
    return np.full(n, 1.0 / n)


def begin(leading: FloatArray, share: float) -> Density:
    """Return share/r on each of r orthonormal directions, the rest on all alike."""
    n, r = leading.shape
    rest = (1 - share) / n
    return Density(leading, np.full(r, share / r + rest), rest)


def _mean(density: Density, B: FloatArray) -> float:
    along = np.einsum("ij,ij->j", density.Q, B @ density.Q)
    return density.mean(along, float(np.trace(B)))
