"""The columns of the data in exact integers, and what is made of them.

A_ij = a_i'a_j, and the columns g_i here, in integers, are near a_i times the root of
`denominator` · 2^`two_bits`: within `error`, in norm.

**Plain.** Without `scale` the g_i are exact: the columns times 2^fraction_bits, and
times n if they are centred, n Y_si − Σ_s Y_si. With `scale` they are not rational, and
are rounded: w_i = (Y_i − μ_i)/σ_i, of norm √N, N = n − ddof; g_i = 2⁹⁶ w_i, rounded
towards 0, so that each entry is off by less than 1 and a column by less than √n.

**Deflated.** S = Σ x_i g_i are the scores of the vectors, m of them. Then

    residual     g_i − S G⁻¹ S'g_i,  G = S'S
    projection   g_i − S G⁻¹ v_i,    G = V'V,  v_i the rows of V

in fractions, with det G and the adjugate, multiplied by 2^`more_bits` and rounded down.
If the g_i were off by ε, the scores are off by s ≤ ε Σ|x_i| each, t all together. For
the residual, with Π the projection onto the columns of S and Π* that onto the exact
ones S*, ‖(I − Π*)Π‖ = ‖(I − Π*)(S − S*)S⁺‖ ≤ t/σ, σ² = 1/tr G⁻¹ ≤ λmin(G); if that is
below 1, S* has rank m too, and ‖Π − Π*‖ ≤ t/σ. So the columns are off by ε + (t/σ)
max ‖g‖. For the projection they are off by ε + Σ_l |(G⁻¹v_i)_l| s_l.

**Chosen features** I, at a level τ: with c_i = (g_j'g_i), j in I, and in the same units
G = τI − (g_i'g_j) = LDL', each g_i is continued by the numbers (L⁻¹c_i)_l/√D_l,
rounded towards 0, so that g_i'g_j gains c_i'G⁻¹c_j. What it costs that the g_i are off
by ε is in `entry_error`: with ω = 2εW + ε², W the largest norm, c_i is off by √p ω and
G by p ω, p = |I|; and with μ = 1/tr G⁻¹ ≤ λmin(G), if p ω < μ the exact G is positive
definite too and c_i'G⁻¹c_j is off by at most

    C² pω/(μ(μ − pω)) + (2√p ω C + pω²)/(μ − pω),    C the largest ‖c_i‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from operator import mul

import numpy as np

from .fields import ProofError
from .problem import Problem

SCALED_BITS = 96


class ExactColumns:
    """The columns g_i, in integers, by the numbers of the features."""

    def __init__(
        self, Y: np.ndarray, problem: Problem, features: Sequence[int] = ()
    ) -> None:
        """Take all columns that the matrix needs, or those of some features."""
        self.Y, self.problem = Y, problem
        used = list(features or problem.used)
        self.fraction_bits = fraction_bits(Y[:, used])
        self.two_bits = 2 * (SCALED_BITS if problem.scale else self.fraction_bits)
        self.denominator = problem.n - problem.ddof
        if problem.center and not problem.scale:
            self.denominator *= problem.n**2
        self.error = isqrt(problem.n) + 1 if problem.scale else 0
        self.n, self.more_bits = problem.n, 0
        self.is_plain = not (problem.columns_by or problem.chosen)
        if self.is_plain:
            return
        self.plain = lru_cache(maxsize=8192)(self._plain)
        squares = (dot(g, g) for g in map(self.plain, used))
        most = self.largest = isqrt(max(squares)) + 1
        # 96 bits of the largest column, and more than all entries of one are rounded by
        self.more_bits = SCALED_BITS + problem.n.bit_length() - most.bit_length()
        if problem.columns_by:
            self._deflate()
        self.two_bits += 2 * self.more_bits
        self.error = shifted(self.error, self.more_bits) + 1 + isqrt(problem.n) + 1
        self.largest = shifted(most, self.more_bits) + 1 + self.error
        if problem.columns_by == "projection":  # which may make columns longer
            moved = ({*used} & {*v} for v in self.loadings)
            columns = (self._deflated(i) for i in set().union(*moved))
            longest = max((isqrt(dot(g, g)) + 1 for g in columns), default=0)
            self.largest = max(self.largest, longest + self.error)
        self.entry_error = self._of_entries(self.error)
        if problem.chosen:
            self._choose()

    def column(self, i: int) -> list[int]:
        """Return g_i."""
        if self.is_plain:
            return self._plain(i)
        found = self._deflated(i)
        return found + self._continued(found) if self.problem.chosen else found

    def _plain(self, i: int) -> list[int]:
        problem = self.problem
        column = [scaled(y, self.fraction_bits) for y in self.Y[:, i].tolist()]
        if problem.center:
            total = sum(column)
            column = [problem.n * y - total for y in column]
        if problem.scale:
            square = dot(column, column)
            factor = (problem.n - problem.ddof) << 2 * SCALED_BITS
            roots = [isqrt(y * y * factor // square) if y else 0 for y in column]
            column = [r if y > 0 else -r for r, y in zip(roots, column, strict=True)]
        return column

    def _of_entries(self, error: int) -> int:
        """Bound what products of two columns are off by, if columns are by `error`."""
        return 2 * error * self.largest + error**2

    # -- deflated -------------------------------------------------------------------

    def _deflate(self) -> None:
        """Find the scores S, G⁻¹ = adjugate/det, and what columns are off by."""
        problem = self.problem
        self.loadings: list[dict[int, int]] = []
        self.scores: list[list[int]] = []
        for vector in problem.vectors:
            bits = fraction_bits(np.array(vector.x))
            x = [scaled(value, bits) for value in vector.x]
            self.loadings.append(dict(zip(vector.support, x, strict=True)))
            columns = [self.plain(i) for i in vector.support]
            self.scores.append(
                [dot(x, list(row)) for row in zip(*columns, strict=True)]
            )
        if problem.columns_by == "residual":
            gram = [[dot(s, t) for t in self.scores] for s in self.scores]
        else:
            gram = [[_product(v, w) for w in self.loadings] for v in self.loadings]
        self.adjugate, self.det = adjugate(gram, "the vectors are not independent")
        if not self.error:
            return
        off = [self.error * sum(map(abs, v.values())) for v in self.loadings]
        if problem.columns_by == "residual":
            trace = sum(row[j] for j, row in enumerate(self.adjugate))
            ratio = Fraction(sum(s * s for s in off) * trace, self.det)
            if ratio >= 1:
                raise ProofError("the scores are not shown to be independent")
            size = self.largest + self.error
            self.error += isqrt(ratio * size * size // 1) + 1
        else:
            most = max(
                sum(abs(h) * s for h, s in zip(self._weights(i), off, strict=True))
                for i in {i for v in self.loadings for i in v}
            )
            self.error += most // self.det + 1

    def _weights(self, i: int, column: list[int] | None = None) -> list[int]:
        """Return det · G⁻¹ f_i, f_i = S'g_i or v_i."""
        if self.problem.columns_by == "residual":
            assert column is not None
            f = [dot(s, column) for s in self.scores]
        else:
            f = [v.get(i, 0) for v in self.loadings]
        return [dot(row, f) for row in self.adjugate]

    def _deflated(self, i: int) -> list[int]:
        column, bits = self.plain(i), self.more_bits
        if self.problem.columns_by:
            weights = self._weights(i, column)
            if any(weights):
                rows = zip(column, *self.scores, strict=True)
                top = [self.det * y - dot(weights, list(s)) for y, *s in rows]
                return [shifted(y, bits) // self.det for y in top]
        return [shifted(y, bits) for y in column]

    # -- chosen ---------------------------------------------------------------------

    def _choose(self) -> None:
        """Factor G = τI − (g_i'g_j) of the chosen features; find `entry_error`."""
        problem = self.problem
        self.own = [self._deflated(i) for i in problem.chosen]
        unit = self.denominator * Fraction(2) ** self.two_bits
        level = Fraction(problem.level or 0.0) * unit
        gram = [[Fraction(-dot(g, h)) for h in self.own] for g in self.own]
        for i, row in enumerate(gram):
            row[i] += level
        self.lower, self.pivots = factored(gram)
        p, omega = len(gram), self.entry_error
        mu = 1 / trace_of_inverse(self.lower, self.pivots)
        if mu <= p * omega:
            raise ProofError("the level is not shown to be above the chosen features")
        size = 1 + isqrt(p) + 1
        most = size * self.largest**2  # ‖c_i‖ ≤ √p W²
        left = mu - p * omega
        off = most**2 * p * omega / (mu * left)
        off += (2 * size * omega * most + p * omega**2) / left
        # and the p numbers of each column that are rounded, of at most C/√μ
        root = isqrt(most**2 // mu) + 1
        self.entry_error += off // 1 + 1 + p * (2 * root + 1)
        self.n += p

    def _continued(self, column: list[int]) -> list[int]:
        found: list[Fraction] = []
        for own, row in zip(self.own, self.lower, strict=True):
            known = sum((a * b for a, b in zip(row, found, strict=False)), Fraction(0))
            found.append(dot(own, column) - known)
        roots = []
        for y, pivot in zip(found, self.pivots, strict=True):
            root = isqrt(y * y / pivot // 1)
            roots.append(root if y > 0 else -root)
        return roots


def _product(v: dict[int, int], w: dict[int, int]) -> int:
    return sum(x * w[i] for i, x in v.items() if i in w)


def adjugate(gram: list[list[int]], why: str) -> tuple[list[list[int]], int]:
    """Return adj G and det G > 0, by elimination without fractions.

    Raises `ProofError` unless G is positive definite: its leading minors, which are
    the pivots, are positive.
    """
    p = len(gram)
    M = [[*row, *(int(i == j) for j in range(p))] for i, row in enumerate(gram)]
    last = 1
    for c in range(p):
        pivot, own = M[c][c], M[c]
        if pivot <= 0:
            raise ProofError(why)
        for r in range(p):
            if r != c:
                factor = M[r][c]
                M[r] = [
                    (pivot * a - factor * b) // last
                    for a, b in zip(M[r], own, strict=True)
                ]
        last = pivot
    return [row[p:] for row in M], last


def factored(
    gram: list[list[Fraction]],
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Return L, without its diagonal of ones, and D > 0 with G = LDL'."""
    lower: list[list[Fraction]] = []
    pivots: list[Fraction] = []
    for i, row in enumerate(gram):
        found: list[Fraction] = []
        for j in range(i):
            known = sum(
                (found[h] * lower[j][h] * pivots[h] for h in range(j)), Fraction(0)
            )
            found.append((row[j] - known) / pivots[j])
        squares = (f * f * d for f, d in zip(found, pivots, strict=True))
        pivot = row[i] - sum(squares, Fraction(0))
        if pivot <= 0:
            raise ProofError("the level is not above the chosen features")
        lower.append(found)
        pivots.append(pivot)
    return lower, pivots


def trace_of_inverse(lower: list[list[Fraction]], pivots: list[Fraction]) -> Fraction:
    """Return tr (LDL')⁻¹ = Σ_l ‖row l of L⁻¹‖²/D_l."""
    total, p = Fraction(0), len(pivots)
    for j in range(p):  # column j of L⁻¹
        column = [Fraction(int(i == j)) for i in range(p)]
        for i in range(j + 1, p):
            column[i] = -sum(
                (lower[i][h] * column[h] for h in range(j, i)), Fraction(0)
            )
        total += sum(
            (y * y / d for y, d in zip(column, pivots, strict=True)), Fraction(0)
        )
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


def shifted(value: int, bits: int) -> int:
    """Return ⌊value · 2^bits⌋."""
    return value << bits if bits >= 0 else value >> -bits
