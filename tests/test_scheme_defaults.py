"""What is taken where nothing is named: scheme, k and the number of components."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import blockspca as bs
from blockspca.cli.explore import ExploreOptions
from blockspca.cli.solving import ComponentOptions
from blockspca.components.scheme_names import as_scheme
from blockspca.explore.state import State
from blockspca.scheme_defaults import DEFAULT_SCHEME

X = np.random.default_rng(0).normal(size=(30, 6)) * np.arange(1, 7)


def test_the_solver_and_the_estimator():
    assert as_scheme(None) == as_scheme("residual") == bs.ResidualDeflation()
    assert bs.solve_components(np.cov(X.T), 2, 2).scheme == bs.ResidualDeflation()
    # Of these data "auto" takes a set that others do not find.
    tumours = load_breast_cancer().data
    taken = bs.SparsePCA(3, k=5, scale=True).fit(tumours)
    assert taken.solution_.scheme == bs.ResidualDeflation()
    assert taken.solution_.in_turn is None
    assert taken.status_ == ["optimal"] * 3
    named = bs.choose_n_components(X, k=2, rng=0, scheme="residual")
    chosen = bs.choose_n_components(X, k=2, rng=0)
    assert np.array_equal(chosen.p_values, named.p_values)


def test_stability_is_that_of_components_as_they_are_fitted():
    drawn = bs.stability(X, 2, 5, n_components=3)
    named = bs.stability(X, 2, 5, n_components=3, scheme="residual")
    apart = bs.stability(X, 2, 5, n_components=3, scheme="disjoint")
    assert np.array_equal(drawn.frequency, named.frequency)
    assert not np.array_equal(drawn.frequency, apart.frequency)


def test_the_command_line_and_the_page():
    assert ComponentOptions() == ComponentOptions("10", 2, DEFAULT_SCHEME)
    assert State().scheme == DEFAULT_SCHEME.value == "residual"
    assert ExploreOptions().scheme is DEFAULT_SCHEME


def test_defaults_above_what_the_data_have_are_cut_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bs.SparsePCA().fit(load_wine().data).k_ == [10, 10]
        assert bs.SparsePCA().fit(load_iris().data).k_ == [4, 4]
        assert bs.SparsePCA().fit(X[:, :1]).k_ == [1]


def test_what_was_passed_is_cut_with_a_warning():
    with pytest.warns(UserWarning, match="k = 7 is more than can be had, as there are"):
        assert bs.SparsePCA(k=7).fit(X).k_ == [6, 6]
    with pytest.warns(UserWarning, match="n_components = 9 is more than can be had"):
        assert len(bs.SparsePCA(9, k=2).fit(X).k_) == 6
    with pytest.warns(UserWarning, match="n_components = 3 is used"):
        assert bs.SparsePCA(4, k=[3, 3, 2, 1]).fit(X[:, :3]).k_ == [3, 3, 2]


def test_auto_says_where_the_data_do_not_decide_k():
    with pytest.warns(UserWarning, match="k says little about the others; pass scale"):
        bs.SparsePCA(1, k="auto").fit(load_wine().data)
    one_factor = X[:, :1] + 0.1 * np.random.default_rng(1).normal(size=(30, 40))
    with pytest.warns(UserWarning, match="where 30 is the most that may be"):
        bs.SparsePCA(1, k="auto").fit(one_factor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = np.random.default_rng(2).normal(size=(60, 20))
        few[:, :4] += 3 * few[:, :1]
        assert bs.SparsePCA(1, k="auto").fit(few).k_ == [4]
