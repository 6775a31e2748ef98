"""The elastic net: its limits of no and of much ridge, and its criterion."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.numerics.linalg import largest_entries, leading_eigenvector
from blockspca.solvers import ElasticNet, Limits, SolverRun
from strategies import symmetric_matrix


def test_much_ridge_truncates_the_leading_eigenvector():
    A = symmetric_matrix("psd", 12, np.random.default_rng(0))
    *_, weights = ElasticNet(1e6, 1)._propose(A, 4, SolverRun(A, 4, Limits()))
    support = largest_entries(leading_eigenvector(A), 4)
    assert np.flatnonzero(weights).tolist() == support.tolist()


def test_against_the_criterion_of_the_paper():
    """The penalised fit is stationary: β solves the elastic net for its own α."""
    from sklearn.linear_model import ElasticNet as Regression

    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 8)) @ rng.normal(size=(8, 8))
    X -= X.mean(axis=0)
    A = X.T @ X
    largest = np.linalg.eigvalsh(A)[-1]
    solver = ElasticNet(ridge=0.1, max_iterations=5000)
    proposals = solver._propose(A, 4, SolverRun(A, 4, Limits()))
    beta = next(proposals)
    level = float(np.abs(A @ leading_eigenvector(A)).max())  # half of the largest
    alpha = A @ beta / np.linalg.norm(A @ beta)
    # scikit-learn: ‖y − Xw‖²/(2n) + a r ‖w‖₁ + a (1 − r)/2 ‖w‖²
    lasso, ridge = level / (2 * 40), 0.1 * largest / 40
    reference = Regression(
        alpha=lasso + ridge,
        l1_ratio=lasso / (lasso + ridge),
        fit_intercept=False,
        tol=1e-12,
        max_iter=100_000,
    ).fit(X, X @ alpha)
    np.testing.assert_allclose(beta, reference.coef_, atol=1e-5)


def test_finds_a_strong_block():
    A = np.eye(20)
    A[3:7, 3:7] += 2.0
    x = ElasticNet().solve(A, 4, limits=Limits()).x
    assert np.flatnonzero(x).tolist() == [3, 4, 5, 6]


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="ridge"):
        ElasticNet(ridge=0).solve(np.eye(3), 1, limits=Limits())
