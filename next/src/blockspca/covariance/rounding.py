"""Bounds on the rounding errors of covariances that are computed from data.

u is the unit roundoff. The data are the numbers as float64, sample s counts w_s times,
n = Σ w_s, r_s = √w_s, and A is the covariance in exact arithmetic. D_j = 1/(scale_j
√(n − ddof)). The largest A_jj is at least 2⁻²⁰⁰ (1 with scales), so that all that
underflows, at most a few τ = 2⁻¹⁰⁷⁴ for each of n terms, is below a millionth of
u max A_jj for n < 2⁶⁰⁰. Each bound below counts first-order terms in units of u and is
stated in units of EPS = 2u; the other half has room for terms of second order.

**Centring twice.** Let m be any number near the mean of a column x, c₀ = fl(x − m),
m₂ = fl(Σ w c₀ / n), c = fl(c₀ − m₂), and z = x − μ the exact deviations. Then
c = z + δ1 + e with

    ‖r e‖ ≤ u ‖r (x − m)‖ + u ‖r (c₀ − m₂)‖    the two subtractions,
    √n |δ| ≤ (t + 5) u ‖r c₀‖                  the sum and the quotient in m₂,

t being the roundings that join the sums of blocks; the sum in a block is compensated
(`_kernels/moments.py`) and takes three. As Σ w z = 0,

    Σ w c_i c_j − Σ w z_i z_j = n δ_i δ_j + Σ w (e_i z_j + z_i e_j) + …:

an error of the mean counts by its square only. How large the mean is beside the
deviation does not matter as long as m is right to about one deviation; if it is not,
‖r c₀‖² says so. Where n m₂² D² ≤ EPS max A_jj in all columns, m₂ is not subtracted.
"""

from __future__ import annotations

import math

from ..linalg.rounding import EPS


def additions(terms: int, block: int) -> int:
    """Return the roundings of a sum in blocks: it errs by as many u.

    Examples
    --------
    >>> additions(1_000_000, 1000), additions(100, 1000)
    (2000, 101)
    """
    return min(terms, block) + -(-terms // block)


def centred_error(
    products: int, joins: int, largest: float, uncentred: float, scale: bool
) -> float:
    """Bound |fl(c_i'c_j) − A_ij| for columns that are centred, then scaled.

    Notes
    -----
    L = `largest` is max A_jj and U = `uncentred` is max ‖r c₀ D‖². In units of u, by
    Cauchy–Schwarz: p for a sum of p products; 2 (√U + √L) √L for e; 6 L for D (root,
    product, quotient, in two columns); 2 L for the product with D; 4 L for r and the
    product with it; L for an m₂ that is not subtracted. With `scale` a variance is a
    compensated sum of squares, (t + 14) u U in all, and half of this counts for each
    of two columns, with 4 L for roots and quotients.
    """
    error = (products + 21) * largest + 2 * math.sqrt(uncentred * largest)
    return EPS * (error + (joins + 14) * uncentred * scale)


def moment_error(products: int, joins: int, moments: float) -> float:
    """Bound the error of D_i D_j (x_i'x_j − n μ_i μ_j), with moments = max ‖r x_j D‖².

    Notes
    -----
    In units of u · moments: p for the products and 4 for r; 2 (t + 5) for two means,
    each off by (t + 5) u mean |x|, as √n mean |x| ≤ ‖r x‖; 3 for n μ_i μ_j and the
    difference; 8 for D; with scales t + 18 as above. Below p + 3t + 45.
    """
    return EPS * (products + 3 * joins + 45) * moments


def factor_error(joins: int, total: float) -> float:
    """Bound ‖E‖ for columns C = Z + E, Z the exact factor of A, centred twice.

    A column of E is at most 2u ‖r c₀ D‖ by centring, (t + 5) u by the shift δ, 8u by r
    and D, and (t + 16)/2 u by a standard deviation; `total` is Σ ‖r c₀ D‖², or
    Σ ‖r x D‖² where μ is subtracted at once.
    """
    return EPS * (joins + 18) * math.sqrt(total)
