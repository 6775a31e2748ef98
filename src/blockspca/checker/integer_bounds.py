"""Bounds in float64 on the entries of Ã in integers, for screening and rows.

They are in units of 2^(exponent + 64), in which entries are at most about 1.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from .exact_entries import shifted
from .screening import UNIT, Entries, UpperBounds, above

BITS = 64


class IntegerBounds:
    """Bounds |Ã_ij| of an `IntegerMatrix`: `signed(columns)` gives entries and errors.

    Data without `level` are multiplied as integers in float64, and a matrix of which
    nothing is taken is read off; else the integers themselves are rounded up.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.problem = matrix, matrix.problem
        self.error = float(matrix.e) * 2.0**-BITS
        is_plain = matrix.chosen is None
        if self.problem.kind == "data" and is_plain:
            self.signed = self._of_data
        elif is_plain and not matrix.entries.pairs:
            self.signed = self._of_matrix
        else:
            self.signed = self._of_entries

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs."""
        matrix = self.matrix
        diagonal = np.array([rounded_up(found) for found in matrix.diagonal])
        roots = None
        if self.problem.kind == "data":
            roots = above(np.sqrt(above(self._most_squares(diagonal) + self.error)))
        return UpperBounds(diagonal, roots, self.error, self._entries)

    def _most_squares(self, diagonal: np.ndarray) -> np.ndarray:
        """Return ‖c_i‖² + t_i, which is Ã_ii unless something is taken off."""
        matrix = self.matrix
        pairs = matrix.entries.pairs
        if not pairs:
            return diagonal
        found, unit = [], Fraction(2) ** -matrix.exponent
        for name, entry in zip(matrix.names, matrix.diagonal, strict=True):
            taken = [pair.c * pair.entry(name, name) for pair in pairs]
            # c'c = Ã_ii + Σ T_ii, and t_i = Σ |T_ii|: those below 0 are not there.
            more = 2 * sum((one for one in taken if one > 0), start=Fraction(0))
            found.append(rounded_up(entry + ceil(more * unit)))
        return np.array(found)

    def _entries(self, columns: np.ndarray) -> Entries:
        signed, raised = self.signed(columns), self.matrix.raised

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            found, error = signed(rows, width)
            if raised is not None:
                found = raised.lifted(columns[rows], columns[:width], found)
            return above(np.abs(found) + error) + self.error

        return entries

    def _of_matrix(self, columns: np.ndarray) -> Any:
        names = np.array(self.matrix.names)[columns]
        Y, shift = self.matrix.Y, -self.matrix.exponent - BITS - 1

        def signed(rows: np.ndarray, width: int) -> tuple[np.ndarray, Any]:
            one = np.ldexp(Y[np.ix_(names[rows], names[:width])], shift)
            other = np.ldexp(Y[np.ix_(names[:width], names[rows])].T, shift)
            found = one + other
            return found, above(UNIT * np.abs(found))

        return signed

    def _of_entries(self, columns: np.ndarray) -> Any:
        def signed(rows: np.ndarray, width: int) -> tuple[np.ndarray, Any]:
            others = columns[:width].tolist()
            found = [
                [self.matrix.entry(i, j, False) / 2**BITS for j in others]
                for i in columns[rows].tolist()
            ]
            return np.array(found).reshape(len(rows), width), 0.0

        return signed

    def _of_data(self, columns: np.ndarray) -> Any:
        """Multiply columns that are exact in float64.

        Column i is cut to 2b bits, r_i = ⌊g_i/2^s_i⌋ with 2^−s_i g_i − r_i in [0, 1),
        and split: r_i = 2^b h_i + l_i, |h_i| ≤ 2^b, 0 ≤ l_i < 2^b. As n·4^b ≤ 2⁵³, the
        products h'h, h'l and l'l and all their partial sums are integers of at most 53
        bits: they are exact in whichever order they are added. And 2^−(s_i + s_j)
        |g_i'g_j − r_i'r_j| ≤ ‖r_i‖₁ + ‖r_j‖₁ + n. What is taken off is in float64.
        """
        matrix, n = self.matrix, self.problem.n
        data = matrix.entries.columns
        bits = (53 - (n - 1).bit_length()) // 2
        high, low = np.zeros((2, len(columns), n))
        factors, sums = np.zeros((2, len(columns)))
        root = data.two_bits + BITS + matrix.exponent  # of the unit of the bounds
        for place, i in enumerate(columns.tolist()):
            column = matrix.column(i)
            size = max(max(column), -min(column)).bit_length()
            cut = [shifted(value, 2 * bits - size) for value in column]
            r = np.array(cut, dtype=np.int64)
            high[place], low[place] = r >> bits, r & (2**bits - 1)
            sums[place] = np.abs(r).sum()
            # 2^s_i in the unit of the bounds; `root` is odd or even, so halved late.
            factors[place] = 2.0 ** (size - 2 * bits - root // 2)
        divisor = float(data.denominator) * 2.0 ** (root % 2)
        P, Q, lost = self._pairs(columns)

        def signed(rows: np.ndarray, width: int) -> tuple[np.ndarray, Any]:
            h, ell, H, L = high[rows], low[rows], high[:width].T, low[:width].T
            cross = 2.0**bits * (h @ L + ell @ H)
            found = 4.0**bits * (h @ H) + cross + ell @ L
            # Each of the three was rounded: to 53 bits of at most 4^(2b) n.
            error = 2.0**-50 * 16.0**bits * n + n + sums[rows][:, None] + sums[:width]
            scale = (factors[rows] / divisor)[:, None] * factors[:width]
            found, error = found * scale, error * scale
            error = error + 2.0**-50 * np.abs(found)
            for p, q in ((P, Q), (Q, P)):
                found = found - p[:, rows].T @ q[:, :width]
            return found, above(error + lost + 2.0**-52 * np.abs(found))

        return signed

    def _pairs(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return p and q of what is taken off, and what it may err by."""
        matrix = self.matrix
        pairs = matrix.entries.pairs
        P, Q = np.zeros((2, len(pairs), len(columns)))
        lost = 0.0
        for row, pair in enumerate(pairs):
            names = [matrix.names[i] for i in columns.tolist()]
            p, q = ([v.get(i, 0) for i in names] for v in (pair.p, pair.q))
            unit = 1 << max(map(abs, p), default=0).bit_length() + 1
            c = pair.c * unit * Fraction(2) ** (-BITS - matrix.exponent)
            P[row] = [x / unit for x in p]
            Q[row] = [x * c.numerator / c.denominator for x in q]
            size = np.abs(P[row]).max(initial=0.0) * np.abs(Q[row]).max(initial=0.0)
            lost += 2.0**-48 * (len(pairs) + 2) * float(size)
        return P, Q, lost


def rounded_down(units: int) -> float:
    """Return what is at most units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, -np.inf))


def rounded_up(units: int) -> float:
    """Return what is at least units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, np.inf))
