"""Which scheme is taken where none is named: each default is that of its constant."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

import blockspca as bs
from blockspca.cli.explore import ExploreOptions
from blockspca.cli.solving import ComponentOptions
from blockspca.components.scheme_names import as_scheme
from blockspca.components.schemes import in_turn_only
from blockspca.explore.state import State
from blockspca.scheme_defaults import COUNTED, EXPLORED, FITTED, SOLVED

X = np.random.default_rng(0).normal(size=(30, 6)) * np.arange(1, 7)


def test_the_solver_and_the_estimator():
    assert bs.solve_components(np.cov(X.T), 2, 2).scheme == as_scheme(SOLVED)
    fitted = bs.SparsePCA(2, k=2).fit(X).solution_
    expected = as_scheme(FITTED)
    assert fitted.scheme in (expected, in_turn_only(expected))
    # Of these data the default takes a set that others do not find.
    tumours = load_breast_cancer().data
    taken = bs.SparsePCA(3, k=5, scale=True).fit(tumours).solution_
    assert taken.scheme == expected
    assert taken.in_turn is not None
    named = bs.choose_n_components(X, k=2, rng=0, scheme=COUNTED.value)
    chosen = bs.choose_n_components(X, k=2, rng=0)
    assert np.array_equal(chosen.p_values, named.p_values)


def test_the_command_line_and_the_page():
    assert ComponentOptions("2").scheme is FITTED
    assert State().scheme == EXPLORED.value
    assert ExploreOptions().scheme is EXPLORED
