"""What a plug-in asks of its vectors is not undone in silence."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 12))
X[:, :4] += 2 * rng.normal(size=(40, 1)) * np.array([1, 1, -1, -1])
A = np.cov(X.T)


def nonnegative(A: np.ndarray, k: int) -> np.ndarray:
    x = np.ones(len(A))
    for _ in range(100):
        y = np.maximum(A @ x, 0)
        x = np.where(y >= np.sort(y)[-k], y, 0.0)
        x /= np.linalg.norm(x)
    return x


def leading(A: np.ndarray, k: int) -> np.ndarray:
    chosen = np.argsort(-np.diagonal(A))[:k]
    x = np.zeros(len(A))
    x[chosen] = np.linalg.eigh(A[np.ix_(chosen, chosen)])[1][:, -1]
    return x


@pytest.mark.parametrize("certify", [False, True])
def test_signs_that_are_not_kept_are_said(certify: bool) -> None:
    result = bs.solve(A, 4, solver=nonnegative, certify=certify)
    assert result.x.min() < 0
    assert "is not kept: pass it as constraints=" in result.message
    kept = bs.solve(A, 4, constraints=bs.Constraints(nonnegative=True))
    assert kept.x.min() >= 0


def test_loadings_that_are_replaced_are_said() -> None:
    def equal(A: np.ndarray, k: int) -> np.ndarray:
        return (nonnegative(A, k) > 0).astype(float)

    result = bs.solve(A, 4, solver=equal, threshold=0.0, certify=False)
    assert "not the best on their features" in result.message
    own = bs.solve(A, 4, solver=nonnegative, threshold=0.0, certify=False)
    np.testing.assert_allclose(own.x, nonnegative(A, 4), atol=1e-6)
    assert own.message == ""


def test_a_better_component_is_not_said_to_be_the_solvers() -> None:
    result = bs.solve(A, 4, solver=nonnegative, threshold=0.0)
    assert "the proof found a better one" in result.message


def test_nothing_is_said_of_vectors_that_are_kept() -> None:
    result = bs.solve(A, 4, solver=leading, threshold=0.0, certify=False)
    assert result.message == ""
    for name in ("greedy", "generalized-power"):
        assert bs.solve(A, 4, solver=name, threshold=0.0, certify=False).message == ""
