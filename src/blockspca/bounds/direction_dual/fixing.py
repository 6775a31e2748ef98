"""Reduced-cost fixing: features that the direction dual's bound leaves one choice for.

With M the sum of a node (see `node`) and m features still to be chosen, a feature
i that is fixed in has the term c_i c_i' − ρ instead of κ_i z_i z_i'; one that is fixed
out has none.  Where either keeps the bound at or below τ, the other is the case:

    λmax(M − κzz' + cc') ≤ τ − (m − 1) ρ   →  i is in no better set, fixed out,
    λmax(M − κzz')       ≤ τ − m ρ         →  i is in every better set, fixed in.

For both, tI − N + κzz' − cc' has to be positive semidefinite, N = M in the first.  If
S = (tI − N)⁻¹ is positive definite, that is so if

    T = c'(S⁻¹ + κzz')⁻¹c = c'Sc − κ(c'Sz)² / (1 + κ z'Sz) ≤ 1.

In the second t is below λmax(M): there N = M − βqq' and c = √β q, for any β and q, but
only near the leading direction will S be positive definite.  A column that has no term
in M is ruled out by the first test without κ: c'Sc ≤ 1.

**Projections.**  A feature that adds nothing still fills a place worth ρ: while the gap
is above ρ, none is ruled out.  But better sets have y'My > θ = τ − mρ, with y their
direction.  With 0 < e < 1, g ≥ λmax(M) − θ and P = I + (e/g)(θI − M), P is positive
definite and y'Py < 1, so that

    (c'y)² ≤ (c'P⁻¹c)(y'Py) < c'P⁻¹c.

Where that bound is at most ρ, the column needs no term, as if ‖c‖² ≤ ρ, at this node
and those that it is split into.  It costs one quadratic form a column, with (e/g) P⁻¹
the inverse of tI − M, t = θ + g/e.

**Rounding.**  A Cholesky factorization LL' of A = tI − N is one of a matrix within
γ tr(A) of A (see `upper_eigenvalues`), for which t leaves room, and as much again for
the rounding of N.  What is computed as L⁻¹ is (I + F)L⁻¹ with ‖F‖ ≤ f = 8(n + 4) eps
√(tr(A) tr(S)) (Higham 2002, chapter 14), so that S is at most (1 − f)⁻² times what is
computed, as matrices, and T at most that times T: it rises with S, and by no larger
factor.  Products and forms are off by r = 16(n + 4) eps tr(S) times the sizes of their
vectors.  T is concave in the three forms, so that these add to it at most what they add
to its tangent: with γ = κ|c'Sz| / (1 + κ z'Sz), no more than r (|c| + γ|z|)².

References
----------
Higham (2002), Accuracy and stability of numerical algorithms, second edition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri

from ..._validation import FloatArray
from ...numerics.rounding import EPS
from ...numerics.upper_eigenvalues import eigenvalue_ceiling
from .columns import HostColumns
from .relaxation import Relaxation
from .settings import DEFAULT, DualSettings

_MARGIN = 1e-6  # by which a test must hold: more than all that rounding can do to it
_LARGEST_ERROR = 1e-3  # of a factor, f: with a larger one nothing would be fixed


@dataclass(frozen=True)
class _Resolvent:
    """S = (tI − N)⁻¹, what it is off by for a pair of vectors, and as a factor."""

    S: FloatArray
    error: float
    factor: float


class ReducedCostFixing:
    """The tests for all columns of a relaxation at once.

    Parameters
    ----------
    relaxation : Relaxation
        Of these columns; its terms are part of M.
    M : array of shape (n, n)
    rounding : float
        By which M may be off.
    direction : array of shape (n,)
        Near the leading one of M.
    """

    def __init__(
        self,
        columns: HostColumns,
        relaxation: Relaxation,
        M: FloatArray,
        rounding: float,
        direction: FloatArray,
        settings: DualSettings = DEFAULT,
    ) -> None:
        self.columns, self.relaxation, self.M = columns, relaxation, M
        self.settings = settings
        self.leading, self.height = _leading(M, direction)
        estimate = self.height if settings.is_large(len(M)) else None
        self.ceiling = eigenvalue_ceiling(M, estimate) + rounding  # of λmax
        self.rounding = 2 * rounding  # the terms in question included
        H = relaxation.H
        lengths = np.zeros(columns.shape[1])
        lengths[: H.shape[1]] = np.sqrt(np.einsum("ij,ij->j", H, H))
        self.sizes = columns.sizes + lengths  # of c + Qh
        self._last: tuple[float, _Resolvent | None] | None = None

    def projection_bound(self, columns: HostColumns, theta: float) -> FloatArray:
        """Return at least (c'y)² for every unit y with y'My > θ, θ < λmax(M)."""
        theta -= self.rounding
        gap = self.ceiling - theta
        if gap <= 0:  # there is no such y
            return np.zeros(columns.shape[1])
        # Not more than a part of λmax too small, or rounding would be all.
        gap = max(gap, 1e-9 * abs(self.ceiling))
        share = self.settings.ellipsoid_share
        found = self._resolvent(theta + gap / share)
        most = (1 + 8 * (len(self.M) + 4) * EPS) * columns.sizes**2
        if found is None:
            return most
        forms = found.factor * (columns.forms(found.S) + found.error * columns.sizes**2)
        return np.minimum(gap / share * forms, most)

    def rules_out(self, columns: HostColumns, t: float) -> NDArray[np.bool_]:
        """Tell for which of other columns, with no term in M, λmax(M + cc') ≤ t."""
        found = self._resolvent(t)
        if found is None:
            return np.zeros(columns.shape[1], dtype=bool)
        test = columns.forms(found.S) + found.error * columns.sizes**2
        return found.factor * test < 1 - _MARGIN

    def can_fix_out(self, t: float) -> NDArray[np.bool_]:
        """Tell for which λmax(M − κzz' + cc') ≤ t."""
        found = self._resolvent(t)
        if found is None:
            return np.zeros(self.columns.shape[1], dtype=bool)
        cSc, cSz, zSz = self._forms(found.S)
        return self._holds(found, cSc, cSz, zSz, self.columns.sizes)

    def can_fix_in(self, t: float) -> NDArray[np.bool_]:
        """Tell for which λmax(M − κzz') ≤ t."""
        none = np.zeros(self.columns.shape[1], dtype=bool)
        if not self.height > t:
            return none
        root = self._root(t)
        q = root * self.leading
        found = self._invert(t, self.M - np.outer(q, q))
        if found is None:
            return none
        Sq = found.S @ q
        along = self.columns.project(Sq[:, None])[0]
        Q, H = self.relaxation.Q, self.relaxation.H
        along[: H.shape[1]] += (Q.T @ Sq) @ H
        _, _, zSz = self._forms(found.S)
        return self._holds(found, float(q @ Sq), along, zSz, root)

    def _root(self, t: float) -> float:
        """√β: S is positive, and has not lost q."""
        return float(np.sqrt(4 * max(self.height - t, 0.0)))

    def deflating(self, t: float, least: float) -> FloatArray:
        """√β q with β ≥ least, by which M is deflated to see what is needed at t.

        What the test says does not depend on β, but with a small one its matrix is
        nearly singular.
        """
        return max(self._root(t), float(np.sqrt(least))) * self.leading

    def _holds(
        self,
        found: _Resolvent,
        cSc: FloatArray | float,
        cSz: FloatArray,
        zSz: FloatArray,
        sizes: FloatArray | float,
    ) -> NDArray[np.bool_]:
        """Tell where T < 1, for vectors c of the given sizes."""
        D = self.relaxation.D
        slope = D * np.abs(cSz) / (1 + D * np.maximum(zSz, 0.0))
        test = cSc - slope * np.abs(cSz)
        test += found.error * (sizes + slope * self.sizes) ** 2
        return np.asarray(found.factor * test < 1 - _MARGIN)

    def _resolvent(self, t: float) -> _Resolvent | None:
        """Return (tI − M)⁻¹, which two tests share; None if it is not positive."""
        if self._last is None or self._last[0] != t:
            self._last = t, self._invert(t, self.M)
        return self._last[1]

    def _invert(self, t: float, N: FloatArray) -> _Resolvent | None:
        n = len(N)
        A = -N
        trace = n * abs(t) + float(np.abs(np.diagonal(N)).sum())
        A[np.diag_indices(n)] += t - self.rounding - 2 * (n + 4) * EPS * trace
        L, failed = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return None
        half, failed = dpotri(L, lower=1, overwrite_c=1)
        trace_of_S = float(np.trace(half))
        f = 8 * (n + 4) * EPS * np.sqrt(trace * abs(trace_of_S))
        if failed or not f < _LARGEST_ERROR:  # or it is not a number
            return None
        S = np.tril(half)
        S += np.tril(half, -1).T
        return _Resolvent(S, 16 * (n + 4) * EPS * trace_of_S, 1 / (1 - f) ** 2)

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


def _leading(M: FloatArray, q: FloatArray) -> tuple[FloatArray, float]:
    """Return nearly the leading direction, and its y'My: the best of q, Mq, M²q, …"""
    powers = [q]
    for _ in range(4):  # q is near it already
        image = M @ powers[-1]
        length = float(np.linalg.norm(image))
        if not length > 0:
            break
        powers.append(image / length)
    V = np.linalg.qr(np.column_stack(powers))[0]
    values, vectors = np.linalg.eigh(V.T @ M @ V)
    return V @ vectors[:, -1], float(values[-1])
