"""Sums, norms and roots rounded up: never below the exact value.

`verify` compares these with claims without any tolerance. u = eps/2 is the unit
roundoff; inputs are taken to be exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .._validation import FloatArray

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
_LARGEST_HALF = 1e145  # its square is less than half an ulp of the largest number
#: Diagonal entries are raised to at least this, in units, so that nothing overflows.
#: As opt(k) does not fall when A_ii is raised, bounds stay valid.
LOWEST = -1e300


def power_of_two(size: float) -> float:
    """Return the largest power of two that is at most `size`; 1 for 0.

    Dividing by it is exact. (By `frexp`, since log2 would round up just below a power.)
    """
    return math.ldexp(0.5, math.frexp(size)[1]) if size > 0 else 1.0


def frobenius_norm(A: FloatArray) -> float:
    """Return ‖A‖_F of numbers whose squares may overflow or vanish.

    Examples
    --------
    >>> import numpy as np
    >>> frobenius_norm(np.array([3e-200, 4e-200]))
    5e-200
    """
    unit = power_of_two(float(np.abs(A).max(initial=0.0)))
    return unit * float(np.linalg.norm(A / unit))


def power_of_four(size: float) -> float:
    """Return the largest power of four that is at most `size`; 1 for 0.

    To divide by it, or by its square root, is exact.
    """
    return math.ldexp(1.0, (math.frexp(size)[1] - 1) // 2 * 2) if size > 0 else 1.0


def in_units(values: FloatArray, unit: float) -> FloatArray:
    """Return values / unit, for a power of two; the very negative become LOWEST."""
    if unit >= 1:  # nothing can overflow
        scaled = values / unit
    else:
        with np.errstate(over="ignore"):
            scaled = values / unit
    return np.maximum(scaled, LOWEST, out=scaled)


def above_in_units(value: float, unit: float) -> float:
    """Return value / unit, for a power of two, or the next above if digits are lost.

    Examples
    --------
    >>> from blockspca.numerics.rounding import above_in_units
    >>> above_in_units(3.0, 2.0), above_in_units(1e-300, 2.0**1000)
    (1.5, 5e-324)
    """
    scaled = value / unit
    return scaled if scaled * unit >= value else math.nextafter(scaled, math.inf)


def above_from_units(scaled: float, unit: float) -> float:
    """Return scaled · unit, for a power of two, or the next above if digits are lost.

    Examples
    --------
    >>> from blockspca.numerics.rounding import above_from_units
    >>> above_from_units(1.5, 2.0), above_from_units(1e-30, 2.0**-1000)
    (3.0, 5e-324)
    """
    value = scaled * unit
    return value if value / unit >= scaled else math.nextafter(value, math.inf)


def sum_above(values: Iterable[float]) -> float:
    """Return the sum or the next number above it.

    `math.fsum` rounds the exact sum once.
    """
    return math.nextafter(math.fsum(values), math.inf)


def squared(values: FloatArray) -> FloatArray:
    """Return the squares to a relative u, those that underflow as TINY."""
    with np.errstate(over="ignore"):
        squares = values * values
    squares[(squares < TINY) & (values != 0)] = TINY
    return squares


def sums_above(sums: FloatArray, count: int) -> FloatArray:
    """Bound exact sums of `count` squares by the sums of their `squared` values.

    Terms are not negative: each square and each of the count − 1 additions errs by u,
    together by less than (count + 1) eps of the sum.
    """
    return sums * (1 + (count + 2) * EPS)


def norms_above(sums: FloatArray, count: int, error: float) -> FloatArray:
    """Bound sums of `count` squares whose roots were known to ± error.

    By the triangle inequality the norm grows by sqrt(count) · error at most.
    """
    above = sums_above(sums, count)
    if error == 0:
        return above
    root = np.sqrt(above) + math.sqrt(count) * error
    return root**2 * (1 + 8 * EPS)


def _added_by_coupling(
    a: FloatArray | float, coupling: FloatArray | float, b: FloatArray | float
) -> FloatArray:
    """Return g = c² / (h + sqrt(h² + c²)), h = |a − b| / 2, and 0 for c = 0.

    h counts as 1e145 if it is larger, so that h² + c² is in range: g falls with h, so
    that it is then above the exact one. What underflows is TINY.
    """
    half = np.minimum(np.abs(np.asarray(a) - b) / 2, _LARGEST_HALF)
    below = half + np.sqrt(half * half + coupling)
    growth = np.divide(
        coupling, below, out=np.zeros(np.shape(below)), where=np.asarray(below) > 0
    )
    return np.where((growth < TINY) & (np.asarray(coupling) > 0), TINY, growth)


def larger_root(a: FloatArray, coupling: FloatArray, b: float) -> FloatArray:
    """Return the larger eigenvalue of [[a, c], [c, b]] with c² = coupling ≥ 0.

    To a few ulps of the result, or of its distance from a and b. Not a bound, unlike
    `larger_root_above`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.maximum(a, b) + _added_by_coupling(a, coupling, b)


def larger_root_above(
    a: FloatArray | float, coupling: FloatArray | float, b: FloatArray | float
) -> FloatArray:
    """Bound the larger eigenvalue of [[a, c], [c, b]] with c² = coupling ≥ 0.

    It is max(a, b) + g with g = c² / (h + sqrt(h² + c²)), h = |a − b| / 2: in this form
    nothing cancels, however far apart a and b are. Five operations on positive numbers
    give g to 5 eps; the sum errs by u of itself. Of arrays b is finite.
    """
    if np.ndim(b) == 0 and b == math.inf:
        return np.full(np.broadcast(a, coupling).shape, math.inf)
    growth = _added_by_coupling(a, coupling, b)
    return increased(np.maximum(a, b) + growth * (1 + 8 * EPS))


def root_above(a: float, coupling: float, b: float) -> float:
    """Return `larger_root_above` for numbers, without calls of NumPy, `min` or `abs`.

    Searches in plain Python spend most of their time here.
    """
    if b == math.inf:
        return b
    larger, half = (a, (a - b) / 2) if a > b else (b, (b - a) / 2)
    if half > _LARGEST_HALF:
        half = _LARGEST_HALF
    below = half + math.sqrt(half * half + coupling)
    growth = coupling / below if below > 0 else 0.0
    if growth < TINY and coupling > 0:
        growth = TINY
    total = larger + growth * (1 + 8 * EPS)
    return total + EPS * total if total > 0 else total - EPS * total


def rounding_of_forms(
    V: FloatArray, A: FloatArray, entry_error: float, eps: float = EPS
) -> FloatArray:
    """Bound the difference of two evaluations of v_i'Av_j, for rows v_i of V, (m, k).

    Each errs by (2k + 3) u of |v_i|'|A||v_j|. The rest of (8k + 64) eps is for entries
    that were computed in another order from the same data, where the matrix itself is
    given; of data they differ by 2 e at most. Each of k² + k products may underflow.
    """
    sizes, k = np.abs(V), V.shape[1]
    ones = sizes.sum(axis=1)
    rounding = (8 * k + 64) * eps * (sizes @ np.abs(A) @ sizes.T)
    rounding += 2 * (k * k + k) * math.ulp(0.0)
    return np.asarray(rounding + 2 * entry_error * np.outer(ones, ones))


def product_below(a: FloatArray, b: float) -> FloatArray:
    """Bound from below the product of two differences, a ≥ 0 and b ≥ 0.

    Each factor was rounded at most twice, and the product is rounded; 0 if it
    underflows. If it overflows it is infinite, above all numbers it is compared with.
    """
    with np.errstate(over="ignore"):
        product = a * b * (1 - 6 * EPS)
    # What underflows has lost digits; 0 is surely below it.
    lost = (product < TINY) | (np.asarray(a) < TINY) | (b < TINY)
    return np.where(lost, 0.0, product)


def increased(total: FloatArray | float) -> FloatArray:
    """Add eps |total|, more than the rounding of a last addition; inf and 0 stay."""
    total = np.asarray(total)
    return np.where(np.isinf(total), total, total * (1 + EPS * np.sign(total)))
