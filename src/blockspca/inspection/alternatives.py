"""All sets of k features whose best component is nearly as good as the best one.

**Theorem.** Let τ = (1 − δ) opt(k), for opt(k) > 0. If τ ≥ upper ≥ opt(k − 1), features
that fail the screening inequality at (τ, upper) are in no k-set above τ, and the tree
of `search/schur_tree.py` closes a node only if no k-set in it exceeds τ; one that lists
what it finds and goes on therefore lists them all. What rounding may hide is set aside:
the search is at τ less `rounding_allowance` and what entries may be off by, and sets
that turn out to be below τ are left out afterwards.

If opt(k − 1) exceeds τ, k − 1 features are good enough by themselves, and any feature
makes an alternative of them. Then the sets are found one after the other (Lawler 1972;
Murty 1968): what is left after a set is k problems, each of which includes some of its
features and excludes one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._messages import count
from .._validation import (
    FloatArray,
    check_n_jobs,
    check_positive_integer,
    check_real,
    check_sparsity,
    names_of,
)
from .._warnings import is_nested_call, warn_caller
from ..certify.adaptive_screening import AdaptiveScreening
from ..certify.chain import Chain
from ..certify.constrained import solve_constrained
from ..certify.provers import ProofOptions
from ..certify.results import certified_results
from ..constraint_rules import Rules
from ..covariance.covariance import Covariance, as_covariance, refuse_constant
from ..limits import Budget, LimitReached, Limits, as_limits
from ..numerics.linalg import symmetric_eigenvalues
from ..numerics.threads import allowed_threads
from ..pipeline import SETTINGS, solve
from ..result import Result
from ..scan.lists import scan_kernels
from ..search.schur_tree import ProofTree, extent, rounding_allowance
from ..status import SEARCH_GAP, Status, is_search_over

MAX_SETS = 10_000
_SLICE = 2000  # nodes between two looks at the clock
_MARGIN = 4.0  # allowances that the search is below τ; one is needed
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The k-sets within a share of the best, best first.

    Attributes
    ----------
    best : Result
        The component that they are compared with.
    within : float
    supports : tuple of arrays
        The features of each set, ascending.
    objectives : array
        The largest x'Ax on each set.
    complete : bool
        Proved: there is no other set of k features within this share of the best. (Sets
        within 1e-9 of the edge may be on either side of it.)
    message : str
        Why the list is not complete, if it is not.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]]
    >>> print(bs.alternatives(A, 2, within=0.2))
    3 sets of 2 features within 20.000% of 3, and no other
      in all: none
      in some: 0, 1, 2
    """

    best: Result
    within: float
    supports: tuple[NDArray[np.intp], ...]
    objectives: FloatArray
    complete: bool
    message: str = ""

    def __len__(self) -> int:
        return len(self.supports)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the list."""
        return self.message == _INTERRUPTED

    @property
    def counts(self) -> NDArray[np.intp]:
        """In how many of the sets each feature is."""
        members = np.concatenate(self.supports)
        return np.bincount(members, minlength=self.best.n_features)

    @property
    def in_all(self) -> NDArray[np.intp]:
        """Features that are in every set."""
        return np.flatnonzero(self.counts == len(self))

    @property
    def in_some(self) -> NDArray[np.intp]:
        """Features that are in a set, but not in every one."""
        return np.flatnonzero((self.counts > 0) & (self.counts < len(self)))

    @property
    def in_none(self) -> NDArray[np.intp]:
        """Features that are in no set."""
        return np.flatnonzero(self.counts == 0)

    def names_of(self, features: NDArray[np.intp]) -> list[str]:
        """The names of some features, or their numbers as text."""
        return names_of(features, self.best.feature_names)

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict for each set: objective, share of the best, features."""
        best = self.best.objective
        return [
            {
                "objective": float(value),
                "share": float(value) / best,
                "features": self.names_of(support),
            }
            for support, value in zip(self.supports, self.objectives, strict=True)
        ]

    def __str__(self) -> str:
        proved = "and no other" if self.complete else "at least"
        lines = [
            f"{count(len(self), 'set')} of {count(self.best.k, 'feature')} within "
            f"{self.within:.3%} of {self.best.objective:.6g}, {proved}",
            f"  in all: {', '.join(self.names_of(self.in_all)) or 'none'}",
            f"  in some: {', '.join(self.names_of(self.in_some)) or 'none'}",
        ]
        return "\n".join(lines + ([f"  {self.message}"] if self.message else []))


def alternatives(
    cov: Covariance | Any,
    k: int,
    within: float = 0.01,
    *,
    max_sets: int = MAX_SETS,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
) -> Alternatives:
    """List all sets of k features within a share of the best, complete by proof.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k : int
    within : float
        δ: sets S with λmax(A_SS) ≥ (1 − δ) of the best objective are listed.
    max_sets : int
        The list ends, and is not complete, with so many.
    limits : Limits, optional
        Of time and nodes. What is known when one is reached is returned.
    n_jobs : int, optional
        As in `solve`.

    Returns
    -------
    Alternatives
        After Ctrl-C, the sets that were found, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.diag([3.0, 2.0, 2.0, 1.0])
    >>> A[0, 1] = A[1, 0] = A[0, 2] = A[2, 0] = 1.0
    >>> found = bs.alternatives(A, 2, within=0.01)
    >>> [support.tolist() for support in found.supports], found.complete
    ([[0, 1], [0, 2]], True)
    >>> found.in_all, found.in_some
    (array([0]), array([1, 2]))
    """
    budget = Budget(as_limits(limits))
    cov = as_covariance(cov)
    refuse_constant(cov)
    k = check_sparsity(k, cov.n_features)
    delta = check_real(within, "within", minimum=0)
    if delta >= 1:
        raise ValueError(f"within = {delta} is not below 1; pass 0.01 for 1 %.")
    max_sets = check_positive_integer(max_sets, "max_sets")
    n_jobs = check_n_jobs(n_jobs)
    with allowed_threads(n_jobs), budget.ending() as inside:
        with budget.reading() as reading:
            cov = cov.formed(reading, reading.limits.memory)
        best = solve(cov, k, limits=budget.left(), n_jobs=n_jobs)
        inside.nodes += best.nodes
        options = ProofOptions(settings=SETTINGS, n_jobs=n_jobs)
        found = _Search(cov, best, delta, max_sets, inside, options).run()
    if found.interrupted and not is_nested_call():
        sets = count(len(found), "set")
        warn_caller(
            f"alternatives was interrupted: what it has found is returned, {sets}."
        )
    return found


@dataclass
class _Search:
    """One call of `alternatives`."""

    cov: Covariance
    best: Result
    within: float
    max_sets: int
    budget: Budget
    options: ProofOptions
    found: list[NDArray[Any]] = field(default_factory=list)

    @property
    def edge(self) -> float:
        """What a set must have to be listed.

        The share is of x'Ax, and values of LAPACK, or of another support, are ulps
        apart: sets as good as the best would be on the wrong side.
        """
        best = self.best.objective
        return (1 - self.within) * best - SEARCH_GAP * abs(best)

    def run(self) -> Alternatives:
        """Return the sets, and why there may be others."""
        self.found = [self.best.support]
        try:
            message = self._listed()
        except LimitReached as reached:
            message = f"ended by the {reached.status}"
        except KeyboardInterrupt:
            message = _INTERRUPTED
        return self._ended(message)

    def _listed(self) -> str:
        """Find the sets; return why they may not be all, "" if they are."""
        best, k, cov = self.best, self.best.k, self.cov
        if best.status is Status.INTERRUPTED:
            return _INTERRUPTED
        if not best.objective > 0:
            return "the best objective is not positive: shares mean nothing"
        # Shares of a best that may not be the best would list sets that do not belong
        # there.
        if best.status is not Status.OPTIMAL:
            return "the best set itself is not proved"
        threshold = (1 - self.within) * best.objective
        if k == 1:
            above = np.flatnonzero(cov.diagonal() >= self.edge)
            self.found = [np.array([i]) for i in above]
            return ""
        begun = {k: best.support.tolist()}
        limits = self.budget.left()
        ks = range(1, k + 1)
        steps = certified_results(cov, ks, limits, begun, self.options)
        self.budget.nodes += steps[k].nodes
        if any(steps[q].status is Status.INTERRUPTED for q in ks):
            return _INTERRUPTED
        self.budget.wait_for(load, *scan_kernels(cov), "screen", "schur_tree")
        candidates = AdaptiveScreening(cov, k, self.budget.check, settings=SETTINGS)
        unit = candidates.unit
        upper = [np.inf, *(steps[q].upper_bound / unit for q in range(1, k + 1))]
        chain = Chain(cov, candidates, upper)
        tau = threshold / unit
        tau -= _MARGIN * chain.allowance(k, tau)
        if tau < upper[k - 1]:
            return self._one_by_one()
        survivors = candidates.survivors(k, tau, upper[k - 1])
        if len(survivors) < k:  # no other set is near
            return ""
        if len(survivors) ** 2 > self.budget.max_entries:
            return "more memory is needed for the features in question"
        matrix = np.ascontiguousarray(cov.submatrix(survivors) / unit)
        tau -= _MARGIN * rounding_allowance(k, tau, *extent(matrix))
        if tau < upper[k - 1]:
            return self._one_by_one()
        return self._by_tree(matrix, survivors, tau, np.array(upper))

    def _by_tree(
        self,
        matrix: FloatArray,
        survivors: NDArray[np.int64],
        tau: float,
        upper: FloatArray,
    ) -> str:
        from .._kernels.schur_tree import FINISHED, PAUSED

        k, code = self.best.k, PAUSED
        tree = ProofTree(
            matrix, k, tau, upper, self.budget.max_entries, lists=self.max_sets
        )
        try:
            while code == PAUSED:
                stopped = self.budget.stop_reason()
                if stopped is not None:
                    return f"ended by the {stopped}"
                before = tree.nodes
                code = tree.advance(min(_SLICE, max(1, self.budget.nodes_left)))
                self.budget.nodes += tree.nodes - before
        finally:
            self.found += [survivors[row] for row in tree.listed]
        if code != FINISHED:
            return f"ended with {len(tree.listed)} sets; there are more"
        return ""

    def _one_by_one(self) -> str:
        """List sets one after the other, the best of what is left first."""
        waiting: list[tuple[float, int, Result, Rules]] = []
        number = 0
        after = self.best
        rules = Rules(self.cov.n_features)
        while True:
            message = ""
            for part in self._without(after.support, rules):
                stopped = self.budget.stop_reason()
                if stopped is not None:
                    return f"ended by the {stopped}"
                next_best = solve_constrained(
                    self.cov, self.best.k, part, self.budget.left(), self.options
                )
                self.budget.nodes += next_best.nodes
                if next_best.status is Status.INTERRUPTED:
                    return _INTERRUPTED
                if next_best.upper_bound < self.edge:
                    continue
                if not is_search_over(next_best.objective, next_best.upper_bound, None):
                    message = "a set could not be proved best of what is left"
                number += 1
                value = -next_best.objective
                heapq.heappush(waiting, (value, number, next_best, part))
            if message or not waiting:
                return message
            _, _, after, rules = heapq.heappop(waiting)
            if after.objective < self.edge:
                return ""
            if len(self.found) >= self.max_sets:
                return f"ended with {len(self.found)} sets; there are more"
            self.found.append(after.support)

    def _without(self, support: NDArray[np.intp], rules: Rules) -> Iterator[Rules]:
        """What is left of a part without one set, as parts."""
        k, d = self.best.k, self.cov.n_features
        include = list(rules.include)
        for i in support.tolist():
            if i in rules.include:
                continue
            part = Rules(d, tuple(sorted(include)), tuple(sorted((*rules.exclude, i))))
            if part.most_features() >= k:
                yield part
            include.append(i)

    def _ended(self, message: str) -> Alternatives:
        best = self.best
        sets = {tuple(np.sort(s).tolist()) for s in self.found if len(s) == best.k}
        supports = [np.array(s, dtype=np.intp) for s in sets]
        values = [best_value(self.cov, s) for s in supports]
        order = sorted(
            range(len(values)), key=lambda i: (-values[i], supports[i].tolist())
        )
        kept = [i for i in order if values[i] >= self.edge or len(order) == 1]
        return Alternatives(
            best,
            self.within,
            tuple(supports[i] for i in kept),
            np.array([values[i] for i in kept]),
            message == "",
            message,
        )


def best_value(cov: Covariance, support: NDArray[np.intp]) -> float:
    """λmax(A_SS) as LAPACK has it."""
    within = cov.submatrix(support)
    return float(symmetric_eigenvalues((within + within.T) / 2)[-1])
