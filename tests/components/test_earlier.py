"""The bound of an earlier component holds for a later one, and is checked as such."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import blockspca as bs
import component_problems
from blockspca.certificate import restated
from blockspca.components import earlier
from blockspca.components.conditions import best_orthogonal
from blockspca.components.earlier import check_earlier_bound, with_earlier_bound
from blockspca.components.schemes import scheme_name
from forging import forged

SCHEMES = [s for s in component_problems.SCHEMES if s != bs.ProjectionDeflation()]
ids = [scheme_name(scheme) for scheme in SCHEMES]
NAME = "earlier component"


def factors(seed: int, n: int = 25, d: int = 9) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, :6] += 2 * rng.normal(size=(n, 1))
    return X


def best_allowed(A, found: bs.Components, j: int, brute_force) -> float:
    """The largest objective of all vectors that component j may be."""
    k, d = found[j].k, len(A)
    if isinstance(found.scheme, bs.Orthogonalised):
        basis = np.linalg.qr(found.components[:j].T)[0]
        supports = [list(s) for s in combinations(range(d), k)]
        pairs = [best_orthogonal(A[np.ix_(s, s)], basis[s]) for s in supports]
        return max(pair[1] for pair in pairs if pair is not None)
    return brute_force(found.problem(j, A).submatrix(slice(None)), k)


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
@pytest.mark.parametrize("kind", ["data", "matrix"])
@pytest.mark.parametrize("seed", range(3))
def test_the_theorem_by_brute_force(scheme, kind, seed, brute_force):
    """Whatever a component's own proof came to, those of the earlier ones hold."""
    X = factors(seed)
    A = np.cov(X.T)
    cov = bs.Covariance.from_data(X) if kind == "data" else bs.Covariance.from_matrix(A)
    found = bs.solve_components(cov, 3, 3, scheme=scheme)
    for j in (1, 2):
        before = found.results[:j]
        unproved = restated(
            found[j], upper_bound=1e3, status=bs.Status.TIME_LIMIT, gap=None
        )
        clipped = with_earlier_bound(unproved, cov, before, scheme)
        least = min(result.upper_bound for result in before)
        assert clipped.bound_name == clipped.certificate.bound_name == NAME
        assert least <= clipped.upper_bound <= least * (1 + 1e-11)
        assert best_allowed(A, found, j, brute_force) <= clipped.upper_bound
        assert clipped.status is bs.Status.TIME_LIMIT
        # A component that reaches such a bound is optimal.
        reached = restated(unproved, objective=least * (1 - 1e-10))
        assert with_earlier_bound(reached, cov, before, scheme).status is (
            bs.Status.OPTIMAL
        )
        stopped = restated(reached, status=bs.Status.INTERRUPTED)
        assert with_earlier_bound(stopped, cov, before, scheme).status is (
            bs.Status.INTERRUPTED
        )


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
def test_a_claim_is_checked_against_the_earlier_component(scheme):
    A = np.cov(factors(0).T)
    cov = bs.Covariance.from_matrix(A)
    found = bs.solve_components(cov, 3, 2, scheme=scheme)
    plain = restated(found[1], upper_bound=1e3, status=bs.Status.FEASIBLE)
    clipped = with_earlier_bound(plain, cov, found.results[:1], scheme)
    several = replace(found, results=(found[0], clipped))
    alone = bs.verify(clipped, found.problem(1, cov))
    assert not alone.complete
    assert "rests on that of component 1" in alone.unchecked[0]
    _, last = several.verify(cov)
    assert last.complete
    assert last.upper_bound == clipped.upper_bound
    assert any("by component 1" in said for said in last.checks)

    def claim(bound: float, component: int) -> bs.Components:
        rests_on = {"component": component}
        step = clipped.certificate.steps[0]
        step = replace(step, upper_bound=bound, statistics=rests_on)
        result = restated(clipped, upper_bound=bound, steps=(step,))
        return replace(found, results=(found[0], result))

    claim(clipped.upper_bound, 1).verify(cov)
    with pytest.raises(bs.VerificationError, match="component 1 gives"):
        claim(clipped.upper_bound * (1 - 1e-12), 1).verify(cov)
    for component in (0, 2, 7):
        with pytest.raises(bs.VerificationError, match="not an earlier one"):
            claim(clipped.upper_bound, component).verify(cov)
    for scheme, k in ((bs.ProjectionDeflation(), 3), (bs.DisjointSupports(), 2)):
        results = (forged(found[0], k=k), clipped)
        with pytest.raises(bs.VerificationError, match="does not follow"):
            check_earlier_bound(alone, cov, results, 1, scheme, [alone])
    # A first component that was not checked to the end proves nothing.
    again = check_earlier_bound(alone, cov, several.results, 1, found.scheme, [alone])
    assert again is alone


def test_no_bound_is_taken_where_the_theorem_has_no_say():
    cov = bs.Covariance.from_matrix(np.cov(factors(1).T))
    for scheme, k in ((bs.ProjectionDeflation(), 3), (bs.DisjointSupports(), 4)):
        first = bs.solve(cov, 3)
        later = restated(
            bs.solve(scheme.problem(cov, (first,)), k),
            upper_bound=1e3,
            status=bs.Status.FEASIBLE,
        )
        assert with_earlier_bound(later, cov, (first,), scheme) is later
    # Hotelling adds variance where an objective is negative.
    A = -np.eye(3) - 0.1
    scheme = bs.HotellingDeflation()
    first = bs.solve(A, 1)
    assert first.objective < 0
    assert scheme.margin(bs.Covariance.from_matrix(A), (first,), 0, 1) is None


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_orthogonal_components_that_share_all_features(seed):
    """Bases that are only nearly orthonormal: the margin covers what they lose."""
    A = np.cov(factors(seed, d=7).T)
    scheme = bs.Orthogonalised(penalty=1e6)
    found = bs.solve_components(A, 5, 3, scheme=scheme)
    margin = scheme.margin(bs.Covariance.from_matrix(A), found.results[:2], 1, 5)
    if found[1].bound_name == NAME:
        assert margin == 0.0
    else:
        assert 0 < margin < 1e-6 * found[0].objective
    assert all(check.complete for check in found.verify(A))


@pytest.mark.slow
@pytest.mark.data
def test_no_absurd_bound_on_stocks(load):
    """k = 35 of the S&P 500: 1522 was reported, with 13.3 proved for the first."""
    A = load("snp500")
    scheme = bs.Orthogonalised()
    limits = bs.Limits(nodes=1500)
    found = bs.solve_components(A, 35, 2, scheme=scheme, limits=limits, n_jobs=1)
    first, second = found.results
    assert first.upper_bound == pytest.approx(13.30237, rel=1e-5)
    assert second.upper_bound <= first.upper_bound
    cov = bs.Covariance.from_matrix(A)
    absurd = restated(second, upper_bound=1522.0, status=bs.Status.FEASIBLE)
    clipped = with_earlier_bound(absurd, cov, (first,), scheme)
    assert clipped.upper_bound == first.upper_bound
    assert clipped.bound_name == NAME


def test_the_margin_of_a_scheme_is_added():
    """As often as it is asked for: `verify` needs it once, a prover more."""
    cov = bs.Covariance.from_matrix(np.cov(factors(0).T))
    found = bs.solve_components(cov, 3, 2)
    scheme = SimpleNamespace(margin=lambda cov, earlier, i, k: 0.25)
    for margins in (1.0, 4.0):
        bound = earlier._bound(cov, found.results, 0, 3, scheme, margins)
        assert bound == pytest.approx(found[0].upper_bound + 0.25 * margins)
