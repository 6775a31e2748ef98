"""The entries of a matrix that is given, in exact fractions of one denominator.

A_ij = top(i, j)/`bottom`, integers. With V the vectors of a deflation, W = AV and v_i
the rows of V,

    residual     A_ij − w_i'G⁻¹w_j,  G = V'AV,
    projection   A_ij − v_i'G⁻¹w_j − w_i'G⁻¹v_j + v_i'G⁻¹(V'AV)G⁻¹v_j,  G = V'V,

less what is taken off (`taken.py`); and with chosen features I and the level τ what is
added is c_i'G⁻¹c_j, c_i = A_Ii of this matrix and G = τI − A_II. G⁻¹ is the adjugate
over the determinant, so that all entries have one denominator.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from .columns import adjugate, dot, fraction_bits, scaled
from .problem import Problem
from .taken import Taken

Top = Callable[[int, int], int]


class ExactEntries:
    """top(i, j)/bottom, by the numbers of the features."""

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.Y, self.problem = Y, problem
        self.bits = fraction_bits(Y)
        self.top: Top = self._plain
        self.bottom = 1 << self.bits + 1
        if problem.columns_by:
            self._deflate()
        if problem.takes:
            self._take(Taken(problem))
        if problem.chosen:
            self._choose()

    def _plain(self, i: int, j: int) -> int:
        Y, bits = self.Y, self.bits
        return scaled(float(Y[i, j]), bits) + scaled(float(Y[j, i]), bits)

    def value(self, i: int, j: int) -> Fraction:
        """Return the entry."""
        return Fraction(self.top(i, j), self.bottom)

    def _deflate(self) -> None:
        problem, plain = self.problem, self.top
        loadings = []
        for vector in problem.vectors:
            bits = fraction_bits(np.array(vector.x))
            x = [scaled(value, bits) for value in vector.x]
            loadings.append(dict(zip(vector.support, x, strict=True)))

        @cache
        def w(i: int) -> list[int]:
            return [sum(x * plain(i, j) for j, x in v.items()) for v in loadings]

        inner = [
            [sum(x * w(i)[j] for i, x in v.items()) for j in range(len(loadings))]
            for v in loadings
        ]
        if problem.columns_by == "residual":
            adj, det = adjugate(inner, "the vectors have no scores of their own")

            @cache
            def h(i: int) -> list[int]:
                return [dot(row, w(i)) for row in adj]

            self.top = lambda i, j: det * plain(i, j) - dot(w(i), h(j))
            self.bottom *= det
            return
        gram = [
            [sum(x * u[i] for i, x in v.items() if i in u) for u in loadings]
            for v in loadings
        ]
        adj, det = adjugate(gram, "the vectors are not independent")

        @cache
        def g(i: int) -> list[int]:
            row = [v.get(i, 0) for v in loadings]
            return [dot(one, row) for one in adj]  # det · G⁻¹v_i

        @cache
        def t(i: int) -> list[int]:
            return [dot(row, g(i)) for row in inner]

        def projected(i: int, j: int) -> int:
            both = dot(g(i), w(j)) + dot(w(i), g(j))
            return det * (det * plain(i, j) - both) + dot(g(i), t(j))

        self.top = projected
        self.bottom *= det * det

    def _take(self, taken: Taken) -> None:
        before, bottom, own = self.top, self.bottom, taken.bottom
        self.top = lambda i, j: own * before(i, j) - bottom * taken.top(i, j)
        self.bottom *= own

    def _choose(self) -> None:
        problem, before = self.problem, self.top
        chosen = problem.chosen
        level = Fraction(problem.level or 0.0) * self.bottom
        unit, level_top = level.denominator, level.numerator
        gram = [[-unit * before(i, j) for j in chosen] for i in chosen]
        for i, row in enumerate(gram):
            row[i] += level_top
        adj, det = adjugate(gram, "the level is not above the chosen features")

        @cache
        def c(i: int) -> list[int]:
            return [before(j, i) for j in chosen]

        @cache
        def h(i: int) -> list[int]:
            return [unit * dot(row, c(i)) for row in adj]

        self.top = lambda i, j: det * before(i, j) + dot(c(i), h(j))
        self.bottom *= det
