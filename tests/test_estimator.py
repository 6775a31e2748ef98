"""SparsePCA: scikit-learn's rules, what users ask for, and clear errors."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import blockspca as bs
from blockspca import SparsePCA
from blockspca.model_selection.choose_k import FEW, N_PERMUTATIONS
from blockspca.progress import LateLine
from blockspca.status import OPTIMAL_GAP


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 12)) + np.arange(12)
    X[:, :4] += 3 * rng.normal(size=(50, 1))
    X[:, 4:7] -= 2 * rng.normal(size=(50, 1))
    return X


@pytest.fixture(scope="module")
def frame(X) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])


@parametrize_with_checks(
    [
        SparsePCA(),
        SparsePCA(n_components=1, k=1, scheme=bs.ProjectionDeflation()),
        SparsePCA(
            n_components=1, k=2, missing="pairwise", transform_method="least-squares"
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_attributes(X):
    model = SparsePCA(n_components=2, k=[4, 3]).fit(X)
    assert model.components_.shape == (2, 12)
    assert [s.tolist() for s in model.supports_] == [[0, 1, 2, 3], [4, 5, 6]]
    assert model.status_ == ["optimal", "optimal"]
    assert model.k_ == [4, 3]
    assert (model.gap_ < 1e-8).all()
    assert (model.upper_bound_ >= [r.objective for r in model.results_]).all()
    assert model.explained_variance_.sum() <= model.joint_upper_bound_
    scores = model.transform(X)
    centred = X - X.mean(axis=0)
    rest = centred - scores @ np.linalg.lstsq(scores, centred, rcond=None)[0]
    assert model.r2_ == pytest.approx(1 - (rest**2).sum() / (centred**2).sum())
    assert model.n_features_in_ == 12
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    assert not hasattr(model, "feature_names_in_")
    assert all(c.complete for c in model.solution_.verify(bs.Covariance.from_data(X)))


def test_the_largest_loading_is_positive(X):
    for data in (X, -X):
        V = SparsePCA(n_components=2, k=3).fit(data).components_
        assert (V[np.arange(2), np.abs(V).argmax(axis=1)] > 0).all()


def test_variance_is_that_of_pca_when_all_features_are_used(X):
    model = SparsePCA(n_components=3, k=12, scheme=bs.ProjectionDeflation()).fit(X)
    pca = PCA(n_components=3).fit(X)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, pca.explained_variance_ratio_
    )
    np.testing.assert_allclose(
        np.abs(model.transform(X)), np.abs(pca.transform(X)), atol=1e-8
    )
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)),
        pca.inverse_transform(pca.transform(X)),
    )


@pytest.mark.parametrize("method", ["projection", "least-squares"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("scheme", [bs.DisjointSupports(), bs.HotellingDeflation()])
def test_transform_is_its_formula(X, method, scale, scheme):
    model = SparsePCA(
        n_components=3, k=4, scheme=scheme, scale=scale, transform_method=method
    ).fit(X)
    V = model.components_
    C = (X - model.mean_) / model.scale_
    gram = V @ V.T
    expected = C @ V.T
    if method == "least-squares":
        expected = expected @ np.linalg.inv(gram)
    Z = model.transform(X)
    np.testing.assert_allclose(Z, expected, atol=1e-9)
    np.testing.assert_allclose(model.transform(sp.csr_array(X)), Z, atol=1e-9)
    nearest = C @ V.T @ np.linalg.inv(gram) @ V * model.scale_ + model.mean_
    np.testing.assert_allclose(model.inverse_transform(Z), nearest, atol=1e-9)
    if scale:
        np.testing.assert_allclose(model.scale_, X.std(axis=0, ddof=1))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("scheme", [None, bs.ProjectionDeflation()])
def test_score_on_the_training_data_is_the_explained_ratio(X, scale, scheme):
    model = SparsePCA(n_components=3, k=4, scale=scale, scheme=scheme).fit(X)
    ratio = model.explained_variance_ratio_.sum()
    assert model.score(X) == pytest.approx(ratio)
    assert model.score(sp.csr_array(X)) == pytest.approx(ratio)
    assert 0 < model.score(X[:20]) < 1


def test_sparse_and_dense_agree(X):
    sparse = np.where(np.random.default_rng(1).random(X.shape) < 0.5, 0, X)
    dense = SparsePCA(k=3, random_state=0).fit(sparse)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array):
        model = SparsePCA(k=3, random_state=0).fit(kind(sparse))
        np.testing.assert_allclose(model.components_, dense.components_, atol=1e-8)
        np.testing.assert_allclose(model.mean_, dense.mean_)


def test_more_features_than_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 300))
    X[:, 50:55] += 4 * rng.normal(size=(20, 1))
    model = SparsePCA(n_components=2, k="auto", random_state=0).fit(X)
    assert model.supports_[0].tolist() == [50, 51, 52, 53, 54]
    assert (np.abs(model.components_).sum(axis=1) > 0).all()


def test_names_in_and_out(frame):
    model = SparsePCA(n_components=2, k=3).set_output(transform="pandas")
    scores = model.fit_transform(frame)
    assert isinstance(scores, pd.DataFrame)
    assert scores.columns.tolist() == ["sparsepca0", "sparsepca1"]
    assert list(model.feature_names_in_) == list(frame.columns)
    assert set(model.results_[0].features) <= set(frame.columns)
    assert model.get_feature_names_out().tolist() == ["sparsepca0", "sparsepca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"gene 0": "other"}))
    scores = model.set_output(transform="polars").transform(frame)
    assert scores.columns == ["sparsepca0", "sparsepca1"]


@pytest.mark.parametrize(
    "columns",
    [range(400, 412), pd.MultiIndex.from_product([["a", "b", "c"], range(4)])],
    ids=["integers", "two levels"],
)
def test_names_that_are_not_strings(X, columns):
    data = pd.DataFrame(X, columns=columns)
    model = SparsePCA(k=4).fit(data)
    expected = [str(name) for name in data.columns[:4]]
    assert sorted(model.results_[0].features) == sorted(expected)
    assert not hasattr(model, "feature_names_in_")


def test_polars(frame):
    model = SparsePCA(k=3).fit(pl.DataFrame(frame.to_dict("list")))
    assert set(model.results_[0].features) <= set(frame.columns)


def test_missing_values(frame):
    gaps = frame.mask(np.random.default_rng(2).random(frame.shape) < 0.05)
    gaps["gene 3"] = gaps["gene 3"].astype("Float64")
    model = SparsePCA(k=[4, 3], missing="pairwise").fit(gaps)
    assert model.supports_[0].tolist() == [0, 1, 2, 3]
    assert np.isfinite(model.transform(gaps)).all()
    np.testing.assert_allclose(model.mean_, gaps.astype(float).mean())
    assert 0 < model.score(gaps) < 1
    scaled = SparsePCA(k=3, missing="pairwise", scale=True).fit(gaps)
    np.testing.assert_allclose(scaled.scale_, gaps.astype(float).std())
    auto = SparsePCA(k="auto", missing="pairwise", random_state=0).fit(gaps)
    assert 1 <= auto.k_[0] <= 6


def test_precomputed(X, frame):
    A = np.cov(X.T)
    model = SparsePCA(k=3, covariance="precomputed").fit(A)
    direct = SparsePCA(k=3).fit(X)
    np.testing.assert_allclose(model.components_, direct.components_, atol=1e-8)
    np.testing.assert_allclose(
        model.transform(X - X.mean(axis=0)), direct.transform(X), atol=1e-7
    )
    named = SparsePCA(k="auto", covariance="precomputed").fit(frame.cov())
    assert named.results_[0].features[0].startswith("gene")
    assert "k = " in named.choice_of_k_.reason


def test_covariance_estimators(X):
    model = SparsePCA(k=3, covariance=LedoitWolf()).fit(X)
    shrunk = LedoitWolf().fit(X).covariance_
    expected = bs.solve(shrunk, 3)
    np.testing.assert_allclose(model.results_[0].objective, expected.objective)
    assert model.covariance_estimator_.shrinkage_ > 0
    assert not hasattr(model.covariance, "covariance_")
    with pytest.raises(TypeError, match=r"LedoitWolf\(\) needs dense data"):
        clone(model).fit(sp.csr_array(X))
    with pytest.raises(TypeError, match=r"no covariance_ after fit"):
        SparsePCA(k=2, covariance=PCA()).fit(X)


def test_shrinkage_gives_ignored_features_no_variance(X):
    still = np.column_stack([np.ones(50), X])
    model = SparsePCA(k=13, scale=True, constant="ignore", covariance=LedoitWolf())
    model.set_params(n_components=1).fit(still)
    assert model.covariance_estimator_.covariance_[0, 0] > 0
    assert model.components_[0, 0] == 0
    assert model.status_ == ["optimal"]


def test_pipeline_and_grid_search(X):
    pipeline = make_pipeline(StandardScaler(), SparsePCA(n_components=2))
    search = GridSearchCV(
        pipeline, {"sparsepca__k": [1, 3, 5]}, cv=3, error_score="raise"
    )
    search.fit(X)
    assert search.best_params_["sparsepca__k"] in (3, 5)
    assert search.best_estimator_.transform(X).shape == (50, 2)
    assert (cross_val_score(SparsePCA(k=3), X, cv=3) > 0).all()


def test_clone_pickle_repr(X):
    model = SparsePCA(
        k=[4, 3],
        solver="greedy",
        threshold=bs.FixedThreshold(0.5),
        limits=bs.Limits(gap=0.1),
        scheme=bs.Orthogonalised(),
        covariance=LedoitWolf(),
    )
    copy = clone(model)
    assert copy.get_params()["scheme"] == model.scheme
    assert "FixedThreshold" in repr(copy)
    again = pickle.loads(pickle.dumps(copy.fit(X)))
    np.testing.assert_array_equal(again.transform(X), copy.transform(X))
    model = SparsePCA(k=2).fit(np.repeat(X, 100, axis=0))
    assert len(pickle.dumps(model)) < 10_000  # the data are not kept


def test_parallel_gives_the_same(X):
    models = [SparsePCA(n_jobs=n, random_state=3).fit(X) for n in (None, 2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert models[0].k_ == models[1].k_


def test_the_same_data_give_the_same_features_without_a_seed() -> None:
    """k="auto" was drawn anew for each fit, and differed from the command line's."""
    X = load_wine().data
    models = [SparsePCA(2, scale=True).fit(X) for _ in range(2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert models[0].k_ == models[1].k_


def test_a_long_fit_shows_a_line_where_somebody_watches(X, monkeypatch) -> None:
    """But not each of many fits."""
    shown: list[LateLine] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(LateLine, "__enter__", lambda line: shown.append(line) or line)
    monkeypatch.setattr(LateLine, "__exit__", lambda line, *exception: None)
    SparsePCA(1, k=2).fit(X)
    assert len(shown) == 1
    GridSearchCV(SparsePCA(1), {"k": [2, 3]}, cv=2).fit(X)
    assert len(shown) == 1


def test_without_proofs(X):
    model = SparsePCA(k=3, certify=False, solver="truncated-power").fit(X)
    assert model.results_[0].certificate is None
    assert np.isfinite(model.upper_bound_).all()


def test_auto_finds_the_size_of_a_factor(X):
    model = SparsePCA(k="auto", random_state=0).fit(X)
    assert model.k_ == [4, 3]
    assert model.choice_of_k_.reference.is_clear
    assert [choice.k for choice in model.choices_of_k_] == [4, 3]


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("k", [1, "auto"])
def test_constant_data(kind, scale, k):
    constant = np.tile([0.1, 0.0, 123.456, -7.0], (10, 1))
    with pytest.raises(ValueError, match="X has no variance: every feature is const"):
        SparsePCA(k=k, scale=scale).fit(kind(constant))


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("k", [3, "auto"])
def test_constant_features_are_ignored_on_request(X, kind, k):
    still = np.insert(X, [0, 5], [0.0, 0.1], axis=1)
    options = {"k": k, "scale": True, "random_state": 0}
    model = SparsePCA(constant="ignore", **options).fit(kind(still))
    without = SparsePCA(**options).fit(X)
    others = np.delete(np.arange(14), [0, 6])
    assert model.components_.shape == (2, 14)
    assert model.k_ == without.k_
    np.testing.assert_allclose(
        model.components_[:, others], without.components_, atol=1e-9
    )
    np.testing.assert_array_equal(model.components_[:, [0, 6]], 0)
    np.testing.assert_array_equal(model.scale_[[0, 6]], 1)
    np.testing.assert_allclose(
        model.transform(kind(still)), without.transform(X), atol=1e-8
    )
    back = model.inverse_transform(model.transform(kind(still)))
    np.testing.assert_allclose(back[:, [0, 6]], still[:, [0, 6]])
    assert model.score(kind(still)) == pytest.approx(without.score(X))


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("k", [5, 10])
def test_raw_data_are_proved_without_a_warning(load, k):
    """Gaps of 2e-9, of components with little variance, were called feasible."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparsePCA(5, k=k, scheme="residual").fit(load().data)
    assert model.status_ == ["optimal"] * 5
    assert max(model.gap_) <= OPTIMAL_GAP


def test_the_default_limit_warns(monkeypatch):
    noise = np.random.default_rng(0).normal(size=(30, 80))
    for module in ("limits", "_estimator_output"):
        monkeypatch.setattr(f"blockspca.{module}.DEFAULT_LIMITS", bs.Limits(nodes=10))
    with pytest.warns(ConvergenceWarning, match=r"limit of 10 nodes.*gap of"):
        model = SparsePCA(1, k=8).fit(noise)
    with pytest.warns(ConvergenceWarning) as caught:
        SparsePCA(1, k=8).fit(noise)
    assert caught[0].filename == __file__  # the caller's line, not ours
    assert "limits=Limits(nodes=100)" in str(caught[0].message)
    assert model.status_ == ["node_limit"]
    assert "raise limits.nodes" in str(model.results_[0])


def test_a_limit_of_ones_own_warns_too():
    noise = np.random.default_rng(0).normal(size=(30, 80))
    with pytest.warns(
        ConvergenceWarning, match=r"stopped \(node_limit\), with a gap of"
    ):
        SparsePCA(1, k=8, limits=bs.Limits(nodes=10)).fit(noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparsePCA(1, k=8, limits=bs.Limits(gap=0.9)).fit(noise)  # as was asked for


def test_an_interrupted_fit_says_what_is_missing(monkeypatch):
    noise = np.random.default_rng(0).normal(size=(30, 80))

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.limits.Budget.check", interrupt)
    with pytest.warns(ConvergenceWarning, match=r"Only 1 of 3 components were found"):
        model = SparsePCA(3, k=8).fit(noise)
    assert model.status_ == ["interrupted"]


def test_auto_leaves_features_that_vary_for_every_component():
    X = np.zeros((60, 12))
    X[:, :4] = np.random.default_rng(0).normal(size=(60, 1))  # all four are one factor
    X[:, :4] += 0.1 * np.random.default_rng(1).normal(size=(60, 4))
    model = SparsePCA(2, scheme=bs.DisjointSupports(), random_state=0).fit(X)
    assert model.k_ == [2, 2]
    assert (model.explained_variance_ > 0).all()


def test_verbose_shows_a_log(X, capsys):
    SparsePCA(k=3, verbose=True).fit(X)
    assert "upper bound" in capsys.readouterr().err
    SparsePCA(k=3).fit(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"k": 0}, "'k' parameter of SparsePCA"),
        ({"k": [3, 2, 1]}, "k has 3 value"),
        ({"k": [3.5, 2]}, r"k\[0\] = 3.5"),
        ({"k": ["a", "b"]}, r"k\[0\] = 'a' is a str"),
        ({"k": "many"}, "'k' parameter of SparsePCA.*'auto'"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"solver": "gurobi"}, "solver = 'gurobi' is not known.*greedy"),
        ({"solver": 3}, "solver = 3"),
        ({"threshold": "auto"}, "threshold = 'auto'"),
        ({"scheme": "deflate"}, "scheme = 'deflate'"),
        ({"covariance": "ledoit"}, "covariance = 'ledoit' is not known"),
        ({"covariance": "precomputed"}, r"shape \(50, 12\).*square"),
        ({"covariance": "precomputed", "scale": True}, "scale = True cannot"),
        ({"limits": "10"}, "'limits' parameter"),
        ({"missing": "drop"}, "'missing' parameter"),
        ({"transform_method": "ridge"}, "'transform_method' parameter"),
    ],
)
def test_bad_parameters(X, kwargs, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SparsePCA(**{"k": 2, **kwargs}).fit(X)


def with_value(X, value, kind=np.array):
    other = X.copy()
    other[1, 2] = value
    return kind(other)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda X: with_value(X, np.nan),
            r"1 missing.*NaN.*feature\(s\) 2; .*pairwise",
        ),
        (lambda X: with_value(X, np.inf), r"1 infinite.*feature\(s\) 2"),
        (lambda X: with_value(X, np.nan, sp.csr_array), "NaN.*2.*dense data"),
        (lambda X: with_value(X, np.inf, sp.csc_array), r"1 infinite.*\) 2; "),
        (lambda X: X[:1], "1 sample"),
        (lambda X: X[:0], r"0 sample.*\(0, 12\); pass at least two"),
        (lambda X: pd.DataFrame(X[:0]), "0 sample.*pass at least two"),
        (lambda X: pd.DataFrame(X[:, :3], columns=list("aba")), r"repeat \['a'\]"),
        (lambda X: [[1.0, 2.0], [3.0]], "rows of equal length"),
        (lambda X: "data.csv", "X = 'data.csv' is a text"),
        (lambda X: None, "X is of type NoneType"),
        (lambda X: X[:, :0], "0 feature"),
        (lambda X: pd.DataFrame(), "0 feature.*pass at least one column"),
        (lambda X: X[0], "1D array"),
        (lambda X: pd.DataFrame(X).assign(t="x"), "not numeric: 't'"),
        (lambda X: pd.DataFrame(with_value(X, np.nan)).add_prefix("g"), "'g2'"),
        (lambda X: X * 1e200, "overflows"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_data(X, make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SparsePCA(k=1).fit(make(X))


def test_gaps_in_a_precomputed_covariance(X):
    model = SparsePCA(k=1, covariance="precomputed")
    with pytest.raises(ValueError, match="must be complete: drop those"):
        model.fit(np.where(np.eye(12) == 1, np.nan, 0))


def test_bad_data_with_gaps(X):
    with pytest.raises(ValueError, match="1 infinite"):
        SparsePCA(missing="pairwise").fit(with_value(X, np.inf))
    empty = X.copy()
    empty[:, 0] = np.nan
    with pytest.raises(ValueError, match="no values at all"):
        SparsePCA(missing="pairwise").fit(empty)
    with pytest.raises(ValueError, match="constant: 0"):
        SparsePCA(scale=True, constant="raise").fit(
            np.where(np.arange(12) == 0, 1.0, X)
        )


def test_scores_of_the_wrong_width(X):
    model = SparsePCA(k=2).fit(X)
    with pytest.raises(ValueError, match=r"3 column\(s\), but there are 2 components"):
        model.inverse_transform(np.ones((2, 3)))


@pytest.mark.parametrize("unit", [1.0, 1e-170, 1e170])
@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.csc_array])
def test_scales_are_standard_deviations(unit, form):
    """Also where the squares of the data are out of range."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 6)) * (rng.random((25, 6)) < 0.6)
    X[:, 2] += 0.5
    X[:, 4] = 0.0
    model = SparsePCA(1, k=2, scale=True, constant="ignore").fit(form(X * unit))
    expected = np.where(np.arange(6) == 4, 1 / unit, X.std(axis=0, ddof=1))
    np.testing.assert_allclose(model.scale_ / unit, expected, rtol=1e-13)


def test_the_data_are_made_a_covariance_once(monkeypatch):
    made = []
    original = bs.Covariance.from_data.__func__

    def spy(cls, X, **options):
        made.append(X.shape)
        return original(cls, X, **options)

    monkeypatch.setattr(bs.Covariance, "from_data", classmethod(spy))
    X = np.random.default_rng(0).normal(size=(20, 5))
    SparsePCA(1, k=2, scale=True).fit(X)
    assert len(made) == 1
    automatic = SparsePCA(1, k="auto", scale=True, random_state=0)
    automatic.fit(X)  # permuted correlations need no data where there are few features
    assert len(made) == 1 + 1
    made.clear()
    X = np.random.default_rng(0).normal(size=(20, 25))
    automatic.fit(X)  # and are made of permuted data where there are more
    assert len(made) == 1 + N_PERMUTATIONS
    made.clear()
    X[:, :12] += 30 * X[:, [0]]
    automatic.fit(X)  # of which a few suffice where it is clear
    assert len(made) == 1 + FEW


def test_components_that_predict_have_their_largest_loading_positive():
    X = np.random.default_rng(0).normal(size=(60, 20))
    X[:, :8] += np.random.default_rng(1).normal(size=(60, 1))
    for certify in (True, False):
        model = SparsePCA(3, k=4, scheme="predictive", certify=certify).fit(X)
        for x in model.components_:
            assert x[np.abs(x).argmax()] > 0


@pytest.mark.parametrize("wider", [False, True])
def test_a_refit_that_fails_leaves_the_model_as_it_was(frame, wider):
    model = SparsePCA(2, k=3).fit(frame)
    before, scores = dict(vars(model)), model.transform(frame)
    model.set_params(solver="no such solver")
    other = frame + 100
    with pytest.raises(ValueError, match="no such solver"):
        model.fit(pd.concat([other, other], axis=1).to_numpy() if wider else other)
    np.testing.assert_array_equal(model.transform(frame), scores)
    assert vars(model) | {"solver": None} == before
    alone = SparsePCA(2, k=3, solver="no such solver")
    with pytest.raises(ValueError, match="no such solver"):
        alone.fit(frame)
    with pytest.raises(NotFittedError):
        alone.transform(frame)


def test_a_refit_leaves_nothing_of_the_one_before(X, frame):
    model = SparsePCA(1, k="auto", covariance=LedoitWolf(), random_state=0)
    model.fit(frame)
    assert hasattr(model, "choices_of_k_")
    assert hasattr(model, "covariance_estimator_")
    model.set_params(k=2, covariance=None).fit(X)
    assert vars(model).keys() == vars(SparsePCA(1, k=2).fit(X)).keys()


def test_the_names_are_those_of_the_data_and_not_of_the_background(X, frame):
    model = SparsePCA(1, k=2).fit(frame, background=X[::-1] / 2)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
