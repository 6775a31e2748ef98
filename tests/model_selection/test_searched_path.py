"""Paths without proofs: as good as the proved ones on small data, and never more."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.model_selection.searched_path import N_STARTS, searched, searched_path


def matrix(kind: str, d: int = 24) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind == "indefinite":
        A = rng.normal(size=(d, d))
        return A + A.T
    X = rng.normal(size=(60, d))
    if kind == "two factors":
        X[:, :6] += rng.normal(size=(60, 1))
        X[:, 12:20] += 0.9 * rng.normal(size=(60, 1))
    return np.cov(X.T)


@pytest.mark.parametrize("kind", ["noise", "two factors", "indefinite"])
def test_components_are_what_they_say(kind):
    A = matrix(kind)
    path = searched_path(bs.Covariance.from_matrix(A), 6)
    proved = bs.solve_path(A, 6).objectives
    assert list(path) == [1, 2, 3, 4, 5, 6]
    for k, result in path.items():
        assert len(result.support) == k
        assert np.count_nonzero(result.x) <= k
        assert result.x @ A @ result.x == pytest.approx(result.objective)
        assert np.linalg.norm(result.x) == pytest.approx(1)
        assert result.status is bs.Status.FEASIBLE
    # Random signs have many local optima; covariances of data have few.
    share = 0.95 if kind == "indefinite" else 0.98
    assert (path.objectives >= share * proved).all()
    assert (path.objectives <= proved * (1 + 1e-9)).all()


def test_a_row_starts_a_component_that_no_extension_finds():
    """One feature of large variance hides a block, which is best from k = 4 on."""
    A = np.diag([3.0, *np.ones(40)])
    A[1:6, 1:6] += 0.9 * (1 - np.eye(5))
    found = searched(bs.Covariance.from_matrix(A), 5, None)
    assert found[0].support.tolist() == [0]
    assert sorted(found[4].support) == [1, 2, 3, 4, 5]
    assert found[4].objective == pytest.approx(1 + 4 * 0.9)


@pytest.mark.parametrize("A", [np.zeros((5, 5)), np.eye(5), -np.eye(5)])
def test_matrices_without_anything_to_find(A):
    found = searched(bs.Covariance.from_matrix(A), 5, None)
    assert [len(one.support) for one in found] == [1, 2, 3, 4, 5]
    assert [one.objective for one in found] == pytest.approx([A[0, 0]] * 5)


def test_no_time_still_gives_a_component_for_each_k():
    A = matrix("two factors", 2 * N_STARTS)
    found = searched(bs.Covariance.from_matrix(A), 8, 0.0)
    assert [len(np.unique(one.support)) for one in found] == list(range(1, 9))
    assert (np.diff([one.objective for one in found]) >= 0).all()
