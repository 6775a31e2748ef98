"""Mirror ascent at a node of the dual's search, and what can be decided with it.

Each step relaxes at the density X of the node, which gives an M and a bound (see
`dual_node`), and moves X along M.

The tests that decide features (`dual_decisions`) want the eigenvalues of M below the
first to be small, but if several directions y compete, the best density has rank above
one and the first is a multiple one.  Any density gives a valid M, so before features
are decided the ascent leans: it goes on with M − αqq', q the leading direction.  Where
that ends, at X, with v the least bound,

    λ2(M) ≤ λmax(M − αqq') ≤ v − α q'Xq,    λ1(M) ≤ v + α (1 − q'Xq),

because the value at X of the concave function that ascent maximises is at most v.  For
a narrow density, q'Xq near 1, the others fall by nearly α and the first hardly rises.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from .._validation import FloatArray
from .columns import Columns
from .density import Density
from .direction_dual import Relaxation, relax, rounding_of_sum
from .dual_decisions import Decisions
from .dual_node import FLOOR, Node
from .dual_problem import Problem
from .eigenvalues import eigenvalue_ceiling

_BELOW_ONE = 1 - 1e-5  # of the longest column: the largest ρ
_STEP = 4.0  # of a mirror step, in units of 1/bound
_SLOWER = 25  # steps after which a step is half as long
_FLOOR_OF_GAP = 0.1  # of the gap that the uniform share may cost
_LEAST_FLOOR = 3e-5  # while there is no gap: without a target, or at the first step
_LOWEST_FLOOR = 1e-10  # costs less than the tolerance of a proof
_WARM_UP = 10  # steps with the first floor
_PATIENCE = 4  # steps between two looks at what was gained
_SLOW = 0.85  # of the gap left after `_PATIENCE` steps
_FREE = 24  # steps in which a node may be above the bound of its parent
_CLOSE = 0.7  # of ρ: a gap that decides most features
_MANY = 0.5  # of all columns, undecided, so that it pays to stop there
_LEAN = 0.1  # of the gap that α may cost
_MOST_LEAN = 10.0  # of ρ, the largest α
_LEAN_STEPS = 8  # at the most
_LEAN_GAIN = 0.02  # of α in a step, or it is the last
_LARGE = 256  # order from which on Lanczos' method estimates eigenvalues


@dataclass
class _Best:
    """The relaxation with the least bound, and the M it belongs to."""

    value: float  # of M − αqq', while leaning
    penalty: float
    density: Density
    multipliers: list[float]  # where to look for those in M, from the step before
    relaxation: Relaxation
    M: FloatArray
    size: float  # of the terms of M


class Ascent:
    """Mirror ascent at a node, and what can be decided with its result."""

    def __init__(self, problem: Problem, node: Node) -> None:
        self.problem, self.node = problem, node
        self.columns: Columns = problem.columns.take(node.undecided)
        self.k = problem.k - len(node.inside)
        n = problem.columns.shape[0]
        self.base, self.base_size = np.zeros((n, n)), 0.0
        if len(node.inside):
            inside = problem.columns.take(node.inside)
            self.base = inside.gram(np.ones(len(node.inside)))
            self.base_size = float((inside.sizes**2).sum())
        self.best: _Best | None = None
        self.steps = 0
        self._eigenvector: FloatArray | None = None
        self._last: Relaxation | None = None
        self._target = -np.inf
        self._scale = 1.0  # of the steps
        self._tilt: FloatArray | None = None  # αqq', while leaning

    def run(
        self, steps: int, target: float, deadline: float, decide: bool = False
    ) -> bool:
        """Take steps until the bound is at the target, or they stall, or time is up.

        Returns True if the target is proved.
        """
        node = self.node
        self._target = target
        checked = np.inf
        many = decide and len(node.undecided) > _MANY * self.problem.columns.shape[1]
        try:
            for step in range(steps):
                if not self._step(step, deadline):
                    break
                best = self.best
                assert best is not None
                if best.value <= target and self.proved() <= target:
                    break
                if best.value - target < _CLOSE * node.penalty and many:
                    break  # enough to decide most of them
                lost = best.value > node.bound and step + 1 < _FREE
                if step % _PATIENCE == _PATIENCE - 1 and not lost:
                    # A small part of the way: what is left is not for steps like these.
                    if best.value - target > _SLOW * (checked - target):
                        break
                    checked = best.value
        finally:  # an interrupt does not lose the bound
            if self.best is not None:
                node.bound = min(node.bound, self.proved())
                node.shares = self.best.relaxation.shares
        return node.bound <= target

    def _step(self, step: int, deadline: float) -> bool:
        """Relax, and go on to the next density; False if time is up before that."""
        node, k = self.node, self.k
        # Above the longest column the bound would be kρ, whatever the density.
        longest = float(self.columns.norms.max())
        penalty = min(node.penalty, _BELOW_ONE * longest)
        penalty = max(penalty, self.problem.floor, np.finfo(float).tiny)
        node.penalty = penalty
        relaxation = relax(self.columns, node.density, penalty, deadline, self._last)
        if relaxation is None:
            return False
        self._last = relaxation
        self.steps += 1
        density, multipliers = node.density, node.multipliers
        M = relaxation.total
        M += self.base
        self._move(relaxation, self._tilted(M), step)
        for side, eta in zip(node.sides, node.multipliers, strict=True):
            if eta:
                M += eta * side.matrix()
        value = k * penalty + self._top(self._tilted(M))
        size = relaxation.size + self.base_size + sum(node.multipliers) + k * penalty
        found = _Best(value, penalty, density, multipliers, relaxation, M, size)
        self._scale = min(1.0, 1.1 * self._scale)
        if self.best is None or value < self.best.value:
            self.best = found
        elif self._is_worse(value):
            self._scale /= 2
            self._go_back(self.best)
        return time.monotonic() <= deadline

    def _tilted(self, M: FloatArray) -> FloatArray:
        return M if self._tilt is None else M - self._tilt

    def _is_worse(self, value: float) -> bool:
        """Whether the step before led too far; a part of the sphere may begin so."""
        if self.best is None or self._tilt is not None:
            return False
        return self.best.value < self.node.bound and (
            value > self.best.value + self._gap / 2
        )

    def _go_back(self, best: _Best) -> None:
        node = self.node
        node.density, node.penalty = best.density, best.penalty
        node.multipliers = best.multipliers

    @property
    def _gap(self) -> float:
        """How far the best bound is above the target; infinite without one."""
        if self.best is None or not np.isfinite(self._target):
            return np.inf
        return max(self.best.value - self._target, 0.0)

    def _top(self, M: FloatArray) -> float:
        """Estimate λmax(M); proofs do not rest on it."""
        if len(M) < _LARGE:
            return float(np.linalg.eigvalsh(M)[-1])
        from scipy.sparse.linalg import ArpackError, eigsh

        start = self._eigenvector
        if start is None:
            start = self.node.density.Q[:, 0]
        try:
            values, vectors = eigsh(M, k=1, which="LA", v0=start, tol=1e-6)
        except ArpackError:  # not converged, or M is zero where it begins
            return float(np.linalg.eigvalsh(M)[-1])
        self._eigenvector = vectors[:, 0]
        return float(values[0])

    def _move(self, relaxation: Relaxation, M: FloatArray, step: int) -> None:
        """Go on to the next density, penalty and multipliers."""
        node, k = self.node, self.k
        estimate = k * node.penalty + float(relaxation.mu.sum())
        if len(node.inside):
            estimate += node.density.mean(self.base)
        estimate = max(abs(estimate), 1e-300)
        size = self._scale * _STEP / (1 + step / _SLOWER) / estimate
        if self._tilt is None and (step >= _WARM_UP or node.floor < FLOOR):
            gap = self._gap
            least = _FLOOR_OF_GAP * gap / estimate if gap < np.inf else _LEAST_FLOOR
            node.floor = max(0.85 * node.floor, min(least, node.floor), _LOWEST_FLOOR)
        node.density, node.multipliers = node.density.step(
            M, size, node.floor, node.sides, node.multipliers
        )
        support = max(float(relaxation.shares.sum()), 1e-3)
        damping = 0.3 * min(1.0, 5 * k / self.problem.k + 0.05)
        node.penalty *= min(max((support / k) ** damping, 0.8), 1.25)

    def lean(self, deadline: float) -> None:
        """Lower what is not the leading eigenvalue of M, so that more is decided."""
        node, best = self.node, self.best
        if best is None:
            return
        self._go_back(best)
        q, outside = node.density.Q[:, 0], 1 - float(node.density.weights[0])
        alpha = _MOST_LEAN * node.penalty
        if outside > 0:
            alpha = min(alpha, _LEAN * self._gap / outside)
        self._tilt = alpha * np.outer(q, q)
        self.best, self._eigenvector = None, None
        before = np.inf
        for _ in range(_LEAN_STEPS):
            if not self._step(0, deadline):
                break
            assert self.best is not None
            if self.best.value > before - _LEAN_GAIN * alpha:
                break
            before = self.best.value
        self._tilt = None
        self.best = self.best or best
        self._go_back(best)

    def proved(self) -> float:
        """Return the bound by the best relaxation, rounding included."""
        assert self.best is not None
        ceiling = self.k * self.best.penalty + eigenvalue_ceiling(self.best.M)
        return ceiling + self._rounding()

    def decide(self, tau: float) -> int:
        """Take out, or put inside, the features for which the bound allows only that.

        Returns how many; −1 if no set is left.
        """
        best, node = self.best, self.node
        if best is None:
            return 0
        decisions = Decisions(self.columns, best.relaxation, best.M, self._rounding())
        bound = self.k * best.penalty + decisions.ceiling
        node.bound = min(node.bound, bound)
        room = tau - (self.k - 1) * best.penalty
        out = decisions.cannot_be_inside(room)
        needed = decisions.cannot_be_outside(room - best.penalty)
        if node.bound <= tau or (out & needed).any():
            return -1
        node.others = node.others and not self.problem.floor < room - decisions.ceiling
        node.inside = np.concatenate([node.inside, node.undecided[needed]])
        open_ = ~(out | needed)
        node.undecided, node.shares = node.undecided[open_], node.shares[open_]
        return int(len(open_) - open_.sum())

    def _rounding(self) -> float:
        """Bound the error of the best M, as the sum that it is."""
        assert self.best is not None
        n, p = self.columns.shape
        terms = p + len(self.node.inside) + 2 * len(self.node.sides)
        return rounding_of_sum(n, terms, self.best.size)
