"""Bounds on the rounding errors of covariances that are computed from data.

Throughout, u = eps/2 is the unit roundoff and τ = 2⁻¹⁰⁷⁴ the smallest number above
zero. A sum, difference, product, quotient or root is exact but for a factor 1 + θ with
|θ| ≤ u; products and quotients also for an amount of at most τ/2, where they underflow.
The data are the numbers as float64; A is their covariance in exact arithmetic.

**Centring twice.** Let m be any number near the mean of a column x of n samples,
c₀ = fl(x − m), m₂ = fl(mean c₀), c = fl(c₀ − m₂), and z = x − μ the exact deviations.
Then c = z + δ1 + e with

    ‖e‖ ≤ u ‖x − m‖ + u ‖c₀ − m₂‖    the two subtractions,
    √n |δ| ≤ (n + 1) u ‖c₀‖          the sum and the quotient in m₂,

because the mean of the first rounding errors goes into m₂ too. As z'1 = 0,

    c_i'c_j − z_i'z_j = n δ_i δ_j + e_i'z_j + z_i'e_j + δ_j e_i'1 + δ_i e_j'1 + e_i'e_j:

an error of the mean counts by its square only. How large the mean is beside the
deviation does not matter as long as m is right to about one deviation; if it is not,
‖c₀‖² = ‖c‖² + n m₂² says so.
"""

from __future__ import annotations

import math

import numpy as np

from .._validation import FloatArray
from ..numerics.rounding import EPS

UNIT_ROUNDOFF = EPS / 2
SMALLEST = 2.0**-1074  # τ
NORMAL = float(np.finfo(np.float64).tiny)

# The largest variance of data must reach this, so that eps times it is a normal number
# and what underflows is small beside it.
SMALLEST_VARIANCE = NORMAL / EPS

# A variance out of this range may have lost digits to underflow or overflow.
SAFE_LOW, SAFE_HIGH = 2.0**-800, 2.0**800


#: Terms in a block of `column_sums`.
BLOCK = 32


def additions(terms: int, block: int) -> int:
    """Return how many roundings a sum in blocks takes: it errs by so many u.

    Examples
    --------
    >>> from blockspca.covariance.rounding import additions
    >>> additions(1_000_000, 1000), additions(100, 1000)
    (2000, 101)
    """
    return min(terms, block) + -(-terms // block)


def additions_by_levels(terms: int) -> int:
    """Return the same for a sum of blocks of blocks of blocks …, as `column_sums` does.

    Examples
    --------
    >>> from blockspca.covariance.rounding import additions_by_levels
    >>> additions_by_levels(1_000_000), additions_by_levels(20)
    (127, 20)
    """
    count = 0
    while terms > 1:
        count += min(terms, BLOCK)
        terms = -(-terms // BLOCK)
    return max(count, 1)


def column_sums(values: FloatArray, starts: np.ndarray) -> FloatArray:
    """Sums of stretches of values, in blocks of blocks (`additions_by_levels`).

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance.rounding import column_sums
    >>> column_sums(np.ones(100), np.array([0, 70, 70, 100]))
    array([70.,  0., 30.])
    """
    lengths = np.diff(starts)
    while len(values) and lengths.max() > 1:
        blocks = -(-lengths // BLOCK)
        first = np.repeat(starts[:-1], blocks)
        behind = np.cumsum(blocks)
        place = np.arange(len(first)) - np.repeat(behind - blocks, blocks)
        values = np.add.reduceat(values, first + BLOCK * place)
        lengths, starts = blocks, np.concatenate([[0], behind])
    sums = np.zeros(len(lengths))
    sums[lengths > 0] = values
    return sums


def factored_error(
    n: int,
    largest: float,
    uncentred: float,
    summed: int,
    *,
    products: int,
    squares: int,
) -> float:
    """Bound |fl(c_i'c_j) − A_ij| for columns centred twice, then scaled.

    Parameters
    ----------
    n : int
        Samples.
    largest : float
        max A_jj as computed.
    uncentred : float
        max of A_jj + n (D m₂)², the same before the second centring (‖D c₀‖²).
    summed : int
        How many numbers were added up for a mean, one after the other, times the factor
        by which ‖c₀‖ has to be enlarged to bound them.
    products, squares : int
        Roundings of a sum of n products, and of the n squares that a standard deviation
        is computed from (`additions`); n holds for any order.

    Notes
    -----
    By the module's formula, Cauchy–Schwarz and L = `largest`, U = `uncentred`, each in
    the unit of A, in units of u, p = `products` and s = `squares`:

    - e_i'z_j + z_i'e_j and smaller terms: 2 (√U + √L) √L;
    - dividing by √(n − ddof): root, reciprocal and product, 3 for each column: 6 L;
    - the sum of n products: p L;
    - with `scale`, standard deviations are computed from such a sum, and err by half of
      all this each, plus a root and a quotient: as much again with s, plus 4 L.

    Together at most (p + s + 24) L + 4 √(UL) units, doubled squares of δ, and terms of
    second order, for which 1.01 (p + s) are counted. What underflows adds τ/2 for each
    of n products, and τ/2 for each entry of C, of norm √n τ/2, against ‖c_j‖ ≤ √L.
    """
    sums = products + squares
    summing = (1.01 * sums / 2 + 12) * EPS * largest
    centring = 2 * EPS * math.sqrt(uncentred) * math.sqrt(largest)
    shifts = 2 * ((summed + 3) * UNIT_ROUNDOFF) ** 2 * uncentred
    underflow = SMALLEST * (n + 4) * (2 + math.sqrt(largest))
    return summing + centring + shifts + underflow


def moment_error(
    n: int,
    moments: float,
    factor: float = 1.0,
    *,
    products: int | None = None,
    sums: int | None = None,
) -> float:
    """Bound the error of D_i D_j (x_i'x_j − n μ_i μ_j), moments = max ‖D x_j‖².

    Notes
    -----
    With p = `products` roundings in a sum of products, s = `sums` in one of values or
    squares of a column, both n by default, and in units of u · moments: p + 1 for the
    sum of products; 2 (s + 2) for the two means, each off by (s + 1) u mean|x| at most,
    and √n mean|x| ≤ ‖x‖; 6 for the products with D; with `scale` s + 4 again, because
    variances are sums of squares. That is below p + 3s + 16 in units of eps = 2u, with
    room for terms of second order.

    What underflows: τ/2 for each of n products times D² ≤ `factor`²; the same for the
    mean, against √n ‖x‖; and the result.
    """
    p, s = n if products is None else products, n if sums is None else sums
    underflow = (n + 4) * factor * (factor + math.sqrt(moments)) + 2
    return (p + 3 * s + 16) * EPS * moments + SMALLEST * underflow


def factor_norm_error(n: int, total: float) -> float:
    """Bound ‖E‖ for stored columns C = Z + 1δ' + E, Z the exact factor of A.

    The shift 1δ' is left out because it only adds: Z'1 = 0, so that (Z + 1δ')'(Z + 1δ')
    = Z'Z + n δδ', and an upper bound on eigenvalues of the one bounds those of the
    other. A column of E is at most u (‖c₀‖ + ‖c‖) by centring, 3u ‖c‖ by the divisor,
    and (n/2 + 8) u ‖c‖ by a standard deviation; `total` is Σ ‖c₀‖².
    """
    return (n / 4 + 8) * EPS * math.sqrt(total) + SMALLEST * n


def split_mean(start: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return hi, lo with hi + lo = start + offset exactly, hi the rounded sum.

    Knuth's TwoSum. Subtracting hi and then lo is centring twice.
    """
    high = start + offset
    part = high - start
    return high, (start - (high - part)) + (offset - part)


def out_of_range(variance: FloatArray) -> np.ndarray:
    """Tell which variances have lost digits to underflow or overflow; NaN has."""
    return ~((variance > SAFE_LOW) & (variance < SAFE_HIGH))


def in_units(values: FloatArray, units: np.ndarray | None) -> FloatArray:
    """Return columns divided by 2^units, exactly."""
    return values if units is None else np.ldexp(values, -units)


def column_exponents(largest: FloatArray) -> np.ndarray:
    """Return e with 2^(e−1) ≤ largest < 2^e, 0 for 0: x · 2^−e is exact and near 1."""
    return np.frexp(largest)[1]
