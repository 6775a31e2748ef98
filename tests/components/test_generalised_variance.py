"""det V'AV: a product in any order, raised by loadings alone, of A_W by each."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import blockspca as bs
from blockspca.components.generalised_variance import log_volume, raised_loadings
from blockspca.components.sweeps import unproved
from blockspca.components.variance import adjusted_variance, score_covariance


def covariance(seed: int) -> bs.Covariance:
    X = np.random.default_rng(seed).normal(size=(12, 8))
    return bs.Covariance.from_matrix(np.cov(X.T))


def sparse_rows(seed: int, m: int, d: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = np.zeros((m, d))
    for row in rows:
        row[rng.permutation(d)[:k]] = rng.normal(size=k)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(5))
def test_the_product_is_the_same_in_any_order_and_the_sum_is_not(seed):
    cov = covariance(seed)
    scores = score_covariance(cov, sparse_rows(seed, 3, 8, 3))
    sums = set()
    for order in permutations(range(3)):
        one = scores[np.ix_(order, order)]
        sums.add(round(float(adjusted_variance(one).sum()), 9))
        assert log_volume(one) == pytest.approx(np.linalg.slogdet(scores)[1])
    assert len(sums) > 1


@pytest.mark.parametrize("seed", range(5))
def test_a_component_enters_by_what_the_others_leave(seed):
    cov = covariance(seed)
    rows = sparse_rows(seed, 3, 8, 3)
    others = rows[1:]
    scheme = bs.ResidualDeflation()
    given = [unproved(bs.solve(cov, 3), x, cov) for x in others]
    left = scheme.problem(cov, given).submatrix(slice(None))
    whole = log_volume(score_covariance(cov, rows))
    without = log_volume(score_covariance(cov, others))
    assert whole - without == pytest.approx(math.log(rows[0] @ left @ rows[0]))


@pytest.mark.parametrize("seed", range(8))
def test_loadings_rise_to_a_fixed_point_on_their_supports(seed):
    cov = covariance(seed)
    rows = sparse_rows(seed, 3, 8, 3)
    raised = raised_loadings(cov, rows)
    assert ((raised != 0) <= (rows != 0)).all()
    assert np.linalg.norm(raised, axis=1) == pytest.approx(1)
    before, after = (log_volume(score_covariance(cov, one)) for one in (rows, raised))
    assert after > before
    again = raised_loadings(cov, raised)
    assert log_volume(score_covariance(cov, again)) == pytest.approx(after, abs=1e-12)


def test_it_ends_when_it_is_told_to():
    cov, rows = covariance(0), sparse_rows(0, 3, 8, 3)
    once = raised_loadings(cov, rows, stop=lambda: True)
    changed = (once != rows).any(axis=1)
    assert changed.tolist() == [True, False, False]
    before, after = (log_volume(score_covariance(cov, one)) for one in (rows, once))
    assert after > before


def test_scores_that_add_nothing_have_no_volume_and_stay():
    A = np.outer([1.0, 2, 3], [1.0, 2, 3])
    rows = np.eye(3)[:2]
    cov = bs.Covariance.from_matrix(A)
    assert log_volume(score_covariance(cov, rows)) == -math.inf
    assert raised_loadings(cov, rows) is rows
    assert log_volume(np.diag([1.0, -1.0])) == -math.inf
