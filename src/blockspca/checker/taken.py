"""What a deflation takes off A beside what columns lose: docs/proof-format.md, 8.

T_ij = top(i, j)/`bottom`, in integers, with v_i the rows of V:

    hotelling    Σ_l a_l v_li v_lj
    orthogonal   M v_i'(V'V)⁻¹v_j

T_ij is 0 unless i and j are both in a support. |T_ij| ≤ √(t_i t_j) by Cauchy's
inequality, with t_i = Σ_l |a_l| v_li², or t_i ≥ T_ii.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from .columns import adjugate, dot, fraction_bits, scaled
from .fields import ProofError
from .problem import Problem
from .screening import UNIT, above

MOST_TAKEN = 2**200  # of an entry, in the unit of the matrix: squares stay in range


class Taken:
    """T, by the numbers of the features; nothing if nothing is taken."""

    def __init__(self, problem: Problem) -> None:
        self.rows: dict[int, list[int]] = {}
        self.bottom, vectors = 1, problem.vectors if problem.takes else ()
        scales = []
        for place, vector in enumerate(vectors):
            bits = fraction_bits(np.array(vector.x))
            scales.append(bits)
            for i, x in zip(vector.support, vector.x, strict=True):
                row = self.rows.setdefault(i, [0] * len(vectors))
                row[place] = scaled(x, bits)
        if problem.how == "hotelling":
            values = [
                Fraction(vector.value) / 4**bits
                for vector, bits in zip(vectors, scales, strict=True)
            ]
            self.bottom = max(value.denominator for value in values)  # powers of two
            tops = [int(value * self.bottom) for value in values]
            self.core = [
                [top * (a == b) for b in range(len(tops))] for a, top in enumerate(tops)
            ]
        elif problem.how == "orthogonal":  # the unit of a column of V does not matter
            columns = list(zip(*self.rows.values(), strict=True))
            gram = [[dot(list(v), list(w)) for w in columns] for v in columns]
            found, det = adjugate(gram, "the vectors are not independent")
            weight = Fraction(problem.penalty)
            self.core = [[weight.numerator * x for x in row] for row in found]
            self.bottom = weight.denominator * det
        self.image = cache(lambda i: [dot(row, self.rows[i]) for row in self.core])

    def has(self, i: int, j: int) -> bool:
        """Say whether T_ij may be other than 0."""
        return i in self.rows and j in self.rows

    def top(self, i: int, j: int) -> int:
        """Return T_ij · `bottom`."""
        return dot(self.rows[i], self.image(j)) if self.has(i, j) else 0

    def size(self, i: int) -> Fraction:
        """Return t_i."""
        row = self.rows.get(i, [])
        terms = (
            abs(self.core[a][b] * row[a] * row[b])
            for a in range(len(row))
            for b in range(len(row))
            if self.core[a][b]
        )
        return Fraction(sum(terms), self.bottom)

    def form(self, x: dict[int, Fraction]) -> Fraction:
        """Return x'Tx."""
        inside = [i for i in x if i in self.rows]
        total = sum(x[i] * x[j] * self.top(i, j) for i in inside for j in inside)
        return Fraction(total) / self.bottom


class FloatTaken:
    """`factor` · T in float64, of features by their positions: each within 2u of it.

    `sizes` are no less than t_i, and `error` than 8u |T_ij|, for T and a difference.
    """

    def __init__(self, taken: Taken, kept: tuple[int, ...], factor: Fraction) -> None:
        inside = [(place, i) for place, i in enumerate(kept) if i in taken.rows]
        self.place = np.full(len(kept), -1)
        self.sizes = np.zeros(len(kept))
        self.T = np.zeros((len(inside), len(inside)))
        unit = factor / taken.bottom
        for a, (place, i) in enumerate(inside):
            self.place[place] = a
            self.sizes[place] = above(_near(taken.size(i) * factor))
            for b, (_, j) in enumerate(inside[: a + 1]):
                self.T[a, b] = self.T[b, a] = _near(taken.top(i, j) * unit)
        self.error = float(8 * UNIT * above(np.abs(self.T).max(initial=0.0)))

    def subtract(
        self, block: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> float:
        """Subtract T from a block of A, in place; return what that is rounded by."""
        row, column = self.place[rows], self.place[columns]
        at = np.flatnonzero(row >= 0), np.flatnonzero(column >= 0)
        if not (len(at[0]) and len(at[1])):
            return 0.0
        part = block[np.ix_(*at)]
        block[np.ix_(*at)] = part - self.T[np.ix_(row[at[0]], column[at[1]])]
        return float(8 * UNIT * np.abs(part).max() + self.error)

    def diagonal(self) -> np.ndarray:
        """Return the T_ii of all features."""
        found = np.zeros(len(self.place))
        found[self.place >= 0] = np.diagonal(self.T)
        return found


def _near(exact: Fraction) -> float:
    if abs(exact) > MOST_TAKEN:
        raise ProofError("what is taken off A is out of all proportion to the data")
    return float(exact)
