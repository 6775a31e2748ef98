"""Fix features out of, or in, all better supports by a bound of the entry dual.

**Out.**  Let a node have F fixed in and q places for features of T (`node.py`), i in T,
and O all others.  A set with i has q − 1 places in T for others, so that with
R = q − 1 + f r, s = Σ_{S∩O} w_j |x_j| ≤ √Q, Q = R Σ w_j² x_j²/ρ_j.  With a weight u ≥ 0
of its own for i and |U_ij| ≤ u w_j,

    x'Ux ≤ Q − Σ w_j² x_j² + 2 u |x_i| √Q ≤ Q (1 + 1/a) − Σ w_j² x_j² + a u² x_i²

for any a > 0.  So with N = A − U + Diag(g_j w_j²), g_j = R (1 + 1/a)/ρ_j − 1, on O, no
set with i exceeds τ if N ≺ τI and

    A_ii + a u² + ã'(τI − N)⁻¹ã ≤ τ,     ã_j = A_ij − U_ij.

ã may have any entry at i itself if N is taken over all features, i among them: the best
one makes the inverse that of the others alone.  Entry and u come from minimising the
left side, with U_ij = V_ij u w_j; any values will do.

**In.**  If λmax of the node's M without row i is at most τ, every set above τ has i.

**Rounding.**  Both tests are made at τ' = τ − 2 k eps (|A| + w w + u w), the largest
such terms, which is what U may exceed its limits by (`proof.py`).  The matrix
B = (τ' − m − η) I − N has a Cholesky factor L, with m = 2(n + 4) eps tr for its
backward error, so that LL' ⪯ τ'I − N; and as B − ηI has one too, LL' ⪰ (η/2) I
where m ≤ η/2, which is asked for.
Forward substitution gives z with (L + ΔL)z = ã, |ΔL| ≤ (n + 1) eps |L|, so that
‖L⁻¹ã‖ ≤ ‖z‖ (1 + φ) with φ = (n + 2) eps ‖L‖_F / √(η/2), and
ã'(τ'I − N)⁻¹ã ≤ ‖z‖² (1 + φ)² (1 + (n + 4) eps).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import EPS
from ...numerics.upper_eigenvalues import is_below
from .node import Node

_MARGIN = 1e-6  # η, relative to τ
# a / R. Below 1, N is not below τ while the bound is above it; as a u² is what a
# feature has to pay, the less the better, and with a small gap little more than 1 will
# do (CovColon, correlation, k = 50, a gap of 0.15 %: 134 of 500 features are left, not
# 234).
_TRIED = (1.05, 1.2, 2.0, 5.0)


def fixed_out(
    A: FloatArray, node: Node, k: int, tau: float
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Return which features of a node are in no set of it above τ, and u and a of each.

    A is that between the node's features.
    """
    out = np.zeros(len(A), dtype=bool)
    own, prices = np.zeros(len(A)), np.ones(len(A))
    q = node.places(k)
    if q < 1:
        return out, own, prices
    R = q - 1 + int(node.fixed_in.sum()) * node.ratio
    for factor in _TRIED:
        a = factor * max(R, 1.0)
        g = np.maximum(R * (1 + 1 / a) / node.rho() * (1 + 8 * EPS) - 1.0, 0.0)
        left = np.flatnonzero(~out & ~node.fixed_in)
        ruled_out, u = _ruled_out(A, node, k, tau, a, g, left)
        out[left[ruled_out]] = True
        own[left[ruled_out]], prices[left[ruled_out]] = u[ruled_out], a
    return out, own, prices


def _ruled_out(
    A: FloatArray,
    node: Node,
    k: int,
    tau: float,
    a: float,
    g: FloatArray,
    candidates: NDArray[np.intp],
) -> tuple[NDArray[np.bool_], FloatArray]:
    """The test for one a, with u; False for all if N is not below τ."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

    n, w = len(A), node.weights
    none = np.zeros(len(candidates), dtype=bool), np.zeros(len(candidates))
    largest = float(np.abs(A).max()) + float(w.max()) ** 2
    level = tau - 2 * k * EPS * largest
    N = A - node.shares * w * w[:, None]
    own = np.diagonal(A)
    paid = g * w * w
    N[np.diag_indices(n)] = own + paid + 3 * EPS * (np.abs(own) + paid)
    margin = _MARGIN * abs(tau)
    if not is_below(N, level - 2 * margin):
        return none
    trace = n * abs(level) + float(np.abs(np.diagonal(N)).sum())
    if not 4 * (n + 4) * EPS * trace <= margin:  # m ≤ η/2, for LL' ⪰ (η/2) I
        return none
    B = -N
    B[np.diag_indices(n)] += level - margin - 2 * (n + 4) * EPS * trace
    try:
        L = cholesky(B, lower=True, check_finite=False)
    except LinAlgError:
        return none
    # The best entry at i, and the best weight of i; nothing relies on them.
    G = cho_solve((L, True), np.eye(n), check_finite=False)
    at = candidates
    row = A[:, at].copy()
    row[at, np.arange(len(at))] = 0.0
    slope = node.shares[:, at] * w[:, None]
    Grow, Gslope = G @ row, G @ slope
    here = G[at, at]
    a_i, c_i = Grow[at, np.arange(len(at))], Gslope[at, np.arange(len(at))]
    ac = np.einsum("ij,ij->j", row, Gslope) - a_i * c_i / here
    cc = np.einsum("ij,ij->j", slope, Gslope) - c_i**2 / here
    u = np.clip(ac / (a + cc), 0.0, 4 * float(w.max()))
    row -= slope * u
    row[at, np.arange(len(at))] = -(a_i - u * c_i) / here
    z = solve_triangular(L, row, lower=True, check_finite=False)
    forms = np.einsum("ij,ij->j", z, z)
    phi = (n + 2) * EPS * float(np.linalg.norm(L)) / np.sqrt(margin / 2)
    forms *= (1 + phi) ** 2 * (1 + (n + 8) * EPS)
    extra = a * u * u
    total = own[at] + extra + forms
    total += 4 * EPS * (np.abs(own[at]) + extra + forms)
    limit = level - 2 * k * EPS * u * float(w.max())
    return total <= limit, u


def fixed_in(M: FloatArray, tau: float, candidates: NDArray[np.intp]) -> list[int]:
    """Return the candidates without which the matrix M of a node is at most τ.

    M includes errors and prices, and τ is less what rounding may amount to. Candidates
    are tried in their order, the likeliest first, until one fails.
    """
    found: list[int] = []
    for i in candidates:
        keep = np.arange(len(M)) != i
        if not is_below(M[np.ix_(keep, keep)], tau):
            break
        found.append(int(i))
    return found


def likely_in(M: FloatArray, tau: float, free: NDArray[np.intp]) -> NDArray[np.intp]:
    """Free features without which λmax(M) may be at most τ, the likeliest first.

    With exactly one eigenvalue above τ, M without row i is below τ if and only if the
    i-th diagonal entry of (τI − M)⁻¹ is negative.
    """
    values, vectors = np.linalg.eigh(M)
    if len(values) < 2 or values[-1] <= tau or values[-2] >= tau:
        return np.empty(0, np.intp)
    inverse = (vectors[free] ** 2) @ (1.0 / (tau - values))
    order = np.argsort(inverse, kind="stable")
    return free[order[inverse[order] < 0]]
