"""Is there a k-set above τ among the survivors?  Cheapest arguments first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray
from ..bound_names import BoundName
from ..constraint_rules import GroupLimits
from ..heuristics.pool import leading_pair
from ..limits import Budget
from ..numerics import cost as _cost
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings
from .averaging import no_support_above
from .parts import connected_parts
from .schur_tree import Outcome, ProofTree, TreeStatistics, run_tree
from .spectral import Fixing, eliminate, spectral_fixing

# Under a limit on time, what is expected to take a second may take so many
_LONGER = 4.0

Decode = Callable[[NDArray[np.int64]], NDArray[np.int64]]


@dataclass
class Portfolio:
    """Searches for one k."""

    k: int
    #: upper[q] ≥ opt(q) for q < k, in the units of the matrices.
    upper: Sequence[float]
    statistics: TreeStatistics  #: added to
    budget: Budget  #: of the whole run; nodes are added to it
    n_jobs: int
    #: Called with the number of features of the search between slices.
    report: Callable[[int], None]
    settings: ProofSettings = DEFAULT_SETTINGS
    #: Screening removed next to nothing: averaging gets as long as the tree.
    screening_failed: bool = False
    grows: bool = True  #: whether averaging takes turns with the tree at all
    _open: tuple[ProofTree, Decode] | None = None
    _groups: GroupLimits | None = None  #: of the columns of the part that is searched

    def search(
        self,
        matrix: FloatArray,
        tau: float,
        rounds: int | None = None,
        groups: GroupLimits | None = None,
    ) -> Outcome:
        """Look for a k-set above τ: a counterexample, by positions in the matrix.

        With groups, for one that keeps their limits: all other arguments hold for any
        set, and for subsets of such sets.
        """
        self._groups = groups
        if len(matrix) <= 4 * self.k + self.settings.many_survivors or self.k == 1:
            return self._search_part(matrix, tau, rounds)
        # The bound is named after averaging if a part was proved by it, as the proof
        # could not do without.
        argument = BoundName.PROOF_TREE
        for part in connected_parts(matrix, self.k, tau, self.upper[self.k - 1]):
            if groups is not None:
                self._groups = groups.among(part)
            outcome = self._search_part(matrix[part[:, None], part], tau, rounds)
            if outcome.counterexample is not None:
                return Outcome(False, part[outcome.counterexample])
            if not outcome.exhausted:
                return outcome
            if outcome.argument is BoundName.GROWTH:
                argument = BoundName.GROWTH
        return Outcome(True, None, argument=argument)

    def search_with(
        self,
        matrix: FloatArray,
        tau: float,
        fixed_in: NDArray[np.int64],
        groups: GroupLimits,
        nodes: int,
    ) -> Outcome:
        """Look for a k-set above τ with all of `fixed_in` that keeps the limits.

        By the tree alone, with at most about so many nodes.
        """
        self._open, self._groups = None, groups
        fixing = self._fixing(matrix, tau, 2)
        every = np.union1d(fixing.fixed_in, fixed_in)
        if len(every) > self.k or not np.isin(fixed_in, fixing.candidates).all():
            return Outcome(True, None)
        fixing = replace(fixing, fixed_in=every)
        return self._run_reduced(matrix, tau, fixing, self.statistics.nodes + nodes)

    def _search_part(
        self, matrix: FloatArray, tau: float, rounds: int | None
    ) -> Outcome:
        """Search one connected part.

        The tree and averaging take turns, each round four times as long as the one
        before. Without averaging and with few nodes if `rounds` is 0; until one is
        conclusive if it is None.
        """
        self._open = None
        if rounds == 0:
            return self._search_tree(matrix, tau, 2 * self.settings.probe_nodes)
        # A node costs the square of the features that it looks at.
        share = min(1.0, (100 / len(matrix)) ** 2)
        nodes = max(
            2 * self.settings.probe_nodes, int(self.settings.first_nodes * share)
        )
        seconds = self.settings.first_seconds
        done = 0
        while True:
            before = self.statistics.nodes
            outcome = self._search_tree(matrix, tau, nodes)
            if not self.screening_failed:
                opened = self.statistics.nodes - before
                spent = opened * _cost.tree_node(len(matrix))
                seconds = self.settings.growth_share * spent
            if outcome.conclusive or outcome.out_of_memory:
                return outcome
            few = len(matrix) <= self.settings.growth_up_to
            if self.grows and self.k > 2 and few:
                outcome = self._average(matrix, tau, seconds)
                if outcome.conclusive:
                    return outcome
            done += 1
            if done == rounds:
                return outcome
            nodes, seconds = 4 * nodes, 4 * seconds

    def _average(self, matrix: FloatArray, tau: float, seconds: float) -> Outcome:
        """Prove by averaging that no set exceeds τ; sets count as nodes.

        The limit is on the work that is expected to take so many seconds, not on the
        seconds, so that a slow or busy machine finds the same proof.
        """
        self.budget.wait_for(load, "averaging")
        # Without a limit on time, no clock stops a slow machine sooner than a fast one.
        timed = self.budget.limits.time is not None
        grown = no_support_above(
            matrix,
            self.k,
            tau,
            deadline=self.budget.within(_LONGER * seconds) if timed else self.budget,
            set_limit=min(self.budget.nodes_left, 2**40),
            work_limit=seconds,
        )
        self.statistics.nodes += grown.sets
        self.statistics.grown += grown.sets
        self.budget.nodes += grown.sets
        self.budget.check()
        self.report(len(matrix))
        if grown.refuted:
            return Outcome(True, None, argument=BoundName.GROWTH)
        if grown.support is not None:
            value, _ = leading_pair(matrix, grown.support)
            allowed = self._groups is None or self._groups.allows(grown.support)
            if allowed and value > tau:  # within rounding of τ it decides nothing
                return Outcome(False, grown.support.astype(np.int64))
        return Outcome(False, None)

    def _search_tree(self, matrix: FloatArray, tau: float, max_nodes: int) -> Outcome:
        """Run the tree, with at most about `max_nodes` nodes.

        A few nodes where k is small, then what the leading two or three eigenvectors
        fix in and out, then the tree on what is left.
        """
        if self._open is not None:  # resume where the last round ended
            tree, decode = self._open
            tree.forget_statistics()
            return self._advance(tree, self.statistics.nodes + max_nodes, decode)
        stop = self.statistics.nodes + max_nodes
        if self.k < self.settings.spectral_from:
            return self._run(matrix, tau, 0, stop)
        brief = self.statistics.nodes + self.settings.probe_nodes
        if self.k < self.settings.spectral_first:
            outcome = self._run(matrix, tau, 0, min(stop, brief))
            if outcome.conclusive:
                return outcome
        fixing = self._fixing(matrix, tau, 2)
        outcome = self._run_reduced(
            matrix, tau, fixing, min(stop, brief + self.settings.probe_nodes)
        )
        if outcome.conclusive:
            return outcome
        fixing = self._fixing(matrix, tau, 3)
        return self._run_reduced(matrix, tau, fixing, stop)

    def _fixing(self, matrix: FloatArray, tau: float, p: int) -> Fixing:
        n = len(matrix)
        if n > self.settings.spectral_up_to[p - 2] or not self.budget.affords(
            _cost.eigenvalues(n)
        ):
            return Fixing.nothing_known(n)
        return spectral_fixing(matrix, self.k, tau, p, stop=self.budget.passed)

    def _run_reduced(
        self, matrix: FloatArray, tau: float, fixing: Fixing, stop: int
    ) -> Outcome:
        """Run the tree after the features that are fixed in have been eliminated."""
        if len(fixing.candidates) < self.k:
            return Outcome(True, None)
        fixed_in = fixing.fixed_in
        rest = np.setdiff1d(fixing.candidates, fixed_in)
        if self._groups is not None and not self._groups.allows(fixed_in):
            return Outcome(True, None)  # no set that has these keeps the limits
        if len(fixed_in) == self.k:
            rest, fixed_in = fixed_in[:1], fixed_in[1:]
        groups = None
        if self._groups is not None:
            rest = rest[~self._groups.after(fixed_in, rest).full()]
            groups = self._groups.after(fixed_in, rest)
            if len(fixed_in) + len(rest) < self.k:
                return Outcome(True, None)
        reduced = eliminate(matrix, fixed_in, rest, tau)
        if reduced is None:
            return Outcome(False, fixed_in)

        def decode(found: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.concatenate([fixed_in, rest[found]])

        return self._run(reduced, tau, len(fixed_in), stop, decode, groups)

    def _run(
        self,
        matrix: FloatArray,
        tau: float,
        chosen: int,
        stop: int,
        decode: Decode = lambda found: found,
        groups: GroupLimits | None = None,
    ) -> Outcome:
        """Run one tree, `chosen` features having been eliminated already.

        What is known of opt(chosen + q) bounds opt_B(q), as in `schur_tree`. `decode`
        turns positions in this matrix into those of the whole.
        """
        # The chain, and the analysis of its rounding, need it (`schur_tree`).
        assert self.k == 1 or tau >= self.upper[self.k - 1]
        tree = ProofTree(
            np.ascontiguousarray(matrix),
            self.k - chosen,
            tau,
            np.array(self.upper[chosen : self.k + 1]),
            self.budget.max_entries,
            groups or self._groups,
        )
        return self._advance(tree, stop, decode)

    def _advance(self, tree: ProofTree, stop: int, decode: Decode) -> Outcome:
        """Run a tree on, until the statistics count `stop` nodes."""
        statistics, budget = self.statistics, self.budget
        before = budget.nodes - statistics.nodes

        def may_go_on(nodes: int) -> int:
            budget.nodes += nodes
            budget.check()
            if nodes:
                self.report(len(tree.matrix))
            return min(budget.nodes_left, stop - statistics.nodes - tree.nodes)

        try:
            outcome = run_tree(tree, statistics, may_go_on, self.n_jobs)
        finally:
            budget.nodes = before + statistics.nodes
        # Threads take a tree apart, so that it cannot be gone on with.
        self._open = (tree, decode) if self.n_jobs == 1 else None
        if outcome.counterexample is None:
            return outcome
        return Outcome(False, decode(outcome.counterexample))
