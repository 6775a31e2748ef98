"""Both penalties: an ascent in the paper's objective, tuned to k nonzeros."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.solvers import GeneralizedPower, L0Penalty, L1Penalty, Limits
from conftest import brute_force
from strategies import KINDS, symmetric_matrix

BOTH = pytest.mark.parametrize("penalty", [L0Penalty(), L1Penalty()])


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_feasible_on_every_kind(penalty, kind):
    A = symmetric_matrix(kind, 8, np.random.default_rng(3))
    for k in (1, 3, 8):
        x = GeneralizedPower(penalty).solve(A, k, limits=Limits()).x
        assert 1 <= np.count_nonzero(x) <= k
        assert np.diagonal(A).max() - 1e-12 <= x @ A @ x <= brute_force(A, k) + 1e-9


@BOTH
def test_the_iteration_ascends_in_the_paper_s_objective(penalty):
    C = np.random.default_rng(0).normal(size=(20, 12))
    y = C[:, 0] / np.linalg.norm(C[:, 0])
    level = 0.3 * penalty.largest(float(y @ C[:, 0]) ** 2)

    def objective(y):
        scores = C.T @ y
        if isinstance(penalty, L0Penalty):
            return np.maximum(scores**2 - level, 0).sum()
        return (np.maximum(np.abs(scores) - level, 0) ** 2).sum()

    for _ in range(20):
        image = C @ penalty.shrink(C.T @ y, level)
        before, y = objective(y), image / np.linalg.norm(image)
        assert objective(y) >= before * (1 - 1e-12)


@BOTH
def test_no_score_survives_the_largest_level(penalty):
    scores = np.array([2.0, -3.0, 1.0])
    assert not penalty.shrink(scores, penalty.largest(9.0)).any()
    assert penalty.shrink(scores, 0.9 * penalty.largest(9.0)).any()


@BOTH
@pytest.mark.data
def test_pitprops(penalty, load):
    A = load("pitprops")
    for k in (2, 5, 9):
        x = GeneralizedPower(penalty).solve(A, k, limits=Limits()).x
        assert x @ A @ x >= 0.9 * brute_force(A, k)
