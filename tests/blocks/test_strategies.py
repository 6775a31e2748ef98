"""Algorithm 5 visits the thresholds of the printed pseudo-code, to the same value."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockspca as bs
from blockspca.solvers import Exhaustive
from conftest import brute_force
from strategies import problems

# The framework of the paper, without the proof on the original matrix.
solve = functools.partial(bs.solve, certify=False)


def algorithm_2(denoised: np.ndarray) -> list[list[int]]:
    """Group indices by depth-first search over the nonzero entries."""
    unvisited = set(range(len(denoised)))
    groups = []
    while unvisited:
        stack = [min(unvisited)]
        group = []
        unvisited.remove(stack[0])
        while stack:
            i = stack.pop()
            group.append(i)
            for j in list(unvisited):
                if denoised[i, j] != 0:
                    unvisited.remove(j)
                    stack.append(j)
        groups.append(group)
    return groups


def algorithm_3(A, k, epsilon) -> float:
    """opt(ε): the best value over the blocks, solved exactly."""
    denoised = np.where(np.abs(A) > epsilon, A, 0)
    return max(
        brute_force(A[np.ix_(group, group)], min(k, len(group)))
        for group in algorithm_2(denoised)
    )


def algorithm_5(A, k, delta, d0, L, U, early_stopping):
    """The pseudo-code of the paper, line by line, with its early-stopping rule."""

    def lbs(epsilon):
        return max(map(len, algorithm_2(np.where(np.abs(A) > epsilon, A, 0))))

    best = algorithm_3(A, k, U)
    solved_sizes = {lbs(U)}
    visited = [U]
    while delta < U - L:
        if early_stopping and d0 in solved_sizes:
            break
        epsilon = (L + U) / 2
        d_star = lbs(epsilon)
        visited.append(epsilon)
        if any(size >= d_star for size in solved_sizes):
            U = epsilon
            continue
        if d_star > d0:
            L = epsilon
            continue
        value = algorithm_3(A, k, epsilon)
        solved_sizes.add(d_star)
        if value - best > 1e-12 * abs(best):
            best = value
        else:
            U = epsilon
    return best, visited


@given(
    problems(max_features=8),
    st.integers(1, 8),
    st.sampled_from([0.01, 0.05, 0.3]),
    st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_search_equals_the_pseudo_code(problem, d0, fraction, early_stopping):
    A, k = problem
    largest = float(np.abs(A).max())
    delta = fraction * largest if largest > 0 else 1.0
    search = bs.BlockSearch(d0, delta=delta, early_stopping=early_stopping)
    result = solve(A, k, solver=Exhaustive(), threshold=search)
    value, visited = algorithm_5(A, k, delta, d0, 0.0, largest, early_stopping)
    assert [visit.epsilon for visit in result.visits] == visited
    assert result.objective == pytest.approx(value, rel=1e-10, abs=1e-12)


@given(problems(max_features=7, kinds=("psd", "indefinite", "integer")), st.booleans())
@settings(deadline=None, max_examples=60)
def test_search_within_an_interval(problem, early_stopping):
    A, k = problem
    largest = float(np.abs(A).max())
    if largest == 0:
        return
    level = 0.2 * largest
    search = bs.BlockSearch(
        len(A), 0.02 * largest, level, a=0.5, b=4.0, early_stopping=early_stopping
    )
    result = solve(A, k, solver=Exhaustive(), threshold=search)
    value, visited = algorithm_5(
        A, k, 0.02 * largest, len(A), 0.5 * level, 4.0 * level, early_stopping
    )
    assert [visit.epsilon for visit in result.visits] == visited
    assert result.objective == pytest.approx(value, rel=1e-10, abs=1e-12)


def test_default_parameters_are_the_papers():
    A = np.cov(np.random.default_rng(0).normal(size=(30, 50)).T)
    by_default = solve(A, 3)
    spelt_out = solve(
        A,
        3,
        threshold=bs.BlockSearch(
            max_block_size=30,
            delta=0.01 * np.abs(A).max(),
            noise_level=1.0,
            a=0.0,
            b=np.abs(A).max(),
            early_stopping=True,
        ),
    )
    assert by_default.visits == spelt_out.visits
    assert by_default.objective == spelt_out.objective


def test_a_tiny_delta_ends():
    A = np.array([[1.0, 0.5], [0.5, 1.0]])
    search = bs.BlockSearch(max_block_size=1, delta=1e-300, early_stopping=False)
    result = solve(A, 1, threshold=search)
    assert result.visits[-1].epsilon == pytest.approx(0.5)


@pytest.mark.data
@pytest.mark.parametrize(
    ("k", "objective", "fraction"), [(10, 69.27, 0.42), (15, 86.20, 0.44)]
)
def test_the_papers_own_values_on_lymphoma(load, k, objective, fraction):
    """Where the paper's search misses the optimum, the literal search does too."""
    cov = bs.Covariance.from_data(load("Lymphoma2"))
    result = solve(cov, k, threshold=bs.BlockSearch(max_block_size=30))
    assert round(result.objective, 2) == objective
    assert round(result.threshold / cov.max_abs(), 2) == fraction


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "up_to"),
    [("CovColon", 15), ("LymphomaCov1", 5)],  # swaps miss the optimum of the others
)
def test_the_papers_own_values_where_optimal(load, oracle_dir, name, up_to):
    table = np.genfromtxt(
        oracle_dir / "published_values.csv", delimiter=",", dtype=str, skip_header=1
    )
    rows = [row for row in table if row[0] == name]
    assert len(rows) == 4
    A = load(name)
    for row in rows:
        result = solve(A, int(row[2]))
        assert result.objective <= float(row[3]) + 0.005 <= result.upper_bound + 0.01
        if int(row[2]) <= up_to:
            assert result.objective == pytest.approx(float(row[3]), abs=0.005)
