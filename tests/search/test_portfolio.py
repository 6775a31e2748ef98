"""One search for a k-set above τ: what it says of its argument."""

from __future__ import annotations

import numpy as np

from blockspca.certify.records import TreeStatistics
from blockspca.limits import Budget, Limits
from blockspca.search import portfolio as step_proof
from blockspca.search.averaging import AveragingOutcome
from blockspca.search.portfolio import StepProof
from blockspca.search.schur_tree import Outcome


def test_growth_in_one_part_is_said_of_the_whole(monkeypatch) -> None:
    """Two connected parts of more than 4k + 40 features: one grows, one is searched."""
    k, size = 3, 40
    rng = np.random.default_rng(0)
    A = np.zeros((2 * size, 2 * size))
    for part in (slice(0, size), slice(size, 2 * size)):
        E = rng.uniform(0.1, 0.3, size=(size, size))
        A[part, part] = (E + E.T) / 2
    A[np.diag_indices(2 * size)] = 1.0
    upper = [np.inf, 1.0, 1.3, np.inf]
    asked = []

    def tree(self, matrix, tau, nodes):
        asked.append(matrix[0, 1])
        return Outcome(len(asked) != 1, None)  # the first part is not decided

    def proved(matrix, k, tau, **limits):
        return AveragingOutcome(True, None, 7, 0, 0.0)

    monkeypatch.setattr(StepProof, "_search_tree", tree)
    monkeypatch.setattr(step_proof, "no_support_above", proved)
    statistics = TreeStatistics()
    proof = StepProof(k, upper, statistics, Budget(Limits()), 1, lambda n: None)
    outcome = proof.search(A, 1.301)
    assert outcome.exhausted
    assert outcome.argument == "growth"
    assert len(asked) == 2
    assert statistics.nodes == 7
    asked.append(0.0)  # now both parts are decided by the tree
    asked[:] = [0.0]
    assert proof.search(A, 1.301).argument == "proof tree"
