"""Low rank: exact on A_r, and an upper bound and an error that hold on A."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca import Status
from blockspca.solvers import Limits, LowRank
from conftest import brute_force
from strategies import problems, symmetric_matrix


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3)
)
@settings(deadline=None, max_examples=100)
def test_exact_on_matrices_of_its_rank(seed, d, k, rank):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(d, rank))
    V[rng.random(d) < 0.3] = V[0]  # ties
    A, k = V @ V.T, min(k, d)
    solution = LowRank(rank=rank).solve(A, k, limits=Limits())
    optimum = brute_force(A, k)
    assert solution.x @ A @ solution.x == pytest.approx(optimum, rel=1e-9)
    assert solution.upper_bound == pytest.approx(optimum, rel=1e-8)


@given(problems(max_features=9), st.integers(1, 3))
@settings(deadline=None, max_examples=100)
def test_upper_bound_and_error_hold(problem, rank):
    A, k = problem
    solver = LowRank(rank=rank)
    solution = solver.solve(A, k, limits=Limits())
    optimum = brute_force(A, k)
    slack = 1e-12 * np.abs(A).max()
    assert solution.upper_bound >= optimum - slack
    if np.linalg.eigvalsh(A)[0] >= -slack:
        promise = solver.guarantee_on(A)
        objective = solution.x @ A @ solution.x
        assert promise.factor(k, len(A)) == 1
        assert objective >= optimum - promise.error(k, len(A)) - 1e-9 * abs(optimum)


def test_the_error_holds_for_blocks_too():
    A = symmetric_matrix("psd", 10, np.random.default_rng(0))
    whole = LowRank().guarantee_on(A).error(3, 10)
    assert LowRank().guarantee_on(A[:6, :6]).error(3, 6) <= whole


def test_stopped_early_the_bound_still_holds():
    A = symmetric_matrix("psd", 12, np.random.default_rng(2))
    optimum = brute_force(A, 4)
    for nodes in (1, 4, 20, 100):
        solution = LowRank(rank=3).solve(A, 4, limits=Limits(nodes=nodes))
        assert solution.upper_bound >= optimum


def test_rank_is_checked():
    with pytest.raises(ValueError, match="rank = 0"):
        LowRank(rank=0).solve(np.eye(3), 1, limits=Limits())
    assert LowRank(rank=9).solve(np.eye(3), 1, limits=Limits()).status is Status.OPTIMAL
