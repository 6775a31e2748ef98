"""The points of the direction dual that a proof writes down: ρ and a density each.

From them whoever checks the proof makes directions z_i of his own and the sum with them
(`docs/proof-format.md`, rule "direction"). Written are the root of the search, and
rounds of reduced-cost fixing at it; what is split, and columns that need no term
because of their projections, has no words in the format.

Rounds fix at τ − 2⁻²⁰|τ| and the last point closes at τ − 2⁻³⁴|τ|, so that rounding,
which the tests of `fixing` include as it is here, does not decide elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline, NotAffordable
from ...numerics.blas import single_threaded
from ...numerics.upper_eigenvalues import eigenvalue_ceiling
from .ascent import Ascent, Best
from .problem import Problem, make_problem
from .relaxation import relax, rounding_of_sum
from .search import root_of
from .settings import DEFAULT, DualSettings

_STEPS, _CHILD_STEPS = 150, 40  # of ascent, as in `dual_bound`
_MOST_ROUNDS = 40  # of fixing; each ends it unless it fixes something, eight are many

# Of |τ|. A test of fixing divides by what is left of the gap, which costs the digits
# that a checker in float64 lacks; the last point closes by a Cholesky factor, which
# needs d² eps and no more, and has to leave 2⁻³⁰, the aim of searches.
FIXING_ROOM = 2.0**-20
CLOSING_ROOM = 2.0**-34
LEAST_BETA = 0.01  # of ρ; where the gap is 1e-4 of ρ, inverses lose two digits less

# Densities stay in the coordinates of the samples, and ascents do not stop in order to
# show that most columns need no term: the format has no words for either.
_IN_SAMPLES = DualSettings(reduce_below=0.0, reduce_from_columns=2**62)


@dataclass(frozen=True)
class DirectionPoint:
    """What the bound is computed from, in the units of A, and the bound."""

    multiplier: float  #: ρ
    #: `weights`, `rest`, `directions`: X = Σ weights_l q_l q_l' + rest (I − QQ'), q_l
    #: the rows of `directions`.
    weights: FloatArray
    rest: float
    directions: FloatArray
    value: float  #: opt(k) ≤ value, rounding included; infinite where that is not known

    def to_dict(self) -> dict[str, Any]:
        """Return what a record of the proof says."""
        return {
            "rho": self.multiplier.hex(),
            "rest": float(self.rest).hex(),
            "weights": [float(w).hex() for w in self.weights],
            "directions": [[float(v).hex() for v in q] for q in self.directions],
        }


@dataclass(frozen=True)
class Round:
    """A point, and what it leaves: features that are needed, and those still free.

    `vector` is √β q of the tests for what is needed, in the units of A.
    """

    point: DirectionPoint
    needed: NDArray[np.intp]
    free: NDArray[np.intp]
    vector: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Return what a round of the proof says."""
        said = {"in": self.needed.tolist(), "free": self.free.tolist()}
        vector = [float(v).hex() for v in self.vector]
        return {**self.point.to_dict(), **said, "vector": vector}


@dataclass(frozen=True)
class RootProof:
    """What the direction dual proves of A at its root, without splitting.

    Parameters
    ----------
    start : array of int
        A support to begin with.
    memory : int, optional
        Bytes for the columns and for the n × n arrays of a step.
    """

    cov: Covariance
    k: int
    start: Sequence[int] | NDArray[np.intp]
    deadline: Deadline
    memory: int | None = None

    def point(self, target: float) -> DirectionPoint | None:
        """Ascend until the bound is at the target, and return where.

        None if A does not come from complete data with their samples as coordinates, or
        if time or memory do not suffice.
        """
        with single_threaded():
            problem = self._problem(short=False)
            if problem is None:
                return None
            ascent = Ascent(problem, root_of(problem))
            ascent.run(_STEPS, problem.to_columns(target), self.deadline)
            if ascent.best is None:
                return None
            return _measured(problem, ascent)

    def rounds(self, bound: float) -> tuple[list[Round], DirectionPoint] | None:
        """Prove a bound: rounds of fixing, and the point that closes.

        None if that does not come to an end without splitting.
        """
        with single_threaded():
            problem = self._problem(short=True, settings=_IN_SAMPLES)
            # Of features that are no columns nothing can be fixed.
            if problem is None or problem.min_multiplier > 0:
                return None
            return _Rounds(problem, bound, self.deadline).run()

    def _problem(self, short: bool, settings: DualSettings = DEFAULT) -> Problem | None:
        """`make_problem`, if its coordinates are the samples of data, as in proofs."""
        cov = self.cov
        if not cov.known_psd or not cov.has_columns:
            return None
        asked = (short, self.deadline, self.memory, settings)
        try:
            problem = make_problem(cov, self.k, self.start, *asked)
        except NotAffordable:
            return None
        if problem is None or problem.columns.shape[0] != cov.n_samples:
            return None
        return problem


class _Rounds:
    """Ascend and fix at the root, and keep the points."""

    def __init__(self, problem: Problem, bound: float, deadline: Deadline) -> None:
        self.problem, self.deadline = problem, deadline
        self.closing = problem.to_columns(bound - CLOSING_ROOM * abs(bound))
        self.fixing = problem.to_columns(bound - FIXING_ROOM * abs(bound))
        self.node = root_of(problem)
        self.rounds: list[Round] = []

    def run(self) -> tuple[list[Round], DirectionPoint] | None:
        problem, steps = self.problem, _STEPS
        for _ in range(_MOST_ROUNDS):
            node = self.node
            left = problem.k - len(node.fixed_in)
            if left == 0 or len(node.free) <= left:
                return self._leaf()
            ascent = Ascent(problem, node)
            found = ascent.run(steps, self.closing, self.deadline, fix=True)
            if ascent.best is None:
                return None
            if found.bound <= self.closing:
                return self.rounds, _as_point(problem, ascent, ascent.best)
            if not ascent.can_fix() or not self._fix(ascent):
                return None
            steps = _CHILD_STEPS
        return None

    def _fix(self, ascent: Ascent) -> bool:
        """Fix what the tests allow, and keep the round; tell whether it did any."""
        problem, before, left = self.problem, self.node, ascent.k
        ascent.deflate(self.deadline)
        fixed = ascent.fix_variables(self.fixing)
        if fixed is None or ascent.tests is None:
            return False
        best = ascent.deflated or ascent.best
        assert best is not None
        node = before.ascended(ascent.found).fixed(fixed)
        needed = node.fixed_in[len(before.fixed_in) :]
        if len(node.free) == len(before.free) or len(needed) > left:
            return False
        # Projections have no words in the format: all columns keep their terms.
        projected = problem.columns.norms[node.free]
        self.node = node = replace(node, projection_bound=projected)
        level = self.fixing - left * best.multiplier
        features = problem.features
        self.rounds.append(
            Round(
                _as_point(problem, ascent, best),
                np.sort(features[needed]),
                np.sort(features[node.free]),
                ascent.tests.deflating(level, LEAST_BETA * best.multiplier)
                * np.sqrt(problem.unit),
            )
        )
        return True

    def _leaf(self) -> tuple[list[Round], DirectionPoint] | None:
        """One set is left, and its own sum is all that is compared."""
        node, columns = self.node, self.problem.columns
        chosen = node.fixed_in
        if len(chosen) < self.problem.k:
            chosen = np.concatenate([chosen, node.free])
        own = columns.take(chosen)
        value = eigenvalue_ceiling(own.gram(np.ones(len(chosen))))
        value += rounding_of_sum(*own.shape, float((own.sizes**2).sum()))
        if len(chosen) == self.problem.k and value > self.closing:
            return None
        nothing: FloatArray = np.empty(0)
        directions: FloatArray = np.empty((0, columns.shape[0]))
        unit = self.problem.unit
        return self.rounds, DirectionPoint(unit, nothing, 1.0, directions, np.inf)


def _as_point(
    problem: Problem, ascent: Ascent, best: Best, value: float = np.inf
) -> DirectionPoint:
    """What is written of a relaxation; the coordinates are those of the samples."""
    density = ascent.coordinates.from_subspace(best.density)
    return DirectionPoint(
        best.multiplier * problem.unit,
        density.weights,
        density.rest,
        np.ascontiguousarray(density.Q.T),
        value,
    )


def _measured(problem: Problem, ascent: Ascent) -> DirectionPoint:
    """Bound opt(k) by the best point of an ascent, with directions made anew."""
    best = ascent.best
    assert best is not None
    density = ascent.coordinates.from_subspace(best.density)
    columns, rho = problem.columns, best.multiplier
    found = relax(columns, density, rho)
    assert found is not None
    value = problem.k * rho + eigenvalue_ceiling(found.total)
    value += rounding_of_sum(*columns.shape, found.size + problem.k * rho)
    return _as_point(problem, ascent, best, problem.to_matrix(value))
