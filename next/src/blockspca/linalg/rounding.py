"""Bounds on rounding in float64: sums, products and norms from above.

u = 2⁻⁵³ is the unit roundoff, γ_n = n u / (1 − n u). A sum of n products, in any order
and with or without fused operations, errs by at most γ_n Σ |a_i b_i| (Higham 2002, §3).
Numbers lie between 2⁻⁴⁰⁰ and 2⁴⁰⁰ or are 0, so nothing overflows or underflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ..validation import FloatArray

EPS = 2.0**-52
UNIT = 2.0**-53


def gamma(n: int) -> float:
    """Return γ_n, rounded up.

    Examples
    --------
    >>> from blockspca.linalg.rounding import UNIT, gamma
    >>> gamma(1000) >= 1000 * UNIT / (1 - 1000 * UNIT)
    True
    """
    if n * UNIT >= 0.5:
        return math.inf
    return n * UNIT / (1 - n * UNIT) * (1 + 4 * EPS)


def above(value: float, operations: int = 1) -> float:
    """Raise a number by the rounding of that many operations, each at most u."""
    return math.nextafter(value + abs(value) * gamma(operations), math.inf)


def sum_above(values: Iterable[float]) -> float:
    """Return the sum, rounded up; `math.fsum` rounds the exact sum once."""
    return math.nextafter(math.fsum(values), math.inf)


def norm_above(values: FloatArray) -> float:
    """Return the Euclidean norm of all numbers, rounded up."""
    flat = np.ravel(values)
    square = float(np.dot(flat, flat))
    return above(math.sqrt(above(square, flat.size + 1)), 2)
