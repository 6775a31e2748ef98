"""Diagonal and covariance thresholding: definitions, and the model they are for."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.numerics.linalg import largest_entries, leading_eigenvector
from blockspca.solvers import CovarianceThresholding, DiagonalThresholding, Limits
from strategies import symmetric_matrix


def spiked(n: int, d: int, k: int, strength: float) -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d))
    X[:, :k] += np.sqrt(strength / k) * rng.normal(size=(n, 1))
    return X.T @ X / n


@pytest.mark.parametrize("solver", [CovarianceThresholding(), DiagonalThresholding()])
def test_finds_a_spike(solver):
    x = solver.solve(spiked(400, 60, 6, 6.0), 6, limits=Limits()).x
    assert np.flatnonzero(x).tolist() == list(range(6))


def test_covariance_thresholding_works_where_the_variances_say_nothing():
    A = spiked(400, 60, 6, 6.0)
    scale = 1 / np.sqrt(np.diagonal(A))
    x = CovarianceThresholding().solve(A * np.outer(scale, scale), 6, limits=Limits()).x
    assert np.flatnonzero(x).tolist() == list(range(6))


def test_without_a_threshold_both_truncate_the_leading_eigenvector():
    A = symmetric_matrix("psd", 12, np.random.default_rng(0))
    np.fill_diagonal(A, A.max())  # ties: diagonal thresholding keeps every feature
    support = largest_entries(leading_eigenvector(A), 4)
    for solver in (CovarianceThresholding(1), DiagonalThresholding()):
        x = solver.solve(A, 4, limits=Limits()).x
        assert np.flatnonzero(x).tolist() == support.tolist()


def test_diagonal_thresholding_keeps_the_largest_variances():
    A = symmetric_matrix("psd", 10, np.random.default_rng(1))
    x = DiagonalThresholding().solve(A, 4, limits=Limits()).x
    assert set(np.flatnonzero(x)) == set(np.argsort(-np.diagonal(A))[:4])


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="n_kept"):
        DiagonalThresholding(n_kept=0).solve(np.eye(3), 1, limits=Limits())
    with pytest.raises(TypeError, match="n_thresholds"):
        CovarianceThresholding(2.5).solve(np.eye(3), 1, limits=Limits())
