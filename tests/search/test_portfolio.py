"""One search for a k-set above τ: what it says of its argument."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockspca.certify.steps import TreeStatistics
from blockspca.constraint_rules import GroupLimits
from blockspca.limits import Budget, Limits
from blockspca.search import portfolio as step_proof
from blockspca.search.averaging import AveragingOutcome
from blockspca.search.portfolio import Portfolio
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
        return AveragingOutcome(True, None, 7, 0)

    monkeypatch.setattr(Portfolio, "_search_tree", tree)
    monkeypatch.setattr(step_proof, "no_support_above", proved)
    statistics = TreeStatistics()
    proof = Portfolio(k, upper, statistics, Budget(Limits()), 1, lambda n: None)
    outcome = proof.search(A, 1.301)
    assert outcome.exhausted
    assert outcome.argument == "growth"
    assert len(asked) == 2
    assert statistics.nodes == 7
    asked.append(0.0)  # now both parts are decided by the tree
    asked[:] = [0.0]
    assert proof.search(A, 1.301).argument == "proof tree"


@pytest.mark.parametrize("seed", range(20))
def test_a_search_for_sets_that_have_some_features(seed: int) -> None:
    """Against all sets with two given features and at most three of each part."""
    k, n = 5, 9
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A = np.ascontiguousarray(A + A.T)
    groups = GroupLimits(np.arange(n) % 2, np.array([3, 3]))
    given = np.sort(rng.permutation(n)[:2])

    def eigenvalue(S: tuple[int, ...]) -> float:
        return float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])

    kept = [S for S in combinations(range(n), k) if groups.allows(np.array(S))]
    best = max(eigenvalue(S) for S in kept if set(given) <= set(S))
    fewer = max(eigenvalue(S) for S in combinations(range(n), k - 1))
    for tau, is_above in ((best + 1e-9, False), (best - 1e-9, True)):
        if tau < fewer:  # of which the tree says nothing
            continue
        upper = [np.inf] * (k - 1) + [fewer, np.inf]
        proof = Portfolio(k, upper, TreeStatistics(), Budget(), 1, lambda n: None)
        outcome = proof.search_with(A, tau, given, groups, 10**6)
        assert outcome.exhausted != is_above
        if is_above:
            assert outcome.counterexample is not None
            assert eigenvalue(tuple(outcome.counterexample.tolist())) > tau
