"""Is there a k-set above τ among the survivors?  Cheapest arguments first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._validation import FloatArray
from .meter import Meter
from .proof_tree import Outcome, ProofTree, run_tree
from .records import TreeStatistics
from .spectral import Tightened, eliminate, tighten

# From SPECTRAL_FROM on, a proof longer than a few nodes is worth some eigenvectors;
# from SPECTRAL_FIRST on, even the few nodes cost more.
SPECTRAL_FROM = 10
SPECTRAL_FIRST = 40
BRIEF_NODES = 40
_SPECTRAL_SIZE = {2: 1500, 3: 600}


class StepProof:
    """Searches for one k.

    Parameters
    ----------
    k : int
    upper : array
        upper[q] ≥ opt(q) for q < k, in the units of the matrices.
    statistics : TreeStatistics
        Added to.
    meter : Meter
    n_jobs : int
    report : callable
        Called with the number of features of the search between slices.
    """

    def __init__(
        self,
        k: int,
        upper: FloatArray,
        statistics: TreeStatistics,
        meter: Meter,
        n_jobs: int,
        report: Callable[[int], None],
    ) -> None:
        self.k, self.upper, self.statistics = k, upper, statistics
        self.meter, self.n_jobs, self.report = meter, n_jobs, report

    def search(
        self, matrix: FloatArray, tau: float, max_nodes: int | None = None
    ) -> Outcome:
        """Look for a k-set above τ; `found` holds positions in the matrix.

        A few nodes where k is small, then what the leading two or three eigenvectors
        exclude and force, then the tree on what is left.
        """
        stop = None if max_nodes is None else self.statistics.nodes + max_nodes
        if self.k < SPECTRAL_FROM:
            return self._run(matrix, tau, 0, stop)
        brief = self.statistics.nodes + BRIEF_NODES
        if self.k < SPECTRAL_FIRST:
            outcome = self._run(matrix, tau, 0, _sooner(stop, brief))
            if outcome.decided:
                return outcome
        tightened = _tightened(matrix, self.k, tau, 2)
        outcome = self._run_reduced(
            matrix, tau, tightened, _sooner(stop, brief + BRIEF_NODES)
        )
        if outcome.decided:
            return outcome
        tightened = _tightened(matrix, self.k, tau, 3)
        return self._run_reduced(matrix, tau, tightened, stop)

    def _run_reduced(
        self, matrix: FloatArray, tau: float, tightened: Tightened, stop: int | None
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
        outcome = self._run(reduced, tau, len(forced), stop)
        if outcome.found is None:
            return outcome
        return Outcome(False, np.concatenate([forced, rest[outcome.found]]))

    def _run(
        self, matrix: FloatArray, tau: float, chosen: int, stop: int | None
    ) -> Outcome:
        """Run one tree, `chosen` features having been eliminated already.

        What is known of opt(chosen + q) bounds opt_B(q), as in `proof_tree`.
        """
        statistics, meter = self.statistics, self.meter
        tree = ProofTree(
            np.ascontiguousarray(matrix),
            self.k - chosen,
            tau,
            self.upper[chosen : self.k + 1].copy(),
            meter.max_entries,
        )
        before = meter.nodes - statistics.nodes

        def may_go_on(nodes: int) -> int:
            meter.nodes += nodes
            meter.check()
            if nodes:
                self.report(len(matrix))
            allowed = meter.nodes_left
            if stop is not None:
                allowed = min(allowed, stop - statistics.nodes - tree.nodes)
            return allowed

        try:
            return run_tree(tree, statistics, may_go_on, self.n_jobs)
        finally:
            meter.nodes = before + statistics.nodes


def _sooner(stop: int | None, other: int) -> int:
    return other if stop is None else min(stop, other)


def _tightened(matrix: FloatArray, k: int, tau: float, p: int) -> Tightened:
    if len(matrix) > _SPECTRAL_SIZE[p]:
        return Tightened.nothing_known(len(matrix))
    return tighten(matrix, k, tau, p)
