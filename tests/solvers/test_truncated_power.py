"""Truncated power iteration: it ascends, and fast where A is semidefinite."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca import Status
from blockspca.solvers import Limits, TruncatedPower
from blockspca.solvers.truncated_power import _ascending_shift
from strategies import KINDS, symmetric_matrix


@pytest.mark.parametrize("kind", KINDS)
def test_the_shift_leaves_no_negative_eigenvalue(kind):
    A = symmetric_matrix(kind, 12, np.random.default_rng(0))
    shift = _ascending_shift(A)
    lowest = np.linalg.eigvalsh(A)[0]
    rounding = 1e-11 * np.abs(A).max()
    assert lowest + shift >= -rounding
    assert shift == 0.0 or lowest < rounding


def test_a_semidefinite_matrix_is_not_shifted_and_settles_soon():
    rng = np.random.default_rng(0)
    A = np.cov(
        rng.normal(size=(300, 60)) + 0.5 * rng.normal(size=(300, 1)), rowvar=False
    )
    assert _ascending_shift(A) == 0.0
    solution = TruncatedPower().solve(A, 10, limits=Limits())
    assert solution.status is Status.FEASIBLE
    assert solution.nodes < 100
