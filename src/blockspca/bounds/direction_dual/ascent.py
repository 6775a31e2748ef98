"""Mirror ascent at a node of the dual's search, and what can be decided with it.

Each step relaxes at the density X of the node, which gives an M and a bound (see
`dual_node`), and moves X along M.  Where n is large it moves several times within a
space of about sixty dimensions (`dual_frame`) before it looks at all of M again;
only that gives bounds.  Only columns that reach more than ρ have terms
(`dual_decisions`): of many thousands, some hundreds, once the gap is a few times ρ.

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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics.rounding import EPS, TINY
from ...numerics.upper_eigenvalues import eigenvalue_ceiling, is_below
from .columns import Columns
from .coordinates import view
from .density import OTHERS, Density, is_large
from .fixing import Decisions
from .node import FLOOR, Node
from .problem import Problem
from .relaxation import Relaxation, relax, rounding_of_sum
from .step_size import Control
from .subspace import Frame

_BELOW_ONE = 1 - 1e-5  # of what a column reaches: the largest ρ
_TURNS = 5  # mirror steps within a space
_MOST_WITHIN = 10_000  # columns that are seen within a space
_WARM_UP = 10  # mirror steps with the first floor
_SLOW = 0.85  # of the gap left from one look to the next
_FREE = 24  # mirror steps in which a node may be above the bound of its parent
_CLOSE = 12.0  # of ρ: a gap with which most columns are out of play
_MANY = 2000  # columns in play, so that it pays to stop there
_FEWEST = 1e-3  # columns that the relaxation counts as
_LEAN = 0.1  # of the gap that α may cost
_MOST_LEAN = 10.0  # of ρ, the largest α
_LEAN_GAIN = 0.02  # of α in a step, or it is the last
_CROWDED = 1.5  # of n, columns in play: it pays to look at what they reach
_NARROWER = 0.5  # of the gap when the reach was found: it will be less


@dataclass(frozen=True)
class _Pace:
    """How long to go on, by what a step costs beside a decision.

    Attributes
    ----------
    patience : int
        Steps between two looks at what was gained.
    lean_steps : int
        Steps while leaning, at the most.
    decide_up_to : float
        Of ρ, the largest gap with which features are decided.
    """

    patience: int
    lean_steps: int
    decide_up_to: float


_SMALL_PACE = _Pace(patience=4, lean_steps=8, decide_up_to=np.inf)
_LARGE_PACE = _Pace(patience=3, lean_steps=2, decide_up_to=1.5)


@dataclass(frozen=True)
class _Best:
    """The relaxation with the least bound.

    Attributes
    ----------
    value : float
        An estimate of the bound, of M − αqq' while leaning.
    penalty, density, floor
        ρ and X that it was made with, and the least share of 1/n in X.
    multipliers : list of float
        η of the step before, from which those in M were looked for.
    etas : list of float
        η in M.
    relaxation : Relaxation
        Its `total` has the columns inside in it.
    """

    value: float
    penalty: float
    density: Density
    floor: float
    multipliers: list[float]
    etas: list[float]
    relaxation: Relaxation


class Ascent:
    """Mirror ascent at a node, and what can be decided with its result."""

    def __init__(self, problem: Problem, node: Node) -> None:
        self.problem, self.node = problem, node
        # Which of the undecided columns are in play, those that reach furthest first
        order = np.argsort(-node.reach, kind="stable")
        count = max(1, node.in_play())
        self.at = order[:count]
        self.reach = node.reach[self.at]
        self.floor = problem.floor  # ρ must not be less
        if count < len(order):
            self.floor = max(self.floor, float(node.reach[order[count]]))
        self.view = seen = view(problem, node)
        self.density = seen.inward(node.density)
        self.columns: Columns = seen.columns.take(seen.undecided[self.at])
        self.k = problem.k - len(node.inside)
        inside = seen.columns.take(seen.inside) if len(node.inside) else None
        self.base: FloatArray | None = None
        self.base_size = 0.0
        if inside is not None:
            self.base = inside.gram(np.ones(len(node.inside)))
            self.base_size = float((inside.sizes**2).sum())
        self.best: _Best | None = None
        self.leaned: _Best | None = None
        self.steps = 0
        self.is_interim = False  # stopped so that most columns can be put out of play
        self._frame = Frame(self.columns, inside, seen.sides)
        self._last: Relaxation | None = None
        self._target = -np.inf
        self._control = Control()
        self._is_large = is_large(self.columns.shape[0])
        self._pace = _LARGE_PACE if self._is_large else _SMALL_PACE
        self._ritz: FloatArray | None = None  # leading directions of the last M

    def run(
        self, steps: int, target: float, deadline: Deadline, decide: bool = False
    ) -> bool:
        """Take steps until the bound is at the target, or they stall, or time is up.

        Returns True if the target is proved.
        """
        node = self.node
        self._target = target
        checked = np.inf
        many = decide and len(self.at) > _MANY and node.reached == np.inf
        closed = False
        try:
            for step in range(1, steps + 1):
                if not self._step(deadline):
                    break
                assert self.best is not None
                if self.best.value <= target:
                    if self._proves(target):
                        is_root = not (node.sides or len(node.inside))
                        bound = self.proved(exactly=True) if is_root else target
                        node.bound = min(node.bound, target, bound)
                        closed = True
                        break
                    self.best = replace(self.best, value=self.proved(exactly=True))
                gap = self._gap
                if many and gap < _CLOSE * node.penalty:
                    self.is_interim = True
                    break
                lost = self.best.value > node.bound and self._control.moves < _FREE
                if step % self._pace.patience == 0 and not lost:
                    # A small part of the way: what is left is not for steps like these.
                    if gap > _SLOW * checked:
                        break
                    checked = gap
        finally:  # an interrupt does not lose the bound
            if self.best is not None and not closed:
                node.density = self.view.outward(self.density)
                node.bound = min(node.bound, self.proved())
                node.shares = np.zeros(len(node.undecided))
                node.shares[self.at] = self.best.relaxation.shares
        return node.bound <= target

    def _step(self, deadline: Deadline) -> bool:
        """Relax, and go on to the next density; False if time is up before that.

        None is begun that would not end in time, by how long those before it took.
        """
        if not deadline.affords_step():
            return False
        started = time.perf_counter()
        node = self.node
        node.penalty = penalty = self._clamped(node.penalty)
        relaxation = self._relax(self._frame, self.density, self._last, deadline)
        if relaxation is None:
            return False
        self._last = relaxation
        self.steps += 1
        if self.base is not None:
            relaxation = replace(relaxation, total=relaxation.total + self.base)
        before = self.density, node.floor, node.multipliers
        top, etas = self._move(relaxation, deadline)
        value = self.k * penalty + top
        if self.best is None or value < self.best.value:
            self._control.gained()
            self.best = _Best(value, penalty, *before, etas, relaxation)
        elif self._is_worse(value):
            self._go_back(self.best)
            node.floor = self.best.floor
            self._control.led_too_far(node.floor)
        deadline.step_took(time.perf_counter() - started)
        return not deadline.passed()

    def _relax(
        self,
        frame: Frame,
        density: Density,
        before: Relaxation | None,
        deadline: Deadline,
    ) -> Relaxation | None:
        assert frame.columns is not None
        penalty = self.node.penalty
        return relax(frame.columns, density, penalty, deadline, before, self.reach)

    def _clamped(self, penalty: float) -> float:
        # Above what the first reaches the bound would be kρ, whatever the density.
        penalty = min(penalty, _BELOW_ONE * float(self.reach[0]))
        return max(penalty, self.floor, TINY)

    def _is_worse(self, value: float) -> bool:
        """Whether steps within a space led too far; a part of the sphere may begin so.

        Where all of M is seen at each step, what is worse now is often better later.
        """
        if self.best is None or self._frame.tilt is not None:
            return False
        return (
            self._is_large
            and self.best.value < self.node.bound
            and value > self.best.value + self._gap / 2
        )

    def _go_back(self, best: _Best) -> None:
        node = self.node
        self._control.forget_height()
        self.density = best.density
        node.penalty, node.multipliers = best.penalty, best.multipliers

    @property
    def _gap(self) -> float:
        """How far the best bound is above the target; infinite without one."""
        if self.best is None or not np.isfinite(self._target):
            return np.inf
        return max(self.best.value - self._target, 0.0)

    def _move(
        self, relaxation: Relaxation, deadline: Deadline
    ) -> tuple[float, list[float]]:
        """Go on to the next density, penalty and multipliers.

        Where M is large, by several mirror steps within a space that holds what
        matters. Returns an estimate, from below, of λmax(M), and the η that are in M.
        """
        node, M, frame = self.node, relaxation.total, self._frame
        if frame.tilt is not None:
            M = M - np.outer(frame.tilt, frame.tilt)
        trace = float(np.trace(M))
        density = self.density
        few = len(self.at) <= _MOST_WITHIN
        # A sum of many columns costs more than a second product with it.
        space = density.space(M, frame.sides, self._ritz, 1 if few else 2)
        several = few and space is not None
        if space is not None:
            density = density.within(space)
            frame = frame.within(space, columns=several)
            if frame.columns is None:
                M = space.T @ (M @ space)
            else:  # the same for less
                M, _ = frame.sum(relaxation.within(space, frame.columns))
        density = self._next(frame, density, relaxation, M, trace)
        etas = node.multipliers
        for side, eta in zip(frame.sides, etas, strict=True):
            if eta:
                M = M + eta * side.matrix()
        values, vectors = np.linalg.eigh(M)
        if space is not None:
            self._ritz = space @ vectors[:, -OTHERS:]
        for _ in range(_TURNS - 1 if several else 0):
            found = self._relax(frame, density, relaxation, deadline)
            if found is None:
                break
            relaxation = found
            density = self._next(frame, density, found, *frame.sum(found))
        self.density = density if space is None else density.outward(space)
        return float(values[-1]), etas

    def _next(
        self,
        frame: Frame,
        density: Density,
        relaxation: Relaxation,
        M: FloatArray,
        trace: float,
    ) -> Density:
        """Take a mirror step, and go on to the next penalty and multipliers."""
        node, k, control = self.node, self.k, self._control
        height = k * node.penalty + float(relaxation.mu.sum())
        height += frame.fixed_mean(density)
        size = control.step_length(
            height, None if self.best is None else self.best.value
        )
        if frame.tilt is None and (node.moves >= _WARM_UP or node.floor < FLOOR):
            node.floor = control.lower_floor(node.floor, self._gap)
        node.moves += 1
        control.moves += 1
        density, node.multipliers = density.step(
            M, size, node.floor, frame.sides, node.multipliers, trace
        )
        excess = float(np.log(max(float(relaxation.shares.sum()), _FEWEST) / k))
        penalty = control.follow(node.penalty, excess, k / self.problem.k)
        node.penalty = self._clamped(penalty)
        return density

    def lean(self, deadline: Deadline) -> None:
        """Lower what is not the leading eigenvalue of M, so that more is decided."""
        node, best = self.node, self.best
        if best is None or self._gap > self._pace.decide_up_to * node.penalty:
            return
        self._go_back(best)
        q, outside = self.density.Q[:, 0], 1 - float(self.density.weights[0])
        alpha = _MOST_LEAN * node.penalty
        if outside > 0:
            alpha = min(alpha, _LEAN * self._gap / outside)
        upright, self._frame = self._frame, self._frame.leaning(np.sqrt(alpha) * q)
        self.best = None
        before = np.inf
        for _ in range(self._pace.lean_steps):
            self._control.moves = 0
            if not self._step(deadline):
                break
            assert self.best is not None
            if self.best.value > before - _LEAN_GAIN * alpha:
                break
            before = self.best.value
        self._frame = upright
        self.best, self.leaned = best, self.best
        self._go_back(best)
        node.density = self.view.outward(self.density)

    def sum(self, best: _Best) -> FloatArray:
        """Return the M of a relaxation."""
        M = best.relaxation.total
        for side, eta in zip(self.view.sides, best.etas, strict=True):
            if eta:
                M = M + eta * side.matrix()
        return M

    def rounding(self, best: _Best) -> float:
        """Bound the error of that M, as the sum that it is."""
        n, p = self.columns.shape
        terms = p + len(self.node.inside) + 2 * len(self.node.sides)
        size = best.relaxation.size + self.base_size + sum(best.etas)
        size += self.k * best.penalty
        return rounding_of_sum(n, terms, size) + self.view.rounding(size, best.etas)

    def _proves(self, target: float) -> bool:
        """Whether the bound by the best relaxation is at most the target."""
        assert self.best is not None
        top = target - self.k * self.best.penalty - self.rounding(self.best)
        return is_below(self.sum(self.best), top - 8 * EPS * abs(target))

    def proved(self, exactly: bool = False) -> float:
        """Return the bound by the best relaxation, rounding included.

        Unless exactly, for a large M from its estimate, at the cost of some digits.
        """
        best = self.best
        assert best is not None
        fixed = self.k * best.penalty
        estimate = best.value - fixed if self._is_large and not exactly else None
        ceiling = eigenvalue_ceiling(self.sum(best), estimate)
        return fixed + ceiling + self.rounding(best)

    def is_worth_deciding(self) -> bool:
        """Whether the gap is so small that something may be decided, or reach less."""
        small = self._pace.decide_up_to * self.node.penalty
        return self._gap < max(small, _NARROWER * self.node.reached)

    def decide(self, tau: float) -> int:
        """Take out, or put inside, the features for which the bound allows only that.

        Returns how many of those in play; −1 if no set is left.
        """
        best, node = self.leaned or self.best, self.node
        if best is None:
            return 0
        decisions = Decisions(
            self.columns,
            best.relaxation,
            self.sum(best),
            self.rounding(best),
            best.density.Q[:, 0],
        )
        bound = self.k * best.penalty + decisions.ceiling
        node.bound = min(node.bound, bound)
        if node.bound <= tau:
            return -1
        room = tau - (self.k - 1) * best.penalty
        columns, index = self._undecided()
        out = decisions.rules_out(columns, room)[index]
        out[self.at] = decisions.cannot_be_inside(room)
        needed = np.zeros_like(out)
        needed[self.at] = decisions.cannot_be_outside(room - best.penalty)
        if (out & needed).any():
            return -1
        if self.is_interim or len(self.at) > _CROWDED * self.columns.shape[0]:
            reach = decisions.reach(columns, room - best.penalty)[index]
            reach *= 1 + self.view.error
            reach += self.view.blur[self.view.undecided]
            node.reach, node.reached = np.minimum(node.reach, reach), bound - tau
        node.others = node.others and not self.problem.floor < room - decisions.ceiling
        node.inside = np.concatenate([node.inside, node.undecided[needed]])
        open_ = ~(out | needed)
        node.undecided, node.shares = node.undecided[open_], node.shares[open_]
        node.reach = node.reach[open_]
        return int((~open_[self.at]).sum())

    def _undecided(self) -> tuple[Columns, NDArray[np.intp] | slice]:
        """Return columns, and where the undecided ones are among them."""
        columns, undecided = self.view.columns, self.view.undecided
        if 4 * len(undecided) > columns.shape[1]:
            return columns, undecided  # cheaper than a copy
        return columns.take(undecided), slice(None)
