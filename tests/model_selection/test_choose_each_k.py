"""A k for each component: sizes of factors, time that is up, kinds of data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.limits import Budget, Limits
from blockspca.model_selection.choose_each_k import Chosen, choose_each_k
from blockspca.model_selection.choose_k import FEW, FEWER, N_PERMUTATIONS


def with_factors(*sizes: int, n: int = 60, d: int = 16) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    start = 0
    for j, size in enumerate(sizes):
        X[:, start : start + size] += (3 - j) * rng.normal(size=(n, 1))
        start += size
    return X


def choose(X, m: int, scheme=None, how=None, **limits) -> Chosen:
    how = {"scale": False, "missing": "raise", **(how or {})}
    cov = bs.Covariance.from_data(X, **how)
    scheme = bs.ResidualDeflation() if scheme is None else scheme
    return choose_each_k(cov, X, m, scheme, how=how, budget=Budget(Limits(**limits)))


@pytest.mark.parametrize(
    "how", [{}, {"scale": True}, {"missing": "pairwise"}], ids=lambda how: str(how)
)
def test_the_sizes_of_factors_are_found(how):
    X = with_factors(6, 3)
    if how.get("missing"):
        X[np.random.default_rng(1).random(X.shape) < 0.03] = np.nan
    chosen = choose(X, 2, how=how)
    assert chosen.ks == [6, 3]
    assert sorted(chosen.supports[0]) == [0, 1, 2, 3, 4, 5]
    assert sorted(chosen.supports[1]) == [6, 7, 8]


def test_sparse_data_stay_sparse():
    X = with_factors(6, 3)
    X[np.abs(X) < 0.3] = 0
    assert choose(sp.csr_array(X), 2).ks == choose(X, 2).ks


def test_the_spread_of_the_first_serves_the_second():
    first, second = choose(with_factors(6, 3), 2).choices
    assert len(first.reference.reference) == FEW
    assert len(second.reference.reference) == FEWER
    assert second.reference.earlier is first.reference
    np.testing.assert_array_equal(second.reference.spread, first.reference.spread)


def test_what_is_left_of_noise_gets_k_1():
    first, second = choose(with_factors(6), 2).choices
    assert first.k == 6
    assert second.k == 1
    assert len(second.reference.reference) == N_PERMUTATIONS
    assert "no set of features stands out" in second.reason


def test_features_of_their_own():
    X = with_factors(6, 3, d=12)
    chosen = choose(X, 3, scheme=bs.DisjointSupports())
    assert max(chosen.ks) <= 4


def test_the_time_that_is_up_is_said_and_kept():
    chosen = choose(with_factors(6, 3), 2, time=0.0)
    assert all(choice.reason.startswith("the time was up") for choice in chosen.choices)
    model = bs.SparsePCA(2, k="auto", limits=bs.Limits(time=0.0), random_state=0)
    with pytest.warns(UserWarning, match="not proved"):
        model.fit(with_factors(6, 3))
    assert len(model.choices_of_k_) == len(model.components_)


def test_a_matrix_has_a_share_of_the_largest_eigenvalue():
    cov = bs.Covariance.from_data(with_factors(6, 3))
    how = {"scale": False, "missing": "raise"}
    scheme = bs.ResidualDeflation()
    chosen = choose_each_k(cov, None, 2, scheme, how=how, budget=Budget())
    assert chosen.choices[0].k == bs.choose_k(cov).k
    assert all(choice.reference is None for choice in chosen.choices)
