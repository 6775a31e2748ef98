"""What the pool says of a support is what its component reaches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import blockspca as bs
from blockspca.heuristics.pool import leading_pair
from blockspca.heuristics.swap import swapped
from zoo import optima, problem, rayleigh_below


@pytest.mark.parametrize("lowest", [-1e6, -1e10, -1e14])
@pytest.mark.parametrize("k", [2, 5, 8])
def test_no_value_is_above_what_is_reached(lowest, k):
    """LAPACK's λmax is off by eps times the lowest entry, 0.02 for −1e14."""
    A = np.full((8, 8), -0.13)
    np.fill_diagonal(A, 1.0)
    A[3, 3] = lowest
    at = np.arange(k)
    for support, value, x in ((at, *leading_pair(A, at)), swapped(A, at)):
        reached = float(rayleigh_below(A[np.ix_(support, support)], x))
        assert value == pytest.approx(reached, rel=1e-12)


def test_a_feature_that_cannot_matter_costs_no_proof():
    A = problem(3685).A  # equicorrelated, one diagonal entry of −1e14
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = bs.solve_path(A, 10)
    for k, best in enumerate(optima(A), 1):
        assert path[k].status is bs.Status.OPTIMAL
        assert path[k].objective == pytest.approx(best, rel=1e-9)
