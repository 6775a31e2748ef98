"""Rule "direction": a bound for one k, by a vector v_i for every large column.

Let A = C'C with columns c_i, a_i = ‖c_i‖² and ρ > 0. Take any vector v_i with

    (c_i'v_i)² ≥ (a_i − ρ)(ρ + ‖v_i‖²)                                              (*)

(none, v_i = 0, if a_i ≤ ρ). Then (c_i'y)² ≤ ρ + (v_i'y)² for all unit vectors y: in the
plane of c_i and v_i the determinant of ρI + v_i v_i' − c_i c_i' is
ρ² + ρ(‖v_i‖² − a_i) − a_i ‖v_i‖² + (c_i'v_i)² ≥ 0, and this matrix has at most one
negative eigenvalue. It is κzz'/‖z‖² + ρI − cc' of the page, with v = √κ z/‖z‖.

So for a set S of k features, I of them known and the m = k − |I| others in F, and for
M = Σ_I c_i c_i' + Σ_F v_i v_i',

    λ(S) = max_y Σ_S (c_i'y)² ≤ mρ + λmax(M).

How the v_i are found is of no importance: what they must satisfy is checked. In
float64, (*) is shown with c'v less its error, 1.01 n u ‖c‖‖v‖; and M, a product of
n × D matrices, is within 1.01 D u times the sum of their squares, in Frobenius' norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .fields import ProofError
from .floats import FloatMatrix
from .positive import inverse_from_above, largest_eigenvalue_is_below
from .proof_file import Direction, Round
from .screening import TINY_NORM, UNIT, above, below

ROUNDS = 60  # of bisection, from 18 decimal digits
CHUNK = 4096  # columns at a time


def find_vectors(
    C: np.ndarray, rho: float, given: Direction, error: float
) -> np.ndarray:
    """Return vectors v_i for the columns of C, which have ‖c_i‖² > ρ, or nearly so.

    Those of the page, z_i = c_i + Σ h_l q_l, or c_i where that z_i would be poor; with
    κ larger by what an error of c'v and v by `error` ‖c‖‖v‖ and `error` ‖v‖ can cost.
    """
    a = np.einsum("si,si->i", C, C)
    Q = np.array(given.directions, dtype=float).reshape(-1, len(C)).T
    w = np.array([*given.weights, given.rest])[:, None]
    g = Q.T @ C
    squares = np.vstack([g**2, np.maximum(0.0, a - np.sum(g**2, axis=0))])
    high = a * w.max()
    low = high * 1e-18
    for _ in range(ROUNDS):
        middle = np.sqrt(low * high)
        is_low = np.sum(w * squares / (middle + rho * w), axis=0) > 1
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    Z = C + Q @ (g * ((high + rho * w[-1]) / (high + rho * w[:-1]) - 1))

    def slack(Z: np.ndarray) -> np.ndarray:
        norms = np.einsum("si,si->i", Z, Z)
        b = np.einsum("si,si->i", C, Z) ** 2 / np.where(norms > 0, norms, 1.0)
        return rho - a + b

    poor = ~(slack(Z) > 1e-7 * rho)
    Z[:, poor] = C[:, poor]
    rest = slack(Z)
    kappa = rho * np.maximum(0.0, a - rho) / rest
    kappa += 4 * error * a * (rho + kappa) / rest
    return Z * np.sqrt(kappa / np.einsum("si,si->i", Z, Z))


@dataclass(frozen=True)
class FeatureVectors:
    """The v_i that are not 0, as columns, and which of the features have one."""

    V: np.ndarray
    is_large: np.ndarray

    def columns(self, places: np.ndarray) -> np.ndarray:
        """Return the v_i of some features, 0 for those that have none."""
        found = np.zeros((len(self.V), len(places)))
        at = np.cumsum(self.is_large)[places] - 1
        have = self.is_large[places]
        found[:, have] = self.V[:, at[have]]
        return found


class FloatDirections:
    """Checks the rule in float64, with columns c_i = H_i, so that Ã_ij = c_i'c_j.

    `high` are the a_i, rounded up. A set above U contains the features I and otherwise
    only features of F: at first none and all.
    """

    def __init__(self, matrix: FloatMatrix, k: int, upper: Fraction) -> None:
        self.matrix, self.k, self.upper = matrix, k, upper
        self.H, self.high = matrix.A, matrix.high
        self.inside: list[int] = []
        self.free = np.arange(len(self.high))

    def check(self, given: Direction) -> None:
        """Check rounds, and then that no set that is left is above U."""
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            for one in given.rounds:
                self.check_round(one)
            self.check_last(given)

    def rho(self, given: Direction) -> float:
        """Return ρ in the unit of Ã, rounded down."""
        found = float(self.matrix.number(given.rho))
        if found <= 0:
            raise ProofError("rho is too small for float64")
        return found

    @property
    def m(self) -> int:
        return self.k - len(self.inside)

    def level(self, count: int, rho: float) -> float:
        """Return τ − count·ρ, rounded down; it must be positive."""
        found = float(self.upper - count * Fraction(rho)) * (1 - 4 * UNIT)
        if found <= 0:
            raise ProofError(f"k = {self.k}: U is below k rho")
        return found

    def vectors(self, rho: float, given: Direction) -> FeatureVectors:
        """Return the v_i of F; (*) is shown, or it is an error."""
        n = len(self.H)
        is_large = self.high[self.free] > rho
        names = self.free[is_large]
        V = np.zeros((n, len(names)))
        for start in range(0, len(names), CHUNK):
            part = names[start : start + CHUNK]
            C, a = self.H[:, part], self.high[part]
            found = find_vectors(C, rho, given, (16 * n + 64) * UNIT)
            squares = above(np.einsum("si,si->i", found, found), n)
            products = np.abs(np.einsum("si,si->i", C, found))
            lost = 1.01 * n * UNIT * above(np.sqrt(a * squares))
            products = below(products - lost)
            fits = (products >= 0) & np.isfinite(squares)
            fits &= below(products**2) >= above((a - rho) * (rho + squares))
            if not fits.all():
                raise ProofError(f"k = {self.k}: a vector is not good enough")
            V[:, start : start + CHUNK] = found
        return FeatureVectors(V, is_large)

    def sum_of_products(self, vectors: FeatureVectors) -> tuple[np.ndarray, float]:
        """Return M, and a bound on the norm of its error."""
        columns = np.hstack([self.H[:, self.inside], vectors.V])
        M = columns @ columns.T
        M = np.tril(M) + np.tril(M, -1).T
        D = columns.shape[1] + 1
        squares = np.einsum("si,si->", columns, columns)
        return M, float(above(1.01 * D * UNIT * squares, D * len(M)))

    def check_round(self, given: Round) -> None:
        """Show that features are in no set above U, or in all of them."""
        m, free, rho = self.m, self.free, self.rho(given.direction)
        needed, left = np.array(given.needed, int), np.array(given.free, int)
        named = np.concatenate([needed, left])
        if not np.isin(named, free).all() or len(np.unique(named)) != len(named):
            raise ProofError(f"k = {self.k}: a round names features that are not free")
        if m < 1 or len(needed) > m:
            raise ProofError(f"k = {self.k}: a round needs more features than k")
        V = self.vectors(rho, given.direction)
        M, error = self.sum_of_products(V)
        out = np.flatnonzero(~np.isin(free, named))
        if len(out):
            R = inverse_from_above(self.level(m - 1, rho), M, error)
            for start in range(0, len(out), CHUNK):
                part = out[start : start + CHUNK]
                if not forms_fit(R, self.H[:, free[part]], V.columns(part)).all():
                    raise ProofError(f"k = {self.k}: a feature is not shown to be out")
        if len(needed):
            matrix = self.matrix
            vector = np.array(given.vector) * np.sqrt(matrix.divisor)
            vector = np.ldexp(vector, -matrix.shift)
            product = np.outer(vector, vector)
            norm = np.sqrt(np.sum(M**2)) + TINY_NORM
            error += float(above(3 * UNIT * (np.sum(vector**2) + norm)))
            R = inverse_from_above(self.level(m, rho), M - product, error)
            places = np.flatnonzero(np.isin(free, needed))
            repeated = np.repeat(vector[:, None], len(places), axis=1)
            if not forms_fit(R, repeated, V.columns(places)).all():
                raise ProofError(f"k = {self.k}: a feature is not shown to be needed")
        self.inside += needed.tolist()
        self.free = left

    def check_last(self, given: Direction) -> None:
        """Show that no set that is left is above U."""
        rho = self.rho(given)
        if len(self.free) < self.m:
            return
        if len(self.free) == self.m:
            self.inside += self.free.tolist()
            self.free = self.free[:0]
        M, error = self.sum_of_products(self.vectors(rho, given))
        level = self.level(self.m, rho) - error
        # An eighth of the room that writers leave where it is least.
        if not largest_eigenvalue_is_below(M, level, 2.0**-37 * abs(level)):
            raise ProofError(f"k = {self.k}: U is below what the directions show")


def forms_fit(
    R: np.ndarray, X: np.ndarray, V: np.ndarray, error: float = 0.0
) -> np.ndarray:
    """Say for which columns x'(R⁻¹ + vv')⁻¹x = x'Rx − (x'Rv)²/(1 + v'Rv) ≤ 1 is shown.

    A form x'Ry in float64 errs by at most 2.02 n u ‖R‖ ‖x‖ ‖y‖, ‖R‖ Frobenius' norm;
    and by 2.1 times `error` more, if that part of its norm is what x may differ by.
    """
    n = len(R)
    unit = above((2.1 * n * UNIT + 2.1 * error) * np.sqrt(np.sum(R**2)), n * n)
    x, v = (above(np.sqrt(np.einsum("si,si->i", Y, Y)), n) for Y in (X, V))
    RX = R @ X
    first = np.einsum("si,si->i", X, RX) + unit * x * x
    cross = np.maximum(0.0, np.abs(np.einsum("si,si->i", V, RX)) - unit * x * v)
    last = 1 + np.einsum("si,si->i", V, R @ V) + unit * v * v
    # Both parts are rounded a few times; that first is not small is the usual case.
    value = above(np.maximum(first, 0.0)) - below(cross**2 / last)
    return value <= 1 - 64 * UNIT * (1 + np.abs(first))
