"""Forms UI − M of the rules "entry", "entry-tree" and "compositions", in float64.

A form is a matrix X in float64 and one number `error`, of which it is known that the
exact form is X + E + D with |E_ij| ≤ error and D diagonal, D_ii ≥ 0: that what is added
to the diagonal of M is rounded up does no harm.

Weights. ŵ_i is the float64 nearest to w_i times the root of `factor`, or one near it,
and exact from then on. **Errors.** Entries of Ã are known within `product_error`. In
X_ij = fl(fl(fl(ŵ_i ŵ_j) s_ij/2¹⁴) − Â_ij) two products are rounded, and the result:
2.01u ŵ_i ŵ_j + u|X_ij| at the most. X_ii = fl(fl(U − Â_ii) − fl(c ŵ_i²)), the last of
which is rounded up, errs by u(|U| + |Â_ii|) + u|X_ii|. 4u times the sum of the largest
of all of these is more. As x has k entries, `error` costs k times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from .arithmetic import Weighted
from .entry_file import SHARE_BITS, share_matrix
from .fields import ProofError
from .floats import FloatMatrix
from .positive import inverse
from .screening import TINY, TINY_NORM, UNIT, above
from .sparse_positive import is_shown_in_floats

LARGEST_FACTOR = 2**400
# An eighth of the room that writers leave where N must be below U.
PART_OF_ROOM = 2.0**-23


@dataclass(frozen=True)
class FloatForm:
    """X, within `error` an entry."""

    X: np.ndarray
    error: float


@dataclass(frozen=True)
class FloatBorders:
    """Columns c, 0 at their own place, and corners, within `error` an entry.

    Vectors have at most k entries.
    """

    C: np.ndarray
    corners: np.ndarray
    places: np.ndarray
    error: float
    k: int


class FloatForms:
    """Makes forms of Ã in float64, and shows that they are not negative."""

    def __init__(self, matrix: FloatMatrix) -> None:
        self.matrix = matrix

    # -- numbers --------------------------------------------------------------------

    def weights(self, values: Sequence[float]) -> np.ndarray:
        """Return ŵ for numbers w ≥ 0."""
        squares = [Fraction(value) ** 2 * self.matrix.factor for value in values]
        if max(squares, default=0) > LARGEST_FACTOR:
            raise ProofError("a weight is out of all proportion to the data")
        return np.array([sqrt(float(square)) for square in squares])

    def signed_weights(self, values: Sequence[float]) -> np.ndarray:
        """Return v̂ for numbers v of any sign."""
        return np.sign(values) * self.weights([abs(value) for value in values])

    def squares_above(self, v: np.ndarray) -> np.ndarray:
        """Return v̂² in the unit of `UpperBounds`, rounded up."""
        return above(v * v)

    def weights_below(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded down."""
        return w

    def weights_above(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded up."""
        return w

    def from_above(self, value: float) -> Fraction:
        """Return a number of the unit of `UpperBounds` as one of the matrix."""
        return Fraction(value)

    def rounded_up(self, values: np.ndarray) -> np.ndarray:
        """Return numbers of the unit of `UpperBounds` in that of squares of weights."""
        return values

    # -- forms ----------------------------------------------------------------------

    def point(self, given: Weighted[Fraction], raised: Sequence[Fraction]) -> FloatForm:
        """UI − M, M_ii = A_ii + raised_i ŵ_i², M_ij = A_ij − 2⁻¹⁴ s_ij ŵ_i ŵ_j."""
        A, w = given.A, given.w
        moved = np.outer(w, w) * share_matrix(given.shares, len(w)) * 2.0**-SHARE_BITS
        return self._form(moved - A, A, w, raised, given.upper)

    def dense(
        self, given: Weighted[Fraction], core: np.ndarray, beside: np.ndarray
    ) -> FloatForm:
        """Return UI − M − Diag(δ) of rule "entry"; `core` are places, δ is `beside`."""
        A, w = given.A, given.w
        products = np.outer(w, w)
        X = -np.sign(A) * np.maximum(np.abs(A) - products, 0.0)
        inner = np.ix_(core, core)
        share = share_matrix(given.shares, len(core)) * 2.0**-SHARE_BITS
        X[inner] = products[inner] * share - A[inner]
        form = self._form(X, A, w, [Fraction(given.k - 1)] * len(w), given.upper)
        # One more difference is rounded, of numbers of which δ is the largest.
        more = 4 * UNIT * float(np.abs(beside).max(initial=0.0))
        np.fill_diagonal(form.X, np.diagonal(form.X) - beside)
        return FloatForm(form.X, form.error + 2 * more)

    def _form(
        self,
        X: np.ndarray,
        A: np.ndarray,
        w: np.ndarray,
        raised: Sequence[Fraction],
        upper: Fraction,
    ) -> FloatForm:
        added = above(above(_rounded(raised)) * above(w * w)) if len(w) else w
        np.fill_diagonal(X, float(upper) - np.diagonal(A) - added)
        sizes = [float(np.abs(part).max(initial=0.0)) for part in (A, X, w * w)]
        size = abs(float(upper)) + sum(sizes)
        error = self.matrix.product_error + 4 * UNIT * size + TINY
        return FloatForm(X, float(above(error)))

    def without(self, form: FloatForm, keep: np.ndarray) -> FloatForm:
        """Return the form on some of its rows."""
        return FloatForm(form.X[np.ix_(keep, keep)], form.error)

    def is_positive(self, form: FloatForm, k: int) -> bool:
        """Show that the form is not negative for vectors of k entries."""
        return is_shown_in_floats(form.X, form.error, k)

    def bounds_part(
        self, features: Sequence[int], t: Fraction, v: np.ndarray, k: int
    ) -> bool:
        """Show that tI + vv' − Ã is not negative for vectors of k entries."""
        A = self.matrix.block(features)
        X = np.outer(v, v) - A
        # v_i² + t − A_ii, rounded three times.
        np.fill_diagonal(X, v * v + (float(t) - np.diagonal(A)))
        sizes = [float(np.abs(part).max()) for part in (A, X, v * v)]
        error = 4 * UNIT * (abs(float(t)) + sum(sizes)) + TINY
        error = float(above(self.matrix.product_error + error))
        return is_shown_in_floats(X, error, k)

    # -- features that are out ------------------------------------------------------

    def columns(
        self,
        given: Weighted[Fraction],
        places: np.ndarray,
        own: np.ndarray,
        price: float,
    ) -> FloatBorders:
        """Return c and U − Ã_ii − au² of the features at `places`."""
        A, w, upper = given.A, given.w, given.upper
        share = share_matrix(given.shares, len(w))[:, places] * 2.0**-SHARE_BITS
        C = A[:, places] - np.outer(w, own) * share
        C[places, np.arange(len(places))] = 0.0
        squares = above(price * above(own * own))
        first = np.diagonal(A)[places]
        corners = float(upper) - first - squares
        sizes = [float(np.abs(part).max()) for part in (C, corners, first)]
        size = sum(sizes) + (w.max() + own.max()) ** 2 + abs(float(upper))
        error = above(self.matrix.product_error + 4 * UNIT * size + TINY)
        return FloatBorders(C, corners, places, float(error), given.k)

    def bordered(self, form: FloatForm, columns: FloatBorders, t: int) -> FloatForm:
        """Return the form of t and y for the t-th of the features that are out."""
        X, i = form.X.copy(), columns.places[t]
        X[i] = X[:, i] = -columns.C[:, t]
        X[i, i] = columns.corners[t]
        return FloatForm(X, max(form.error, columns.error))

    def are_out(
        self, form: FloatForm, columns: FloatBorders, upper: Fraction
    ) -> np.ndarray:
        """Say which features are shown to be out, all at once.

        The exact forms are those of X and c in float64, and of U − k·error in the place
        of U, or more: x = (t, y) has k entries. For these numbers y is any vector,
        z = c − By is computed within η, and

            c'y + y'z + (‖z‖ + η)²/γ + ‖y‖η ≤ U − Ã_ii − au² − k·error

        is shown; a product of vectors errs by at most 1.01(g + 2)u times their norms.
        """
        places, size = columns.places, len(form.X)
        at = (places, np.arange(len(places)))
        largest = float(np.abs(form.X).max())
        # what U − k·error on the diagonal is rounded by is taken off as well
        lost = columns.k * max(form.error, columns.error) + 2 * UNIT * largest
        lost = float(above(lost))
        gamma = PART_OF_ROOM * abs(float(upper))
        X = form.X - lost * np.eye(size)
        lower = X - gamma * np.eye(size)
        rounded = 4 * UNIT * (largest + lost + gamma)
        if not gamma > 0 or not is_shown_in_floats(lower, rounded, size):
            return np.zeros(len(places), dtype=bool)
        G, C = inverse(X), columns.C
        Y = G @ C
        Y -= G[:, places] * (Y[at] / G[places, places])
        Y[at] = 0.0
        Z = C - X @ Y
        Z[at] = 0.0
        unit = 1.01 * (size + 4) * UNIT
        eta = above(unit * _norms(np.abs(X) @ np.abs(Y) + np.abs(C)), size)
        c, y, z = _norms(C), _norms(Y), _norms(Z)
        value = np.einsum("ij,ij->j", C, Y) + np.einsum("ij,ij->j", Y, Z)
        more = above(unit * y * (c + z) + y * eta + above((z + eta) ** 2) / gamma)
        scale = np.abs(columns.corners) + np.abs(value) + lost
        return columns.corners - lost - value >= above(more + 8 * UNIT * scale)


def _norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of the columns, rounded up."""
    return above(np.sqrt(np.einsum("ij,ij->j", X, X)) + TINY_NORM, len(X))


def _rounded(numbers: Sequence[Fraction]) -> np.ndarray:
    """Return numbers of at least 0 in float64, within u of them."""
    if max(numbers, default=0) > LARGEST_FACTOR:
        raise ProofError("a ratio or price is out of all proportion")
    return np.array([float(number) for number in numbers])
