"""Mirror ascent at a node of the dual's search, and the variables fixed by its result.

Each step relaxes at the density X of the node, which gives an M and a bound (see
`node`), and moves X along M.  Where n is large it moves several times within a space
of about sixty dimensions (`coordinates`) before it looks at all of M again; only that
gives bounds.  Only active columns, whose projections may be above ρ, have terms
(`fixing`): of many thousands, some hundreds, once the gap is a few times ρ.

The tests that fix variables (`fixing`) want the eigenvalues of M below the first to be
small, but if several directions y compete, the best density has rank above one and the
first is a multiple one.  Any density gives a valid M, so before variables are fixed the
sum is deflated: the ascent goes on with M − αqq', q the leading direction.  Where that
ends, at X, with v the least bound,

    λ2(M) ≤ λmax(M − αqq') ≤ v − α q'Xq,    λ1(M) ≤ v + α (1 − q'Xq),

because the value at X of the concave function that ascent maximises is at most v.  For
a narrow density, q'Xq near 1, the others fall by nearly α and the first hardly rises.

Where the data came from a GPU, and are large, it takes the steps.  A bound, and what it
fixes, comes from the relaxation at the best X and ρ, computed again on the host.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics.rounding import EPS, TINY
from ...numerics.upper_eigenvalues import eigenvalue_ceiling, is_below
from .columns import Columns, DenseColumns, DeviceColumns, HostColumns
from .coordinates import Coordinates, coordinates
from .density import Density, add_sectors
from .fixing import ReducedCostFixing
from .node import Ascended, Fixed, Node
from .problem import Problem
from .relaxation import Relaxation, relax, rounding_of_sum
from .step_size import StepSize


@dataclass(frozen=True)
class Best:
    """The relaxation with the least bound."""

    value: float  #: an estimate of the bound, of M − αqq' while the sum is deflated
    #: `multiplier`, `density`, `min_weight`: ρ and X that it was made with, and the
    #: least share of 1/n in X.
    multiplier: float
    density: Density
    min_weight: float
    #: η of the step before, from which those in M were looked for.
    start_etas: Sequence[float]
    etas: Sequence[float]  #: η in M
    relaxation: Relaxation  #: its `total` has the columns that are fixed in in it


class Ascent:
    """Mirror ascent at a node, which it leaves as it is, and what can be fixed."""

    def __init__(self, problem: Problem, node: Node) -> None:
        self.problem, self.node, self.settings = problem, node, problem.settings
        # The largest projections first
        order = np.argsort(-node.projection_bound, kind="stable")
        count = max(1, node.n_active())
        self.active = order[:count]
        self.projection_bound = node.projection_bound[self.active]
        self.min_multiplier = problem.min_multiplier
        if count < len(order):
            inactive = float(node.projection_bound[order[count]])
            self.min_multiplier = max(self.min_multiplier, inactive)
        self.coordinates = coordinates(problem, node, self.active)
        self.density = self.coordinates.to_subspace(node.density)
        assert isinstance(self.coordinates.active, HostColumns)
        self.columns: HostColumns = self.coordinates.active
        self.multiplied: Columns = self.columns  # in steps, by whoever has them
        pays = problem.on_device and self.settings.pays_on_device(*self.columns.shape)
        if pays and isinstance(self.columns, DenseColumns):
            self.multiplied = DeviceColumns.of(self.columns)
            self.coordinates = replace(self.coordinates, active=self.multiplied)
        self.k = problem.k - len(node.fixed_in)
        self.base: FloatArray | None = None
        self.base_size = 0.0
        fixed_in = self.coordinates.fixed_in
        if fixed_in is not None:
            self.base = fixed_in.gram(np.ones(len(node.fixed_in)))
            self.base_size = float((fixed_in.sizes**2).sum())
        #: Where it stands: ρ, the least weight, η and all mirror steps at the node.
        self.multiplier, self.min_weight = node.multiplier, node.min_weight
        self.etas, self.moves = node.etas, node.moves
        #: What it has found, in the words of the node.
        self.bound, self.relaxed_z = node.bound, node.relaxed_z
        self._node_density = node.density
        self.best: Best | None = None
        self.deflated: Best | None = None
        self.steps = 0
        self.stopped_to_reduce = False  # so that most columns turn out to be inactive
        self._last: Relaxation | None = None
        self._target = -np.inf
        self._step_size = StepSize(self.settings)
        n = self.columns.shape[0]
        self._is_large, self._budget = (
            self.settings.is_large(n),
            self.settings.budget(n),
        )
        self._ritz: FloatArray | None = None  # leading directions of the last M
        self.tests: ReducedCostFixing | None = None  # by which variables were fixed

    @property
    def found(self) -> Ascended:
        """What it has found so far, also if it was interrupted."""
        return Ascended(
            self.bound,
            self._node_density,
            self.multiplier,
            self.min_weight,
            self.etas,
            self.moves,
            self.relaxed_z,
        )

    def run(
        self, steps: int, target: float, deadline: Deadline, fix: bool = False
    ) -> Ascended:
        """Take steps until the bound is at the target, or they stall, or time is up.

        `fix` tells that variables may be fixed after that.
        """
        node, settings = self.node, self.settings
        self._target = target
        checked = np.inf
        many = fix and len(self.active) > settings.reduce_from_columns
        many = many and node.gap_at_bound == np.inf
        closed = False
        try:
            for step in range(1, steps + 1):
                if not self._step(deadline):
                    break
                assert self.best is not None
                if self.best.value <= target:
                    self.best = self._from_host(self.best)
                    if self._proves(target):
                        is_root = not (node.sectors or len(node.fixed_in))
                        bound = self.proved(exactly=True) if is_root else target
                        self.bound = min(self.bound, target, bound)
                        closed = True
                        break
                    self.best = replace(self.best, value=self.proved(exactly=True))
                gap = self._gap
                # At 12ρ nine columns in ten turn out to be inactive.
                if many and gap < 12 * self.multiplier:
                    self.stopped_to_reduce = True
                    break
                # Above the bound of its parent a node has nothing to show for itself.
                is_above = self.best.value > self.bound
                if step % self._budget.patience == 0 and not is_above:
                    # A small part of the way: what is left is not for steps like these.
                    if gap > settings.stall_ratio * checked:
                        break
                    checked = gap
        finally:  # an interrupt does not lose the bound
            if self.best is not None and not closed:
                self.best = self._from_host(self.best)
                self._node_density = self.coordinates.from_subspace(self.density)
                self.bound = min(self.bound, self.proved())
                self.relaxed_z = np.zeros(len(node.free))
                self.relaxed_z[self.active] = self.best.relaxation.relaxed_z
        return self.found

    def _step(self, deadline: Deadline) -> bool:
        """Relax, and go on to the next density; False if time, or numbers, end it.

        None is begun that would not end in time, by how long those before it took.
        """
        if not deadline.affords_step():
            return False
        started = time.perf_counter()
        self.multiplier = multiplier = self._clamped(self.multiplier)
        relaxation = self._relax(self.multiplied, self.density, self._last, deadline)
        if relaxation is None:
            return False
        self._last = relaxation
        self.steps += 1
        if self.base is not None:
            relaxation = replace(relaxation, total=relaxation.total + self.base)
        before = self.density, self.min_weight, self.etas
        top, etas = self._move(relaxation, deadline)
        value = self.k * multiplier + top
        if self.best is None or value < self.best.value:
            self._step_size.on_success()
            self.best = Best(value, multiplier, *before, etas, relaxation)
        elif self._is_worse(value):
            self._go_back(self.best)
            self.min_weight = self.best.min_weight
            # With the same weight as the best it was only the step that was too long.
            was_lowered = before[1] < self.min_weight
            self._step_size.on_failure(self.min_weight if was_lowered else None)
        deadline.step_took(time.perf_counter() - started)
        return not deadline.passed()

    def _relax(
        self,
        columns: Columns,
        density: Density,
        before: Relaxation | None,
        deadline: Deadline,
    ) -> Relaxation | None:
        multiplier, bound = self.multiplier, self.projection_bound
        found = relax(columns, density, multiplier, deadline, before, bound)
        return found if found is not None and found.is_finite else None

    def _clamped(self, multiplier: float) -> float:
        # From the largest projection on, the bound would be kρ for any density.
        multiplier = min(multiplier, (1 - 1e-5) * float(self.projection_bound[0]))
        return max(multiplier, self.min_multiplier, TINY)

    def _is_worse(self, value: float) -> bool:
        """Whether steps within a space led too far; a part of the sphere may begin so.

        Where all of M is seen at each step, what is worse now is often better later.
        """
        if self.best is None or self.coordinates.deflation is not None:
            return False
        return (
            self._is_large
            and self.best.value < self.bound
            and value > self.best.value + self._gap / 2
        )

    def _go_back(self, best: Best) -> None:
        self._step_size.forget_value()
        self.density = best.density
        self.multiplier, self.etas = best.multiplier, best.start_etas

    @property
    def _gap(self) -> float:
        """How far the best bound is above the target; infinite without one."""
        if self.best is None or not np.isfinite(self._target):
            return np.inf
        return max(self.best.value - self._target, 0.0)

    def _move(
        self, relaxation: Relaxation, deadline: Deadline
    ) -> tuple[float, Sequence[float]]:
        """Go on to the next density, multiplier and η.

        Where M is large, by several mirror steps within a space that holds what
        matters. Returns an estimate, from below, of λmax(M), and the η that are in M.
        """
        settings, M, seen = self.settings, relaxation.total, self.coordinates
        if seen.deflation is not None:
            M = M - np.outer(seen.deflation, seen.deflation)
        trace = float(np.trace(M))
        density = self.density
        few = len(self.active) <= settings.subspace_columns
        # A sum of many columns costs more than a second product with it.
        V = density.space(M, seen.sectors, self._ritz, 1 if few else 2, settings)
        several = few and V is not None
        if V is not None:
            density = density.to_subspace(V)
            seen = seen.within(V, active=several)
            if seen.active is None:
                M = V.T @ (M @ V)
            else:  # the same for less
                M, _ = seen.sum(relaxation.to_subspace(V, seen.active))
        density = self._next(seen, density, relaxation, M, trace)
        etas = self.etas
        values, vectors = np.linalg.eigh(add_sectors(M, seen.sectors, etas))
        if V is not None:
            self._ritz = V @ vectors[:, -settings.extra_directions :]
        for _ in range(settings.subspace_steps - 1 if several else 0):
            assert seen.active is not None
            found = self._relax(seen.active, density, relaxation, deadline)
            if found is None:
                break
            relaxation = found
            density = self._next(seen, density, found, *seen.sum(found))
        self.density = density if V is None else density.from_subspace(V)
        return float(values[-1]), etas

    def _next(
        self,
        seen: Coordinates,
        density: Density,
        relaxation: Relaxation,
        M: FloatArray,
        trace: float,
    ) -> Density:
        """Take a mirror step, and go on to the next multiplier and η."""
        k, control, settings = self.k, self._step_size, self.settings
        value = k * self.multiplier + float(relaxation.mu.sum())
        value += seen.fixed_mean(density)
        size = control.length(value, None if self.best is None else self.best.value)
        is_warm = self.moves >= settings.warm_up
        is_warm = is_warm or self.min_weight < settings.first_min_weight
        if seen.deflation is None and is_warm:
            self.min_weight = control.lower_weight(self.min_weight, self._gap)
        self.moves += 1
        control.moves += 1
        density, self.etas = density.step(
            M, size, self.min_weight, seen.sectors, self.etas, trace, settings
        )
        # No logarithm of zero, where nothing is taken
        taken = max(float(relaxation.relaxed_z.sum()), 1e-3)
        excess = float(np.log(taken / k))
        multiplier = control.update_multiplier(
            self.multiplier, excess, k / self.problem.k
        )
        self.multiplier = self._clamped(multiplier)
        return density

    def deflate(self, deadline: Deadline) -> None:
        """Lower what is not the leading eigenvalue of M, so that more is fixed."""
        best, settings = self.best, self.settings
        if best is None or self._gap > self._budget.fix_up_to * self.multiplier:
            return
        self._go_back(best)
        q, outside = self.density.Q[:, 0], 1 - float(self.density.weights[0])
        alpha = settings.max_deflation * self.multiplier
        if outside > 0:
            alpha = min(alpha, settings.deflation_cost * self._gap / outside)
        plain = self.coordinates
        self.coordinates = replace(plain, deflation=np.sqrt(alpha) * q)
        self.best = None
        before = np.inf
        for _ in range(self._budget.deflated_steps):
            self._step_size.moves = 0
            if not self._step(deadline):
                break
            assert self.best is not None
            if self.best.value > before - 0.02 * alpha:
                break  # most of what deflation can do is done by the first steps
            before = self.best.value
        self.coordinates = plain
        self.best, self.deflated = best, self.best
        self._go_back(best)
        self._node_density = self.coordinates.from_subspace(self.density)

    def _from_host(self, best: Best) -> Best:
        """Return the same with the products of the host, which a proof is made of."""
        if best.relaxation.is_from_host:
            return best
        found = relax(
            self.columns,
            best.density,
            best.multiplier,
            before=best.relaxation,
            projection_bound=self.projection_bound,
        )
        assert found is not None  # there is no deadline
        if self.base is not None:
            found = replace(found, total=found.total + self.base)
        return replace(best, relaxation=found)

    def sum(self, best: Best) -> FloatArray:
        """Return the M of a relaxation."""
        return add_sectors(best.relaxation.total, self.coordinates.sectors, best.etas)

    def rounding(self, best: Best) -> float:
        """Bound the error of that M, as the sum that it is."""
        n, p = self.columns.shape
        terms = p + len(self.node.fixed_in) + 2 * len(self.node.sectors)
        size = best.relaxation.size + self.base_size + sum(best.etas)
        size += self.k * best.multiplier
        lost = self.coordinates.rounding(size, best.etas)
        return rounding_of_sum(n, terms, size) + lost

    def _proves(self, target: float) -> bool:
        """Whether the bound by the best relaxation is at most the target."""
        assert self.best is not None
        top = target - self.k * self.best.multiplier - self.rounding(self.best)
        return is_below(self.sum(self.best), top - 8 * EPS * abs(target))

    def proved(self, exactly: bool = False) -> float:
        """Return the bound by the best relaxation, rounding included.

        Unless exactly, for a large M from its estimate, at the cost of some digits.
        """
        best = self.best
        assert best is not None
        fixed = self.k * best.multiplier
        estimate = best.value - fixed if self._is_large and not exactly else None
        ceiling = eigenvalue_ceiling(self.sum(best), estimate)
        return fixed + ceiling + self.rounding(best)

    def can_fix(self) -> bool:
        """Whether the gap is so small that something may be fixed, or be inactive."""
        small = self._budget.fix_up_to * self.multiplier
        # With half the gap, projections have half the room.
        return self._gap < max(small, self.node.gap_at_bound / 2)

    def fix_variables(self, tau: float) -> Fixed | None:
        """Find the features for which the bound allows only one choice.

        Returns None if no set above τ is left.
        """
        best, seen = self.deflated or self.best, self.coordinates
        assert best is not None
        best = self._from_host(best)
        tests = ReducedCostFixing(
            self.columns,
            best.relaxation,
            self.sum(best),
            self.rounding(best),
            best.density.Q[:, 0],
            self.settings,
        )
        self.tests = tests
        bound = self.k * best.multiplier + tests.ceiling
        if min(self.bound, bound) <= tau:
            return None
        room = tau - (self.k - 1) * best.multiplier
        columns, index = seen.free_columns()
        out = tests.rules_out(columns, room)[index]
        out[self.active] = tests.can_fix_out(room)
        needed = np.zeros_like(out)
        needed[self.active] = tests.can_fix_in(room - best.multiplier)
        if (out & needed).any():
            return None
        # More columns than dimensions: their sum costs more than this bound.
        crowded = len(self.active) > 1.5 * self.columns.shape[0]
        projected = None
        if self.stopped_to_reduce or crowded:
            found = tests.projection_bound(columns, room - best.multiplier)[index]
            projected = found * (1 + seen.error) + seen.column_error
        return Fixed(
            min(self.bound, bound),
            fixed_in=needed,
            fixed_out=out,
            short_columns=self.problem.min_multiplier < room - tests.ceiling,
            projection_bound=projected,
            gap=bound - tau,
        )
