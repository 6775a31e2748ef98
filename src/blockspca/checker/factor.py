"""The inverse of a small positive definite matrix, exactly, as a sum of squares."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt


def factor(K: list[list[int]]) -> tuple[list[list[int]], list[int]] | None:
    """Return W and s with K⁻¹ = Σ_l W_l W_l'/s_l, or None unless K is definite.

    [K | I] is eliminated without fractions (Bareiss). With K = LDL', row l is then
    d_(l−1) times that of L⁻¹, d_l being the leading minors, and D_l = d_l/d_(l−1); so
    s_l = d_l d_(l−1) = W_l'KW_l. Common divisors are taken out: then the sizes of these
    numbers grow with their number, and not faster. If K are products of vectors, the
    combinations of these by the rows of W are orthogonal, and s are their squares.
    """
    size = len(K)
    rows = [[*row, *(int(i == j) for j in range(size))] for i, row in enumerate(K)]
    found, squares, last = [], [], 1
    for step in range(size):
        row = rows[step]
        pivot = row[step]
        if pivot <= 0:
            return None
        common = gcd(*row[size:])
        found.append([w // common for w in row[size:]])
        squares.append(pivot * last // common**2)
        for i in range(step + 1, size):
            f = rows[i][step]
            rows[i] = [
                (pivot * a - f * b) // last for a, b in zip(rows[i], row, strict=True)
            ]
        last = pivot
    return found, squares


def trace_of_inverse(W: list[list[int]], squares: list[int]) -> Fraction:
    """Return the trace of K⁻¹, which is no less than its largest eigenvalue."""
    return sum(
        (
            Fraction(sum(w * w for w in row), square)
            for row, square in zip(W, squares, strict=True)
        ),
        Fraction(0),
    )


def root_above(value: Fraction) -> Fraction:
    """Return what is at least the root of a number ≥ 0, by at most 2⁻²⁵⁶."""
    return Fraction(isqrt((value.numerator << 512) // value.denominator) + 1, 1 << 256)


def over_root(top: int, square: int) -> float:
    """Return top/√square in float64, within 1.01·2⁻⁵³ of it.

    The root of top²/square is taken with 64 bits or more, and rounded once.
    """
    if top == 0:
        return 0.0
    half = max(0, square.bit_length() - 2 * top.bit_length() + 130) // 2 + 1
    root = isqrt((top * top << 2 * half) // square)
    return float(Fraction(root if top > 0 else -root, 1 << half))
