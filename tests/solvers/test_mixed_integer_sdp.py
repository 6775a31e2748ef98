"""The mixed-integer solver: cuts that hold for every support, and the optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from blockspca import Status
from blockspca.solvers import Limits, MixedIntegerSDP
from blockspca.solvers.mixed_integer_sdp import swap_cut, tight_multiplier
from conftest import brute_force
from strategies import problems, symmetric_matrix
from zoo import largest_on as value


@given(problems(max_features=7))
@settings(deadline=None, max_examples=100)
def test_cuts_hold_everywhere_and_are_tight_where_made(problem):
    A, k = problem
    d = len(A)
    if k == d:
        return
    inside = np.arange(d) < k
    here = value(A, range(k))
    constant, gains = swap_cut(A, inside, k)
    cuts = [(constant, gains)]
    P = tight_multiplier(A, inside, k)
    if P is not None:
        cuts.append((np.linalg.eigvalsh(A - P)[-1], np.diagonal(P)))
    slack = 1e-8 * max(1.0, np.abs(A).max())
    for constant, coefficients in cuts:
        assert constant + coefficients[:k].sum() == pytest.approx(here, abs=slack)
        for support in itertools.combinations(range(d), k):
            bound = constant + coefficients[list(support)].sum()
            assert bound >= value(A, support) - slack


def test_stopped_early_the_bound_still_holds():
    A = symmetric_matrix("psd", 12, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    for nodes in (1, 3, 10):
        solution = MixedIntegerSDP().solve(A, 4, limits=Limits(nodes=nodes))
        assert solution.upper_bound >= optimum


def test_gap_limit_and_incumbent():
    A = symmetric_matrix("psd", 12, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    loose = MixedIntegerSDP().solve(A, 4, limits=Limits(gap=0.2))
    assert loose.status is Status.GAP_LIMIT
    assert optimum <= loose.upper_bound <= 1.2 * (loose.x @ A @ loose.x)
    beaten = MixedIntegerSDP().solve(A, 4, limits=Limits(), incumbent=1.2 * optimum)
    assert beaten.status is Status.FEASIBLE
    assert optimum <= beaten.upper_bound <= 1.2 * optimum * (1 + 1e-5)


@pytest.mark.data
@pytest.mark.parametrize("k", [3, 6, 10])
def test_pitprops(load, k):
    A = load("pitprops")
    solution = MixedIntegerSDP().solve(A, k, limits=Limits())
    assert solution.status is Status.OPTIMAL
    assert solution.x @ A @ solution.x == pytest.approx(brute_force(A, k), rel=1e-9)
    assert solution.upper_bound == pytest.approx(brute_force(A, k), rel=2e-6)
