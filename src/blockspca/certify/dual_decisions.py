"""Which features the direction dual's bound leaves only one choice for.

With M the sum of a node (see `dual_node`) and m features still to be chosen, a feature
i that must be inside has the term c_i c_i' − ρ instead of κ_i z_i z_i'; one that must
not has none.  Where either keeps the bound at or below τ, it is decided:

    λmax(M − κzz' + cc') ≤ τ − (m − 1) ρ   →  i is in no better set,
    λmax(M − κzz')       ≤ τ − m ρ         →  i is in every better set.

Both are read off the eigenvectors of M.  With S = (tI − M)⁻¹ for t > λmax(M), the first
holds if T = c'Sc − κ(c'Sz)² / (1 + κ z'Sz) < 1.  If exactly one eigenvalue of M is
above t, the second holds if 1 + κ z'Sz < 0, as the determinant then changes its sign.

A column that has no term in M is ruled out by the first test without κ: c'Sc < 1.

**Reach.**  A feature that adds nothing still fills a place worth ρ: while the gap is
above ρ, none is ruled out.  But better sets have y'My > θ = τ − mρ, with y their
direction.  With 0 < e < 1, g = λmax(M) − θ and P = I + (e/g)(θI − M), P is positive
definite and y'Py < 1, so that

    (c'y)² ≤ (c'P⁻¹c)(y'Py) < c'P⁻¹c.

Where that reach is at most ρ, the column needs no term, as if ‖c‖² ≤ ρ, at this node
and those that it is split into.  It costs one quadratic form a column.

**Rounding.**  T is concave in the three forms, so that what their errors can add to it
is at most what they add to its tangent: with γ = κ|c'Sz| / (1 + κ z'Sz), errors of
r‖S‖ times the sizes of the two vectors of a form add no more than r‖S‖ (|c| + γ|z|)².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .columns import Columns
from .direction_dual import Relaxation

_EPS = float(np.finfo(float).eps)
_MARGIN = 1e-6  # by which a feature must be decided
_INWARD = 0.6  # of y'My's way from θ to the largest: how much of it P takes


class Decisions:
    """The tests for all columns of a relaxation at once.

    Parameters
    ----------
    columns : Columns
    relaxation : Relaxation
        Of these columns; its terms are part of M.
    M : array of shape (n, n)
    rounding : float
        By which M may be off.
    """

    def __init__(
        self,
        columns: Columns,
        relaxation: Relaxation,
        M: FloatArray,
        rounding: float,
    ) -> None:
        self.columns, self.relaxation = columns, relaxation
        self.values, self.vectors = np.linalg.eigh(M)
        n = len(M)
        # What LAPACK decomposes is off by this, the terms in question included.
        self.error = 2 * (rounding + 8 * n * _EPS * float(np.abs(self.values).max()))
        H = relaxation.H
        lengths = np.zeros(columns.shape[1])
        lengths[: H.shape[1]] = np.sqrt(np.einsum("ij,ij->j", H, H))
        self.sizes = columns.sizes + lengths  # of c + Qh
        # Relative rounding error of c'Sc and the like, as a sum over n terms
        self.relative = 64 * (n + 4) * _EPS * np.sqrt(n)
        self._last: tuple[float, FloatArray] | None = None

    @property
    def ceiling(self) -> float:
        """At least λmax(M)."""
        return float(self.values[-1]) + self.error

    def reach(self, columns: Columns, theta: float) -> FloatArray:
        """Return at least (c'y)² for every unit y with y'My > θ, θ < λmax(M)."""
        theta -= self.error
        gap = float(self.values[-1]) - theta
        if not gap > 0:  # there is no such y
            return np.zeros(columns.shape[1])
        P = 1 + _INWARD / gap * (theta - self.values)
        forms = columns.forms(_product(self.vectors, 1 / P))
        return forms + self.relative * columns.sizes**2 / (1 - _INWARD)

    def rules_out(self, columns: Columns, t: float) -> NDArray[np.bool_]:
        """Tell for which of other columns, with no term in M, λmax(M + cc') ≤ t."""
        t -= self.error
        room = t - self.values[-1]
        if not room > 0:
            return np.zeros(columns.shape[1], dtype=bool)
        test = columns.forms(self._resolvent(t))
        test += self.relative * columns.sizes**2 / room
        return test < 1 - _MARGIN

    def cannot_be_inside(self, t: float) -> NDArray[np.bool_]:
        """Tell for which λmax(M − κzz' + cc') ≤ t."""
        D, t = self.relaxation.D, t - self.error
        room = t - self.values[-1]
        if not room > 0:
            return np.zeros(len(D), dtype=bool)
        cSc, cSz, zSz = self._forms(self._resolvent(t))
        slope = D * np.abs(cSz) / (1 + D * np.maximum(zSz, 0.0))
        test = cSc - slope * np.abs(cSz)
        test += (
            2 * self.relative * (self.columns.sizes + slope * self.sizes) ** 2 / room
        )
        return test < 1 - _MARGIN

    def cannot_be_outside(self, t: float) -> NDArray[np.bool_]:
        """Tell for which λmax(M − κzz') ≤ t."""
        values, D, t = self.values, self.relaxation.D, t - self.error
        if len(values) < 2 or not values[-2] < t < values[-1]:
            return np.zeros(len(D), dtype=bool)
        # z'Sz, the negative term apart: where t is near λmax it is all that counts.
        top, others = self.vectors[:, -1:], self.vectors[:, :-1]
        Q, H = self.relaxation.Q, self.relaxation.H
        along = self.columns.project(top)[0]
        along[: H.shape[1]] += (top.T @ Q)[0] @ H
        along = np.maximum(np.abs(along) - self.relative * self.sizes, 0.0)
        _, _, zSz = self._forms(_product(others, 1 / (t - values[:-1])))
        zSz += self.relative * self.sizes**2 / (t - values[-2])
        return D * along**2 / (values[-1] - t) > 1 + D * zSz + _MARGIN

    def _resolvent(self, t: float) -> FloatArray:
        """Return (tI − M)⁻¹, which two tests share."""
        if self._last is None or self._last[0] != t:
            self._last = t, _product(self.vectors, 1 / (t - self.values))
        return self._last[1]

    def _forms(self, S: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return c'Sc, c'Sz and z'Sz for z = c + Qh, of every column."""
        Q, H = self.relaxation.Q, self.relaxation.H
        SQ, m = S @ Q, H.shape[1]
        cSc = self.columns.forms(S)
        cSz, zSz = cSc.copy(), cSc.copy()
        cSQh = np.einsum("ij,ij->j", H, self.columns.head(m).project(SQ))
        cSz[:m] += cSQh
        zSz[:m] += 2 * cSQh + np.einsum("ij,ij->j", H, (Q.T @ SQ) @ H)
        return cSc, cSz, zSz


def _product(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Return V diag(weights) V'."""
    return np.asarray((vectors * weights) @ vectors.T)
