"""Bounds are accepted from the exact value on, and not an ulp below it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import StepClaim
from blockspca.certify.claims import BoundChecks
from blockspca.limits import Deadline
from blockspca.numerics.rounding import EPS


def checks(A: np.ndarray, k: int, upper: float | None = None) -> BoundChecks:
    cov = bs.Covariance.from_matrix(A)
    made = BoundChecks(cov, k, tuple(range(k)), 10_000, Deadline(60.0))
    if upper is not None:
        made.upper[k - 1] = upper
    return made


def accepted(made: BoundChecks, name: str, k: int, bound: float) -> bool:
    try:
        made.check(StepClaim(k=k, upper_bound=bound, bound_name=name))
    except bs.VerificationError:
        return False
    return not made.unchecked


def indefinite(k: int, delta: float) -> np.ndarray:
    """A_ii = 1, λmax = k + (k − 1) δ, λmin = −δ."""
    return (1 + delta) * np.ones((k, k)) - delta * np.eye(k)


@pytest.mark.parametrize("delta", [1e-12, 1e-10, 1e-9, 9e-8, 1e-3])
@pytest.mark.parametrize("k", [2, 10, 100])
def test_a_sum_of_variances_counts_the_shift_in_full(k, delta):
    A = indefinite(k, delta)
    true = k + (k - 1) * delta
    rounding = 100 * k**3 * EPS
    for claimed in (float(k), true - 0.1 * (k - 1) * delta):
        assert not accepted(checks(A, k), "variances", k, claimed)
    assert accepted(checks(A, k), "variances", k, true + rounding)


def test_a_forged_optimum_by_variances_is_rejected():
    """k = 100: 100 was accepted for what reaches 100.0000089."""
    k, delta = 100, 9e-8
    A = indefinite(k, delta)
    best = np.full(k, 0.1)
    other = np.zeros(k)
    other[:2] = [0.5**0.5, -(0.5**0.5)]
    angle = math.sqrt((k - 1) * delta / (k + k * delta))
    x = math.cos(angle) * best + math.sin(angle) * other
    objective = float(x @ A @ x)
    assert objective == pytest.approx(100, abs=1e-11)
    bound = max(objective, 100.0)
    certificate = bs.Certificate(
        k=k,
        n_features=k,
        support=tuple(range(k)),
        loadings=tuple(x.tolist()),
        objective=objective,
        upper_bound=bound,
        status=bs.Status.OPTIMAL,
        tolerance=0.0,
        steps=(StepClaim(k=k, upper_bound=bound, bound_name="variances"),),
    )
    assert np.linalg.eigvalsh(A)[-1] > 100.0000089
    with pytest.raises(bs.VerificationError, match="variances gives"):
        bs.verify(certificate, A)


@pytest.mark.parametrize("seed", range(10))
def test_row_sums_to_the_ulp(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(9, 9)) * 10.0 ** rng.uniform(-3, 3, size=(9, 9))
    A = A + A.T
    A[8, 8] = -1e12  # loosens nothing
    for k in (2, 4, 9):
        rows = [
            Fraction(A[i, i])
            + sum(sorted(abs(Fraction(v)) for v in np.delete(A[i], i))[-(k - 1) :])
            for i in range(9)
        ]
        exact = max(rows)
        above = float(exact)
        while Fraction(above) < exact:
            above = math.nextafter(above, math.inf)
        below = math.nextafter(above, -math.inf)
        assert Fraction(below) < exact
        assert not accepted(checks(A, k), "row sums", k, below)
        two_up = math.nextafter(math.nextafter(above, math.inf), math.inf)
        assert accepted(checks(A, k), "row sums", k, two_up)


@pytest.mark.parametrize("seed", range(10))
def test_nested_bounds_to_some_ulps(seed):
    """U holds iff (U − A_ii)(U − upper) ≥ r² in every row, in fractions."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(9, 9))
    A = A + A.T
    A[8, 8] = -1e12
    for k in (2, 4, 9):
        upper = float(np.diagonal(A).max() + rng.random())
        low, high = upper, upper + 100.0
        norms = [
            sum(sorted(Fraction(v) ** 2 for v in np.delete(A[i], i))[-(k - 1) :])
            for i in range(9)
        ]

        def holds(bound: float, k: int = k, upper: float = upper, norms=norms) -> bool:
            return all(
                (Fraction(bound) - Fraction(A[i, i]))
                * (Fraction(bound) - Fraction(upper))
                >= norms[i]
                for i in range(9)
            )

        while math.nextafter(low, high) < high:
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        assert not accepted(checks(A, k, upper), "nested 2×2", k, low)
        assert accepted(checks(A, k, upper), "nested 2×2", k, high * (1 + 20 * k * EPS))


@pytest.mark.parametrize("seed", range(40))
def test_screening_never_drops_what_the_exact_inequality_keeps(seed):
    """Rows made so that r² is within ulps of (τ − A_ii)(τ − upper), on both sides."""
    rng = np.random.default_rng(seed)
    d, k = 12, int(rng.integers(2, 7))
    upper = float(rng.uniform(1, 2))
    tau = upper + float(10.0 ** rng.uniform(-9, 1))
    diagonal = rng.uniform(-1, 1, size=d) * upper
    diagonal[0] = -1e9
    rows = rng.normal(size=(d, k - 1))
    room = (tau - diagonal) * (tau - upper)
    rows *= np.sqrt(room / (rows**2).sum(axis=1))[:, None]
    for ulps in range(-6, 7):
        entries = np.abs(rows) * (1 + ulps * EPS / 2)
        made = checks(np.eye(d), k)
        made.__dict__["tops"] = np.sort(entries, axis=1)[:, ::-1]
        made.diagonal = diagonal
        stay = made._may_stay(made._top_norms(k - 1), diagonal, tau, upper)
        for i in range(d):
            exact = sum(Fraction(v) ** 2 for v in entries[i].tolist())
            room_i = (Fraction(tau) - Fraction(diagonal[i])) * (
                Fraction(tau) - Fraction(upper)
            )
            assert stay[i] or exact <= room_i
            # and what fails clearly is dropped
            assert not stay[i] or exact > room_i * (1 - Fraction(100 * k * EPS))


def near_pair(factor: float) -> tuple[np.ndarray, bs.Certificate]:
    """Features 0 and 2 come within `factor` of the τ that 0 and 1 are proved at."""
    tau = 3.0 + 2.0**-31
    c = math.sqrt((tau - 1.0) * (tau - 2.0)) * factor
    A = np.array([[2.0, 1.0, c], [1.0, 2.0, 0.0], [c, 0.0, 1.0]])
    bound = tau + 2.0**-40
    step = StepClaim(
        k=2,
        upper_bound=bound,
        bound_name="proof tree",
        tau=tau,
        upper_previous=2.0,
        survivors=(0, 1),
    )
    first = StepClaim(k=1, upper_bound=2.0, bound_name="variances")
    x = (0.5**0.5, 0.5**0.5)
    certificate = bs.Certificate(
        k=2,
        n_features=3,
        support=(0, 1),
        loadings=x,
        objective=3.0,
        upper_bound=bound,
        status=bs.Status.OPTIMAL,
        tolerance=0.0,
        steps=(first, step),
    )
    return A, certificate


def test_a_feature_within_rounding_of_the_inequality_is_searched():
    for ulps in range(-8, 9):
        A, certificate = near_pair(1 + ulps * EPS / 4)
        assert bs.verify(certificate, A).complete
    for factor in (1 + 1e-12, 1 + 1e-9, 1.1):
        A, certificate = near_pair(factor)
        with pytest.raises(bs.VerificationError, match="not among the survivors"):
            bs.verify(certificate, A)


@pytest.mark.parametrize("seed", range(15))
def test_no_bound_below_the_optimum_is_ever_accepted(seed):
    """Every named bound, claimed at most a hair below the brute-force optimum."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 8))
    A = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-6, 6)
    A = A + A.T if seed % 2 else A @ A.T
    if seed % 3 == 0:
        A[0, 0] -= 1e9 * np.abs(A).max()
    names = ("variances", "row sums", "nested 2×2", "largest eigenvalue")
    for k in range(2, d + 1):
        supports = map(list, itertools.combinations(range(d), k))
        best = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in supports)
        fewer = map(list, itertools.combinations(range(d), k - 1))
        before = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in fewer)
        for share in (1e-12, 1e-10, 1e-3):
            claimed = float(best - share * abs(best))
            for name in (*names, "soft threshold"):
                made = checks(A, k, float(before) - 1e-9 * abs(before))
                if share == 1e-12 and seed % 3 == 0:  # LAPACK's best is that far off
                    continue
                assert not accepted(made, name, k, claimed)
