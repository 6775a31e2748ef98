"""How much several components explain together, counted once, and at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .._validation import FloatArray
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..covariance.pca import small_matrix
from ..covariance.residual import regressed
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.linalg import symmetric_eigenvalues
from ..numerics.rounding import EPS, rounding_of_forms, sum_above
from ..numerics.threads import blas_limited_to
from ..result import Result

PIVOT_TOLERANCE = 1e-10
UNCORRELATED = 1e-10  # largest correlation of scores that are claimed to have none
#: Margins for rounding in a claim, so that another LAPACK confirms it; one is needed.
CLAIMED = 2.0
AT_ANY_TIME = 0.1  # seconds that are taken for eigenvalues even if time is up


def score_covariance(cov: Covariance, components: FloatArray) -> FloatArray:
    """Return V A V', the covariance of the scores of components V, (m, d)."""
    used = np.flatnonzero(components.any(axis=0))
    loadings = components[:, used]
    product = loadings @ cov.submatrix(used) @ loadings.T
    return (product + product.T) / 2


def score_rounding(cov: Covariance, components: FloatArray) -> FloatArray:
    """What rounding may make of each x_i'Ax_j."""
    used = np.flatnonzero(components.any(axis=0))
    within = cov.submatrix(used)
    return rounding_of_forms(components[:, used], within, cov.entry_error)


def correlated(scores: FloatArray, rounding: FloatArray) -> list[tuple[int, int]]:
    """Return the pairs i < j that correlate by more than `UNCORRELATED` and rounding.

    Parameters
    ----------
    scores, rounding : (m, m) arrays
        From `score_covariance` and `score_rounding`.
    """
    sizes = np.sqrt(np.abs(np.diagonal(scores)))
    allowed = UNCORRELATED * np.outer(sizes, sizes) + rounding
    above = np.triu(~(np.abs(scores) <= allowed), 1)
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(above), strict=True)]


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
    # A score that earlier ones explain up to rounding adds nothing; to divide by what
    # is left of it would add noise to all later ones.
    smallest = PIVOT_TOLERANCE * np.abs(pivots)
    for j in range(m):
        pivots[j] = left[j, j]
        if 0 <= pivots[j] <= smallest[j]:
            pivots[j] = 0.0
        if pivots[j] > 0:
            row = left[j] / np.sqrt(pivots[j])
            left -= np.outer(row, row)
    return pivots


def by_size(scores: FloatArray) -> list[int]:
    """Return an order in which each score adds most to the earlier ones."""
    left, order = scores.copy(), list[int]()
    for _ in range(len(left)):
        open_ = [i for i in range(len(left)) if i not in order]
        first = max(open_, key=lambda i: left[i, i])
        order.append(first)
        if left[first, first] > 0:
            left = left - np.outer(left[first], left[first]) / left[first, first]
    return order


def predicted(cov: Covariance, components: FloatArray) -> float:
    """Return R², the share of all features' variance that the scores predict.

    With V the components, as columns, regression of every feature on the scores
    explains tr(AV (V'AV)⁻¹ V'A) of tr A. Scores that depend on the others, up to
    rounding, are left out, which changes nothing. 0 if nothing varies, NaN of a
    contrast, whose trace is no variance, and if tr A is negative.

    Notes
    -----
    For A = C'C this is ‖ΠC‖² / ‖C‖², Π the projection onto the m scores: at most
    (λ_1 + … + λ_m) / tr A by Ky Fan, and PCA reaches that. Of orthonormal components it
    is at least Σ x_j'Ax_j / tr A: what is left of A is 0 on their span.
    """
    total = float(cov.diagonal().sum())
    if cov.is_contrast or total < 0:
        return float("nan")
    if total == 0:
        return 0.0
    return regressed(cov, components).explained / total


def leading_eigenvalues(
    cov: Covariance, deadline: Deadline | None
) -> tuple[FloatArray | None, float]:
    """Return the eigenvalues of A, largest first, and what rounding may make of each.

    They are None where neither d nor the number of samples is at most 1500: an
    iterative method would give lower bounds, which prove nothing. Nor are they computed
    if the time up to the deadline does not suffice.

    Notes
    -----
    LAPACK errs by a modest multiple of n eps ‖A‖. The n × n matrix CC' of data is
    computed to 2 (d + 16) eps tr(CC'), from a C that is known to `factor_error`; the
    entries of a d × d matrix to `entry_error` each, hence d times that in norm.
    """
    n, d = cov.n_samples or cov.n_features, cov.n_features
    seconds = _cost.product(min(n, d), n, d) + _cost.eigenvalues(min(n, d))
    late = deadline is not None and not deadline.affords(seconds)
    if late and seconds > AT_ANY_TIME:
        return None, 0.0
    matrix = small_matrix(cov)
    if matrix is None:
        return None, 0.0
    with blas_limited_to(1):  # threads of LAPACK wait for one another
        values = np.asarray(symmetric_eigenvalues(matrix)[::-1], dtype=np.float64)
    largest = float(np.abs(values).max())
    # LAPACK's eigenvalues are those of a matrix that is off by a small multiple of n
    # eps of its norm.
    rounding = 4 * len(matrix) * EPS * largest
    if len(matrix) < cov.n_features:
        trace = float(np.abs(np.diagonal(matrix)).sum())
        rounding += 2 * (cov.n_features + 16) * EPS * trace
        # ‖(C + E)(C + E)' − CC'‖ ≤ 2 ‖C‖ ‖E‖ + ‖E‖²
        error = cov.factor_error
        rounding += 2 * np.sqrt(trace) * error + error**2
    else:
        rounding += len(matrix) * cov.entry_error
    return values, float(rounding)


def joint_bounds(
    cov: Covariance,
    first: Result,
    sparsities: Sequence[int],
    *,
    margin: float,
    deadline: Deadline | None = None,
    shared: float = math.inf,
    orthogonal: Mapping[BoundName, float] | None = None,
    as_strict: Sequence[bool] | None = None,
) -> dict[BoundName, float]:
    """Return the bounds of `joint_upper_bound` that hold for A, by name.

    With a `margin` of 1 they hold, rounding of the eigenvalues included. Claims are
    made with `CLAIMED`, so that another LAPACK confirms them. `shared` is a bound on
    opt_m(Σ k_j) of A, from `shared_support`, and `orthogonal` has bounds for orthogonal
    components, by name: pass them for those alone. `as_strict` tells of which
    components the first one's bound may speak (`as_strict_as`); of all by default.
    """
    m = len(sparsities)
    values, once = leading_eigenvalues(cov, deadline)
    # A claim is made with room for the rounding of who checks it.
    rounding = margin * once
    # With r − λ_d on its diagonal a matrix is PSD, r the rounding of λ_d. Schur
    # complements grow with the matrix, so the bounds for that one hold. What a claim
    # takes for PSD, a check with fewer margins does, too, with no more on the diagonal.
    shift = 0.0
    psd = cov.known_psd
    if not psd and values is not None:
        least = float(values[-1])
        psd = least >= -(2 * CLAIMED - margin) * once
        shift = max(2 * rounding, once - least)
    singles = [
        _single_bound(first, k, shift if psd else None) if is_strict else math.inf
        for k, is_strict in zip(sparsities, as_strict or [True] * m, strict=True)
    ]
    bounds = {BoundName.COMPONENTS: sum_above(singles)}
    if psd and values is not None:
        top = np.zeros(m)
        top[: len(values)] = values[:m]
        bounds[BoundName.EIGENVALUES] = sum_above([*top, m * (rounding + shift)])
    if psd:
        used = min(cov.n_features, sum(sparsities))
        largest = np.sort(cov.diagonal())[::-1][:used]
        error = used * (margin * cov.entry_error + shift)
        bounds[BoundName.VARIANCES] = sum_above([*largest, error])
        if shared < math.inf:
            bounds[BoundName.SHARED_SUPPORT] = sum_above([shared, m * shift])
    bounds.update(orthogonal or {})
    return bounds


def joint_upper_bound(
    cov: Covariance,
    first: Result,
    sparsities: Sequence[int],
    deadline: Deadline,
    shared: float,
    orthogonal: Mapping[BoundName, float],
    as_strict: Sequence[bool],
) -> tuple[float, BoundName]:
    """Bound the adjusted variance of every set of components with these sparsities.

    Let x_1, …, x_m be any unit vectors with ‖x_j‖₀ ≤ k_j, disjoint, orthogonal or not,
    and v_j their adjusted variances. Then Σ v_j is at most each of

    1. Σ_j U(k_j), where U(k) ≥ max x'Ax over k-sparse unit vectors. *Proof.* v_j is the
       variance of score j minus what earlier scores explain, so v_j ≤ x_j'Ax_j. For
       k_j ≤ k_1, U is proved by the certificate of the first component, if what
       constrains component j is at least as strict. For k_j > k_1
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
    4. opt_m(Σ_j k_j), the largest sum of m eigenvalues of A on so many features, or a
       bound on that (`shared_support`). *Proof* (A = C'C). As in 3, Σ ‖C_T'u_j‖² is at
       most the sum of the m largest eigenvalues of C_T'C_T, by Ky Fan.

    If x_1, …, x_m are orthonormal, all four bound the sum of their variances x_j'Ax_j
    as well: 1 as it is; 2 by Ky Fan; 3 and 4 because XX' is a projection that lives on
    T, so that tr(A XX') is at most the trace, and the Ky Fan sum, of A on T. Then there
    are two more, which are not for other components, whose adjusted variances can add
    up to more:

    5. The entry dual with a sum of m eigenvalues (`joint_entries`).
    6. m times opt(k) of A − BB', and ‖B‖² (`joint_split`).

    Returns
    -------
    bound : float
    name : BoundName
        COMPONENTS, EIGENVALUES, VARIANCES, SHARED_SUPPORT, ENTRY_DUAL or
        SPLIT_ENTRY_DUAL.
    """
    bounds = joint_bounds(
        cov,
        first,
        sparsities,
        margin=CLAIMED,
        deadline=deadline,
        shared=shared,
        orthogonal=orthogonal,
        as_strict=as_strict,
    )
    return min((bound, name) for name, bound in bounds.items())


def as_strict_as(first: Result, results: Sequence[Result]) -> list[bool]:
    """Tell which components keep rules that are at least as strict as the first one's.

    Disjoint supports take from groups and from k what was used; limits that depend on k
    are then not those of the first component, whose bound is for its own.
    """
    rules = None if first.certificate is None else first.certificate.constraints
    if rules is None:
        return [True] * len(results)
    found = []
    for result in results:
        certificate = result.certificate
        other = None if certificate is None else certificate.constraints
        found.append(other is not None and other.implies(rules))
    return found


def _single_bound(first: Result, k: int, shift: float | None) -> float:
    """U(k), of an A that is PSD with `shift` on its diagonal; None if none is known."""
    rules = None if first.certificate is None else first.certificate.constraints
    # Under constraints it is parts that prove the bound, and one step that says it.
    if first.certificate is not None and rules is None:
        for step in first.certificate.steps:  # not always from 1 on
            if step.k == k:
                return min(step.upper_bound, first.upper_bound)
    if k <= first.k:
        return first.upper_bound
    # Parts of a component need not keep what a constraint asks of the whole.
    if shift is None or rules is not None:
        return float("inf")
    return math.nextafter((first.upper_bound + shift) * k / first.k, math.inf) * (
        1 + 2 * EPS
    )
