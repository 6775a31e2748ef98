"""The point of the direction dual that a proof writes down: ρ and a density.

From them whoever checks the proof makes directions z_i of his own and the sum with them
(`docs/proof-format.md`, rule "direction"). Only the root of the search is written: what
follows it, columns ruled out and parts of the sphere, has no words in the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics.blas import single_threaded
from ...numerics.upper_eigenvalues import eigenvalue_ceiling
from .ascent import Ascent
from .problem import NotAffordable, Problem, make_problem
from .relaxation import relax, rounding_of_sum
from .search import root_of

_STEPS = 150  # of ascent, as in `dual_bound`


@dataclass(frozen=True)
class DirectionPoint:
    """What the bound is computed from, in the units of A, and the bound.

    Attributes
    ----------
    multiplier : float
        ρ.
    weights, rest, directions
        X = Σ weights_l q_l q_l' + rest (I − QQ'), q_l the rows of `directions`.
    value : float
        opt(k) ≤ value, rounding included.
    """

    multiplier: float
    weights: FloatArray
    rest: float
    directions: FloatArray
    value: float

    def to_record(self) -> dict[str, Any]:
        """Return what a record of the proof says."""
        return {
            "rule": "direction",
            "rho": self.multiplier.hex(),
            "rest": float(self.rest).hex(),
            "weights": [float(w).hex() for w in self.weights],
            "directions": [[float(v).hex() for v in q] for q in self.directions],
        }


def direction_point(
    cov: Covariance,
    k: int,
    start: Sequence[int] | NDArray[np.intp],
    target: float,
    deadline: Deadline,
    memory: int | None = None,
) -> DirectionPoint | None:
    """Ascend at the root until the bound is at the target, and return where.

    None if A does not come from complete data with their samples as coordinates, or if
    time or memory do not suffice.
    """
    if not cov.known_psd or not cov.has_columns:
        return None
    with single_threaded():
        try:
            problem = make_problem(cov, k, start, None, False, deadline, memory)
        except NotAffordable:
            return None
        if problem is None or problem.columns.shape[0] != cov.n_samples:
            return None
        ascent = Ascent(problem, root_of(problem))
        ascent.run(_STEPS, problem.to_columns(target), deadline)
        if ascent.best is None:
            return None
        return _measured(problem, ascent)


def _measured(problem: Problem, ascent: Ascent) -> DirectionPoint | None:
    """Bound opt(k) by the best point of an ascent, with directions made anew."""
    best = ascent.best
    assert best is not None
    density = ascent.coordinates.from_subspace(best.density)
    columns, rho = problem.columns, best.multiplier
    found = relax(columns, density, rho)
    assert found is not None
    value = problem.k * rho + eigenvalue_ceiling(found.total)
    value += rounding_of_sum(*columns.shape, found.size + problem.k * rho)
    return DirectionPoint(
        rho * problem.unit,
        density.weights,
        density.rest,
        np.ascontiguousarray(density.Q.T),
        problem.to_matrix(value),
    )
