"""The bound from any multipliers holds; the best ones reach the relaxation's value."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca import Status
from blockspca.solvers import ConvexRelaxation, Limits, SemidefiniteRelaxation
from blockspca.solvers.convex_relaxation import row_bound
from conftest import brute_force
from strategies import problems, symmetric_matrix


@given(problems(), st.integers(0, 2**32 - 1), st.floats(1e-3, 10))
@settings(deadline=None)
def test_any_multipliers_give_a_bound(problem, seed, price):
    A, k = problem
    P, Q = np.random.default_rng(seed).normal(size=(2, len(A), len(A)))
    optimum = brute_force(A, k)
    for part in (0.0, 0.1, 1.0):
        assert row_bound(A, k, part * P, Q, price) >= optimum
        assert row_bound(A, k, P, part * Q, price) >= optimum


def reference(A: np.ndarray, k: int) -> float:
    """The relaxation with z ≤ 1, by an interior-point method."""
    cp = pytest.importorskip("cvxpy", reason="the extra 'sdp' is not installed")
    pytest.importorskip("clarabel", reason="the extra 'sdp' is not installed")
    d = len(A)
    X, z, s = cp.Variable((d, d), PSD=True), cp.Variable(d), cp.Variable(d)
    constraints = [cp.trace(X) == 1, cp.sum(z) == k, z >= 0, z <= 1]
    for i in range(d):
        total, difference = X[i, i] + z[i], X[i, i] - z[i]
        constraints += [
            cp.norm1(X[i, :]) <= s[i],
            cp.SOC(total, cp.hstack([2 * X[i, :], difference])),
            cp.SOC(total, cp.hstack([2 * s[i] / np.sqrt(k), difference])),
        ]
    problem = cp.Problem(cp.Maximize(cp.trace(A @ X)), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its last digits are not needed
        return problem.solve("CLARABEL")


@pytest.mark.parametrize("kind", ["psd", "indefinite"])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_against_an_interior_point_method(kind, k):
    A = symmetric_matrix(kind, 10, np.random.default_rng(k))
    value = reference(A, k)
    solution = ConvexRelaxation(tolerance=1e-6).solve(A, k, limits=Limits())
    slack = 1e-5 * abs(value)
    assert value - slack <= solution.upper_bound <= value + 2e-3 * abs(value)


@pytest.mark.data
@pytest.mark.parametrize(("k", "value"), [(3, 2.480276), (5, 3.412442), (8, 4.079268)])
def test_pitprops(k, value, load):
    """Values from an interior-point method; so this runs without one installed."""
    A = load("pitprops")
    bound = ConvexRelaxation(tolerance=1e-6).solve(A, k, limits=Limits()).upper_bound
    assert value <= bound <= value * (1 + 2e-3)
    weaker = SemidefiniteRelaxation(tolerance=1e-6).solve(A, k, limits=Limits())
    assert bound < weaker.upper_bound


@pytest.mark.parametrize("solver", [ConvexRelaxation, SemidefiniteRelaxation])
def test_stopped_early_the_bound_still_holds(solver):
    A = symmetric_matrix("indefinite", 9, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    for nodes in (1, 2, 5, 20, 33):
        solution = solver().solve(A, 4, limits=Limits(nodes=nodes))
        assert solution.nodes == nodes
        assert solution.status is Status.NODE_LIMIT
        assert solution.upper_bound >= optimum


@pytest.mark.parametrize("solver", [ConvexRelaxation, SemidefiniteRelaxation])
def test_limits_and_incumbent(solver):
    A = symmetric_matrix("psd", 12, np.random.default_rng(0))
    optimum = brute_force(A, 4)
    free = solver().solve(A, 4, limits=Limits())
    gap = 2 * (free.upper_bound / optimum - 1) + 0.05
    limited = solver().solve(A, 4, limits=Limits(gap=gap))
    assert limited.status is Status.GAP_LIMIT
    assert limited.nodes <= free.nodes
    beaten = solver().solve(A, 4, limits=Limits(), incumbent=2 * optimum)
    assert beaten.nodes <= 20
    assert beaten.upper_bound >= optimum


@pytest.mark.parametrize("solver", [ConvexRelaxation, SemidefiniteRelaxation])
def test_a_shift_and_a_scale_move_the_bound_along(solver):
    A = symmetric_matrix("psd", 8, np.random.default_rng(2))
    bound = solver().solve(A, 3, limits=Limits()).upper_bound
    for scale, shift in [(1.0, 5.0), (1e-6, 0.0), (1e6, -1e7)]:
        changed = scale * A + shift * np.eye(8)
        moved = solver().solve(changed, 3, limits=Limits()).upper_bound
        assert moved == pytest.approx(scale * bound + shift, abs=scale * 2e-3)


@pytest.mark.parametrize("solver", [ConvexRelaxation, SemidefiniteRelaxation])
def test_tight_on_a_strong_block(solver):
    A = np.eye(30)
    A[:5, :5] += 4.0
    solution = solver().solve(A, 5, limits=Limits())
    assert set(np.flatnonzero(solution.x)) == set(range(5))
    assert solution.upper_bound == pytest.approx(21.0, rel=1e-3)
