"""Li and Xie's relaxation of their mixed-integer SDP, by a first-order method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from .._validation import FloatArray
from ..guarantee import within_factor
from ._relaxation import (
    Relaxation,
    centred,
    dual_value,
    onto_l1_cones,
    onto_second_order_cones,
    onto_simplex,
    onto_spectrahedron,
)

STEP_RATIO = 0.3  # primal to dual step, when the largest entry of A is 1
PRICES = (0.7, 0.9, 1.0, 1.1, 1.4)  # of a feature, around what the iterate suggests


class ConvexRelaxation(Relaxation):
    """Round the solution X of a relaxation with a weight z_i for each feature:

        max tr(AX)  s.t.  tr X = 1, X ⪰ 0, Σ z_i = k, z ≥ 0,
        Σ_j X_ij² ≤ X_ii z_i  and  (Σ_j |X_ij|)² ≤ k X_ii z_i  for all i.

    With z binary this is sparse PCA, exactly. It is at least as tight as
    `SemidefiniteRelaxation`, since summing the last constraint gives Σ|X_ij| ≤ k.

    Guarantee: for positive semidefinite A, objective ≥ OPT / min(k, d/k). One candidate
    contains the largest A_ii, and OPT ≤ k max A_ii. Another is the k largest entries of
    the leading eigenvector v, and A ⪰ λvv' gives λmax(A_SS) ≥ λ‖v_S‖² ≥ λk/d ≥ OPT·k/d.

    Parameters
    ----------
    tolerance : float
        Stop when 100 iterations have lowered the bound by less than this share of it.
    max_iterations : int

    Notes
    -----
    The bound comes from multipliers, never from X: for any matrices P and Q with rows
    p_i and q_i, any ρ > 0, and t_i = ‖p_i‖₂ + sqrt(k) ‖q_i‖∞,

        OPT ≤ λmax(A − (P + Q + P' + Q')/2 + diag(t_i²)/(4ρ)) + kρ,

    because ⟨P + Q, X⟩ ≤ Σ t_i sqrt(X_ii z_i) ≤ Σ (X_ii t_i²/(4ρ) + ρ z_i). It holds for
    indefinite A too and includes rounding. P and Q come from the primal-dual method of
    Chambolle and Pock, which needs only projections onto cones: O(d³) an iteration.
    Li and Xie's z ≤ 1 is left out: in 54 random problems it changed no value.
    Nodes are iterations.

    References
    ----------
    Li, Y. and Xie, W. (2020). Exact and approximation algorithms for sparse PCA.
    arXiv:2008.12438.

    Chambolle, A. and Pock, T. (2011). A first-order primal-dual algorithm for convex
    problems with applications to imaging. Journal of Mathematical Imaging and Vision
    40.

    Examples
    --------
    >>> from blockspca.solvers import ConvexRelaxation
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> round(ConvexRelaxation().solve(A, 2).upper_bound, 2)
    3.0
    """

    name = "convex relaxation"
    guarantee = within_factor(lambda k, d: max(1.0, min(k, d / k)))

    def _iterate(
        self, A: FloatArray, k: int
    ) -> Iterator[tuple[FloatArray, Callable[[], float]]]:
        scaled, scale = centred(A)
        state = _PrimalDual(scaled, k)

        def evaluate() -> float:
            P, Q, price = state.multipliers()
            P, Q = scale * P, scale * Q
            return min(row_bound(A, k, P, Q, scale * price * f) for f in PRICES)

        while True:
            state.step()
            yield state.X, evaluate


def row_bound(
    A: FloatArray, k: int, P: FloatArray, Q: FloatArray, price: float
) -> float:
    """Return λmax(A − sym(P + Q) + diag(t²)/(4ρ)) + kρ, ρ being the price."""
    both = P + Q
    lengths = np.linalg.norm(P, axis=1) + math.sqrt(k) * np.abs(Q).max(axis=1)
    dual = (both + both.T) / 2
    dual[np.diag_indices(len(A))] -= lengths**2 / (4 * price)
    return dual_value(A, dual, k * price)


class _PrimalDual:
    """Chambolle and Pock's method on X, ζ = z/k and s, s_i standing for Σ_j |X_ij|.

    The cones are (g X_i, (X_ii − ζ_i)/√2, (X_ii + ζ_i)/√2), second-order with g² = 2/k;
    (X_i, s_i), ‖·‖₁; and (h s_i, the same two), second-order with h = √2/k. `row`,
    `absolute` and `scalar` are their multipliers, in the polar cones.
    """

    def __init__(self, A: FloatArray, k: int) -> None:
        d = len(A)
        self.A = A
        self.k = k
        self.g, self.h = math.sqrt(2 / k), math.sqrt(2) / k
        norm = math.sqrt(self.g**2 + 3)  # of the map to the cones, diagonals counted
        self.primal_step, self.dual_step = STEP_RATIO / norm, 1 / (STEP_RATIO * norm)
        self.X = self.ahead = np.eye(d) / d
        self.primal = self.primal_ahead = np.full((2, d), 1 / d)  # ζ and s
        self.row, self.row_top = np.zeros((d, d + 1)), np.zeros(d)
        self.absolute, self.absolute_top = np.zeros((d, d)), np.zeros(d)
        self.scalar, self.scalar_top = np.zeros((d, 2)), np.zeros(d)

    def step(self) -> None:
        X, (zeta, s), sigma = self.ahead, self.primal_ahead, self.dual_step
        diagonal = np.diagonal(X)
        difference = sigma * (diagonal - zeta) / math.sqrt(2)
        total = sigma * (diagonal + zeta) / math.sqrt(2)
        # Moreau: what is left after projecting onto a cone lies in its polar
        row = self.row + np.column_stack([sigma * self.g * X, difference])
        self.row, self.row_top = _remainder(
            onto_second_order_cones, row, self.row_top + total
        )
        self.absolute, self.absolute_top = _remainder(
            onto_l1_cones, self.absolute + sigma * X, self.absolute_top + sigma * s
        )
        scalar = self.scalar + np.column_stack([sigma * self.h * s, difference])
        self.scalar, self.scalar_top = _remainder(
            onto_second_order_cones, scalar, self.scalar_top + total
        )
        P, Q, on_diagonal, on_zeta, on_s = self._adjoint()
        slope = (P + P.T + Q + Q.T) / 2
        slope[np.diag_indices(len(X))] += on_diagonal
        tau = self.primal_step
        previous, previous_primal = self.X, self.primal
        self.X = onto_spectrahedron(self.X + tau * (self.A - slope))
        zeta, s = self.primal
        self.primal = np.array([onto_simplex(zeta - tau * on_zeta), s - tau * on_s])
        self.ahead = 2 * self.X - previous
        self.primal_ahead = 2 * self.primal - previous_primal

    def _adjoint(self) -> tuple[FloatArray, ...]:
        tops = self.row_top + self.scalar_top
        differences = self.row[:, -1] + self.scalar[:, 1]
        return (
            self.g * self.row[:, :-1],
            self.absolute,
            (tops + differences) / math.sqrt(2),
            (tops - differences) / math.sqrt(2),
            self.absolute_top + self.h * self.scalar[:, 0],
        )

    def multipliers(self) -> tuple[FloatArray, FloatArray, float]:
        """Return P, Q and the price ρ of a unit of z."""
        P, Q, _, on_zeta, _ = self._adjoint()
        return P, Q, max(-float(on_zeta.min()) / self.k, 1e-12)


def _remainder(
    project: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    Y: FloatArray,
    s: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    inside, top = project(Y, s)
    return Y - inside, s - top
