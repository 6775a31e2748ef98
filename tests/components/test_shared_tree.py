"""The enumeration of sets: its bounds and its answers against brute force."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.components.test_shared_support import exhaustive, matrix, top_sum

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.components import shared_support
from blockspca.components.shared_heuristic import SharedSet
from blockspca.components.shared_problem import SharedProblem, shared_rules
from blockspca.components.shared_tree import (
    CHECKED,
    SetTree,
    largest_of_all,
    proves,
)
from blockspca.limits import Deadline

CASES = [(6, 3, 2), (8, 4, 3), (9, 5, 2), (7, 2, 1), (6, 3, 3), (7, 1, 1)]


def problem_of(A: np.ndarray, k: int, r: int) -> SharedProblem:
    return SharedProblem.of(bs.Covariance.from_matrix(A), k, r)


def settled(shared: SharedProblem, first: list[int]) -> Any:
    start = SharedSet.of(shared.cov, np.array(first, dtype=np.intp), shared.r)
    tree = SetTree(shared)
    best, bound = largest_of_all(
        tree, start, 5e-10, Deadline(None), np.inf, np.inf, lambda best, nodes: None
    )
    return best, bound


@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize(("d", "k", "r"), CASES)
def test_every_node_bounds_its_sets(seed: int, d: int, k: int, r: int) -> None:
    A = matrix(seed, d)
    tree = SetTree(problem_of(A, k, r), margin=1.0)
    inner = A[np.ix_(tree.order, tree.order)]
    scale = float(np.abs(A).max())
    for q in range(k):
        for T in combinations(range(d), q):
            sets = np.array([T], dtype=np.intp).reshape(1, q)
            next_ = np.array([T[-1] + 1 if q else 0])
            behind = range(int(next_[0]), d)
            above = [
                top_sum(inner[np.ix_(T + more, T + more)], r)
                for more in combinations(behind, k - q)
            ]
            if not above:
                continue
            coupling = tree.squares[sets].sum(axis=1)[:, next_[0] :].max(axis=1)
            sums = tree._sums(sets)
            bound = tree._extended(sums, next_, coupling, k - q)[r, 0] * tree.unit
            assert bound >= max(above) - 1e-15 * scale
            # A level below the best set leaves a child that leads to it.
            level = (max(above) - 1e-9 * scale) / tree.unit
            children = tree._children(sets, sums, level)[1]
            best = list(combinations(behind, k - q))[int(np.argmax(above))]
            assert best[0] in children


@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize(("d", "k", "r"), CASES)
def test_the_optimum_from_any_start(seed: int, d: int, k: int, r: int) -> None:
    A = matrix(seed, d)
    best, scale = exhaustive(A, k, r), float(np.abs(A).max())
    found, bound = settled(problem_of(A, k, r), list(range(d - k, d)))
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-9 * scale)
    assert best - 1e-14 * scale <= bound
    assert bound <= found.objective + 6e-10 * abs(found.objective) + 1e-12 * scale
    shared = problem_of(A, k, r)
    assert proves(SetTree(shared, 1.0), bound, np.inf) is True
    below = best - 1e-8 * scale
    assert proves(SetTree(shared, 1.0), below, np.inf) is False


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_constraints(seed: int) -> None:
    d, k, r = 9, 3, 2
    A = matrix(seed, d)
    cov = bs.Covariance.from_matrix(A)
    labels = np.array([0, 1, 1, 1, 2, 2, 0, 0, 2])
    constraints = bs.Constraints(
        include=[2], exclude=[0], groups=labels, max_per_group=1
    )

    def best_with(most: int) -> float:
        return max(
            top_sum(A[np.ix_(s, s)], r)
            for s in combinations(range(1, d), k)
            if 2 in s and np.bincount(labels[list(s)]).max() <= most
        )

    best = best_with(1)
    assert best < best_with(2)  # so that it matters how many there may be
    rules = shared_rules(constraints, np.empty(0, np.intp), cov, k)
    shared = SharedProblem.of(cov, k, r, rules)
    found, bound = settled(shared, [1, 3, 5])
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert best * (1 - 1e-13) <= bound <= best * (1 + 1e-9)
    whole = bs.solve_shared(A, k, r, constraints=constraints)
    assert whole.bound_name == BoundName.ENUMERATION
    assert whole.verify(A).complete


def test_entries_of_data_are_known_to_an_error() -> None:
    X = np.random.default_rng(0).normal(size=(12, 8))
    cov = bs.Covariance.from_data(X)
    assert cov.entry_error > 0
    tree = SetTree(SharedProblem.of(cov, 3, 2), margin=1.0)
    tree.error *= 1e6  # so that it is seen beside the rounding
    sets = np.array([[0, 2, 5]], dtype=np.intp)
    exact = top_sum(tree.A[np.ix_(sets[0], sets[0])], 2)
    assert tree._sums(sets)[2, 0] >= exact + 2 * 3 * tree.error * (1 - 1e-9)


def test_rounding_is_on_the_safe_side() -> None:
    """The eigenvalue of q equal numbers is known exactly; LAPACK's is often below."""
    below = 0
    for c in np.random.default_rng(0).random(40):
        A = np.full((7, 7), float(c))
        sets = np.arange(5, dtype=np.intp)[None, :]
        exact = 5 * Fraction(float(c))
        for margin in (0.0, 1.0):
            tree = SetTree(problem_of(A, 5, 1), margin)
            value = Fraction(float(tree._sums(sets)[1, 0])) * Fraction(tree.unit)
            if margin:
                assert value >= exact
            below += value < exact
    assert below > 0  # without the margin


def test_five_of_sixty_features() -> None:
    """They took more than a minute, where all sets at once take eight seconds."""
    A = np.corrcoef(np.random.default_rng(0).normal(size=(100, 60)).T)
    found = bs.solve_shared(A, 5, 2)
    assert found.status is bs.Status.OPTIMAL
    assert found.bound_name == BoundName.ENUMERATION
    assert found.nodes < 200_000  # of 5,461,512 sets
    assert found.verify(A).complete
    lower = replace(found.certificate, upper_bound=found.objective * (1 - 1e-6))
    changed = replace(
        found,
        certificate=lower,
        upper_bound=lower.upper_bound,
        status=bs.Status.FEASIBLE,
    )
    with pytest.raises(bs.VerificationError):
        changed.verify(A)
    few = found.verify(A, max_nodes=1)
    assert not few.complete
    assert few.upper_bound == np.inf


def test_a_claim_between_the_best_two_sets_is_refused() -> None:
    A = matrix(0, 9)
    found = bs.solve_shared(A, 4, 2)
    values = sorted(top_sum(A[np.ix_(s, s)], 2) for s in combinations(range(9), 4))
    support = next(
        s
        for s in combinations(range(9), 4)
        if top_sum(A[np.ix_(s, s)], 2) == values[-2]
    )
    second = SharedSet.of(bs.Covariance.from_matrix(A), np.array(support), 2)
    rows = np.zeros((2, 9))
    rows[:, second.support] = second.vectors.T
    bound = (values[-2] + values[-1]) / 2
    forged = replace(
        found,
        support=second.support,
        components=rows,
        variances=second.values,
        objective=second.objective,
        upper_bound=bound,
        status=bs.Status.FEASIBLE,
        certificate=replace(found.certificate, upper_bound=bound),
    )
    with pytest.raises(bs.VerificationError, match="above the claimed"):
        forged.verify(A)


def test_limits_are_kept() -> None:
    A = np.corrcoef(np.random.default_rng(0).normal(size=(60, 30)).T)
    for nodes in (1, 5, 40, 400):
        found = bs.solve_shared(A, 6, 2, limits=bs.Limits(nodes=nodes))
        assert found.nodes <= nodes + 1
        assert found.upper_bound >= found.objective
    shared = problem_of(A, 6, 2)
    tree = SetTree(shared)
    level = float(np.trace(A)) / 1e3
    assert not tree.run(level, Deadline(0.0), np.inf, lambda support, value: level)
    tree = SetTree(shared)
    assert not tree.run(level, Deadline(None), 1e4, lambda support, value: level)


def test_the_searches_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.corrcoef(np.random.default_rng(0).normal(size=(60, 25)).T)
    asked: list[str] = []
    run, branch = SetTree.run, shared_support._Run.branch

    def enumerated(self: SetTree, *given: Any, **options: Any) -> bool:
        asked.append("enumeration")
        return run(self, *given, **options)

    def branched(self: Any, *given: Any) -> Any:
        asked.append("branch and bound")
        return branch(self, *given)

    monkeypatch.setattr(SetTree, "run", enumerated)
    monkeypatch.setattr(shared_support._Run, "branch", branched)
    monkeypatch.setattr(shared_support, "FIRST_WORK", 100)
    monkeypatch.setattr(shared_support, "FIRST_NODES", 3)
    found = bs.solve_shared(A, 5, 2)
    assert asked == ["enumeration", "branch and bound", "enumeration"]
    assert found.status is bs.Status.OPTIMAL
    assert found.bound_name is BoundName.ENUMERATION
    monkeypatch.setattr(shared_support, "SECOND_WORK", 100)
    asked.clear()
    again = bs.solve_shared(A, 5, 2)
    assert asked == ["enumeration", "branch and bound"] * 2
    assert again.status is bs.Status.OPTIMAL
    assert again.objective == pytest.approx(found.objective)
    wide = bs.solve_shared(A, 5, 2, limits=bs.Limits(gap=0.4))
    assert wide.status in (bs.Status.GAP_LIMIT, bs.Status.OPTIMAL)


def test_more_features_are_settled_if_the_enumeration_ends() -> None:
    """Beyond 60 features there was no search at all."""
    X = np.random.default_rng(0).normal(size=(50, 120)) * np.geomspace(1, 0.05, 120)
    found = bs.solve_shared(bs.Covariance.from_data(X), 4, 2)
    assert found.status is bs.Status.OPTIMAL
    assert found.bound_name is BoundName.ENUMERATION


def test_events_and_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.corrcoef(np.random.default_rng(0).normal(size=(60, 25)).T)
    events: list[bs.Event] = []
    found = bs.solve_shared(A, 4, 2, progress=events.append)
    assert events[-1].status is found.status
    assert events[-1].upper_bound == found.upper_bound
    counts = [event.nodes for event in events]
    assert len(counts) > 4  # one for each batch of the enumeration
    assert counts == sorted(counts)
    assert counts[-1] == found.nodes
    monkeypatch.setattr(shared_support, "TREE_UP_TO", 0)
    events.clear()
    bs.solve_shared(A, 4, 2, progress=events.append)
    assert len(events) > 10
    bounds = [event.upper_bound for event in events]
    assert all(event.stage == "proof" and event.k == 4 for event in events)
    assert bounds == sorted(bounds, reverse=True)

    monkeypatch.undo()

    def stop(_event: bs.Event) -> None:
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        stopped = bs.solve_shared(A, 4, 2, progress=stop)
    assert stopped.status is bs.Status.INTERRUPTED
    assert stopped.objective < stopped.upper_bound < np.inf


def test_entries_whose_squares_underflow() -> None:
    """Eigenvalues without eigenvectors were 1.41, and a bound of 1.66 was proved."""
    A = np.array(
        [[5e-161, 1.9, -8e-158], [1.9, -9e-161, 8e-161], [-8e-158, 8e-161, 0.0]]
    )
    tree = SetTree(problem_of(A, 3, 1), CHECKED)
    assert proves(tree, 1.66, np.inf) is False
    assert proves(SetTree(problem_of(A, 3, 1), CHECKED), 1.9 + 1e-12, np.inf) is True
