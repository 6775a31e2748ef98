"""The residual of A after regression on scores, by any coefficients.

With V the components, as d × m columns, G = V'AV and W* any solution of G W* = V'A,
regression of all features on the scores leaves A_V = (I − VW*)'A(I − VW*).

**Lemma.** For any W, (I − VW)'A(I − VW) = A_V + (W − W*)'G(W − W*) ⪰ A_V.

So every bound for B = (I − VW)'A(I − VW) is a bound for A_V, and W may come from a
rounded least-squares solution; nothing is asked of the condition of G. The excess is of
second order in W − W*. An objective that is claimed for A_V must be computed from
x'Ax − g'G⁻¹g, g = V'Ax.

**Errors** are relative to B for the exact A, and V, W as stored. V has s rows that are
not 0; ω = max_i Σ_l |W_li| ‖V_l‖₁.

*From columns in memory*, C = Z + E with ‖e_i‖ ≤ γ and ‖c_i‖ ≤ c: c_i − S w_i with
S = fl(CV) is off from the column of Z(I − VW) by γ (1 + ω), by (s + 2) u c ω for S, and
by (m + 2) u (c + c ω) for the difference; together γ'. An entry errs by
2 γ' b + γ'² and n u b² for the product, b² the largest variance of B.

*From entries*, P = AV: B = A − (L R' + R L') with R = W' and L = P − R G / 2. An entry
of P errs by p = e Σ|V| + (s + 2) u |A||V|, of G by |V|'p + (s + 4) u |V|'|P|, and of L
by p + |R| g / 2 + (m + 4) u (|P| + |R||G|); each counts |R_jl| times, in two terms.
"""

from __future__ import annotations

import numpy as np

from ..linalg.rounding import EPS
from ..validation import FloatArray
from .covariance import Covariance
from .sources import Columns, Factor
from .tables import ALL, Index
from .views import LowRank


def residual(cov: Covariance, components: FloatArray) -> Covariance:
    """Return the residual of A after regression on the scores of components.

    Parameters
    ----------
    cov : Covariance
    components : array, d × m
        V. Components whose scores depend on each other do no harm.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance import Covariance, residual
    >>> A = Covariance.from_matrix(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> left = residual(A, np.array([[1.0], [0.0]]))
    >>> left.submatrix([0, 1]).round(12) + 0.0
    array([[0. , 0. ],
           [0. , 1.5]])
    """
    source = cov._current
    V = np.asarray(components, dtype=np.float64).reshape(cov.n_features, -1)
    used = np.flatnonzero(V.any(axis=1))
    if not len(used):
        return cov
    U = V[used]
    rows = source.block(used, ALL)
    P = rows.T @ U
    G = U.T @ P[used]
    G = (G + G.T) / 2
    R = coefficients(G, P)
    columns = source.columns
    if columns is not None:
        return cov.derived(of_columns(columns, used, U, R.T))
    s, m = U.shape
    loads, size = np.abs(U), np.abs(R)
    p = source.error() * loads.sum(axis=0)
    p = p + (s + 2) * EPS * (np.abs(rows).T @ loads)
    g = loads.T @ p[used] + (s + 4) * EPS * (loads.T @ np.abs(P[used]))
    off = p + size @ (g / 2) + (m + 4) * EPS * (np.abs(P) + size @ np.abs(G))
    error = 2.01 * float((off.max(axis=0) * size.max(axis=0)).sum())
    factor = source.factor
    left = None if factor is None else LeftFactor(factor, used, U, R.T)
    psd = cov.known_psd
    view = LowRank(source, P - R @ G / 2, R, psd=psd, error=error, factor=left)
    return cov.derived(view)


def coefficients(G: FloatArray, P: FloatArray) -> FloatArray:
    """Return W', d × m, a rounded solution of G W = P'."""
    sizes = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    sizes[sizes == 0] = 1.0
    inverse = np.linalg.pinv(G / sizes / sizes[:, None], rcond=1e-12, hermitian=True)
    return (P / sizes) @ inverse / sizes


def of_columns(source: Columns, used: Index, U: FloatArray, W: FloatArray) -> Columns:
    """Return the columns c_i − S w_i, S = C V, with their errors."""
    C, n = source.C, len(source.C)
    S = C[:, used] @ U
    left = C - S @ W
    diagonal = np.einsum("ij,ij->j", left, left)
    norms = np.abs(U).sum(axis=0)
    reach = float((np.abs(W).T @ norms).max())
    size = np.sqrt(float(source.diagonal().max())) * (1 + n * EPS)
    roundings = (sum(U.shape) + 4) * EPS
    off = 1.01 * (source.column_error * (1 + reach) + roundings * size * (1 + reach))
    largest = np.sqrt(float(diagonal.max())) + off
    error = 1.01 * (2 * off * largest + off**2 + n * EPS * largest**2)
    factor = LeftFactor(source.factor, used, U, W)
    return Columns(left, diagonal, error, factor.error, off)


class LeftFactor(Factor):
    """C − S W, with S = C V."""

    def __init__(self, base: Factor, used: Index, U: FloatArray, W: FloatArray) -> None:
        self.base, self.W = base, W
        self.n, self.n_features = base.n, base.n_features
        C = base.columns(used)
        self.S = C @ U
        # ‖E (I − VW)‖, and the rounding of S and of the difference.
        size = float(np.linalg.norm(U) * np.linalg.norm(W))
        rounding = (len(U) + len(W) + 8) * EPS * base.size * (1 + size)
        self.error = 1.01 * (base.error * (1 + size) + rounding)
        self.size = base.size * (1 + size)

    def columns(self, indices: Index) -> FloatArray:
        return self.base.columns(indices) - self.S @ self.W[:, indices]
