"""Squared norms of rows of A = C'C, without the rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.heuristics.row_norms import squared_row_norms
from blockspca.heuristics.truncated_power import _may_exceed
from blockspca.limits import Deadline


@pytest.mark.parametrize("mean", [0.0, 1.0, 1e5])
@pytest.mark.parametrize("unit", [1.0, 2.0**-9])
def test_never_below_the_norms_and_near_them_where_means_are_small(mean, unit):
    rng = np.random.default_rng(0)
    X = sp.random_array((30, 200), density=0.2, rng=rng, format="csr")
    X.data += mean
    cov = bs.Covariance.from_data(X, scale=True)
    stored = cov.sparse_data()[0].copy()
    features = rng.permutation(200)[:50]
    exact = (cov.rows(features) ** 2).sum(axis=1) / unit**2
    found = squared_row_norms(cov, features, unit, 30 * 30, Deadline(None))
    assert (found >= exact * (1 - 1e-12)).all()
    assert (found <= exact * (1 + 1e-9)).all()
    assert (cov.sparse_data()[0] != stored).nnz == 0


def test_none_where_it_does_not_pay():
    X = sp.random_array((9, 20), density=0.5, rng=np.random.default_rng(0))
    cov, all_ = bs.Covariance.from_data(X.tocsr()), np.arange(20)
    assert squared_row_norms(cov, all_, 1.0, 9 * 9 - 1, Deadline(None)) is None
    assert squared_row_norms(cov, all_, 1.0, 9 * 9, Deadline(0.0)) is None
    dense = bs.Covariance.from_data(X.toarray())
    assert squared_row_norms(dense, all_, 1.0, 10**6, Deadline(None)) is None


@pytest.mark.parametrize("k", [1, 4, 20])
def test_a_row_above_is_never_left_out(k):
    rng = np.random.default_rng(k)
    squares = rng.normal(size=(300, 50)) ** 4
    sums = np.sort(squares, axis=1)[:, -k:].sum(axis=1)
    for least in np.quantile(sums, [0.1, 0.5, 0.99]):
        assert _may_exceed(squares, k, least)[sums > least].all()
    assert _may_exceed(squares, k, -np.inf).all()
