"""Held-out variance for every k: its formula, its folds, its choices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.model_selection.searched_path import searched_path


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 15)) * np.linspace(1, 2, 15) + 3
    X[:, :4] += 3 * rng.normal(size=(40, 1))
    return X


@pytest.mark.parametrize("scale", [False, True])
def test_it_is_its_formula(X, scale):
    found = bs.cross_validate(X, k_max=6, n_folds=4, scale=scale, rng=5)
    folds = np.array_split(np.random.default_rng(5).permutation(40), 4)
    for fold, train, held_out in zip(folds, found.train, found.held_out, strict=True):
        others = np.delete(X, fold, axis=0)
        size = others.std(axis=0, ddof=1) if scale else 1.0
        new = (X[fold] - others.mean(axis=0)) / size
        path = searched_path(bs.Covariance.from_data(others, scale=scale), 6)
        for k, result in path.items():
            share = ((new @ result.x) ** 2).sum() / (new**2).sum()
            assert held_out[k - 1] == pytest.approx(share)
            total = (
                result.objective
                / bs.Covariance.from_data(others, scale=scale).diagonal().sum()
            )
            assert train[k - 1] == pytest.approx(total)


def test_choices(X):
    found = bs.cross_validate(X, k_max=10)
    assert found.one_standard_error_k <= found.best_k
    assert found.one_standard_error_k in (3, 4)
    assert found.mean[3] > found.mean[0]
    assert found.mean.shape == found.standard_error.shape == (10,)
    assert "5 folds" in repr(found)


def test_kinds_of_data(X):
    dense = bs.cross_validate(X, 5)
    sparse = bs.cross_validate(sp.csr_array(X), 5)
    np.testing.assert_allclose(sparse.held_out, dense.held_out)
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
    assert bs.cross_validate(gaps, 5, missing="pairwise", scale=True).mean.max() < 1
    with pytest.raises(ValueError, match=r"fold of 2 sample.*X has no variance"):
        bs.cross_validate(np.ones((6, 3)), 2, n_folds=3)


def test_a_feature_that_varies_in_one_fold_only(X):
    rare = np.column_stack([X, np.eye(len(X))[0]])
    with pytest.raises(ValueError, match=r"left out, scale=True.*constant='ignore'"):
        bs.cross_validate(rare, 3, scale=True, constant="raise")
    found = bs.cross_validate(rare, 3, scale=True, constant="ignore")
    assert np.isfinite(found.held_out).all()
    assert (found.held_out > 0).all()


def test_folds_run_in_parallel_alike(X):
    first, again = (bs.cross_validate(X, 4, n_jobs=n, rng=3) for n in (1, 2))
    np.testing.assert_array_equal(first.held_out, again.held_out)


@pytest.mark.parametrize("n_folds", [1, 41])
def test_bad_folds(X, n_folds):
    with pytest.raises(ValueError, match=rf"n_folds = {n_folds} is outside 2..40"):
        bs.cross_validate(X, 3, n_folds=n_folds)
