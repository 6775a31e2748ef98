"""Several components of a contrast: none is found twice, and nothing is a share."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from component_problems import overlapping_factors

SCHEME = bs.ResidualDeflation()


def contrast(weight: float) -> bs.Covariance:
    X = overlapping_factors()
    target, background = np.cov(X[:30].T), np.cov(X[30:].T) + np.eye(X.shape[1])
    return bs.contrastive(target, background, weight)


def best_pair(A: np.ndarray, features: np.ndarray) -> float:
    """The largest eigenvalue on two of the features."""
    pairs = combinations(features.tolist(), 2)
    return max(float(np.linalg.eigvalsh(A[np.ix_(p, p)])[-1]) for p in pairs)


def test_components_without_a_positive_variance_differ():
    """Nothing can be regressed on them: they were the first one, again and again."""
    cov = contrast(20.0)
    A = cov.submatrix(slice(None))
    found = bs.solve_components(cov, 2, 3, scheme=SCHEME)
    assert found[0].objective < 0
    left = np.arange(len(A))
    for result in found.results:
        assert result.objective == pytest.approx(best_pair(A, left), rel=1e-9)
        assert result.status is bs.Status.OPTIMAL
        assert set(result.support.tolist()) <= set(left.tolist())
        left = np.setdiff1d(left, result.support)
    assert all(check.complete for check in found.verify(cov))


def test_what_is_closed_stays_closed():
    """So that the bound of the first holds for the next ones."""
    cov = contrast(20.0)
    results = bs.solve_components(cov, 2, 2, scheme=SCHEME).results
    assert SCHEME.margin(cov, results, 0, 2) == 0.0
    closed = SCHEME.closed(cov, results)
    assert closed.tolist() == sorted({int(i) for r in results for i in r.support})
    assert len(SCHEME.closed(cov, results[:1])) == len(results[0].support)


def test_features_to_include_cannot_be_used_up():
    rules = bs.Constraints(include=[0])
    with pytest.raises(ValueError, match=r"include.*n_components=1"):
        bs.solve_components(contrast(20.0), 2, 2, scheme=SCHEME, constraints=rules)


@pytest.mark.parametrize("weight", [0.5, 20.0])
def test_nothing_is_said_of_shares(weight):
    cov = contrast(weight)
    found = bs.solve_components(cov, 2, 2, scheme=SCHEME)
    assert (found.total_variance > 0) == (weight < 1)
    assert np.isnan(found.explained_variance_ratio).all()
    assert np.isnan(found.r2)
    for said in (str(found), found._repr_html_()):
        assert "%" not in said
        assert "nan" not in said
    assert f"{found.adjusted_explained_variance[1]:.6g}" in found._repr_html_()
    bs.plotting.plot_components(found)
