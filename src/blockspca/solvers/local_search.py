"""Greedy, then exchange one chosen feature for another while that helps."""

from __future__ import annotations

from .._validation import FloatArray
from ..heuristics.swap import swaps
from .greedy import Greedy
from .template import BaseSolver, SolverRun


class LocalSearch(BaseSolver):
    """Forward selection followed by pairwise swaps, to a local optimum (Li & Xie 2020).

    Nodes are swaps made. The guarantee is that of the greedy start.

    Examples
    --------
    >>> from blockspca.solvers import LocalSearch
    >>> solution = LocalSearch().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2)
    >>> solution.support, solution.nodes
    (array([0, 1]), 1)
    """

    name = "local search"
    guarantee = Greedy.guarantee

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        Greedy()._solve(A, k, run)
        if run.stopped is not None:
            return
        better = swaps(A, run.support)
        next(better)  # the start itself
        while not run.must_stop():
            found = next(better, None)
            if found is None:
                return
            run.keep(found[0])
            run.nodes += 1
