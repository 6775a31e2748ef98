"""One k by the parts that A falls into: counts of features, and a search of the rest.

`bounds/compositions.py` has the theorem. The compositions of k that it leaves are few
where parts are weakly coupled; each is a search of its parts alone, with as many
features of each as it says, and parts that it takes whole fixed in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray
from ..bound_names import BoundName
from ..bounds.best import NamedBound
from ..bounds.compositions import Composition, Compositions, best_level
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..limits import Budget, Deadline, LimitReached, Limits
from ..numerics.blas import single_threaded
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..numerics.rounding import power_of_two
from ..numerics.upper_eigenvalues import AGREED
from ..proof_settings import ProofSettings
from ..search.portfolio import Portfolio
from ..search.schur_tree import TreeStatistics, extent, rounding_allowance
from ..status import SEARCH_GAP

_NONE = NamedBound(np.inf, BoundName.NONE)


@dataclass(frozen=True)
class ComposedProblem:
    """The sets of one composition: features, their entries and what is fixed."""

    features: NDArray[np.intp]
    matrix: FloatArray
    groups: GroupLimits
    fixed_in: NDArray[np.int64]


def composed_problem(table: Compositions, which: Composition) -> ComposedProblem:
    """Return the problem that a composition leaves, in units of the table."""
    used = [g for g, count in enumerate(which.counts) if count]
    features = np.concatenate([table.parts[g] for g in used])
    label = np.repeat(np.arange(len(used)), [table.sizes[g] for g in used])
    room = np.array([which.counts[g] for g in used], dtype=np.int64)
    whole = np.array([which.counts[g] == table.sizes[g] for g in used])
    matrix = np.ascontiguousarray(table.block(features))
    groups = GroupLimits(label.astype(np.int64), room)
    return ComposedProblem(features, matrix, groups, np.flatnonzero(whole[label]))


def level_of(text: str | None) -> float:
    """Read the level that a certificate names; raise ValueError if it is none."""
    try:
        level = float(json.loads(text or "")["level"])
    except (TypeError, KeyError, ValueError):
        level = math.nan
    if not 0 < level < math.inf:
        raise ValueError(f"dual = {text!r} names no level of the compositions")
    return level


def bound_by_compositions(
    cov: Covariance,
    k: int,
    support: Sequence[int] | NDArray[np.intp],
    target: float,
    limits: Limits,
    settings: ProofSettings,
) -> NamedBound:
    """Bound opt(k), and prove that it is at most the target where that is near.

    A good support says how large strong entries are. For a covariance that is not in
    memory nothing is claimed.
    """
    support = np.asarray(support)
    # Parts need all entries of A; and one feature has no entry that says which are
    # strong.
    if not cov.in_memory or len(support) < 2:
        return _NONE
    within = cov.submatrix(support)
    sizes = np.abs(within[np.triu_indices(len(support), 1)])
    unit = power_of_two(float(np.abs(within).max()))
    budget = Budget(limits)
    with single_threaded():
        found = best_level(cov, k, float(sizes.mean()), unit, budget, limits.memory)
        if found is None:
            return _NONE
        level, table = found
        reached = rayleigh(within, leading_eigenvector(within))
        search = _Search(budget, settings)
        tau = _tau(cov, k, reached, target, unit)
        most = settings.most_compositions
        value = least_bound(table, tau, most, search.refute, budget)
    if not np.isfinite(value):
        return _NONE
    return NamedBound(
        table.in_full(value + AGREED * abs(value)),
        BoundName.COMPOSITIONS,
        nodes=search.statistics.nodes,
        better=search.better,
        dual=json.dumps({"level": level}),
    )


def _tau(cov: Covariance, k: int, reached: float, target: float, unit: float) -> float:
    """τ for entries as they are stored, so that what is added still meets the gap."""
    allowed = k * cov.entry_error / unit
    allowed += rounding_allowance(k, target / unit, target / unit, 0.0)
    allowed += AGREED * abs(target) / unit
    # Half of what searches leave open: the other half is for what rounding adds to the
    # bound.
    least = reached + 0.5 * SEARCH_GAP * abs(reached)
    return max(target / unit - 2 * allowed, least / unit)


Refute = Callable[[ComposedProblem, int, float, FloatArray], float | None]


def least_bound(
    table: Compositions, tau: float, most: int, refute: Refute, deadline: Deadline
) -> float:
    """Return what no set of k exceeds, in units of the table.

    Parameters
    ----------
    tau : float
        Sets above it are looked for.
    most : int
        Compositions that are searched.
    refute : callable
        Takes a problem, its number of features, τ and bounds for fewer features, and
        searches for a set above τ. Returns what rounding may hide from it, or None if
        it did not end.
    deadline : Deadline
        No composition is looked for after it.

    Notes
    -----
    A tree needs τ to be above what fewer features reach.  Where the table does not say
    so, they are searched first, at a τ that grows by what rounding may hide of each;
    where it says so of k itself, no less of fewer.
    """
    k = table.k
    if table.upper[k] <= tau:
        return float(table.upper[k])
    upper = np.array([np.inf, *table.upper[1:]])
    for q in range(2, k + 1):
        if upper[q] <= tau:
            continue
        if not upper[q - 1] <= tau:
            break
        found = table.above(tau, most, q, deadline)
        if found is None:
            break
        proved, left = tau, found.largest_first()
        while left:
            hidden = refute(composed_problem(table, left[0]), q, tau, upper[:q])
            if hidden is None:
                break
            proved, left = max(proved, tau + hidden), left[1:]
        # Of k itself, what was not searched is bounded by the table; a bound above τ on
        # fewer features is of no use to the trees of more.
        if left and q < k:
            break
        upper[q] = min(upper[q], max([proved, *(c.bound for c in left)]))
        tau = max(tau, proved)
    return float(upper[k])


@dataclass
class _Search:
    """The compiled tree, for one composition after the other."""

    budget: Budget
    settings: ProofSettings
    statistics: TreeStatistics = field(default_factory=TreeStatistics)
    better: NDArray[np.intp] | None = None

    def refute(
        self, problem: ComposedProblem, q: int, tau: float, upper: FloatArray
    ) -> float | None:
        """See `least_bound`."""
        settings = self.settings
        known = [*upper, np.inf]
        proof = Portfolio(
            q, known, self.statistics, self.budget, 1, lambda _: None, settings
        )
        try:
            self.budget.wait_for(load, "schur_tree")
            outcome = proof.search_with(
                problem.matrix,
                tau,
                problem.fixed_in,
                problem.groups,
                settings.first_nodes,
            )
        except LimitReached:
            return None
        if outcome.counterexample is not None:
            chosen = outcome.counterexample
            within = problem.matrix[np.ix_(chosen, chosen)]
            # Within rounding of τ a set may be no counterexample.
            if rayleigh(within, leading_eigenvector(within)) > tau:
                self.better = np.sort(problem.features[chosen])
        if not outcome.exhausted:
            return None
        return rounding_allowance(q, tau, *extent(problem.matrix))
