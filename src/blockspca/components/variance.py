"""How much several components explain together, counted once, and at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _cost
from .._threads import blas_limited_to
from .._validation import FloatArray
from ..ceiling import small_matrix
from ..covariance import Covariance
from ..limits import Deadline
from ..result import Result

PIVOT_TOLERANCE = 1e-10
AT_ANY_TIME = 0.1  # seconds that are taken for eigenvalues even if time is up


def score_covariance(cov: Covariance, components: FloatArray) -> FloatArray:
    """Return V A V', the covariance of the scores of components V, (m, d)."""
    used = np.flatnonzero(components.any(axis=0))
    loadings = components[:, used]
    product = loadings @ cov.submatrix(used) @ loadings.T
    return (product + product.T) / 2


def adjusted_variance(scores: FloatArray) -> FloatArray:
    """Return for each score the variance that the earlier scores do not explain.

    Parameters
    ----------
    scores : (m, m) array
        G, the covariance of the scores.

    Returns
    -------
    (m,) array
        R_jj², where G = R'R: the variance of score j after regression on scores
        1, …, j − 1. It equals G_jj if the scores are uncorrelated.

    Notes
    -----
    Zou, Hastie & Tibshirani (2006), section 3.4, where R comes from the QR
    factorization of the scores. An entry depends on the order of the components. A
    score that the earlier ones determine gets 0. If G is indefinite, only positive
    pivots are eliminated, so no entry exceeds its G_jj.
    """
    left = np.array(scores, dtype=np.float64)
    m = len(left)
    pivots = np.diagonal(left).copy()
    smallest = PIVOT_TOLERANCE * np.abs(pivots)
    for j in range(m):
        pivots[j] = left[j, j]
        if 0 <= pivots[j] <= smallest[j]:
            pivots[j] = 0.0
        if pivots[j] > 0:
            row = left[j].copy()
            left -= np.outer(row, row) / pivots[j]
    return pivots


def leading_eigenvalues(
    cov: Covariance, m: int, deadline: Deadline | None = None
) -> tuple[FloatArray | None, bool]:
    """Return upper bounds on the m largest eigenvalues of A, and whether A is PSD.

    The eigenvalues are exact up to rounding, which is added. They are None where
    neither d nor the number of samples is at most 1500: an iterative method would give
    lower bounds, which prove nothing. Nor are they computed if the time up to the
    deadline does not suffice.
    """
    n, d = cov.n_samples or cov.n_features, cov.n_features
    seconds = _cost.product(min(n, d), n, d) + _cost.eigenvalues(min(n, d))
    late = deadline is not None and not deadline.affords(seconds)
    if late and seconds > AT_ANY_TIME:
        return None, cov.known_psd
    matrix = small_matrix(cov)
    if matrix is None:
        return None, cov.known_psd
    with blas_limited_to(1):  # threads of LAPACK wait for one another
        values = np.linalg.eigvalsh(matrix)[::-1]
    rounding = 4 * (len(matrix) + cov.n_features) * np.finfo(float).eps
    largest = float(np.abs(values).max())
    rounding *= largest
    # ‖(C + E)(C + E)' − CC'‖ ≤ 2 ‖C‖ ‖E‖ + ‖E‖²
    rounding += 2 * np.sqrt(largest) * cov.factor_error + cov.factor_error**2
    top = np.zeros(m)
    top[: len(values)] = values[:m]
    return top + rounding, cov.known_psd or bool(values[-1] >= -rounding)


def joint_upper_bound(
    cov: Covariance,
    first: Result,
    sparsities: Sequence[int],
    deadline: Deadline | None = None,
) -> tuple[float, str]:
    """Bound the adjusted variance of every set of components with these sparsities.

    Let x_1, …, x_m be any unit vectors with ‖x_j‖₀ ≤ k_j, disjoint, orthogonal or not,
    and v_j their adjusted variances. Then Σ v_j is at most each of

    1. Σ_j U(k_j), where U(k) ≥ max x'Ax over k-sparse unit vectors. *Proof.* v_j is the
       variance of score j minus what earlier scores explain, so v_j ≤ x_j'Ax_j. For
       k_j ≤ k_1, U is proved by the certificate of the first component. For k_j > k_1
       and positive semidefinite A, U(k_j) = U(k_1) k_j / k_1: with A = C'C, x is the
       sum of its restrictions x_S to all k_1-subsets S of its support, divided by the
       number c of subsets that hold a given feature. So ‖Cx‖ ≤ Σ ‖Cx_S‖ / c ≤
       sqrt(U(k_1)) Σ ‖x_S‖ / c, and by Cauchy–Schwarz Σ ‖x_S‖ is at most the root of
       (number of subsets) · c, the ratio of the two being k_j / k_1.
    2. λ_1 + … + λ_m, the m largest eigenvalues: PCA is the ceiling. *Proof* (A = C'C).
       With u_j the orthonormal columns of Q in CX = QR, v_j = (u_j'Cx_j)² ≤ ‖C'u_j‖²,
       and Σ ‖C'u_j‖² ≤ λ_1 + … + λ_m by Ky Fan.
    3. The sum of the Σ_j k_j largest variances A_ii. *Proof* (A = C'C). As in 2, with
       C_T the columns of the features T in use: Σ ‖C_T'u_j‖² ≤ ‖C_T‖_F² = Σ_T A_ii.

    Returns
    -------
    bound : float
    name : str
        "components", "eigenvalues" or "variances": which of the three it is.
    """
    m, d = len(sparsities), cov.n_features
    eigenvalues, psd = leading_eigenvalues(cov, m, deadline)
    singles = [_single_bound(first, k, psd) for k in sparsities]
    bounds = [(float(sum(singles)), "components")]
    if psd:
        if eigenvalues is not None:
            bounds.append((float(eigenvalues.sum()), "eigenvalues"))
        largest = np.sort(cov.diagonal())[::-1][: min(d, sum(sparsities))]
        bounds.append((float(largest.sum()) * (1 + 1e-12), "variances"))
    return min(bounds)


def _single_bound(first: Result, k: int, psd: bool) -> float:
    if first.certificate is not None:
        for step in first.certificate.steps:  # not always from 1 on
            if step.k == k:
                return min(step.upper_bound, first.upper_bound)
    if k <= first.k:
        return first.upper_bound
    return first.upper_bound * k / first.k if psd else float("inf")
