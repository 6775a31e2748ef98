"""Covariances in exact arithmetic, by fractions, and data that are hard to round."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import isqrt

import numpy as np


def root(q: Fraction) -> Fraction:
    """The square root of q, to more than 60 decimal digits."""
    shift = 1 << 2 * (200 + max(0, -_exponent(q) // 2 + 1))
    return Fraction(isqrt(q.numerator * shift // q.denominator), isqrt(shift))


def _exponent(q: Fraction) -> int:
    if q == 0:
        return 0
    return q.numerator.bit_length() - q.denominator.bit_length()


def exact_covariance(X, *, center=True, scale=False, ddof=1):
    """A, as fractions; entries of pairs from the samples that have both (NaN)."""
    n, d = X.shape
    data = [
        [None if np.isnan(v) else Fraction(float(v)) for v in X[:, j]] for j in range(d)
    ]

    def entry(i, j):
        pairs = [
            (data[i][s], data[j][s])
            for s in range(n)
            if data[i][s] is not None and data[j][s] is not None
        ]
        m = len(pairs)
        total = sum(a * b for a, b in pairs)
        if center:
            total -= sum(a for a, _ in pairs) * sum(b for _, b in pairs) / m
        return total / (m - ddof)

    A = [[entry(i, j) for j in range(d)] for i in range(d)]
    if scale:
        deviation = [root(A[j][j]) for j in range(d)]
        for i in range(d):
            for j in range(d):
                both = deviation[i] * deviation[j]
                A[i][j] = A[i][j] / both if both else Fraction(0)
    return A


def worst_error(computed, exact) -> Fraction:
    """max |computed − exact|, exactly."""
    return max(
        abs(Fraction(float(value)) - e)
        for row, expected in zip(computed, exact, strict=True)
        for value, e in zip(row, expected, strict=True)
    )


def exact_optimum(A, k: int) -> tuple[float, int]:
    """max x'Ax over k-sparse unit x as (value, e): the optimum is value · 2^e.

    A are fractions; all are divided by 2^e before they become floats.
    """
    e = max(_exponent(v) for row in A for v in row)
    unit = Fraction(2) ** e
    B = np.array([[float(v / unit) for v in row] for row in A])
    return max(
        float(np.linalg.eigvalsh(B[np.ix_(s, s)])[-1])
        for s in combinations(range(len(B)), k)
    ), e


def hard_columns(rng: np.random.Generator, n: int):
    """Name → column: large means, outliers, cancelling sums, last bits."""
    z = rng.standard_normal(n)
    step = rng.integers(-3, 4, n).astype(float)
    outlier = z.copy()
    outlier[0] = 1e9
    ends = z * 1e-9
    ends[:2] = 1e9, -1e9
    return {
        "plain": z,
        "mean 1e6": 1e6 + z,
        "mean 1e12": 1e12 + z,
        "mean -1e15": -1e15 + z,
        "mean 1e16, last bits": 1e16 * (1 + step * 2.0**-52),
        "mean 1e300 / 1e300": (1e15 + step) / 3,
        "outlier first": outlier,
        "outlier last": outlier[::-1].copy(),
        "cancelling": ends,
        "two values": np.where(np.arange(n) % 3 == 0, 0.1, 0.3),
        "nearly constant": np.where(np.arange(n) == n // 2, 1 + 2.0**-52, 1.0),
        "integers": np.round(5 * z),
        "counts": np.maximum(0, np.round(3 * z)),
        "spread": z * 10.0 ** rng.integers(-30, 30, n),
    }
