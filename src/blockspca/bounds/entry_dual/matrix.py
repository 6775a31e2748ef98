"""The matrix of the entry dual, its leading eigenvectors and the slope of its λmax.

For weights w ≥ 0 and a symmetric U with a zero diagonal and |U_ij| ≤ w_i w_j,

    M = A − U + (k − 1) Diag(w_i²),        opt(k) ≤ λmax(M)        (see `proof.py`).

Between features of the *core* U_ij = V_ij w_i w_j, with V free in [−1, 1]; all other
entries are moved towards zero as far as w allows,

    M_ij = sign(A_ij) max(|A_ij| − w_i w_j, 0),

so that only pairs with |A_ij| > w_i w_j are left.  M is sparse beside the core.

The ascent works with λ_μ = μ log Σ exp(λ_r(M)/μ) over the leading eigenvalues.  With
the density P = Σ p_r q_r q_r', p_r ∝ exp(λ_r/μ), its slope is

    ∂/∂w_i = 2(k − 1) P_ii w_i − 2 Σ_j P_ij V_ij w_j,     ∂/∂V_ij = −2 P_ij w_i w_j,

with V_ij = sign(A_ij) for a pair outside the core that is not zero in M.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import EPS
from .leading import LeadingPairs
from .pairs import Pairs

_SMALL = 160  # up to this order all eigenvectors are computed
_SINGLE = 300  # features of a core from which single precision takes half the time
_ACCURACY = 0.1  # of μ, that the residual of the leading eigenvector may be
# Relative, of a residual from which on single precision tells it.
_SINGLE_TOLERANCE = 16 * float(np.finfo(np.float32).eps)
_CUT_OFF = 0.02  # the same, of the last of those that are followed
_NOTICED = 1e-4  # weight of an eigenvector, beside the largest, that counts


@dataclass(frozen=True)
class Slope:
    """λ_μ at a point, λmax as far as it is known, and the derivatives."""

    value: float
    largest: float
    of_weights: FloatArray
    of_shares: FloatArray
    presence: FloatArray  # P_ii: how much of the density is at each feature


class DualMatrix:
    """M as a function of w and V, for a core and a list of strong pairs.

    Parameters
    ----------
    diagonal : array of shape (d,)
        A_ii.
    prices : array of shape (d,)
        What w_i² is multiplied by in M_ii: k − 1, or g_i of a node (`node.py`).
    core : array of int
        Ascending.
    block : array of shape (m, m)
        A between features of the core.
    pairs : Pairs
        All others with |A_ij| > ℓ_i ℓ_j.
    levels : array of shape (d,)
        ℓ, below which no weight may go.
    vectors : array of shape (d, 8), optional
        About the leading eigenvectors.
    """

    single_from = _SINGLE

    def __init__(
        self,
        diagonal: FloatArray,
        prices: FloatArray,
        core: NDArray[np.intp],
        block: FloatArray,
        pairs: Pairs,
        levels: FloatArray,
        vectors: FloatArray | None = None,
    ) -> None:
        self.diagonal, self.prices, self.core = diagonal, prices, core
        #: Of V and all arrays of its size: an ascent is guided, and proves nothing.
        self.kind = np.float32 if len(core) > self.single_from else np.float64
        self.block = block.astype(self.kind)
        np.fill_diagonal(self.block, 0.0)
        self.pairs, self.levels = pairs, levels
        self.order = len(diagonal)
        self.leading = LeadingPairs(self.order, vectors)
        # M beside the core as a sparse matrix, of which only the values change
        both = np.concatenate([pairs.rows, pairs.columns])
        others = np.concatenate([pairs.columns, pairs.rows])
        by_row = np.argsort(both, kind="stable")
        self._from = by_row % max(len(pairs), 1)
        self._columns = others[by_row].astype(np.int32)
        counts = np.bincount(both, minlength=self.order)
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def within_core(self, w: FloatArray, V: FloatArray) -> FloatArray:
        """M between features of the core, with a zero diagonal."""
        inside = w[self.core].astype(self.kind)
        M = V * inside
        M *= inside[:, None]
        np.subtract(self.block, M, out=M)
        return M

    def leading_pairs(
        self, w: FloatArray, V: FloatArray, mu: float
    ) -> tuple[FloatArray, FloatArray]:
        """Leading eigenvalues, ascending, and eigenvectors at a point."""
        diagonal = self.diagonal + self.prices * w * w
        _, outside = self._left(w)
        return self._eigenpairs(diagonal, self.within_core(w, V), outside, mu)

    def beside_core(self, w: FloatArray) -> tuple[Any, Any] | None:
        """M beside the core and its diagonal, and its signs; None if that is all."""
        if len(self.core) == self.order:
            return None
        from scipy.sparse import csr_array

        values = self._left(w)[1][self._from] if len(self.pairs) else np.empty(0)
        kept = values != 0
        starts = np.concatenate([[0], np.cumsum(kept)])[self._starts].astype(np.int32)
        values, at = values[kept].astype(np.float32), (self._columns[kept], starts)
        shape = (self.order, self.order)
        left, signs = (
            csr_array((entries, *at), shape=shape)
            for entries in (values, np.sign(values))
        )
        return left, signs

    def _left(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What weights leave of the pairs: sizes, and with their signs."""
        pairs = self.pairs
        product = w[pairs.rows] * w[pairs.columns]
        left = np.maximum(np.abs(pairs.values) - product, 0.0)
        return left, np.copysign(left, pairs.values)

    def _sparse(self, outside: FloatArray, kind: Any) -> Any:
        from scipy.sparse import csr_array

        d = self.order
        values = outside[self._from] if len(self.pairs) else outside
        return csr_array(
            (values.astype(kind), self._columns, self._starts), shape=(d, d)
        )

    def slope(self, w: FloatArray, V: FloatArray, mu: float) -> Slope:
        """Return λ_μ and its derivatives at a point."""
        core, pairs = self.core, self.pairs
        left, outside = self._left(w)
        diagonal = self.diagonal + self.prices * w * w
        within = self.within_core(w, V)
        values, Q = self._eigenpairs(diagonal, within, outside, mu)
        mu = max(mu, EPS * (abs(float(values[-1])) or 1.0))  # as sharp as numbers are
        p = np.exp((values - values[-1]) / mu)
        total = float(p.sum())
        p /= total
        if len(p) < self.order and p[0] > _CUT_OFF * p[-1]:
            self.leading.widen()  # for the next point: what is missing has weight, too
        kept = p > _NOTICED * p[-1]
        Q = Q[:, kept] * np.sqrt(p[kept])
        presence = np.einsum("ij,ij->i", Q, Q)
        of_weights = self.prices * presence * w
        at_core = Q[core].astype(self.kind)
        inside = w[core].astype(self.kind)
        P = at_core @ at_core.T
        of_weights[core] -= (P * V) @ inside
        active = np.flatnonzero(left)
        if len(active):
            rows, columns = pairs.rows[active], pairs.columns[active]
            between = np.einsum("ij,ij->i", Q[rows], Q[columns])
            between *= np.sign(pairs.values[active])
            of_weights -= np.bincount(rows, between * w[columns], self.order)
            of_weights -= np.bincount(columns, between * w[rows], self.order)
        P *= inside
        P *= -inside[:, None]
        np.fill_diagonal(P, 0.0)
        return Slope(
            float(values[-1] + mu * np.log(total)),
            float(values[-1]),
            2 * of_weights,
            P,
            presence,
        )

    def _eigenpairs(
        self, diagonal: FloatArray, within: FloatArray, outside: FloatArray, mu: float
    ) -> tuple[FloatArray, FloatArray]:
        """Leading eigenpairs of M, ascending, from its parts; `outside` are pairs."""
        d, core, pairs = self.order, self.core, self.pairs
        if d <= _SMALL:
            M = np.zeros((d, d))
            M[pairs.rows, pairs.columns] = M[pairs.columns, pairs.rows] = outside
            M[np.ix_(core, core)] = within
            M[np.diag_indices(d)] = diagonal
            all_values, vectors = np.linalg.eigh(M)
            return all_values, vectors
        tolerance = _ACCURACY * mu
        # Products in single precision err by some of its precisions, of M.
        is_wide = tolerance > _SINGLE_TOLERANCE * float(np.abs(diagonal).max())
        kind = self.kind if is_wide else np.float64
        if len(core) == d:
            within[np.diag_indices(d)] = diagonal
            M = within.astype(kind, copy=False)
            return self.leading.of(lambda X: M @ X, tolerance, kind)
        sparse = self._sparse(outside, kind)
        block, on_diagonal = within.astype(kind, copy=False), diagonal.astype(kind)

        def product(X: FloatArray) -> FloatArray:
            Y = sparse @ X
            Y += on_diagonal[:, None] * X
            Y[core] += block @ X[core]
            return Y

        return self.leading.of(product, tolerance, kind)
