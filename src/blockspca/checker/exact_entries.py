"""Entries of the matrix after step 1 in integers, as fine as is asked for.

2^F A_ij is rounded down: for data by products of columns, which may have an error of
their own, for a matrix as it is; then the pairs are taken off, each rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np

from .columns import dot, fraction_bits, scaled
from .fields import ProofError
from .problem import Problem
from .taken import Deflated

MOST_NUMBERS = 2**22  # of columns that are held, a hundred bytes each
PROPORTION = 400  # bits by which what is taken off may be more than there was


class ExactEntries:
    """What is known of A_ij, for the features `names`."""

    def __init__(self, Y: np.ndarray, problem: Problem, names: Sequence[int]) -> None:
        self.Y, self.problem = Y, problem
        self.deflated = Deflated(Y, problem, names)
        self.pairs = self.deflated.pairs
        largest = Fraction(0)
        self.own_error = Fraction(0)  # of A_ij, from columns
        if problem.kind == "matrix":
            part = Y[np.ix_(names, names)]
            self.bits = fraction_bits(part)
            self.largest = largest = Fraction(float(np.abs(part).max()))
        else:
            self.columns = self.deflated.columns
            most = max(16, MOST_NUMBERS // problem.n)
            self.column = lru_cache(maxsize=most)(self.columns.column)
            self.squares = {i: self.columns.square(i) for i in names}
            longest = max(self.squares.values())
            unit = Fraction(1, self.columns.denominator << self.columns.two_bits)
            error = self.columns.error
            length = isqrt(longest) + 1
            self.own_error = (2 * length * error + error**2) * unit
            self.largest = largest = longest * unit
        self.largest += self._most_taken(names)
        if largest and self.largest > largest * 2**PROPORTION:
            raise ProofError("what is taken off A is out of all proportion to the data")
        self.exponent = exponent_above(self.largest)

    def _most_taken(self, names: Sequence[int]) -> Fraction:
        """Bound all |T_ij|."""
        most = Fraction(0)
        for pair in self.pairs:
            p, q = (
                max((abs(v.get(i, 0)) for i in names), default=0)
                for v in (pair.p, pair.q)
            )
            most += 2 * abs(pair.c) * p * q
        return most

    def taken(self, i: int, j: int) -> Fraction:
        """Return T_ij, which is taken off."""
        return sum((pair.c * pair.entry(i, j) for pair in self.pairs), Fraction(0))

    def refine(self, F: int) -> None:
        """Set the unit, 2^−F, and say how much is lost by it."""
        self.F = F
        self.error = int(self.own_error * Fraction(2) ** F) + bool(self.own_error)
        is_whole = self.problem.kind == "matrix" and self.bits + 1 <= F
        self.error += not is_whole
        for pair in self.pairs:
            self.error += F < 0 or 2**F % pair.c.denominator != 0

    def value(self, i: int, j: int) -> int:
        """Return 2^F A_ij, within `error`."""
        F = self.F
        if self.problem.kind == "matrix":
            found = self._of_matrix(i, j, F)
        else:
            square = self.squares[i] if i == j else dot(self.column(i), self.column(j))
            found = quotient(
                square, self.columns.denominator, F - self.columns.two_bits
            )
        for pair in self.pairs:
            entry = pair.entry(i, j)
            if entry:
                found -= quotient(entry * pair.c.numerator, pair.c.denominator, F)
        return found

    def _of_matrix(self, i: int, j: int, F: int) -> int:
        bits, Y = self.bits, self.Y
        both = scaled(float(Y[i, j]), bits) + scaled(float(Y[j, i]), bits)
        return shifted(both, F - bits - 1)


def exponent_above(value: Fraction) -> int:
    """Return an s with value < 2^s, that is no larger than need be by more than 1."""
    if not value:
        return 0
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def shifted(value: Any, bits: int) -> Any:
    """Return ⌊value · 2^bits⌋ of an integer, or of an array of Python's integers."""
    return value << bits if bits >= 0 else value >> -bits


def quotient(top: int, bottom: int, bits: int) -> int:
    """Return ⌊top/bottom · 2^bits⌋."""
    if bits >= 0:
        return (top << bits) // bottom
    return top // (bottom << -bits)
