"""What SparsePCA is asked for meets the data: shares, None, more than there are."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import blockspca as bs
from blockspca import SparsePCA
from blockspca.components.scheme_names import SCHEMES, as_scheme
from blockspca.components.schemes import scheme_name


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 12)) + np.arange(12)
    X[:, :5] += 3 * rng.normal(size=(50, 1))
    X[:, 5:8] -= 2 * rng.normal(size=(50, 1))
    return X


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_schemes_by_name(X, name):
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 3, 2, scheme=name, certify=False)
    named = "residual" if name == "auto" else name  # no set dominates these
    assert scheme_name(found.scheme) == scheme_name(as_scheme(named))
    model = SparsePCA(2, k=3, scheme=name, certify=False).fit(X)
    assert scheme_name(model.solution_.scheme) == scheme_name(as_scheme(named))
    assert as_scheme(model.solution_.scheme) is model.solution_.scheme


def test_a_scheme_that_is_not_known(X):
    with pytest.raises(ValueError, match=r"scheme = 'deflate' is not known; pass one"):
        bs.solve_components(np.eye(3), 1, 2, scheme="deflate")
    with pytest.raises(ValueError, match=r"scheme = 'deflate'.*'residual'"):
        SparsePCA(scheme="deflate").fit(X)


def test_k_as_a_share(X):
    assert SparsePCA(1, k=0.25).fit(X).k_ == [3]
    assert SparsePCA(1, k=0.01).fit(X).k_ == [1]
    assert SparsePCA(2, k=[0.5, 2]).fit(X).k_ == [6, 2]
    A = np.cov(X.T)
    assert bs.solve(A, 0.25).k == 3
    assert max(bs.solve_path(A, 0.5)) == 6
    assert [r.k for r in bs.solve_components(A, [0.25, 0.1], 2).results] == [3, 1]
    for k in (0.0, 1.0, 2.5):
        with pytest.raises(TypeError, match=r"or a share such as 0\.05"):
            bs.solve(A, k)
    with pytest.raises(ValueError, match="'k' parameter"):
        SparsePCA(k=1.5).fit(X)


def test_as_many_components_as_there_can_be(X):
    assert len(SparsePCA(None, k=2, certify=False).fit(X).components_) == 12
    assert len(SparsePCA(None, k=2, certify=False).fit(X[:5]).components_) == 5
    assert SparsePCA(None, k=[4, 3, 2]).fit(X).k_ == [4, 3, 2]
    still = np.column_stack([X[:, :3], np.ones((50, 2))])
    assert len(SparsePCA(None, k=2, certify=False).fit(still).components_) == 3
    own = SparsePCA(None, k=5, scheme="disjoint", certify=False).fit(X)
    assert [len(support) for support in own.supports_] == [5, 5, 2]
    assert len(np.unique(np.concatenate(own.supports_))) == 12


def test_more_features_than_there_are(X):
    with pytest.warns(UserWarning, match="k = 40 is more than .* 12 features") as said:
        model = SparsePCA(1, k=40).fit(X)
    assert model.k_ == [12]
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match=r"k = \[40, 2\] is more"):
        assert SparsePCA(2, k=[40, 2]).fit(X).k_ == [12, 2]
    with pytest.warns(UserWarning, match="3 components without a common feature"):
        own = SparsePCA(3, k=7, scheme=bs.DisjointSupports()).fit(X)
    assert own.k_ == [4, 4, 4]
    with pytest.raises(ValueError, match=r"k = 40 is outside 1\.\.12"):
        bs.solve(np.cov(X.T), 40)


@pytest.mark.parametrize(
    "given", [{"k": True}, {"k": [True, 2]}, {"k": 2, "n_components": True}]
)
def test_true_is_no_number(X, given):
    with pytest.raises(TypeError, match=r" = True is a bool; pass an integer"):
        SparsePCA(**given).fit(X)


@pytest.mark.parametrize("scheme", ["residual", "disjoint"])
def test_a_grid_over_k_ends_with_what_there_is(X, scheme):
    search = GridSearchCV(SparsePCA(2, scheme=scheme), {"k": [2, 5, 40]}, cv=2)
    with pytest.warns(UserWarning, match="k = 40 is more"):
        search.fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("k", [3, "auto"])
def test_constant_columns_are_ignored_with_one_warning(X, kind, k):
    still = np.insert(X, [0, 5], [0.0, 0.1], axis=1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = SparsePCA(k=k, scale=True, random_state=0).fit(kind(still))
    told = [w for w in said if "are constant" in str(w.message)]
    assert len(told) == 1
    assert "2 feature(s) are constant: " in str(told[0].message)
    np.testing.assert_array_equal(model.components_[:, [0, 6]], 0)
    with pytest.raises(ValueError, match=r"constant: .*constant='ignore'"):
        SparsePCA(k=k, scale=True, constant="raise").fit(kind(still))


def test_constant_columns_elsewhere(X):
    still = np.insert(X, 0, 1.0, axis=1)
    with pytest.warns(UserWarning, match="constant: 0") as said:
        bs.Covariance.from_data(still, scale=True)
    assert said[0].filename == __file__
    with warnings.catch_warnings(record=True) as several:
        warnings.simplefilter("always")
        bs.cross_validate(still, 3, n_folds=3, scale=True)
        bs.choose_n_components(still, 2, n_max=2, scale=True)
        bs.choose_k(still, 3, scale=True)
    assert sum("are constant" in str(w.message) for w in several) == 3


def test_names_of_columns_are_kept_as_they_are(X):
    frame = pd.DataFrame(X, columns=range(100, 112))
    loadings = SparsePCA(1, k=3).fit(frame).loadings_
    assert set(loadings.index) <= set(frame.columns)
    assert set(frame[loadings.index].columns) == set(loadings.index)
    named = SparsePCA(1, k=3).fit(sp.csr_array(X), feature_names=list("abcdefghijkl"))
    assert set(named.loadings_.index) <= set("abcde")
    assert SparsePCA(1, k=3).fit(X).loadings_.index.dtype.kind == "i"
    with pytest.raises(TypeError, match="is not a list of names"):
        SparsePCA(1, k=3).fit(X, feature_names="abcdefghijkl")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_a_background_is_taken_off(form):
    """Features 6 to 8 vary most in both; features 0 to 3 in the target alone."""
    rng = np.random.default_rng(0)
    target, background = rng.normal(size=(50, 12)), rng.normal(size=(60, 12))
    target[:, :4] += 2 * rng.normal(size=(50, 1))
    for data in (target, background):
        data[:, 6:9] += 3 * rng.normal(size=(len(data), 1))
    alone = SparsePCA(1, k=3).fit(form(target))
    assert alone.supports_[0].tolist() == [6, 7, 8]
    model = SparsePCA(2, k=3, background_weight=2.0)
    scores = model.fit_transform(form(target), background=form(background))
    cov = bs.contrastive(np.cov(target.T), np.cov(background.T), 2.0)
    best = bs.solve(cov, 3)
    assert set(model.supports_[0]) <= {0, 1, 2, 3}
    assert model.results_[0].objective == pytest.approx(best.objective)
    assert model.status_[0] == "optimal"
    assert scores.shape == (50, 2)
    assert np.isnan(model.r2_)  # the trace of the difference is negative
    assert "%" not in str(model.solution_).splitlines()[-1]


def test_a_background_that_does_not_fit_is_refused(X):
    with pytest.raises(ValueError, match=r"the same features|11 features"):
        SparsePCA(1, k=3).fit(X, background=X[:, :11])
    with pytest.raises(ValueError, match="'auto' cannot be combined"):
        SparsePCA(1, k="auto").fit(X, background=X)
    with pytest.raises(ValueError, match="background_weight"):
        SparsePCA(1, k=3, background_weight=-1.0).fit(X, background=X)
    matrix = np.cov(X.T)
    model = SparsePCA(1, k=3, covariance="precomputed", background_weight=0.5)
    model.fit(matrix, background=np.diag(np.diagonal(matrix)))
    assert model.status_ == ["optimal"]
