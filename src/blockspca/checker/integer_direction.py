"""Rule "direction", with its rounds, in exact integers.

Columns are the integers g_i of `ExactColumns`; c_i = g_i/2^h is only what float64 sees.
All is counted in the unit of g_i'g_j, times 4^(b − h) where integer vectors V_i =
2^b v_i are: Ã_ij is the product of g_i and g_j within one unit of Ã, so that τ = U − k
of these. What the V_i must satisfy, and that matrices are positive semidefinite, is
shown exactly. A matrix Σ g_i g_i' that is multiplied by a power of two is cut to
integers: with X' = ⌊X⌋, X − X' has entries in [0, 1) and a norm of at most n.

Features of a round are first tried all at once, by vectors y; each that is left has its
own matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .columns import dot
from .direction import find_vectors
from .exact_entries import shifted
from .fields import ProofError
from .integers import IntegerMatrix
from .positive import inverse
from .proof_file import Direction, Round
from .screening import UNIT
from .sparse_positive import FACTOR_BITS, MOST_ROWS, exact_product, is_shown_in_integers

MOST_SAMPLES = 1000  # rows of matrices of integers
SHORT_BITS = 40  # of matrices and vectors for all features at once
ROUND_GAMMA_BITS = 22  # γ = τ/2^22: a quarter of the room that writers leave
FEATURES_AT_ONCE = 4096  # features
# A vector that is too short by rounding is made longer by one of these.
LONGER = (1.0, 1 + 2.0**-24, 1 + 2.0**-12, 2.0)


class IntegerDirections:
    """Checks the rule: a set above U contains I and otherwise features of F."""

    def __init__(self, matrix: IntegerMatrix, k: int, upper: int) -> None:
        self.matrix, self.k, self.upper = matrix, k, upper
        self.n, d = matrix.problem.n, len(matrix.diagonal)
        data = matrix.entries.columns
        if self.n > MOST_SAMPLES:
            raise self.fail(f"direction in integers is for n ≤ {MOST_SAMPLES}")
        self.columns = [matrix.column(i) for i in range(d)]
        self.products = [dot(g, g) for g in self.columns]
        self.unit = data.denominator * Fraction(2) ** data.two_bits
        largest = max(max(map(abs, g)) for g in self.columns)
        self.h = max(largest, 1).bit_length()
        self.inside: list[int] = []
        self.free = list(range(d))
        self.feature = matrix.problem.feature

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what}")

    @property
    def m(self) -> int:
        return self.k - len(self.inside)

    def check(self, given: Direction) -> None:
        """Check rounds, and then that no set that is left is above U."""
        for one in given.rounds:
            self.check_round(one)
        if len(self.free) < self.m:
            return
        if len(self.free) == self.m:
            self.inside += self.free
            self.free = []
        frame = _Frame(self, given)
        if not is_shown_in_integers(frame.form(self.m), self.n):
            raise self.fail("U is below what the directions show")

    def check_round(self, given: Round) -> None:
        """Show that features are in no set above U, or in all of them."""
        named = [*given.needed, *given.free]
        if not {*named} <= {*self.free} or len({*named}) != len(named):
            raise self.fail("a round names features that are not free")
        if self.m < 1 or len(given.needed) > self.m:
            raise self.fail("a round needs more features than k")
        frame = _Frame(self, given.direction)
        out = [i for i in self.free if i not in {*named}]
        for i in frame.not_out_at_once(out):
            X = frame.form(self.m - 1) + frame.square(i) + frame.minus_columns([i])
            if not is_shown_in_integers(X, self.n):
                raise self.fail(f"{self.feature(i)} is not shown to be out")
        for i in given.needed:
            X = frame.form(self.m) + frame.square(i)
            if not is_shown_in_integers(X, self.n):
                raise self.fail(f"{self.feature(i)} is not shown to be needed")
        self.inside += given.needed
        self.free = [*given.free]


class _Frame:
    """The vectors of one direction for the features of F, and M of I and F."""

    def __init__(self, check: IntegerDirections, given: Direction) -> None:
        self.check, self.given = check, given
        check.matrix.number(given.rho)  # refuses what floats could not hold
        self.rho = Fraction(given.rho) * check.unit  # of g_i'g_i
        names = [i for i in check.free if check.products[i] > self.rho]
        self.V = self._vectors(names)
        self.place = {i: place for place, i in enumerate(names)}
        self.M = np.zeros((check.n, check.n), dtype=object)
        for start in range(0, len(names), MOST_ROWS):
            self.M += exact_product(self.V[:, start : start + MOST_ROWS])
        if check.inside:
            self.M -= self.minus_columns(check.inside)

    def _vectors(self, names: Sequence[int]) -> np.ndarray:
        """Return integer vectors, of which (*) of `direction` is shown, as columns."""
        check, n = self.check, self.check.n
        C = np.array([[y / 2**check.h for y in check.columns[i]] for i in names])
        C = C.reshape(-1, n).T
        error = (16 * n + 64) * UNIT
        with np.errstate(all="ignore"):
            V = find_vectors(C, float(self.rho / 4**check.h), self.given, error)
        if not np.isfinite(V).all():
            raise check.fail("the directions give no vectors")
        most = float(np.abs(V).max(initial=0.0))
        # Twice a vector has to fit as well.
        self.b = FACTOR_BITS - 2 - int(np.frexp(most)[1])
        whole = np.zeros(V.shape, dtype=np.int64)
        for place, i in enumerate(names):
            whole[:, place] = self._vector(i, V[:, place])
        return whole

    def _vector(self, i: int, v: np.ndarray) -> np.ndarray:
        check = self.check
        rho = self.rho * self.factor
        for longer in LONGER:
            found = np.rint(np.ldexp(v * longer, self.b)).astype(np.int64)
            whole = found.tolist()
            room = (check.products[i] - self.rho) * (rho + dot(whole, whole))
            if dot(check.columns[i], whole) ** 2 >= room:
                return found
        raise check.fail(f"the vector of {check.feature(i)} is not good enough")

    @property
    def factor(self) -> Fraction:
        """4^(b − h), by which what is counted in g_i'g_j is multiplied."""
        return Fraction(4) ** (self.b - self.check.h)

    # -- matrices -------------------------------------------------------------------

    def level(self, count: int) -> int:
        """Return τ − count·ρ, rounded down."""
        check = self.check
        tau = (check.upper - check.k) * Fraction(2) ** check.matrix.exponent
        return (tau * check.unit - count * self.rho) * self.factor // 1

    def form(self, count: int) -> np.ndarray:
        """Return (τ − count·ρ)I − M."""
        X = -self.M
        np.fill_diagonal(X, X.diagonal() + self.level(count))
        return X

    def square(self, i: int) -> np.ndarray:
        """Return V_i V_i', or 0 for a feature that has no vector."""
        if i not in self.place:
            return np.zeros(self.M.shape, dtype=object)
        v = self.V[:, self.place[i]].astype(object)
        return np.outer(v, v)

    def minus_columns(self, names: Sequence[int]) -> np.ndarray:
        """Return what is no more than −Σ g_i g_i', in integers."""
        G = np.array([self.check.columns[i] for i in names], dtype=object)
        bits = 2 * (self.b - self.check.h)
        X = shifted(-np.dot(G.T, G), bits)
        np.fill_diagonal(X, X.diagonal() - self.check.n)
        return X

    # -- all features at once -------------------------------------------------------

    def not_out_at_once(self, names: Sequence[int]) -> list[int]:
        """Return the features that are not shown to be out all at once.

        N is (τ − (m − 1)ρ)I − M, or less, with entries of 40 bits, so that products
        with it are exact in float64. If N ⪰ γI, γ > 0, and P = N + vv', then for any y

            c'P⁻¹c = 2c'y − y'Py + z'P⁻¹z ≤ 2c'y − y'Py + z'z/γ,    z = c − Py.

        Where that is at most 1, P − cc' is positive semidefinite. y = Y/2^s is about
        P⁻¹c, from float64; what is compared are integers.
        """
        check, n = self.check, self.check.n
        level = self.level(check.m - 1)
        gamma = level >> ROUND_GAMMA_BITS
        if not names or gamma <= 0:
            return list(names)
        N, bits = self._short_form(check.m - 1)
        lower = N << bits
        np.fill_diagonal(lower, lower.diagonal() - gamma)
        if not is_shown_in_integers(lower, n):
            return list(names)
        # Only N, of numbers that float64 holds, is inverted: 2^bits N = tI − M.
        with np.errstate(all="ignore"):
            R = inverse(N.astype(float))
        left: list[int] = []
        for start in range(0, len(names), FEATURES_AT_ONCE):
            part = names[start : start + FEATURES_AT_ONCE]
            fits = self._are_out(part, N, bits, gamma, R)
            left += [i for i, good in zip(part, fits, strict=True) if not good]
        return left

    def _short_form(self, count: int) -> tuple[np.ndarray, int]:
        """Return N of 40 bits, and `bits`: 2^bits N is at most (τ − count·ρ)I − M.

        What is cut off are entries in [0, 1), of a norm of at most n.
        """
        X = self.form(count)
        bits = max(0, np.abs(X).max().bit_length() - SHORT_BITS)
        bits += bits % 2
        N = X >> bits
        np.fill_diagonal(N, N.diagonal() - self.check.n)
        return N, bits

    def _are_out(
        self, names: Sequence[int], N: np.ndarray, bits: int, gamma: int, R: np.ndarray
    ) -> list[bool]:
        """Say for which features 2c'y − y'Py + z'z/γ ≤ 1, times γ·4^(s + t).

        c = G/2^t in integers, as g_i is 2^(h − b) c.
        """
        check, n = self.check, self.check.n
        more = self.b - check.h
        t = max(0, -more)
        G = np.array([check.columns[i] for i in names], dtype=object).T << max(0, more)
        V = np.zeros((n, len(names)), dtype=object)
        for column, i in enumerate(names):
            if i in self.place:
                V[:, column] = self.V[:, self.place[i]].astype(object)
        # N is in units of 2^bits, so that c and v are divided by the root of that.
        half = bits // 2
        C, W = (G / 2 ** (t + half)).astype(float), (V / 2**half).astype(float)
        with np.errstate(all="ignore"):
            RC, RW = R @ C, R @ W
            forms = (np.einsum("si,si->i", W, X) for X in (RC, RW))
            y = RC - RW * (next(forms) / (1 + next(forms)))
        most = float(np.abs(y).max())
        s = SHORT_BITS - int(np.frexp(most)[1]) + half if np.isfinite(most) else -1
        if s < 0:
            return [False] * len(names)
        whole = np.rint(np.ldexp(y, s - half)).astype(np.int64)
        Y = whole.astype(object)
        PY = (exact_times(N, whole) << bits) + V * np.sum(V * Y, axis=0)
        Z = (G << s) - (PY << t)
        forms = (np.sum(G * Y, axis=0) << s + t + 1) - (np.sum(Y * PY, axis=0) << 2 * t)
        left = gamma * forms + np.sum(Z * Z, axis=0)
        return [bool(x <= gamma << 2 * (s + t)) for x in left]


def exact_times(N: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return NY for numbers of about 40 bits, by halves, and at most 2¹⁰ columns of N.

    Products of halves, and sums of them, have at most 52 bits: float64 is exact.
    """
    half = SHORT_BITS // 2
    parts = [
        ((X >> half).astype(float), (X & (2**half - 1)).astype(float))
        for X in (N.astype(np.int64), Y)
    ]
    (a, b), (c, d) = parts
    total = (a @ c).astype(np.int64).astype(object) << SHORT_BITS
    total += (a @ d + b @ c).astype(np.int64).astype(object) << half
    return total + (b @ d).astype(np.int64).astype(object)
