"""The search over small subsets: its two inequalities, its limits and what it finds."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca import Status
from blockspca.numerics.upper_eigenvalues import psd_shift
from blockspca.solvers import Exhaustive, Limits, SubexponentialSearch
from blockspca.solvers.subexponential_search import bound_from_subsets, completed
from conftest import brute_force
from strategies import problems, symmetric_matrix


def equicorrelated(d: int, correlation: float) -> np.ndarray:
    return (1 - correlation) * np.eye(d) + correlation * np.ones((d, d))


@given(problem=problems(max_features=8), size=st.integers(1, 8))
@settings(deadline=None, max_examples=200)
def test_the_promise_and_the_bound_hold_for_every_subset_size(problem, size):
    A, k = problem
    solver = SubexponentialSearch(subset_size=size)
    solution = solver.solve(A, k, limits=Limits())
    optimum, small = brute_force(A, k), brute_force(A, min(size, k))
    slack = 1e-9 * max(1.0, np.abs(A).max())
    objective = solution.x @ A @ solution.x
    assert objective >= small - slack
    assert solution.upper_bound >= optimum - 1e-12 * max(1.0, np.abs(A).max())
    assert solution.nodes == math.comb(len(A), min(size, k))
    if np.linalg.eigvalsh(A)[0] >= 0:
        assert objective * solver.guarantee.factor(k, len(A)) >= optimum - slack
    if size >= k:
        assert objective == pytest.approx(optimum, abs=slack)
        assert solution.upper_bound == pytest.approx(optimum, abs=slack)


@pytest.mark.parametrize("correlation", [-0.1, 0.0, 0.3, 1.0])
def test_both_inequalities_are_equalities_somewhere(correlation):
    """Equicorrelated features for the first, rank one for the second: no slack."""
    A = equicorrelated(8, correlation)
    for k in (2, 5, 8):
        for size in range(1, k + 1):
            small, optimum = brute_force(A, size), brute_force(A, k)
            bound = bound_from_subsets(A, k, size, small, math.inf)
            if correlation >= 0 and size > 1:
                assert bound == pytest.approx(optimum)
            assert bound >= optimum
    A = np.ones((8, 8))
    for size in range(1, 6):
        assert bound_from_subsets(A, 5, size, float(size), 0.0) == pytest.approx(5)


@given(problems(max_features=8))
@settings(deadline=None, max_examples=100)
def test_the_second_inequality_with_a_shift(problem):
    A, k = problem
    shift = psd_shift(A)
    for size in range(1, k + 1):
        bound = bound_from_subsets(A, k, size, brute_force(A, size) + 1e-12, shift)
        assert bound >= brute_force(A, k)


def test_completed_contains_the_subset():
    A = symmetric_matrix("psd", 9, np.random.default_rng(4))
    for subset in ([0], [3, 8], [1, 2, 7]):
        support = completed(A, np.array(subset), 5)
        assert len(set(support.tolist())) == 5
        assert set(subset) <= set(support.tolist())


def test_a_larger_subset_finds_what_a_smaller_one_misses():
    """Two strong features hide three that are better together; ℓ = 3 sees them."""
    A = np.eye(9)
    A[:2, :2] = [[1.0, 0.9], [0.9, 1.0]]
    A[4:8, 4:8] = equicorrelated(4, 0.7)
    optimum = brute_force(A, 4)
    missed = SubexponentialSearch(2, n_starts=1).solve(A, 4, limits=Limits())
    found = SubexponentialSearch(3, n_starts=1).solve(A, 4, limits=Limits())
    assert missed.x @ A @ missed.x < optimum - 0.5
    assert found.x @ A @ found.x == pytest.approx(optimum)


def test_stopped_early_the_bound_still_holds(monkeypatch):
    monkeypatch.setattr("blockspca.solvers.exhaustive.WORK_AT_ONCE", 3 * 3**3)
    A = symmetric_matrix("indefinite", 9, np.random.default_rng(1))
    optimum, total = brute_force(A, 5), math.comb(9, 3)
    for nodes in (1, 2, 7, 30, total - 1):
        solution = SubexponentialSearch(3).solve(A, 5, limits=Limits(nodes=nodes))
        assert solution.nodes == nodes
        assert solution.status is Status.NODE_LIMIT
        assert solution.upper_bound >= optimum
    solution = SubexponentialSearch(3).solve(A, 5, limits=Limits(time=0.0))
    assert solution.status is Status.TIME_LIMIT
    assert solution.upper_bound >= optimum


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    A = np.diag(np.arange(9.0, 0.0, -1.0)) + 0.1
    from blockspca.solvers import subexponential_search

    def interrupted(A, size, most):
        yield np.array([[0, 2]]), np.array([9.2])
        raise KeyboardInterrupt

    monkeypatch.setattr(subexponential_search, "evaluated_subsets", interrupted)
    solution = SubexponentialSearch().solve(A, 3, limits=Limits())
    assert solution.status is Status.INTERRUPTED
    assert np.flatnonzero(solution.x).tolist() == [0, 1, 2]
    assert solution.upper_bound >= brute_force(A, 3)


def test_the_promise_is_that_of_the_subset_size():
    solver = SubexponentialSearch(subset_size=5)
    assert solver.guarantee.factor(20, 100) == 4
    assert SubexponentialSearch.guarantee.factor(20, 100) == 10
    copy = pickle.loads(pickle.dumps(solver))
    assert copy.guarantee.factor(20, 100) == 4
    assert copy.guarantee.factor(3, 100) == 1


@pytest.mark.parametrize(("argument", "value"), [("subset_size", 0), ("n_starts", 0)])
def test_bad_parameters_are_named(argument, value):
    solver = SubexponentialSearch(**{argument: value})
    with pytest.raises(ValueError, match=argument):
        solver.solve(np.eye(3), 2, limits=Limits())


@pytest.mark.data
def test_pitprops_by_subsets_of_three(load):
    A = load("pitprops")
    for k in range(2, 10):
        solution = SubexponentialSearch(3).solve(A, k, limits=Limits())
        best = Exhaustive().solve(A, k, limits=Limits())
        assert solution.x @ A @ solution.x >= 0.97 * (best.x @ A @ best.x)
        assert solution.upper_bound >= best.x @ A @ best.x
