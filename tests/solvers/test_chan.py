"""Chan's algorithm: the row of the definition, on matrices and without forming A."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca import Covariance, Status
from blockspca.solvers import Chan, Limits
from strategies import problems


def by_definition(A: np.ndarray, k: int) -> float:
    """The best x'Ax over rows cut to their k largest entries."""
    best = -np.inf
    for row in A:
        x = np.where(np.isin(np.arange(len(A)), np.argsort(-np.abs(row))[:k]), row, 0)
        if np.any(x):
            best = max(best, x @ A @ x / (x @ x))
    return best


@given(problems(max_features=12, kinds=("psd", "indefinite", "block-diagonal")))
@settings(deadline=None, max_examples=100)
def test_not_below_its_definition(problem):
    A, k = problem
    solution = Chan().solve(A, k, limits=Limits())
    assert solution.x @ A @ solution.x >= by_definition(A, k) - 1e-12 * np.abs(A).max()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=40)
def test_sparse_data(seed, k, center, scale):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, size=(15, 12)).astype(float)
    X[rng.integers(15, size=12), np.arange(12)] += 1.5  # no constant column
    X[0, :] = 0.0
    X[1, :] = np.arange(1, 13)
    cov = Covariance.from_data(sp.csr_array(X), center=center, scale=scale)
    solution = Chan().solve_covariance(cov, k, limits=Limits())
    A = cov.rows(slice(None))
    assert np.count_nonzero(solution.x) <= k
    assert np.linalg.norm(solution.x) == pytest.approx(1)
    assert solution.x @ A @ solution.x >= by_definition(A, k) * (1 - 1e-9)


@pytest.mark.parametrize("missing", [False, True])
def test_dense_data(missing, monkeypatch):
    monkeypatch.setattr("blockspca.solvers.chan.ENTRIES_AT_ONCE", 100)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 30)) * rng.uniform(0.5, 2, size=30)
    if missing:
        X[rng.random(X.shape) < 0.05] = np.nan
    cov = Covariance.from_data(X, missing="pairwise")
    A = cov.rows(slice(None))
    for k in (1, 4, 30):
        solution = Chan().solve_covariance(cov, k, limits=Limits())
        assert solution.nodes == 30
        assert solution.x @ A @ solution.x >= by_definition(A, k) * (1 - 1e-9)


def test_equal_rows_count_once():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.5, size=(20, 10)).astype(float))
    doubled = sp.hstack([X, X]).tocsr()
    cov = Covariance.from_data(doubled)
    assert Chan().solve_covariance(cov, 3, limits=Limits()).nodes == 10


def test_kernel_equals_its_python_function():
    from blockspca._kernels.row_truncation import select_largest

    rng = np.random.default_rng(0)
    for _ in range(200):
        keys = rng.integers(0, 8, size=rng.integers(1, 30)).astype(float)
        k = int(rng.integers(1, len(keys) + 1))
        for function in (select_largest, select_largest.py_func):
            mine, labels = keys.copy(), np.arange(len(keys))
            function(mine, labels, len(keys), k)
            np.testing.assert_array_equal(keys[labels], mine)
            np.testing.assert_array_equal(np.sort(mine[:k]), np.sort(keys)[-k:])


@pytest.mark.slow
@pytest.mark.data
def test_dorothea(data_dir):
    X = sp.load_npz(data_dir / "Dorothea_train.npz")
    cov = Covariance.from_data(X)
    # Rows come by falling variance; the best is among the first few hundred.
    solution = Chan().solve_covariance(cov, 200, limits=Limits(time=8))
    assert solution.status in (Status.FEASIBLE, Status.TIME_LIMIT)
    assert np.count_nonzero(solution.x) <= 200
    assert solution.x @ cov.matvec(solution.x) >= 3.2583
