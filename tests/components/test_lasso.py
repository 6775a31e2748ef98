"""Components by a lasso are those of scikit-learn."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from blockspca.components.lasso import lasso_components
from component_problems import overlapping_factors


def scaled(seed: int) -> np.ndarray:
    X = overlapping_factors(seed=seed)
    X = X - X.mean(axis=0)
    return X / np.sqrt((X**2).sum() / X.shape[1])


def directions(X: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    _, sizes, rows = np.linalg.svd(X, full_matrices=False)
    return rows[:m].T.copy(), sizes[:m] ** 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [0.05, 0.2])
def test_equals_scikit_learn(seed, penalty):
    from sklearn.decomposition import SparsePCA

    X = scaled(seed)
    leading, sizes = directions(X, 3)
    (V,) = lasso_components(lambda V: X.T @ (X @ V), leading, sizes, [penalty])
    model = SparsePCA(3, alpha=penalty, max_iter=20, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = model.fit(X).components_
    V = V / np.linalg.norm(V, axis=1, keepdims=True)
    same = np.abs(np.einsum("ij,ij->i", V, other))
    np.testing.assert_allclose(same, 1.0, atol=1e-3)


def test_a_larger_penalty_leaves_fewer_features():
    X = scaled(0)
    leading, sizes = directions(X, 3)
    found = lasso_components(lambda V: X.T @ (X @ V), leading, sizes)
    counts = [np.count_nonzero(V) for V in found]
    assert len(counts) > 2
    assert all(more > fewer for more, fewer in pairwise(counts))
    assert all(V.shape == (3, X.shape[1]) for V in found)


def test_a_penalty_that_leaves_nothing():
    X = scaled(0)
    leading, sizes = directions(X, 2)
    (V,) = lasso_components(lambda V: X.T @ (X @ V), leading, sizes, [1e6])
    np.testing.assert_array_equal(V, 0.0)
