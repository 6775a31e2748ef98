"""The plain search: exact thresholds within ulps, features that cannot matter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blockspca.constraint_rules import GroupLimits
from blockspca.search import reference
from blockspca.search.reference import (
    NodeCapReached,
    Refuted,
    Undecided,
    prove_none_above,
    search_rounding,
    suffix_bounds,
)
from conftest import brute_force
from strategies import symmetric_matrix

NONE_KNOWN = np.full(40, np.inf)


def proves(A: np.ndarray, k: int, tau: float, upper: np.ndarray = NONE_KNOWN) -> bool:
    try:
        prove_none_above(A, k, tau, upper[:k], 10**6)
    except (Refuted, Undecided):
        return False
    return True


def moved(value: float, ulps: int) -> float:
    for _ in range(abs(ulps)):
        value = np.nextafter(value, np.inf if ulps > 0 else -np.inf)
    return float(value)


@pytest.mark.parametrize("k", [2, 3, 4, 7, 12])
@pytest.mark.parametrize("off", [1.0, 0.25, 3.0])
def test_an_exactly_known_optimum_is_never_undercut(k, off):
    """k features with A_ii = 1 and A_ij = off reach 1 + (k − 1) off, a float."""
    rng = np.random.default_rng(k)
    n = k + 4
    A = np.zeros((n, n))
    best = rng.permutation(n)[:k]
    A[np.ix_(best, best)] = off
    np.fill_diagonal(A, 1.0)
    exact = 1 + (k - 1) * off
    upper = np.array([np.inf, *(1 + np.arange(k - 1) * off)])
    for known in (NONE_KNOWN, upper):
        for ulps in range(1, 40):
            assert not proves(A, k, moved(exact, -ulps), known)
        assert proves(A, k, exact * (1 + 1e-12), known)
        with pytest.raises(Refuted):
            prove_none_above(A, k, exact * (1 - 1e-12), known[:k], 10**6)


@pytest.mark.parametrize("seed", range(40))
def test_a_bound_below_the_optimum_is_never_proved(seed):
    """At thresholds from far below the optimum up to one ulp below it."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 8))
    A = rng.normal(size=(d, d))
    A = A + A.T + np.diag(10.0 ** rng.uniform(-3, 2, size=d)) * (seed % 2)
    optima = [brute_force(A, k) for k in range(1, d + 1)]
    for k in range(2, d + 1):
        upper = np.array([np.inf, *optima[: k - 1]]) * (1 + 1e-14)
        # LAPACK's optimum is exact to some ulps of its own
        top = optima[k - 1] - 20 * np.spacing(np.abs(A).max() * k)
        for share in (0.0, 1e-15, 1e-13, 1e-10, 1e-6, 1e-2):
            assert not proves(A, k, top - share * abs(top), upper)


def test_a_set_whose_parents_are_within_an_ulp():
    """A matrix that made another search lose the best set."""
    A = np.zeros((8, 8))
    A[0, 1] = 0.4999999999999965
    A[0, 2] = A[1, 2] = 0.78
    A[0, 3] = A[1, 4] = np.sqrt(0.78**2 - 0.24)
    A[5, 6] = 0.96872318
    A += A.T
    upper = np.array([np.inf, 0.0, brute_force(A, 2) * (1 + 1e-15)])
    for tau in (1.0, 1.2, 1.38):
        with pytest.raises(Refuted):
            prove_none_above(A, 3, tau, upper, 10**6)
    assert proves(A, 3, 1.39, upper)


def test_a_diagonal_that_cannot_matter_costs_no_precision():
    rng = np.random.default_rng(0)
    A = np.cov(rng.normal(size=(20, 9)).T)
    A[4, 4] = -1e9
    assert search_rounding(A, 4, 5.0) < 1e-12
    best = brute_force(np.delete(np.delete(A, 4, 0), 4, 1), 4)
    assert proves(A, 4, best * (1 + 1e-10))
    assert not proves(A, 4, best * (1 - 1e-13))


@pytest.mark.parametrize("seed", range(60))
def test_what_elimination_rounds_is_below_the_allowance(seed):
    """Schur complements in floating point against eigenvalues: λ(S) ≤ τ + δ."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    A = rng.normal(size=(k, k)) * 10.0 ** rng.uniform(-2, 2)
    A = A + A.T - np.diag(10.0 ** rng.uniform(-8, 8, size=k)) * (seed % 3 == 0)
    exact = float(np.linalg.eigvalsh(A.astype(np.float64))[-1])
    error = 4 * k * np.spacing(np.linalg.norm(A, 2))
    for ulps in itertools.chain(range(0, 30, 3), (100, 1000)):
        tau = moved(exact, -ulps) - error
        assert not proves(A, k, tau)


def test_a_pivot_of_zero_is_not_a_proof():
    A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert not proves(A, 2, 1.0)
    assert proves(A, 2, 1.0 + 1e-12)
    with pytest.raises(Undecided):
        prove_none_above(A, 2, 1.0, NONE_KNOWN[:2], 10**6)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "duplicated"])
def test_plain_proof_decides_like_brute_force(kind):
    rng = np.random.default_rng(4)
    for _ in range(40):
        d = int(rng.integers(2, 9))
        A = symmetric_matrix(kind, d, rng)
        optima = [brute_force(A, k) for k in range(1, d + 1)]
        for k in range(2, d + 1):
            upper = np.array([np.inf, *optima[: k - 1]]) + 1e-12
            above = optima[k - 1] + 1e-6 * (1 + abs(optima[k - 1]))
            assert prove_none_above(A, k, above, upper, 10**6) >= 1
            below = optima[k - 1] - 1e-6 * (1 + abs(optima[k - 1]))
            if below > optima[k - 2]:
                with pytest.raises(Refuted):
                    prove_none_above(A, k, below, upper, 10**6)
            with pytest.raises(NodeCapReached):
                prove_none_above(A, k, above, upper, 0)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "duplicated"])
def test_suffix_bounds_are_no_less_than_the_best_set(kind):
    rng = np.random.default_rng(7)
    for _ in range(30):
        n = int(rng.integers(2, 8))
        B = symmetric_matrix(kind, n, rng)
        for m in range(2, n + 1):
            first, rest = suffix_bounds(B, m, np.full(m + 1, np.inf))
            for t in range(n - m + 1):
                later = B[t + 1 :, t + 1 :]
                with_t = max(
                    np.linalg.eigvalsh(B[np.ix_((t, *S), (t, *S))])[-1]
                    for S in itertools.combinations(range(t + 1, n), m - 1)
                )
                assert first[t] >= with_t - 1e-12 * (1 + abs(with_t))
                best = brute_force(later, m - 1)
                assert rest[t] >= best - 1e-12 * (1 + abs(best))


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "duplicated"])
def test_the_other_order_decides_like_brute_force(kind, monkeypatch):
    """It takes over at the first node, and has to close all of them by itself."""
    monkeypatch.setattr(reference, "LONG", 1)
    monkeypatch.setattr(reference, "MUCH_BETTER", 10**6)
    rng = np.random.default_rng(5)
    for _ in range(30):
        d = int(rng.integers(3, 9))
        A = symmetric_matrix(kind, d, rng)
        for k in range(2, d + 1):
            best = brute_force(A, k)
            scale = 1 + abs(best)
            assert proves(A, k, best + 1e-6 * scale)
            for below in (1e-6, 1e-12):
                assert not proves(A, k, best - below * scale)


@pytest.mark.parametrize("k", [2, 3, 4, 7, 12])
def test_the_other_order_never_undercuts_by_ulps(k, monkeypatch):
    """The optimum 1 + (k − 1)/4 is a float, and no τ just below it is proved."""
    monkeypatch.setattr(reference, "LONG", 1)
    monkeypatch.setattr(reference, "MUCH_BETTER", 10**6)
    A = np.zeros((k + 4, k + 4))
    best = np.random.default_rng(k).permutation(k + 4)[:k]
    A[np.ix_(best, best)] = 0.25
    np.fill_diagonal(A, 1.0)
    exact = 1 + (k - 1) / 4
    for ulps in range(1, 40):
        assert not proves(A, k, moved(exact, -ulps))
    assert proves(A, k, exact * (1 + 1e-12))


def test_what_is_long_in_one_order_is_proved_in_the_other(monkeypatch):
    """With room for two nodes the first order does not end, with a rival it does."""
    rng = np.random.default_rng(11)
    A = symmetric_matrix("psd", 9, rng)
    k, above = 4, brute_force(A, 4) * (1 + 1e-6)
    whole = prove_none_above(A, k, above, NONE_KNOWN[:k], 10**6)
    assert whole > 2
    with pytest.raises(NodeCapReached):
        prove_none_above(A, k, above, NONE_KNOWN[:k], 2)
    monkeypatch.setattr(reference, "LONG", 2)
    monkeypatch.setattr(reference, "MUCH_BETTER", 10**6)
    assert prove_none_above(A, k, above, NONE_KNOWN[:k], 2) > 2


def restricted_best(A, k, included, groups):
    """The largest eigenvalue of a k-set with all of some, at most so many of groups."""
    return max(
        np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
        for S in itertools.combinations(range(len(A)), k)
        if set(included) <= set(S) and groups.allows(np.array(S))
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [4, 10])
def test_only_sets_with_what_is_included_count(seed, k):
    """Between their optimum and that of all sets a bound is proved for them alone."""
    rng = np.random.default_rng([seed, k])
    n = k + 3
    A = rng.normal(size=(n, n))
    A = A + A.T
    groups = GroupLimits(np.arange(n) % 2, np.array([k, k]))
    included = np.sort(rng.permutation(n)[:2])
    best = restricted_best(A, k, included, groups)

    def proved(tau):
        upper = np.full(k, np.inf)
        try:
            prove_none_above(A, k, tau, upper, 10**6, None, groups, included)
        except (Refuted, Undecided):
            return False
        return True

    size = 1e-9 * np.abs(A).max()
    assert proved(best + size)
    assert not proved(best - size)


@pytest.mark.parametrize("own", [1.0, 1.5])
def test_a_set_that_does_not_count_refutes_nothing(own):
    """Feature 2 is above τ = 1, but not to be had together with feature 0."""
    A = np.diag([own, 0.5, 3.0])
    groups = GroupLimits(np.array([0, 1, 0]), np.array([1, 1]))
    with pytest.raises(Undecided if own == 1 else Refuted):
        prove_none_above(A, 2, 1.0, NONE_KNOWN[:2], 10, None, groups, np.array([0]))


def test_no_set_counts_where_groups_leave_no_room():
    A = np.diag([2.0, 0.5, 3.0])
    groups = GroupLimits(np.array([0, 0, 0]), np.array([1]))
    included = np.array([0])
    assert prove_none_above(A, 2, 1.0, NONE_KNOWN[:2], 10, None, groups, included)
