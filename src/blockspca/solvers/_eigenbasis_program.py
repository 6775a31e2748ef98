"""x'Ax in the eigenbasis of A, bounded by a mixed-integer linear program.

Let A = Σ λ_i v_i v_i' and g_i = v_i'x. For ‖x‖₂ = 1 and every number λ,

    x'Ax = λ + Σ_{λ_i > λ} (λ_i − λ) g_i² − Σ_{λ_i ≤ λ} (λ − λ_i) g_i² .          (1)

The second sum is convex: s_i ≥ g_i² is described by tangents, s_i ≥ 2a g_i − a² for any
a. Only the first, of few terms, needs integer variables: g_i² is replaced by its chords
between breakpoints, which lie above it by at most h²/4 for a distance h (Dey, Mazumder
and Wang). Linear as well are

    ‖x‖₁ ≤ √k,   t_j ≥ x_j² by tangents, Σ t_j ≤ 1,   Σ s_i ≤ 1,   |g_i| ≤ θ_i,

θ_i² being the sum of the k largest squares of v_i. With z_j ∈ {0, 1}, Σ z_j = k, the
support itself is in the program: |x_j| ≤ z_j and t_j ≥ 2a |x_j| − a² z_j.

Only x with x'Ax ≥ r, the value reached, matter. By (1), with q the least λ − λ_i ≥ 0 of
the second sum and Σ g_i² = 1,

    Σ_{λ_i > λ} (λ_i − λ + q) g_i² ≥ q + r − λ ,                                   (2)

which keeps x away from 0, where every term of (1) is small: Σ (λ − λ_i) g_i² over the
second sum is at least q (1 − Σ g_i²), Σ over the first. If that has a single term, its
breakpoints begin at the root of (2). x or −x makes the first g_i ≥ 0. So the larger of
r and the optimum of the program is at least opt(k), for every symmetric A.

`_highs.py` says what is trusted. A has largest entry 1 here, so that the rounding of
eigenvectors, about d · 1e-15, is far below the tolerance of HiGHS, by which (2), the
ends of the breakpoints and the cut at r are loosened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ._highs import TOLERANCE, Answer, minimise
from .base import Deadline
from .template import SolverRun

#: First tangents: at x_j in units of 1/√k, the size of a loading, and at g_i in units
#: of θ_i. More are added at each solution.
FIRST_LOADINGS = (0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0)
FIRST_SHARES = (0.1, 0.3, 0.6, 1.0)
NEAREST = 1e-4  # a tangent this far away misses a square by 1e-8
EQUAL = 1e-9  # eigenvalues that are no more above λ count as λ

Entries = list[tuple[Any, Any, Any]]


class _Tangents:
    """The points at which each of d squares has tangents."""

    def __init__(self, points: list[list[float]]) -> None:
        self.points = points

    def add(self, values: FloatArray) -> None:
        for own, value in zip(self.points, values.tolist(), strict=True):
            if value != 0 and all(abs(value - a) > NEAREST for a in own):
                own.append(value)

    def flat(self) -> tuple[NDArray[np.intp], FloatArray]:
        """The square and the point of every tangent."""
        counts = [len(own) for own in self.points]
        at = np.array([a for own in self.points for a in own])
        return np.repeat(np.arange(len(counts)), counts), at


@dataclass
class _Rows:
    """lower ≤ matrix · variables ≤ upper, row by row."""

    n_variables: int
    count: int = 0
    parts: list[tuple[Any, Any, Any]] = field(default_factory=list)
    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)

    def add(
        self, n_rows: int, entries: Entries, lower: Any = -np.inf, upper: Any = np.inf
    ) -> None:
        """Add rows; each entry is (rows from 0, columns, coefficients), broadcast."""
        for entry in entries:
            rows, columns, values = np.broadcast_arrays(*entry)
            place = self.count + rows.ravel(), columns.ravel(), values.ravel()
            self.parts.append(place)
        self.lower.append(np.broadcast_to(lower, n_rows))
        self.upper.append(np.broadcast_to(upper, n_rows))
        self.count += n_rows

    def constraint(self) -> Any:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        together = zip(*self.parts, strict=True)
        rows, columns, values = (np.concatenate(part) for part in together)
        shape = (self.count, self.n_variables)
        places = rows.astype(np.int32), columns.astype(np.int32)  # as HiGHS has them
        matrix: Any = csr_array((values, places), shape=shape, dtype=float)
        lower, upper = np.concatenate(self.lower), np.concatenate(self.upper)
        return LinearConstraint(matrix, lower, upper)


class EigenbasisProgram:
    """The program for one A with largest entry 1, one k and one λ.

    Parameters
    ----------
    eigenvalues, eigenvectors : arrays of shape (d,) and (d, d)
        Of A, as from `numpy.linalg.eigh`.
    level : float
        λ; each eigenvalue above it needs integer variables.
    reached : float
        r; the caller raises it when a better x is found.
    segments : int
        Chords of g_i² between 0 and θ_i, to begin with.
    with_support : bool
        Whether the z_j are in the program.
    """

    def __init__(
        self,
        eigenvalues: FloatArray,
        eigenvectors: FloatArray,
        k: int,
        *,
        level: float,
        reached: float,
        segments: int,
        with_support: bool,
    ) -> None:
        self.V, self.d, self.k = eigenvectors, len(eigenvectors), k
        self.level, self.reached, self.with_support = level, reached, with_support
        largest = np.sort(self.V**2, axis=0)[::-1][:k]
        self.theta = np.minimum(np.sqrt(largest.sum(axis=0)) + TOLERANCE, 1.0)
        above = eigenvalues > level + EQUAL
        self.above = np.flatnonzero(above)[::-1]
        self.weights = eigenvalues[self.above] - level
        self.prices = np.where(above, 0.0, np.maximum(level - eigenvalues, 0.0))
        self.least_price = float(self.prices[~above].min()) if not above.all() else 0.0
        self.breakpoints = [self._breakpoints(i, segments) for i in self.above]
        first = sorted({min(c / math.sqrt(k), 1.0) for c in FIRST_LOADINGS})
        self.loading_tangents = _Tangents([list(first) for _ in range(self.d)])
        shares = np.array([*FIRST_SHARES, *(-c for c in FIRST_SHARES)])
        self.factor_tangents = _Tangents([list(shares * t) for t in self.theta])
        self.excluded: list[NDArray[np.intp]] = []

    @property
    def unit_total(self) -> float:
        """The right-hand side of (2)."""
        return self.least_price + self.reached - self.level - TOLERANCE

    def _breakpoints(self, i: int, segments: int) -> FloatArray:
        end = float(self.theta[i])
        if i != self.above[0]:
            return np.linspace(-end, end, 2 * segments + 1)
        start = 0.0
        if len(self.above) == 1 and self.unit_total > 0:
            weight = float(self.weights[0]) + self.least_price
            start = math.sqrt(self.unit_total / weight)
        return np.linspace(min(start, end) - TOLERANCE, end, segments + 1)

    def refine(self, x: FloatArray) -> None:
        """Make the program exact at x: tangents and breakpoints there."""
        g = self.V.T @ x
        self.loading_tangents.add(np.abs(x))
        self.factor_tangents.add(g)
        for number, i in enumerate(self.above):
            own = self.breakpoints[number]
            if own[0] < g[i] < own[-1] and np.abs(own - g[i]).min() > NEAREST:
                self.breakpoints[number] = np.sort(np.append(own, g[i]))

    def exclude(self, support: NDArray[np.intp]) -> None:
        """Cut off a support of known value by Σ_{j∈S} z_j ≤ k − 1.

        Not one of fewer than k features: larger supports that contain it may be better.
        """
        if len(support) == self.k:
            self.excluded.append(support)

    def support_of(self, solution: FloatArray) -> NDArray[np.intp]:
        """The features with z_j = 1."""
        return np.flatnonzero(solution[5 * self.d : 6 * self.d] > 0.5)

    def maximise(
        self,
        deadline: Deadline,
        *,
        nodes: int | None = None,
        gap: float = 0.0,
        integer: bool = True,
    ) -> Answer:
        """Solve the program or its relaxation: the best point, and an upper bound.

        The first d variables of a solution are x; the bound is −inf if there is none.
        """
        from scipy.optimize import Bounds

        d = self.d
        sizes = [len(own) - 1 for own in self.breakpoints]
        first_step = (6 if self.with_support else 5) * d
        first_switch = first_step + sum(sizes)
        n = first_switch + sum(size - 1 for size in sizes)
        lower, upper, cost, integrality = (np.zeros(n) for _ in range(4))
        upper[:first_step] = upper[first_switch:] = 1.0
        lower[:d] = -1.0
        lower[3 * d : 4 * d], upper[3 * d : 4 * d] = -self.theta, self.theta
        cost[4 * d : 5 * d] = self.prices
        integrality[5 * d : first_step] = integrality[first_switch:] = float(integer)
        rows = _Rows(n)
        self._add_squares(rows)
        if self.with_support:
            self._add_supports(rows)

        constant, unit_total, unit = self.level, self.unit_total, []
        step_from, switch_from = first_step, first_switch
        for own, weight, i in zip(
            self.breakpoints, self.weights, self.above, strict=True
        ):
            length, slope = np.diff(own), own[1:] + own[:-1]
            step = step_from + np.arange(len(length))
            switch = switch_from + np.arange(len(length) - 1)
            step_from, switch_from = step_from + len(step), switch_from + len(switch)
            upper[step], cost[step] = length, -weight * slope
            constant += weight * own[0] ** 2
            unit.append((0, step, (weight + self.least_price) * slope))
            unit_total -= (weight + self.least_price) * own[0] ** 2
            # a segment is entered only when the one before it is full
            line = np.arange(len(switch))
            full = [(line, step[:-1], 1.0), (line, switch, -length[:-1])]
            rows.add(len(line), full, lower=0.0)
            entered = [(line, step[1:], 1.0), (line, switch, -length[1:])]
            rows.add(len(line), entered, upper=0.0)
            sum_of_steps = [(0, 3 * d + i, 1.0), (0, step, -1.0)]
            rows.add(1, sum_of_steps, lower=own[0], upper=own[0])
        if unit:
            rows.add(1, unit, lower=unit_total)
        used = np.flatnonzero(cost)
        rows.add(1, [(0, used, -cost[used])], lower=self.reached - constant - TOLERANCE)
        answer = minimise(
            cost,
            integrality=integrality,
            bounds=Bounds(lower, upper),
            constraints=rows.constraint(),
            deadline=deadline,
            nodes=nodes,
            gap=gap,
        )
        return Answer(
            answer.x, float(constant - answer.bound), answer.finished, answer.nodes
        )

    def tighten(
        self, run: SolverRun, scale: float, **options: Any
    ) -> tuple[Answer, float]:
        """Maximise with the nodes that a run has left, and lower its bound."""
        left = None if run.limits.nodes is None else run.limits.nodes - run.nodes
        answer = self.maximise(run.deadline, nodes=left, **options)
        run.nodes += answer.nodes
        bound = max(answer.bound, self.reached)
        run.tighten(scale * (bound + TOLERANCE))
        return answer, bound

    def _add_squares(self, rows: _Rows) -> None:
        """u_j ≥ |x_j|, g = V'x, and t_j ≥ u_j², s_i ≥ g_i² by tangents."""
        d = self.d
        each = np.arange(d)
        x, u, t, g, s = (start + each for start in range(0, 5 * d, d))
        rows.add(d, [(each, u, 1.0), (each, x, -1.0)], lower=0.0)
        rows.add(d, [(each, u, 1.0), (each, x, 1.0)], lower=0.0)
        product = [(each, g, -1.0), (each[:, None], x[None, :], self.V.T)]
        rows.add(d, product, lower=0.0, upper=0.0)
        which, at = self.loading_tangents.flat()
        line = np.arange(len(at))
        entries: Entries = [(line, t[which], 1.0), (line, u[which], -2 * at)]
        if self.with_support:
            entries.append((line, 5 * d + which, at**2))
        rows.add(len(at), entries, lower=0.0 if self.with_support else -(at**2))
        which, at = self.factor_tangents.flat()
        line = np.arange(len(at))
        entries = [(line, s[which], 1.0), (line, g[which], -2 * at)]
        rows.add(len(at), entries, lower=-(at**2))
        rows.add(1, [(0, t, 1.0)], upper=1.0)
        rows.add(1, [(0, s, 1.0)], upper=1.0)
        rows.add(1, [(0, u, 1.0)], upper=math.sqrt(self.k))

    def _add_supports(self, rows: _Rows) -> None:
        """u_j ≤ z_j, t_j ≤ z_j, Σ z_j = k, and the supports that are left out."""
        d = self.d
        each = np.arange(d)
        u, t, z = d + each, 2 * d + each, 5 * d + each
        rows.add(d, [(each, z, 1.0), (each, u, -1.0)], lower=0.0)
        rows.add(d, [(each, z, 1.0), (each, t, -1.0)], lower=0.0)
        rows.add(1, [(0, z, 1.0)], lower=self.k, upper=self.k)
        for support in self.excluded:
            rows.add(1, [(0, z[support], 1.0)], upper=self.k - 1.0)
