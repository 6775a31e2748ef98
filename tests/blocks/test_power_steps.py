"""What `solve(certify=False)` makes of the blocks."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.blocks import power_steps
from blockspca.limits import Budget
from blockspca.result import Solution


def alike() -> np.ndarray:
    """Fifty features that are equal: no block holds a few of them."""
    rng = np.random.default_rng(0)
    A = np.corrcoef(rng.normal(size=(80, 60)).T)
    A[:50, 50:] = A[50:, :50] = 0.0
    A[:50, :50] = 1.0
    A[50:, 50:] *= 1.5
    return A


def test_features_that_are_alike_are_found_without_a_proof():
    A = alike()
    best = bs.solve(A, 4)
    found = bs.solve(A, 4, certify=False)
    assert found.objective == pytest.approx(best.objective, rel=1e-9)
    assert found.objective <= found.upper_bound
    np.testing.assert_allclose(found.x @ A @ found.x, found.objective)


def test_who_asks_for_a_solver_or_a_threshold_gets_it():
    A = alike()
    assert bs.solve(A, 4, threshold="search", certify=False).objective < 3.5
    local = bs.solve(A, 4, solver="local-search", certify=False)
    assert local.objective < 3.5


def test_a_support_to_start_from_counts(monkeypatch):
    poor = Solution(np.eye(60)[0], status=bs.Status.FEASIBLE)
    monkeypatch.setattr(power_steps, "truncated_power", lambda *a, **o: poor)
    A = alike()
    cov = bs.Covariance.from_matrix(A)
    blocks = bs.solve(A, 4, threshold="search", certify=False)
    found = power_steps.improved_by_power_steps(cov, blocks, [3, 8, 1, 5], Budget())
    assert found.support.tolist() == [1, 3, 5, 8]
    assert found.objective == pytest.approx(4)
    assert blocks.objective < 3.5


def test_that_time_was_up_is_said():
    found = bs.solve(alike(), 4, certify=False, limits=bs.Limits(time=0))
    assert found.status is bs.Status.TIME_LIMIT
