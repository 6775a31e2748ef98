"""The columns of the data in exact integers.

A_ij = g_i'g_j / (denominator · 2^two_bits). Without `scale` this is exact: the g_i are
the columns times 2^fraction_bits, and times n if they are centred, n Y_si − Σ_s Y_si.
With `scale` the columns are not rational, and are rounded:

    w_i = (Y_i − μ_i)/σ_i, of norm √N, N = n − ddof;  g_i = 2⁹⁶ w_i, rounded towards 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from operator import mul

import numpy as np

from .problem import Problem

SCALED_BITS = 96


class ExactColumns:
    """The columns g_i of data, in integers: those of the features `names`.

    `error` bounds the length of what g_i is away from the exact column: 0, or √n; and
    `longest` that of g_i.
    """

    def __init__(self, Y: np.ndarray, problem: Problem, names: Sequence[int]) -> None:
        self.Y, self.problem = Y, problem
        rows = max(1, 2**20 // max(1, len(names)))  # large data are read by parts
        parts = [slice(at, at + rows) for at in range(0, len(Y), rows)]
        self.fraction_bits = max(fraction_bits(Y[part][:, names]) for part in parts)
        largest = max(np.abs(Y[part][:, names]).max(initial=0.0) for part in parts)
        self.fits = np.frexp(largest)[1] + self.fraction_bits < 1024
        self.two_bits = 2 * (SCALED_BITS if problem.scale else self.fraction_bits)
        self.denominator = problem.n - problem.ddof
        self.error = isqrt(problem.n) + 1 if problem.scale else 0
        if problem.center and not problem.scale:
            self.denominator *= problem.n**2
        self.longest = self._longest(float(largest))

    def _longest(self, largest: float) -> int:
        """Bound ‖g_i‖: √N if scaled, else √n times |n Y_si − Σ_s Y_si| ≤ 2n max |Y|."""
        n = self.problem.n
        if self.problem.scale:
            return (isqrt(n - self.problem.ddof) + 1) << SCALED_BITS
        return (isqrt(n) + 1) * 2 * n * scaled(largest, self.fraction_bits)

    def column(self, i: int) -> list[int]:
        """Return g_i."""
        problem = self.problem
        column = self._plain(i)
        if problem.center:
            total = sum(column)
            column = [problem.n * y - total for y in column]
        if problem.scale:
            square = dot(column, column)
            factor = (problem.n - problem.ddof) << 2 * SCALED_BITS
            roots = [isqrt(y * y * factor // square) if y else 0 for y in column]
            column = [r if y > 0 else -r for r, y in zip(roots, column, strict=True)]
        return column

    def _plain(self, i: int) -> list[int]:
        """Return the column of the data times 2^fraction_bits."""
        column = self.Y[:, i]
        if self.fits:  # what is multiplied by a power of two is not rounded
            return list(map(int, np.ldexp(column, self.fraction_bits).tolist()))
        return [scaled(y, self.fraction_bits) for y in column.tolist()]

    def square(self, i: int) -> int:
        """Return g_i'g_i; of y − its mean, n times, it is n (n y'y − (Σ y)²)."""
        if self.problem.scale or not self.problem.center:
            column = self.column(i)
            return dot(column, column)
        y, n = self._plain(i), self.problem.n
        return n * (n * dot(y, y) - sum(y) ** 2)

    def combined(self, weights: Mapping[int, int]) -> list[int]:
        """Return Σ w_i g_i."""
        total = [0] * self.problem.n
        for i, weight in weights.items():
            if weight:
                column = self.column(i)
                total = [t + weight * y for t, y in zip(total, column, strict=True)]
        return total


def dot(a: list[int], b: list[int]) -> int:
    """Return Σ a_i b_i."""
    return sum(map(mul, a, b))


def fraction_bits(Y: np.ndarray) -> int:
    """Return the least s ≥ 0 for which all entries of 2^s Y are integers."""
    mantissa, exponent = np.frexp(Y[Y != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(float))[1] - 1
    return max(0, int(np.max(53 - zeros - exponent, initial=0)))


def scaled(value: float, bits: int) -> int:
    """Return value · 2^bits, which must be an integer."""
    top, bottom = value.as_integer_ratio()
    return top << (bits - bottom.bit_length() + 1)
