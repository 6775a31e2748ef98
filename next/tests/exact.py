"""Covariances in exact arithmetic, and columns that are hard for floats."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np


def root(value):
    """A square root to 200 bits."""
    p = 2**400
    return Fraction(isqrt(int(value * p)), 2**200)


def exact_covariance(X, *, center=True, scale=False, ddof=1, weights=None):
    """A in fractions; entries of pairs from the samples that have both (NaN)."""
    n, d = X.shape
    w = [1] * n if weights is None else [int(v) for v in weights]
    data = [[None if np.isnan(v) else Fraction(float(v)) for v in x] for x in X.T]

    def entry(i, j):
        rows = [
            (w[s], data[i][s], data[j][s])
            for s in range(n)
            if data[i][s] is not None and data[j][s] is not None
        ]
        m = sum(row[0] for row in rows)
        total = sum(c * a * b for c, a, b in rows)
        if center:
            total -= sum(c * a for c, a, _ in rows) * sum(c * b for c, _, b in rows) / m
        return total / (m - ddof)

    A = [[entry(i, j) for j in range(d)] for i in range(d)]
    if scale:
        s = [root(A[j][j]) for j in range(d)]
        A = [
            [
                A[i][j] / (s[i] * s[j]) if s[i] and s[j] else Fraction(0)
                for j in range(d)
            ]
            for i in range(d)
        ]
    return A


def worst_error(computed, exact):
    """The largest |computed − exact| of an entry."""
    return max(
        abs(Fraction(float(computed[i, j])) - exact[i][j])
        for i in range(len(exact))
        for j in range(len(exact))
    )


def hard_columns(rng, n):
    """Samples of columns with large means, few digits, zeros, and constants."""
    columns = [
        rng.normal(size=n),
        1e8 + rng.normal(size=n),
        1e16 + 2.0 * rng.integers(0, 3, size=n),
        rng.normal(size=n) * (rng.random(n) < 0.4),
        np.full(n, 0.1),
        np.zeros(n),
        rng.integers(0, 2, size=n).astype(float),
    ]
    return np.column_stack(columns)
