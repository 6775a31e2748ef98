"""Theorems 1 to 4 of the paper, against brute force."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

import blockspca as bs
from blockspca.blocks.block_solve import block_solve
from blockspca.solvers import EXACT, SOLVERS, Exhaustive, Greedy, Guarantee, Solution
from conftest import brute_force
from strategies import KINDS, symmetric_matrix, thresholded_problems

# The framework of the paper, without the proof on the original matrix.
solve = functools.partial(bs.solve, certify=False)

PSD = ("psd", "rank one", "duplicated", "zero rows", "zero")


def best_vector(A: np.ndarray, k: int) -> np.ndarray:
    solution = Exhaustive().solve(A, k, limits=bs.Limits())
    return solution.x


def tolerance(A: np.ndarray) -> float:
    return 1e-10 * max(1.0, float(np.abs(A).max())) * len(A)


@given(thresholded_problems())
@settings(deadline=None, max_examples=150)
def test_theorem_1(problem):
    A, k, epsilon = problem
    denoised = bs.denoise(A, epsilon)
    x = best_vector(denoised, k)
    assert abs(brute_force(A, k) - x @ A @ x) <= 2 * k * epsilon + tolerance(A)


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=150)
def test_theorem_2(kinds, k, seed):
    rng = np.random.default_rng(seed)
    blocks = [symmetric_matrix(kind, rng.integers(1, 5), rng) for kind in kinds]
    whole = block_diag(*blocks)
    k = min(k, len(whole))
    best = max(brute_force(B, min(k, len(B))) for B in blocks)
    assert brute_force(whole, k) == pytest.approx(best, abs=tolerance(whole))


@given(thresholded_problems())
@settings(deadline=None, max_examples=150)
def test_theorem_3_exact_solver_any_symmetric_matrix(problem):
    A, k, epsilon = problem
    result = solve(A, k, solver=Exhaustive(), threshold=epsilon)
    optimum = brute_force(A, k)
    assert result.guarantee.factor == 1
    assert result.guarantee.error == pytest.approx(k * epsilon)
    assert result.objective >= optimum - k * epsilon - tolerance(A)
    assert result.objective <= optimum + tolerance(A)
    assert result.upper_bound >= optimum - 1e-15 * np.abs(A).max() * len(A)
    if result.status is bs.Status.OPTIMAL:
        assert result.objective == pytest.approx(optimum, abs=tolerance(A))


@given(thresholded_problems(kinds=PSD), st.sampled_from(["greedy", "local-search"]))
@settings(deadline=None, max_examples=100)
def test_theorem_3_approximate_solver(problem, name):
    A, k, epsilon = problem
    result = solve(A, k, solver=SOLVERS[name](), threshold=epsilon)
    optimum = brute_force(A, k)
    promised = optimum / result.guarantee.factor - result.guarantee.error
    assert result.guarantee.factor == k
    assert result.objective >= promised - tolerance(A)
    assert result.objective <= optimum + tolerance(A)
    assert result.upper_bound >= optimum - tolerance(A)


class Sloppy:
    """As good as its guarantee, and no better: OPT/m − a, by a search for the worst."""

    name = "sloppy"
    requires_psd = True

    def __init__(self, m: float, a: float) -> None:
        self.guarantee = Guarantee(factor=lambda k, d: m, error=lambda k, d: a)

    def solve(self, A, k, *, limits, incumbent=None, rng=None) -> Solution:
        promised = brute_force(A, k) / self.guarantee.factor(k, len(A))
        promised -= self.guarantee.error(k, len(A))
        diagonal = np.diag(A)
        allowed = np.flatnonzero(diagonal >= promised)
        x = best_vector(A, k)
        if len(allowed):
            x = np.eye(len(A))[allowed[np.argmin(diagonal[allowed])]]
        return Solution(x)


@given(thresholded_problems(kinds=PSD), st.floats(1, 3), st.floats(0, 1))
@settings(deadline=None, max_examples=100)
def test_theorem_3_with_the_worst_solver_that_keeps_its_promise(problem, m, a):
    A, k, epsilon = problem
    result = solve(A, k, solver=Sloppy(m, a), threshold=epsilon)
    promised = brute_force(A, k) / m - a - k * epsilon / m
    assert result.guarantee.error == pytest.approx(a + k * epsilon / m)
    assert result.objective >= promised - tolerance(A)


@given(thresholded_problems(max_features=7), st.integers(1, 7))
@settings(deadline=None, max_examples=60)
def test_theorem_4_the_search_keeps_the_promise_at_its_threshold(problem, size):
    A, k, _ = problem
    search = bs.BlockSearch(max_block_size=size)
    result = solve(A, k, solver=Exhaustive(), threshold=search)
    optimum = brute_force(A, k)
    assert result.objective >= optimum - k * result.threshold - tolerance(A)
    assert result.upper_bound >= optimum - tolerance(A)
    assert result.blocks.largest <= size


def test_guarantee_in_words():
    guarantee = EXACT.after_blocks(k=4, block_size=30, epsilon=0.25)
    assert "objective ≥ optimum − 1:" in str(guarantee)
    assert "at most 30 features" in str(guarantee)
    greedy = Greedy().guarantee.after_blocks(k=4, block_size=30, epsilon=0.25)
    assert greedy.error == 0.25  # kε/m with m = k, as in the paper's table
    assert "optimum / 4 − 0.25, if the matrix is positive semidefinite" in str(greedy)
    heuristic = bs.solvers.TruncatedPower().guarantee.after_blocks(4, 30, 0.25)
    assert math.isinf(heuristic.factor)
    assert "heuristic" in str(heuristic)


def test_requires_psd_is_enforced_on_indefinite_input():
    A = np.diag([1.0, 2.0, 3.0]) + 4
    with pytest.raises(ValueError, match=r"'sloppy' requires.*block 0.*identity"):
        solve(A - 4 * np.eye(3), 2, solver=Sloppy(1, 0), threshold=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(A, 2, solver=Sloppy(1, 0), threshold=0.0)


def test_block_solve_upper_bound_uses_the_entries_between_blocks():
    A = block_diag([[2.0, 1.0], [1.0, 2.0]], [[2.5]])
    A[0, 2] = A[2, 0] = 0.2
    path = bs.threshold_path(A)
    solved = block_solve(
        bs.Covariance.from_matrix(A),
        2,
        0.5,
        Exhaustive(),
        path=path,
        limits=bs.Limits(),
        n_jobs=None,
        seed=0,
        callback=lambda event: None,
    )
    assert solved.objective == pytest.approx(3.0)
    assert solved.upper_bound == pytest.approx(3.0 + (2 - 1) * 0.2)
