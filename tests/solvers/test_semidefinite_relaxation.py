"""Every symmetric U bounds the optimum; the best one reaches the relaxation's value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca.solvers import Limits, SemidefiniteRelaxation
from blockspca.solvers.semidefinite_relaxation import entry_bound
from conftest import brute_force
from strategies import problems, symmetric_matrix


@given(problems(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_any_multiplier_gives_a_bound(problem, seed):
    A, k = problem
    U = np.random.default_rng(seed).normal(size=A.shape)
    for part in (0.0, 0.1, 1.0):
        assert entry_bound(A, k, part * U) >= brute_force(A, k)


@pytest.mark.parametrize("kind", ["psd", "indefinite"])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_against_an_interior_point_method(kind, k):
    cp = pytest.importorskip("cvxpy", reason="the extra 'sdp' is not installed")
    pytest.importorskip("clarabel", reason="the extra 'sdp' is not installed")
    A = symmetric_matrix(kind, 10, np.random.default_rng(k))
    X = cp.Variable((10, 10), PSD=True)
    constraints = [cp.trace(X) == 1, cp.sum(cp.abs(X)) <= k]
    value = cp.Problem(cp.Maximize(cp.trace(A @ X)), constraints).solve("CLARABEL")
    solution = SemidefiniteRelaxation(tolerance=1e-6).solve(A, k, limits=Limits())
    slack = 1e-6 * abs(value)
    assert value - slack <= solution.upper_bound <= value + 1e-3 * abs(value)


@pytest.mark.data
@pytest.mark.parametrize(("k", "value"), [(3, 2.521770), (5, 3.458099), (8, 4.144843)])
def test_pitprops(k, value, load):
    """Values from an interior-point method; so this runs without one installed."""
    solution = SemidefiniteRelaxation().solve(load("pitprops"), k, limits=Limits())
    assert value * (1 - 1e-6) <= solution.upper_bound <= value * (1 + 1e-3)
