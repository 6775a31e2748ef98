"""Is there a k-set above τ among the survivors?  Cheapest arguments first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray
from ..certificate import BoundName
from ..certify.records import TreeStatistics
from ..heuristics.pool import leading_pair
from ..limits import Budget
from ..numerics import cost as _cost
from .averaging import refute
from .parts import connected_parts
from .schur_tree import Outcome, ProofTree, run_tree
from .spectral import Tightened, eliminate, tighten

# From SPECTRAL_FROM on, a proof longer than a few nodes is worth some eigenvectors;
# from SPECTRAL_FIRST on, even the few nodes cost more.
SPECTRAL_FROM = 10
SPECTRAL_FIRST = 40
BRIEF_NODES = 40
_SPECTRAL_SIZE = {2: 1500, 3: 600}

# More than 4k + MANY survivors are a sign that k is hard.
MANY = 40

# First turns of the tree, on up to 100 features, and of the growth of good sets, which
# suits flat and noisy matrices.
_FIRST_NODES = 5000
_FIRST_SECONDS = 0.1
_GROWTH_SHARE = 0.25  # of the tree's time, where screening works
_GROWTH_SIZE = 3000


Decode = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class StepProof:
    """Searches for one k.

    Parameters
    ----------
    k : int
    upper : sequence of float
        upper[q] ≥ opt(q) for q < k, in the units of the matrices.
    statistics : TreeStatistics
        Added to.
    budget : Budget
        Of the whole run; nodes are added to it.
    n_jobs : int
    report : callable
        Called with the number of features of the search between slices.
    """

    def __init__(
        self,
        k: int,
        upper: Sequence[float],
        statistics: TreeStatistics,
        budget: Budget,
        n_jobs: int,
        report: Callable[[int], None],
    ) -> None:
        self.k, self.upper, self.statistics = k, upper, statistics
        self.budget, self.n_jobs, self.report = budget, n_jobs, report
        self._open: tuple[ProofTree, Decode] | None = None
        #: screening removed next to nothing: growth gets as long as the tree
        self.blind = False

    def search(
        self, matrix: FloatArray, tau: float, turns: int | None = None
    ) -> Outcome:
        """Look for a k-set above τ; `found` holds positions in the matrix."""
        if len(matrix) <= 4 * self.k + MANY or self.k == 1:
            return self._search_part(matrix, tau, turns)
        # Growth proves the whole if it proved a part: what is said of a bound is the
        # argument that it could not do without.
        argument = BoundName.PROOF_TREE
        for part in connected_parts(matrix, self.k, tau, self.upper[self.k - 1]):
            outcome = self._search_part(matrix[part[:, None], part], tau, turns)
            if outcome.found is not None:
                return Outcome(False, part[outcome.found])
            if not outcome.finished:
                return outcome
            if outcome.argument is BoundName.GROWTH:
                argument = BoundName.GROWTH
        return Outcome(True, None, argument=argument)

    def _search_part(
        self, matrix: FloatArray, tau: float, turns: int | None = None
    ) -> Outcome:
        """Search one connected part.

        The tree and the growth of good sets take turns, each turn four times as long
        as the one before. Without growth and with few nodes if `turns` is 0; until
        something is decided if it is None.
        """
        self._open = None
        if turns == 0:
            return self._search_tree(matrix, tau, 2 * BRIEF_NODES)
        # A node costs the square of the features that it looks at.
        share = min(1.0, (100 / len(matrix)) ** 2)
        nodes = max(2 * BRIEF_NODES, int(_FIRST_NODES * share))
        seconds = _FIRST_SECONDS
        turn = 0
        while True:
            started = time.perf_counter()
            outcome = self._search_tree(matrix, tau, nodes)
            if not self.blind:
                seconds = _GROWTH_SHARE * (time.perf_counter() - started)
            if outcome.decided or outcome.out_of_memory:
                return outcome
            if self.k > 2 and len(matrix) <= _GROWTH_SIZE:
                outcome = self._grow(matrix, tau, seconds)
                if outcome.decided:
                    return outcome
            turn += 1
            if turn == turns:
                return outcome
            nodes, seconds = 4 * nodes, 4 * seconds

    def _grow(self, matrix: FloatArray, tau: float, seconds: float) -> Outcome:
        """Refute τ by growing good sets; sets count as nodes."""
        self.budget.wait_for(load, "averaging")
        seconds = self.budget.share(1.0, seconds)
        grown = refute(
            matrix,
            self.k,
            tau,
            time_limit=max(seconds, 0.0),
            set_limit=min(self.budget.nodes_left, 2**40),
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
            if value > tau:  # within rounding of τ it decides nothing
                return Outcome(False, grown.support.astype(np.int64))
        return Outcome(False, None)

    def _search_tree(self, matrix: FloatArray, tau: float, max_nodes: int) -> Outcome:
        """Run the tree, with at most about `max_nodes` nodes.

        A few nodes where k is small, then what the leading two or three eigenvectors
        exclude and force, then the tree on what is left.
        """
        if self._open is not None:  # go on where the last turn ended
            tree, decode = self._open
            tree.forget_statistics()
            return self._advance(tree, self.statistics.nodes + max_nodes, decode)
        stop = self.statistics.nodes + max_nodes
        if self.k < SPECTRAL_FROM:
            return self._run(matrix, tau, 0, stop)
        brief = self.statistics.nodes + BRIEF_NODES
        if self.k < SPECTRAL_FIRST:
            outcome = self._run(matrix, tau, 0, min(stop, brief))
            if outcome.decided:
                return outcome
        tightened = self._tightened(matrix, tau, 2)
        outcome = self._run_reduced(
            matrix, tau, tightened, min(stop, brief + BRIEF_NODES)
        )
        if outcome.decided:
            return outcome
        tightened = self._tightened(matrix, tau, 3)
        return self._run_reduced(matrix, tau, tightened, stop)

    def _tightened(self, matrix: FloatArray, tau: float, p: int) -> Tightened:
        n = len(matrix)
        if n > _SPECTRAL_SIZE[p] or not self.budget.affords(_cost.eigenvalues(n)):
            return Tightened.nothing_known(n)
        return tighten(matrix, self.k, tau, p, stop=self.budget.passed)

    def _run_reduced(
        self, matrix: FloatArray, tau: float, tightened: Tightened, stop: int
    ) -> Outcome:
        """Run the tree after the forced features have been eliminated."""
        if len(tightened.kept) < self.k:
            return Outcome(True, None)
        forced = tightened.forced
        rest = np.setdiff1d(tightened.kept, forced)
        if len(forced) == self.k:
            rest, forced = forced[:1], forced[1:]
        reduced = eliminate(matrix, forced, rest, tau)
        if reduced is None:
            return Outcome(False, forced)

        def decode(found: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.concatenate([forced, rest[found]])

        return self._run(reduced, tau, len(forced), stop, decode)

    def _run(
        self,
        matrix: FloatArray,
        tau: float,
        chosen: int,
        stop: int,
        decode: Decode = lambda found: found,
    ) -> Outcome:
        """Run one tree, `chosen` features having been eliminated already.

        What is known of opt(chosen + q) bounds opt_B(q), as in `proof_tree`. `decode`
        turns positions in this matrix into those of the whole.
        """
        # The chain, and the analysis of its rounding, need it (`proof_tree`).
        assert self.k == 1 or tau >= self.upper[self.k - 1]
        tree = ProofTree(
            np.ascontiguousarray(matrix),
            self.k - chosen,
            tau,
            np.array(self.upper[chosen : self.k + 1]),
            self.budget.max_entries,
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
        if outcome.found is None:
            return outcome
        return Outcome(False, decode(outcome.found))
