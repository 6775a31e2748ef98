"""Fixing and branching by the entry dual, judged by brute force; logs that repeat."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import zoo
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.check import dense_problem, searched_again
from blockspca.bounds.entry_dual.fixing import fixed_in, fixed_out, likely_in
from blockspca.bounds.entry_dual.log import LoggedPoint, SearchRecord
from blockspca.bounds.entry_dual.node import Node
from blockspca.bounds.entry_dual.search import EntrySearch
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline


def searched(problem: zoo.Problem, k: int, support: np.ndarray, nodes: int = 50):
    objective = zoo.rayleigh_below(
        problem.A[np.ix_(support, support)],
        np.linalg.eigh(problem.A[np.ix_(support, support)])[1][:, -1],
    )
    target = float(objective) + 5e-10 * abs(float(objective))
    return entry_bound(
        problem.cov, k, support, target=target, time_limit=60.0, nodes=nodes
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_set_is_above_what_a_search_proves(seed):
    problem = zoo.problem(seed + 1000)
    known = zoo.Reference(problem.exact)
    for k in range(2, problem.d):
        found = searched(problem, k, known.best[k])
        assert found.value >= known.reached[k], (problem.kind, k)
        if isinstance(found.record, SearchRecord):
            text = found.record.to_text()
            record = SearchRecord.from_text(text, problem.d)
            again = searched_again(problem.cov, k, record, Deadline(None))
            assert again == found.value, (problem.kind, k)


@pytest.mark.parametrize("seed", range(8))
def test_a_support_that_is_not_the_best_is_not_proved(seed):
    problem = zoo.problem(seed + 2000, 6, 10)
    known = zoo.Reference(problem.exact)
    rng = np.random.default_rng(seed)
    for k in (2, 3, 4):
        support = np.sort(rng.permutation(problem.d)[:k])
        if not problem.A[np.ix_(support, support)].any():
            continue
        found = searched(problem, k, support)
        assert found.value >= known.reached[k], (problem.kind, k)


def test_a_better_set_raises_the_target():
    """The search kept the last set above its target, and went on for that target."""
    raised = 0
    for seed in range(20):
        A = zoo.correlation(12, np.random.default_rng(seed))
        cov = Covariance.from_matrix(A)
        sets = [np.array(s) for s in itertools.combinations(range(12), 4)]
        values = [float(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1]) for s in sets]
        best, poor = max(values), sorted(values)[-4]
        support = sets[values.index(poor)]
        found = entry_bound(cov, 4, support, target=poor, time_limit=60.0, nodes=200)
        if not isinstance(found.record, SearchRecord) or found.better is None:
            continue
        raised += 1
        reached = np.linalg.eigvalsh(A[np.ix_(found.better, found.better)])[-1]
        assert reached == pytest.approx(best, rel=1e-12)
        assert best <= found.value <= best * (1 + 1e-9)
        again = searched_again(cov, 4, found.record, Deadline(None))
        assert again == found.value
    assert raised >= 5


def some_node(d: int, rng: np.random.Generator, f: int) -> Node:
    inside = np.zeros(d, dtype=bool)
    inside[rng.permutation(d)[:f]] = True
    shares = np.triu(rng.uniform(-1, 1, (d, d)), 1)
    point = LoggedPoint.of(np.sqrt(rng.gamma(1.0, 0.4, size=d)), shares + shares.T, 1.0)
    return Node(
        np.arange(d),
        inside,
        point.weights.astype(float),
        point.shares_as_floats,
        ratio=float(rng.choice([0.3, 1.0, 2.5])),
    )


@pytest.mark.parametrize("seed", range(150))
def test_any_node_bounds_its_sets_and_fixes_only_what_it_may(seed):
    """Whatever the point of a node is: its sets are below λmax(M), and no set above τ
    has what is fixed out, or lacks what is fixed in."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(5, 10))
    family = list(zoo.FAMILIES.values())[seed % len(zoo.FAMILIES)]
    A = family(d, rng)
    A = (A + A.T) / 2 / (np.abs(A).max() or 1.0)
    k = int(rng.integers(2, d))
    node = some_node(d, rng, int(rng.integers(0, k)))
    sets = zoo.membership(d, k)
    sets = sets[sets[:, node.fixed_in].all(axis=1)]
    values = np.array([np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets])
    search = EntrySearch(A, k, 0.0, node)
    M, rounding = search._matrix(node)
    assert values.max() <= np.linalg.eigvalsh(M)[-1] + rounding + 1e-12
    for share in (0.3, 0.6, 0.9, 0.999):
        tau = float(np.quantile(values, share)) + float(rng.choice([0.0, 1e-9, 0.2]))
        above = sets[values > tau + 1e-12]
        out, _, _ = fixed_out(A, node, k, tau)
        assert not above[:, out].any()
        assert not (out & node.fixed_in).any()
        found = fixed_in(M, tau - rounding, likely_in(M, tau - rounding, node.free))
        assert above[:, found].all()


def test_features_are_fixed_where_the_bound_is_close():
    """A block and noise: one node fixes all its features in, and all others out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40)) + 1.5 * rng.normal(size=(60, 1)) * (
        np.arange(40) < 12
    )
    A = np.corrcoef(X, rowvar=False)
    found = searched(zoo.from_matrix(A), 12, np.arange(12))
    objective = np.linalg.eigvalsh(A[:12, :12])[-1]
    assert objective <= found.value <= objective * (1 + 1e-9)


@pytest.fixture(scope="module")
def logged() -> tuple[np.ndarray, SearchRecord]:
    """A problem that the bound alone does not prove, but its search does."""
    for seed in range(50):
        A = zoo.correlation(10, np.random.default_rng(seed))
        support = zoo.Reference(A, sizes=(4,)).best[4]
        found = searched(zoo.from_matrix(A), 4, support)
        if isinstance(found.record, SearchRecord):
            return A, found.record
    raise AssertionError("no search was needed")


def test_a_log_of_another_matrix_proves_nothing_wrong(logged):
    _, record = logged
    for seed in range(100, 110):
        A = zoo.correlation(10, np.random.default_rng(seed))
        again = searched_again(Covariance.from_matrix(A), 4, record, Deadline(None))
        assert again >= zoo.brute_force(A, 4)


def test_a_log_over_some_features_says_nothing_of_the_others(logged):
    A, record = logged
    part = replace(record, features=np.arange(9))
    cov = Covariance.from_matrix(A)
    assert searched_again(cov, 4, part, Deadline(None)) == np.inf


@pytest.mark.parametrize("field", ["weights", "shares", "ratio"])
def test_a_log_with_a_point_that_bounds_nothing_is_refused(field):
    point = LoggedPoint.of(np.ones(3), np.zeros((3, 3)), 1.0)
    wrong = {
        "weights": np.array([1.0, -1.0, 1.0], np.float32),
        "shares": np.full((3, 3), 2**14 + 1, np.int16),
        "ratio": -1.0,
    }
    with pytest.raises(ValueError, match="entry dual"):
        replace(point, **{field: wrong[field]}).check()


def test_very_negative_variances_are_raised():
    A = np.diag([1.0, -1e12, 2.0])
    dense = dense_problem(Covariance.from_matrix(A), np.arange(3), 1.0)
    assert dense.min() > -100


def test_no_time_leaves_the_bound_of_the_ascent():
    A = zoo.correlation(10, np.random.default_rng(2))
    found = entry_bound(
        Covariance.from_matrix(A), 4, range(4), time_limit=0.01, nodes=50
    )
    assert found.value >= zoo.brute_force(A, 4)


def test_a_log_repeats_where_nodes_are_no_better_than_what_was_known():
    """Their order was by a bound from before the search, which no log has."""
    row = np.array([0.0, -2, 5, 0, 0, 5, -2])
    i = np.arange(7)
    A = row[(i[:, None] - i) % 7] - 1000 * np.eye(7)
    cov = Covariance.from_matrix(A)
    bound = entry_bound(cov, 2, np.array([0, 2]), nodes=300)
    record = SearchRecord.from_text(bound.record.to_text(), 7)
    assert searched_again(cov, 2, record, Deadline(None)) <= bound.value
