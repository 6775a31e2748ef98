"""Never below the exact value, which fractions know, and hardly above it."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

from blockspca.numerics.rounding import (
    EPS,
    frobenius_norm,
    larger_root_above,
    norms_above,
    product_below,
    root_above,
    squared,
    sum_above,
    sums_above,
)


def scattered(rng: np.random.Generator, size: int, spread: float) -> np.ndarray:
    return rng.normal(size=size) * 10.0 ** rng.uniform(-spread, spread, size=size)


@pytest.mark.parametrize("spread", [0.0, 3.0, 12.0])
@pytest.mark.parametrize("seed", range(20))
def test_sums(seed, spread):
    values = scattered(np.random.default_rng(seed), 30, spread)
    exact = sum(map(Fraction, values.tolist()))
    above = Fraction(sum_above(values))
    assert exact <= above <= exact + Fraction(2 * EPS) * abs(exact) + Fraction(5e-324)


@pytest.mark.parametrize("spread", [0.0, 5.0, 150.0])
@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_sums_of_squares(count, spread):
    for seed in range(10):
        values = scattered(np.random.default_rng(seed), count, spread) * 1e-10
        exact = sum(Fraction(v) ** 2 for v in values.tolist())
        with np.errstate(over="ignore"):
            sums = np.array([squared(values).sum()])
        if np.isinf(sums[0]):
            continue
        assert Fraction(float(sums_above(sums, count)[0])) >= exact
        error = 1e-3 * float(np.abs(values).max())
        wider = sum((abs(Fraction(v)) + Fraction(error)) ** 2 for v in values.tolist())
        assert Fraction(float(norms_above(sums, count, error)[0])) >= wider


def test_squares_that_underflow_count():
    assert squared(np.array([0.0, 1e-200, 1.0])).tolist() == [0.0, 2.0**-1022, 1.0]


@pytest.mark.parametrize("spread", [0.0, 4.0, 9.0])
@pytest.mark.parametrize("seed", range(30))
def test_larger_roots(seed, spread):
    """r ≥ the larger root iff r ≥ a, r ≥ b and (r − a)(r − b) ≥ c²."""
    a, b, c = scattered(np.random.default_rng(seed), 3, spread)
    coupling = float(abs(c))
    root = float(larger_root_above(np.array([a]), np.array([coupling]), b)[0])
    assert root == root_above(a, coupling, b)
    exact = Fraction(root)
    assert exact >= max(Fraction(a), Fraction(b))
    assert (exact - Fraction(a)) * (exact - Fraction(b)) >= Fraction(coupling)
    # and a little less does not do
    growth = root - max(a, b)
    less = Fraction(root) - Fraction(40 * EPS * (growth + abs(max(a, b))))
    assert less <= max(a, b) or (
        (less - Fraction(a)) * (less - Fraction(b)) < Fraction(coupling)
    )


def test_a_root_far_from_the_other_keeps_its_digits():
    """(a + b)/2 + sqrt(((a − b)/2)² + c²) would err by 1e-7."""
    root = root_above(-1e9, 1.0, 2.0)
    assert 2.0 + 1e-9 <= root <= 2.0 + 1.000002e-9
    assert root_above(0.0, 0.0, 0.0) == 0.0
    assert root_above(1.0, 1.0, np.inf) == np.inf


@pytest.mark.parametrize("seed", range(30))
def test_products_of_differences(seed):
    t, p, *a = scattered(np.random.default_rng(seed), 12, 4.0).tolist()
    t = max(t, p, *a)
    below = product_below(t - np.array(a), t - p)
    for value, product in zip(a, below.tolist(), strict=True):
        exact = (Fraction(t) - Fraction(value)) * (Fraction(t) - Fraction(p))
        assert Fraction(product) <= exact
    assert product_below(np.array([1e-200]), 1e-200).tolist() == [0.0]


@pytest.mark.parametrize("far", [1e145, 1e150, 1e154, 1e160, 1e300])
@pytest.mark.parametrize("coupling", [1e-300, 1.0, 1e250, 1.7e308, sys.float_info.max])
def test_the_larger_root_of_what_is_far_apart_is_not_lost(far, coupling):
    """h² is out of range from 1.3e154 on; what c² adds was lost there."""
    a, b, c2 = Fraction(0), -Fraction(far), Fraction(coupling)
    for root in (
        float(larger_root_above(0.0, coupling, -far)),
        root_above(0.0, coupling, -far),
    ):
        above = Fraction(root)
        # above ≥ the larger root: the characteristic polynomial is not negative there
        assert above >= a
        assert (above - a) * (above - b) >= c2


@pytest.mark.parametrize("exponent", [-1000, -540, 0, 530, 1000])
def test_frobenius_norms_have_no_scale(exponent: int) -> None:
    A = np.random.default_rng(3).normal(size=(4, 5))
    unit = 2.0**exponent
    assert frobenius_norm(unit * A) == unit * frobenius_norm(A)
    assert frobenius_norm(A) == pytest.approx(np.linalg.norm(A), rel=1e-15)
    assert frobenius_norm(np.zeros((2, 2))) == 0.0
