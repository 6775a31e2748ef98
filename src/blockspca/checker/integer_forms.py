"""Forms UI − M of the rules "entry", "entry-tree" and "compositions", in integers.

The unit of Ã is 2^exponent, exponent = 2h or 2h + 1. Ŵ_i is w_i in units of 2^(h − 40),
rounded down, which leaves most w_i as they are. A form is counted in units of
2^(2h − 94), so that 2⁻¹⁴ s_ij ŵ_i ŵ_j is s_ij Ŵ_i Ŵ_j; Ã_ij in units of 2^(2h − 80),
that of squares of weights, is Ã_ij times a power of two. All is exact but what is added
to the diagonal of M, which is rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from .arithmetic import Weighted
from .entry_file import SHARE_BITS, share_matrix
from .exact_entries import shifted
from .fields import ProofError
from .integer_bounds import BITS
from .integers import LARGEST, IntegerMatrix
from .positive import inverse
from .screening import above
from .sparse_positive import is_shown_in_integers

WEIGHT_BITS = 40
VECTOR_BITS = 48  # of the y that show that a feature is out
LARGEST_RAISE = 2**400
GAMMA_BITS = 23  # γ = |U|/2^23: an eighth of the room that writers leave

Raises = Sequence[Fraction]


@dataclass(frozen=True)
class IntegerBorders:
    """Columns c, 0 at their own place, and corners."""

    C: np.ndarray
    corners: list[int]
    places: np.ndarray


class IntegerForms:
    """Makes forms of Ã in integers, and shows that they are not negative."""

    def __init__(self, matrix: IntegerMatrix) -> None:
        self.matrix = matrix
        self.half, is_odd = divmod(matrix.exponent, 2)
        self.square_bits = 2 * WEIGHT_BITS + is_odd
        self.form_bits = self.square_bits + SHARE_BITS

    # -- numbers --------------------------------------------------------------------

    def weights(self, values: Sequence[float]) -> np.ndarray:
        """Return Ŵ for numbers w ≥ 0."""
        unit = Fraction(2) ** (WEIGHT_BITS - self.half)
        found = [int(Fraction(value) * unit) for value in values]
        if max(found, default=0) > 2 ** (LARGEST // 2):
            raise ProofError("a weight is out of all proportion to the data")
        return _objects(found)

    def signed_weights(self, values: Sequence[float]) -> np.ndarray:
        """Return V̂ for numbers v of any sign."""
        found = self.weights([abs(value) for value in values])
        return np.where(np.array(values) < 0, -found, found)

    def squares_above(self, v: np.ndarray) -> np.ndarray:
        """Return v̂² in the unit of `UpperBounds`, rounded up."""
        unit = 2 ** (self.square_bits + BITS)
        return above(np.array([x * x / unit for x in v]))

    def weights_below(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded down."""
        return self._in_floats(w) * (1 - 2.0**-50)

    def weights_above(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded up."""
        return self._in_floats(w) * (1 + 2.0**-50)

    def _in_floats(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, within 4u of it."""
        root = 2 ** (WEIGHT_BITS + BITS // 2)
        is_odd = self.square_bits % 2
        return np.array([weight / root for weight in w]) / sqrt(1 + is_odd)

    def from_above(self, value: float) -> int:
        """Return a number of the unit of `UpperBounds`, rounded up to one of Ã."""
        return ceil(Fraction(value) * 2**BITS)

    def rounded_up(self, values: np.ndarray) -> list[int]:
        """Return numbers of the unit of `UpperBounds` in that of squares of weights."""
        return [self.from_above(x) << self.square_bits for x in values.tolist()]

    # -- forms ----------------------------------------------------------------------

    def point(self, given: Weighted[int], raised: Raises) -> np.ndarray:
        """UI − M, M_ii = A_ii + raised_i ŵ_i², M_ij = A_ij − 2⁻¹⁴ s_ij ŵ_i ŵ_j."""
        A, w = given.A, given.w
        X = np.outer(w, w) * _whole(share_matrix(given.shares, len(w)))
        X -= A << self.form_bits
        self._set_diagonal(X, A, w, raised, given.upper)
        return X

    def dense(
        self, given: Weighted[int], core: np.ndarray, beside: Sequence[int]
    ) -> np.ndarray:
        """Return UI − M − Diag(δ) of rule "entry"; `core` are places, δ is `beside`."""
        A, w = given.A, given.w
        products = np.outer(w, w)
        X = np.maximum((np.abs(A) << self.square_bits) - products, 0) << SHARE_BITS
        X = np.where(A > 0, -X, X)
        inner = np.ix_(core, core)
        share = _whole(share_matrix(given.shares, len(core)))
        X[inner] = products[inner] * share - (A[inner] << self.form_bits)
        self._set_diagonal(X, A, w, [Fraction(given.k - 1)] * len(w), given.upper)
        for i, more in enumerate(beside):
            X[i, i] -= more << SHARE_BITS
        return X

    def _set_diagonal(
        self, X: np.ndarray, A: np.ndarray, w: np.ndarray, raised: Raises, upper: int
    ) -> None:
        """Write (U − A_ii) − raised_i ŵ_i² on the diagonal."""
        if max(raised, default=0) > LARGEST_RAISE:
            raise ProofError("a ratio or price is out of all proportion")
        for i, factor in enumerate(raised):
            added = ceil(factor * w[i] ** 2 * 2**SHARE_BITS)
            X[i, i] = ((upper - A[i, i]) << self.form_bits) - added

    def without(self, form: np.ndarray, keep: np.ndarray) -> np.ndarray:
        """Return the form on some of its rows."""
        return form[np.ix_(keep, keep)]

    def is_positive(self, form: np.ndarray, k: int) -> bool:
        """Show that the form is not negative for vectors of k entries."""
        return is_shown_in_integers(form, k)

    def bounds_part(
        self, features: Sequence[int], t: int, v: np.ndarray, k: int
    ) -> bool:
        """Show that tI + vv' − Ã is not negative for vectors of k entries."""
        X = np.outer(v, v) - (self.matrix.block(features) << self.square_bits)
        for i in range(len(X)):
            X[i, i] += t << self.square_bits
        return is_shown_in_integers(X, k)

    # -- features that are out ------------------------------------------------------

    def columns(
        self, given: Weighted[int], places: np.ndarray, own: np.ndarray, price: float
    ) -> IntegerBorders:
        """Return c and U − Ã_ii − au², rounded down, of the features at `places`."""
        A, w = given.A, given.w
        share = _whole(share_matrix(given.shares, len(w)))[:, places]
        C = (A[:, places] << self.form_bits) - np.outer(w, own) * share
        C[places, np.arange(len(places))] = 0
        corners = [
            ((given.upper - A[i, i]) << self.form_bits)
            - ceil(Fraction(price) * u * u * 2**SHARE_BITS)
            for i, u in zip(places, own, strict=True)
        ]
        return IntegerBorders(C, corners, places)

    def bordered(self, form: np.ndarray, columns: IntegerBorders, t: int) -> np.ndarray:
        """Return the form of t and y for the t-th of the features that are out."""
        X, i = form.copy(), columns.places[t]
        X[i] = X[:, i] = -columns.C[:, t]
        X[i, i] = columns.corners[t]
        return X

    def are_out(
        self, form: np.ndarray, columns: IntegerBorders, upper: int
    ) -> np.ndarray:
        """Say which features are shown to be out, all at once.

        With y = Y/2^b and z = Z/2^b in integers, Z = 2^b c − BY, what is compared is
        γ (2^b c'Y + Y'Z) + Z'Z ≤ 4^b γ (U − Ã_ii − au²).
        """
        C, places = columns.C, columns.places
        gamma = (abs(upper) << self.form_bits) >> GAMMA_BITS
        lower = form.copy()
        np.fill_diagonal(lower, lower.diagonal() - gamma)
        if gamma <= 0 or not is_shown_in_integers(lower, len(form)):
            return np.zeros(len(places), dtype=bool)
        Y = _near_solution(form, C, places)
        Z = (C << VECTOR_BITS) - np.dot(form, Y)
        Z[places, np.arange(len(places))] = 0
        found = []
        for t, corner in enumerate(columns.corners):
            c, y, z = C[:, t], Y[:, t], Z[:, t]
            left = gamma * ((np.dot(c, y) << VECTOR_BITS) + np.dot(y, z)) + np.dot(z, z)
            found.append(left <= gamma * corner << 2 * VECTOR_BITS)
        return np.array(found, dtype=bool)


def _near_solution(X: np.ndarray, C: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return 2^b y, about B⁻¹c for each column, with y_i = 0: from float64."""
    bits = np.abs(X).max().bit_length()
    small, right = (shifted(part, 62 - bits).astype(float) / 2.0**62 for part in (X, C))
    with np.errstate(all="ignore"):
        G = inverse(small)
        Y = G @ right
        columns = np.arange(len(places))
        Y -= G[:, places] * (Y[places, columns] / G[places, places])
    Y[places, columns] = 0.0
    if not (np.abs(Y) < 2.0**200).all():
        Y = np.zeros_like(Y)
    return _objects([[int(y) for y in row] for row in np.ldexp(Y, VECTOR_BITS)])


def _whole(values: np.ndarray) -> np.ndarray:
    """Return integers in float64 as Python's."""
    return values.astype(np.int64).astype(object)


def _objects(values: Sequence[object]) -> np.ndarray:
    found = np.array(values, dtype=object)
    return found if found.size else found.astype(object)
