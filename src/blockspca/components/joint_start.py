"""Sets of components to begin sweeps from, found together and not in turn.

The best k features of one component may be those that two others need. With fewer
features a component is content with the core of its group, so sets of disjoint
components are found for some smaller k as well; then every component in turn takes, up
to its own k, what is best for it while the others stay, for schemes whose components
fulfil linear conditions. The set with the largest total is kept. Nothing is proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..limits import Deadline
from ..result import Result, Status
from .constrained import ascend, search_constrained, supports_of_rows
from .rewrite import with_component
from .schemes import Scheme, SolveOne
from .sweeps import total

# Of k, for the sets to begin with, the best first: on snp500, four orthogonal
# components of 35 features reach 0.1124 of the trace from 0.9, 0.1153 from 0.7.
SHARES = (0.7, 1.0, 0.55)
ROWS = 6  # of PAP, to whose supports ascents are made in each round
ROUNDS = 12
GAIN = 1e-9  # of the total, without which rounds end


class HasNormals(Protocol):
    """A scheme whose components fulfil W'x = 0."""

    def normals(self, cov: Covariance, components: FloatArray) -> FloatArray: ...


def joint_start(
    cov: Covariance,
    components: FloatArray,
    sparsities: Sequence[int],
    scheme: HasNormals,
    solve_one: SolveOne,
) -> FloatArray:
    """Return components, (m, d), with at least the total of the given ones."""
    deadline = solve_one.deadline
    best = _raised(cov, components, sparsities, scheme, deadline)
    for share in SHARES:
        if deadline.passed():
            break
        smaller = [max(1, math.ceil(share * k)) for k in sparsities]
        begun = _apart(cov, smaller, scheme, solve_one)
        if begun is not None:
            trial = _raised(cov, begun, sparsities, scheme, deadline)
            if _total(cov, trial) > _total(cov, best):
                best = trial
    return best


def _total(cov: Covariance, components: FloatArray) -> float:
    return sum(float(x @ cov.matvec(x)) for x in components)


def _apart(
    cov: Covariance, sparsities: Sequence[int], scheme: HasNormals, solve_one: SolveOne
) -> FloatArray | None:
    """Return components near disjoint ones that fulfil the conditions, or None."""
    d = cov.n_features
    free = np.arange(d, dtype=np.intp)
    found = np.zeros((0, d))
    for k in sparsities:
        if len(free) == 0:
            return None
        part = solve_one(restricted(cov, free), min(k, len(free)), certify=False)
        start = free[part.support]
        normals = scheme.normals(cov, found)
        near = ascend(cov, normals, max(k, len(found) + 1), start, solve_one.deadline)
        if near is None:
            return None
        found = np.vstack([found, near.vector(d)])
        free = np.setdiff1d(free, start)
    return found


def _raised(
    cov: Covariance,
    components: FloatArray,
    sparsities: Sequence[int],
    scheme: HasNormals,
    deadline: Deadline,
) -> FloatArray:
    """Return components of which none is improved by an ascent while others stay."""
    components = components.copy()
    before = _total(cov, components)
    for _ in range(ROUNDS):
        for j, k in enumerate(sparsities):
            if deadline.passed():
                return components
            normals = scheme.normals(cov, np.delete(components, j, axis=0))
            own = np.flatnonzero(components[j])
            starts = [own, *supports_of_rows(cov, normals, k, ROWS)]
            found = search_constrained(cov, normals, k, starts, deadline)
            now = float(components[j] @ cov.matvec(components[j]))
            if found is not None and found.objective > now:
                components[j] = found.vector(cov.n_features)
        after = _total(cov, components)
        if not after > before + GAIN * abs(before):
            break
        before = after
    return components


def begun_together(
    cov: Covariance, results: list[Result], scheme: Scheme, solve_one: SolveOne
) -> list[Result]:
    """Return the results, or with other components if those have a larger total."""
    if not hasattr(scheme, "normals"):
        return results
    rows = np.array([result.x for result in results])
    ks = [result.k for result in results]
    found = joint_start(cov, rows, ks, cast(HasNormals, scheme), solve_one)
    if np.array_equal(found, rows):
        return results
    # Sweeps prove every component again: here only x counts.
    begun = [
        with_component(
            replace(r, upper_bound=np.inf, certificate=None, status=Status.FEASIBLE),
            x,
            cov,
        )
        for r, x in zip(results, found, strict=True)
    ]
    raised = total(cov, begun, scheme) > total(cov, results, scheme)
    return begun if raised else results
