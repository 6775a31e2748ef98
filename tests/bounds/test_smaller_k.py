"""Bounds on opt(k) from opt(m): brute force, equality, rounding, use and check."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.bounds.smaller_k import bound_from_smaller_k


@pytest.mark.parametrize("family", sorted(zoo.FAMILIES))
@pytest.mark.parametrize("seed", range(6))
def test_brute_force(family: str, seed: int) -> None:
    """With every m alone, and with all of them."""
    A = zoo.FAMILIES[family](7, np.random.default_rng(seed))
    d = len(A)
    reached = [-np.inf, *(float(zoo.Reference(A).reached[k]) for k in range(1, d + 1))]
    lowest = float(np.diagonal(A).min())
    is_psd = bool(np.linalg.eigvalsh(A)[0] >= 0)
    above = [value + 1e-14 * abs(value) for value in reached]
    for k in range(2, d + 1):
        least = bound_from_smaller_k(k, above, lowest, is_psd=is_psd)
        assert least >= reached[k]
        alone = []
        for m in range(1, k):
            only = np.full(d + 1, np.inf)
            only[m] = above[m]
            alone.append(bound_from_smaller_k(k, only, lowest, is_psd=is_psd))
        assert min(alone) == least
    assert bound_from_smaller_k(1, above, lowest, is_psd=is_psd) == np.inf


def test_a_matrix_of_ones_and_one_sample_are_met_with_equality() -> None:
    for k in range(2, 40):
        upper = [-np.inf, *map(float, range(1, k))]  # opt(m) = m
        for is_psd in (False, True):
            least = bound_from_smaller_k(k, upper, 1.0, is_psd=is_psd)
            known = is_psd or k > 2  # of m = 1 only (b) says something
            assert least == (pytest.approx(k, rel=1e-13) if known else np.inf)


@pytest.mark.parametrize("size", [1e-290, 1.0, 1e290])
def test_rounding_never_lowers_it(size: float) -> None:
    """Against exact fractions, with cancellation between u and the diagonal."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        k = int(rng.integers(3, 500))
        m = int(rng.integers(2, k))
        lowest = float(rng.normal()) * size * 10.0 ** int(rng.integers(-3, 3))
        u = lowest + abs(float(rng.normal())) * size * 10.0 ** int(rng.integers(-17, 2))
        upper = np.full(k, np.inf)
        upper[m] = u
        ratio = Fraction(k - 1, m - 1)
        exact = Fraction(lowest) + ratio * (Fraction(u) - Fraction(lowest))
        assert Fraction(bound_from_smaller_k(k, upper, lowest, is_psd=False)) >= exact
        if u >= 0:
            exact = min(exact, Fraction(k, m) * Fraction(u))
            found = bound_from_smaller_k(k, upper, lowest, is_psd=True)
            assert Fraction(found) >= exact


def stopped_path() -> tuple[bs.Covariance, bs.SparsityPath]:
    """Correlations of few samples, of which a few nodes prove only small k."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 60)) + 1.5 * rng.standard_normal((30, 1))
    cov = bs.Covariance.from_data(X, scale=True)
    return cov, bs.solve_path(cov, 25, limits=bs.Limits(nodes=150))


def test_a_path_that_was_stopped_bounds_what_it_did_not_reach() -> None:
    cov, path = stopped_path()
    by_smaller = [k for k, r in path.items() if r.bound_name == BoundName.SMALLER_K]
    assert by_smaller
    for k in by_smaller:
        assert path[k].upper_bound < k  # the trace
        assert bs.verify(path[k], cov).upper_bound == path[k].upper_bound


def test_a_claim_below_what_smaller_k_entail_is_refused() -> None:
    cov, path = stopped_path()
    k = max(k for k, r in path.items() if r.bound_name == BoundName.SMALLER_K)
    certificate = path[k].certificate
    assert certificate is not None
    less = certificate.upper_bound * (1 - 1e-13)
    steps = (
        *certificate.steps[:-1],
        replace(certificate.steps[-1], upper_bound=less),
    )
    forged = replace(certificate, upper_bound=less, steps=steps)
    with pytest.raises(bs.VerificationError, match=f"k = {k}: no bound of a smaller k"):
        bs.verify(forged, cov)
