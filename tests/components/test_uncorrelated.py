"""Uncorrelated scores, and orthogonal components, proved on small problems."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.certificate import restated
from blockspca.components.checks import check_variances
from blockspca.components.conditions import best_orthogonal
from blockspca.components.rewrite import with_component
from blockspca.components.solve import collect, placed
from component_problems import overlapping_factors

SCHEMES = (bs.UncorrelatedScores(), bs.Orthogonalised())


def correlations(A: np.ndarray, V: np.ndarray) -> float:
    scores = V @ A @ V.T
    sizes = np.sqrt(np.diag(scores))
    return float(np.abs(scores / np.outer(sizes, sizes) - np.eye(len(V))).max())


@pytest.mark.parametrize("kind", ["dense", "sparse", "matrix"])
def test_scores_are_uncorrelated_and_proved(kind):
    X = overlapping_factors(d=16)
    A = np.cov(X.T)
    cov = {
        "dense": lambda: bs.Covariance.from_data(X),
        "sparse": lambda: bs.Covariance.from_data(sp.csr_array(X)),
        "matrix": lambda: bs.Covariance.from_matrix(A),
    }[kind]()
    for sweeps in (0, 3) if kind == "matrix" else (0,):
        found = bs.solve_components(
            cov, 5, 3, scheme=bs.UncorrelatedScores(), sweeps=sweeps
        )
        assert correlations(A, found.components) < 1e-10
        assert all(len(support) <= 5 for support in found.supports)
        assert {status.value for status in found.statuses} == {"optimal"}
        assert all(check.complete for check in found.verify(cov))
        np.testing.assert_allclose(
            found.adjusted_explained_variance, found.explained_variance, rtol=1e-9
        )


@pytest.mark.parametrize("scheme", SCHEMES, ids=["uncorrelated", "orthogonal"])
@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_under_conditions_by_brute_force(scheme, seed):
    A = np.cov(np.random.default_rng(seed).normal(size=(12, 8)).T)
    found = bs.solve_components(A, 4, 3, scheme=scheme)
    for j in (1, 2):
        V = found.components[:j].T
        W = V if isinstance(scheme, bs.Orthogonalised) else A @ V
        best = max(
            best_orthogonal(A[np.ix_(s, s)], W[list(s)])[1]
            for s in combinations(range(8), 4)
        )
        assert found[j].objective == pytest.approx(best, rel=1e-9)
        assert found[j].status is bs.Status.OPTIMAL
        assert best <= found[j].upper_bound <= best * (1 + 1e-8)
    assert all(check.complete for check in found.verify(A))


@pytest.mark.parametrize("scheme", SCHEMES, ids=["uncorrelated", "orthogonal"])
def test_a_claim_under_conditions_is_searched_again(scheme):
    A = np.cov(np.random.default_rng(0).normal(size=(12, 8)).T)
    found = bs.solve_components(A, 4, 3, scheme=scheme)
    j = next(
        j for j, r in enumerate(found.results) if r.bound_name == BoundName.CONDITIONS
    )
    result = found[j]
    check = bs.verify(result, found.problem(j, A))
    assert not check.complete
    assert "Components.verify" in check.unchecked[0]
    lower = 0.99 * result.objective
    steps = result.certificate.steps
    claim = replace(steps[-1], upper_bound=lower)
    pretended = restated(
        result,
        steps=(*steps[:-1], claim),
        upper_bound=result.objective,
        status=bs.Status.FEASIBLE,
    )
    results = (*found.results[:j], pretended, *found.results[j + 1 :])
    with pytest.raises(bs.VerificationError):
        replace(found, results=results).verify(A)


def test_scores_that_correlate_are_refused():
    A = np.cov(overlapping_factors(d=20).T)
    found = bs.solve_components(A, 5, 2, certify=False)
    assert correlations(A, found.components) > 0.01
    pretended = replace(
        found,
        scheme=bs.UncorrelatedScores(),
        results=tuple(replace(r, certificate=None) for r in found.results),
    )
    with pytest.raises(bs.VerificationError, match=r"uncorrelated, but"):
        pretended.verify(A)


def test_more_conditions_than_features():
    A = np.cov(np.random.default_rng(1).normal(size=(12, 5)).T)
    with pytest.raises(ValueError, match=r"k = 2 .*uncorrelated.*k of at least 3"):
        bs.solve_components(A, 2, 3, scheme=bs.UncorrelatedScores())


def test_limits_leave_valid_claims():
    cov = bs.Covariance.from_matrix(np.cov(overlapping_factors(30, 30, 1).T))
    for scheme in SCHEMES:
        for limits in (bs.Limits(nodes=1), bs.Limits(time=0.0)):
            found = bs.solve_components(cov, 6, 3, scheme=scheme, limits=limits)
            assert len(found.results) == 3
            for result, check in zip(found.results, found.verify(cov), strict=True):
                assert result.objective <= result.upper_bound < np.inf
                assert check.upper_bound >= result.objective


def test_scores_that_rounding_leaves_correlated_are_refused():
    """Units 1e9 apart: the scores correlated by 0.04, and `verify` said so."""
    rng = np.random.default_rng(26)
    for far in (3, 6, 9):  # as many draws as the case was found with
        X = rng.normal(size=(30, 6)) @ rng.normal(size=(6, 6))
        X = X * 10.0 ** (-far * (rng.random(6) < 0.6))
    with pytest.raises(ValueError, match="rounding leaves the score of component"):
        bs.solve_components(np.cov(X.T), 3, 3, scheme="uncorrelated")
    scaled = bs.Covariance.from_data(X, scale=True)
    found = bs.solve_components(scaled, 3, 3, scheme="uncorrelated")
    assert found.verify(scaled)


def test_small_scores_that_correlate_are_not_verified():
    """What rounding is allowed is that of both scores, not of the larger one."""
    A = np.array([[1.0, 1e-15], [1e-15, 1e-28]])  # a correlation of 0.1
    cov, scheme = bs.Covariance.from_matrix(A), bs.UncorrelatedScores()
    result = bs.solve(cov, 1)
    second = with_component(result, np.eye(2)[1], scheme.problem(cov, (result,)))
    found = collect(cov, (result, placed(second, 1, scheme, False)), scheme)
    with pytest.raises(bs.VerificationError, match="claimed to be uncorrelated"):
        check_variances(found, cov)
