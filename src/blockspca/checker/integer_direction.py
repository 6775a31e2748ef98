"""Rule "direction" in integers, with its rounds.

The columns are c_i = g_i/2^h, g_i in integers, so that no entry is above 1. The vectors
of `direction` are found in float64 and rounded to v_i/2^b; (*) is then an inequality of
integers. With s the larger of h and b, all matrices are multiplied by 4^s.

A matrix N of a round is cut: N' = ⌊N/2^c⌋ − nI has 2^c N' ⪯ N, as what is cut off is in
[0, 1). With N' ⪰ γI, P = 2^c N' + vv', any vector y and z = x − Py,

    x'P⁻¹x = x'y + y'z + z'P⁻¹z ≤ x'y + y'z + z'z/γ,

and if that is at most 1, P − xx' ⪰ 0: with x = c_i the feature i is out, and with x =
b, of which N has bb' more, it is needed. y comes from float64, rounded; the rest is
exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .columns import dot, shifted
from .direction import find_vectors
from .fields import ProofError
from .positive import (
    Rows,
    exact_gram,
    is_nonnegative,
    is_positive_semidefinite,
    spd_inverse,
)
from .proof_file import Direction, Round
from .screening import UNIT

FEW = 1500  # vectors whose products are summed in integers of any length
SHORT_ERROR, LONG_BITS = 2.0**-34, 80
CUT = 64  # bits of N'
DEFINITE_SHARE = 22  # bits: γ beside the level; a quarter of the room writers leave


@dataclass(frozen=True)
class Vectors:
    """v_i 2^b of features, by their numbers; those that are missing are 0."""

    found: dict[int, list[int]]
    bits: int
    gram: Rows  # Σ v_i v_i' 4^b


@dataclass(frozen=True)
class Cut:
    """N' and γ, with c; and about the inverse of N/4^s."""

    rows: Rows
    gamma: int
    shift: int
    inverse: np.ndarray


class IntegerDirections:
    """Checks the rule for the d columns g_i; `level` is τ, in the unit of g_i'g_i."""

    def __init__(
        self,
        column: Callable[[int], list[int]],
        d: int,
        n: int,
        k: int,
        level: Fraction,
    ) -> None:
        self.column, self.n, self.k, self.level = column, n, k, level
        self.squares, largest = [], 1
        for g in map(column, range(d)):
            self.squares.append(dot(g, g))
            largest = max(largest, max(g), -min(g))
        self.h = largest.bit_length()
        self.inside: list[int] = []
        self.free = list(range(d))

    @property
    def m(self) -> int:
        return self.k - len(self.inside)

    def vectors(self, rho: Fraction, given: Direction, exactly: bool) -> Vectors:
        """Find the v_i of F, and show (*) for them."""
        n, h = self.n, self.h
        names = [i for i in self.free if self.squares[i] > rho]
        columns = [self.column(i) for i in names]
        C = np.array([[y / (1 << h) for y in g] for g in columns]).reshape(-1, n).T
        error = (16 * n + 64) * UNIT if exactly else SHORT_ERROR
        V = find_vectors(C, float(rho / 4**h), given, error)
        if not np.isfinite(V).all():
            raise ProofError(f"k = {self.k}: the directions give no vectors")
        bits = (53 - max(len(names), 1).bit_length()) // 2
        size = int(np.frexp(np.abs(V).max(initial=0.0))[1])
        b = (LONG_BITS if exactly else 2 * bits - 1) - size
        if b < 0:
            raise ProofError(f"k = {self.k}: the vectors are out of all proportion")
        if exactly:
            whole = [[int(Fraction(y) * 2**b) for y in v] for v in V.T.tolist()]
            rows = [list(row) for row in zip(*whole, strict=True)] or [[]] * n
            gram = [[dot(x, y) for y in rows] for x in rows]
        else:
            rounded = np.rint(np.ldexp(V, b)).astype(np.int64)
            gram = exact_gram(rounded, bits)
            whole = rounded.T.tolist()
        for i, g, v in zip(names, columns, whole, strict=True):
            room = (self.squares[i] - rho) * (rho * Fraction(4) ** (b - h) + dot(v, v))
            if dot(g, v) ** 2 < room:
                raise ProofError(
                    f"k = {self.k}: the vector of feature {i} is not good enough"
                )
        return Vectors(dict(zip(names, whole, strict=True)), b, gram)

    def below_level(self, count: int, rho: Fraction, V: Vectors) -> tuple[Rows, int]:
        """Return (τ − count·ρ)I − M, times 4^s, rounded down on the diagonal; and s."""
        s = max(self.h, V.bits)
        level = (self.level - count * rho) * 4 ** (s - self.h)
        X = [[-shifted(x, 2 * (s - V.bits)) for x in row] for row in V.gram]
        rows = list(zip(*(self.column(i) for i in self.inside), strict=True))
        for i, row in enumerate(X):
            if rows:
                own = [sum(map(int.__mul__, rows[i], other)) for other in rows]
                row[:] = [
                    x - shifted(y, 2 * (s - self.h))
                    for x, y in zip(row, own, strict=True)
                ]
            row[i] += level // 1
        return X, s

    def cut(self, X: Rows, s: int, level: Fraction) -> Cut:
        """Cut a matrix to some bits, and show what is left to be positive definite."""
        n = len(X)
        largest = max(max(map(abs, row)) for row in X)
        shift = max(largest.bit_length() - CUT, 0)
        rows = [[shifted(x, -shift) - n * (i == j) for j, x in enumerate(row)]
                for i, row in enumerate(X)]  # fmt: skip
        gamma = int(level * Fraction(2) ** (-shift - DEFINITE_SHARE))
        left = [[x - gamma * (i == j) for j, x in enumerate(row)]
                for i, row in enumerate(rows)]  # fmt: skip
        if gamma <= 0 or not is_nonnegative(left, len(left)):
            raise ProofError("a matrix of a round is not shown to be positive definite")
        B = np.array([[_real(x, 2 * s) for x in row] for row in X])
        return Cut(rows, gamma, shift, spd_inverse(B))

    def check_round(self, rho: Fraction, given: Round, vector: list[Fraction]) -> None:
        """Show that features are in no set above U, or in all of them."""
        m, k = self.m, self.k
        named = {*given.needed, *given.free}
        if not named <= {*self.free} or len(named) < len(given.needed) + len(
            given.free
        ):
            raise ProofError(f"k = {k}: a round names features that are not free")
        if m < 1 or len(given.needed) > m:
            raise ProofError(f"k = {k}: a round needs more features than k")
        V = self.vectors(rho, given.direction, exactly=False)
        out = [i for i in self.free if i not in named]
        if out:
            X, s = self.below_level(m - 1, rho, V)
            N = self.cut(X, s, (self.level - (m - 1) * rho) * 4 ** (s - self.h))
            for i in out:
                x = [y << (s - self.h) for y in self.column(i)]
                if not self.fits(N, s, x, V, i):
                    raise ProofError(f"k = {k}: feature {i} is not shown to be out")
        if given.needed:
            X, s = self.below_level(m, rho, V)
            b = [round(y * 2 ** (s - self.h)) for y in vector]
            X = [[x + y * z for x, z in zip(row, b, strict=True)]
                 for y, row in zip(b, X, strict=True)]  # fmt: skip
            N = self.cut(X, s, (self.level - m * rho) * 4 ** (s - self.h))
            for i in given.needed:
                if not self.fits(N, s, b, V, i):
                    raise ProofError(f"k = {k}: feature {i} is not shown to be needed")
        self.inside += given.needed
        self.free = list(given.free)

    def fits(self, N: Cut, s: int, x: list[int], V: Vectors, i: int) -> bool:
        """Show x'(N + vv')⁻¹x ≤ 1; x is times 2^s, and v of feature i."""
        v = [y << (s - V.bits) for y in V.found.get(i, [0] * self.n)]
        xf, vf = (np.array([_real(y, s) for y in one]) for one in (x, v))
        of_v = N.inverse @ vf
        y = N.inverse @ xf
        y -= of_v * (float(vf @ y) / (1 + float(vf @ of_v)))
        if not np.isfinite(y).all():
            return False
        q = min(max(60 - int(np.frexp(np.abs(y).max(initial=0.0))[1]), 0), 400)
        Y = [int(Fraction(value) * 2**q) for value in y.tolist()]
        along = dot(v, Y)
        z = [
            (a << (s + q)) - shifted(dot(row, Y), N.shift) - b * along
            for a, b, row in zip(x, v, N.rows, strict=True)
        ]
        gamma = N.gamma << N.shift
        needed = (dot(x, Y) << (s + q)) + dot(Y, z) - (-dot(z, z) // gamma)
        return needed <= 1 << (2 * s + 2 * q)

    def check_last(self, rho: Fraction, given: Direction) -> None:
        """Show that no set that is left is above U."""
        if len(self.free) < self.m:
            return
        if len(self.free) == self.m:
            self.inside += self.free
            self.free = []
        exactly = sum(self.squares[i] > rho for i in self.free) <= FEW
        X, _ = self.below_level(self.m, rho, self.vectors(rho, given, exactly))
        shift = max(abs(x) for row in X for x in row).bit_length() - 48
        X = [[shifted(x, -shift) for x in row] for row in X]
        for i, row in enumerate(X):
            row[i] -= self.n
        if not is_positive_semidefinite(X):
            raise ProofError(f"k = {self.k}: U is below what the directions show")


def _real(value: int, bits: int) -> float:
    """Return value/2^bits, rounded."""
    return value / (1 << bits)
