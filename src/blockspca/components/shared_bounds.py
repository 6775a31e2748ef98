"""Bounds in closed form on the best r components that share k features.

F_r(S) is the sum of the r largest eigenvalues of A_SS, and opt_r(k) its maximum over
k-sets; F_r(S) = tr A_SS where |S| ≤ r.

**Screening.** For i in S and T = S without i,

    F_r(S) ≤ λmax [[A_ii + F_{r−1}(T), ‖A_iT‖], [‖A_iT‖, F_r(T)]].

*Proof.* Let the columns of U be orthonormal on S with tr U'AU = F_r(S), rotated so that
row i is (0, …, 0, u). The first r − 1 columns live on T; let s be their part of the
trace, and (u, w) the last column, ‖w‖² = 1 − u². With ŵ = w/‖w‖, which is orthogonal to
those columns, s + ŵ'Aŵ ≤ F_r(T), and s ≤ F_{r−1}(T). So

    F_r(S) = s + w'Aw + 2u A_iT w + u² A_ii
           ≤ (1 − u²) F_r(T) + u² (F_{r−1}(T) + A_ii) + 2 u sqrt(1 − u²) ‖A_iT‖. ∎

Bounds for (r − 1, k − 1) and (r, k − 1) so give one for each feature in (r, k). A k-set
has k of them, all of which bound it: the k-th largest over all features will do.

**Target.** If A ⪯ D + δI, as a contrast is beside its target, each eigenvalue of A_SS
is at most that of D_SS and δ more (Weyl), so that bounds for D and r δ more bound A.

**Variances.** If A is positive semidefinite, F_r(S) ≤ tr A_SS, at most the sum of the k
largest variances. **Eigenvalues.** F_r(S) is at most the sum of the r largest
eigenvalues of A (Cauchy's interlacing).
"""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics.rounding import (
    EPS,
    increased,
    larger_root_above,
    norms_above,
    power_of_two,
    squared,
    sum_above,
)
from ..search.limited import row_tops
from .variance import leading_eigenvalues

TABLE_K = 30  # the table grows with k, and for more features the dual is closer
TABLE_ENTRIES = 2**26  # of A, that are looked at for the table


def closed_forms(
    cov: Covariance, k: int, r: int, deadline: Deadline, margin: float = 2.0
) -> dict[BoundName, float]:
    """Return the bounds on opt_r(k) by name; those that are affordable.

    Claims are made with a margin of 2 for LAPACK's eigenvalues, and checked with 1.
    """
    found: dict[BoundName, float] = {}
    diagonal = cov.diagonal()
    if cov.known_psd or k <= r:
        largest = np.sort(diagonal)[::-1][:k]
        found[BoundName.VARIANCES] = sum_above([*largest, k * margin * cov.entry_error])
    values, rounding = leading_eigenvalues(cov, deadline)
    if values is not None:
        top = np.zeros(r)
        top[: len(values)] = values[:r]
        found[BoundName.EIGENVALUES] = sum_above([*top, r * margin * rounding])
    d = cov.n_features
    if k <= TABLE_K and d * d <= TABLE_ENTRIES and not deadline.passed():
        found[BoundName.SCREENING_TABLE] = float(screening_table(cov, k, r)[r, k])
    dominance = cov.dominance
    if dominance is not None and deadline.affords(dominance.seconds):
        of_target = closed_forms(dominance.matrix, k, r, deadline, margin)
        if of_target:
            excess = r * dominance.excess * (1 + 2 * EPS)
            found[BoundName.TARGET] = sum_above([min(of_target.values()), excess])
    return found


def screening_table(cov: Covariance, k: int, r: int) -> FloatArray:
    """Return U, (r + 1, k + 1), with U[s, q] ≥ opt_s(q), rounding included."""
    error = cov.entry_error
    tops = row_tops(cov, k - 1)
    size = max(float(tops.max(initial=0.0)), float(np.abs(cov.diagonal()).max()))
    unit = power_of_two(size)  # so that squares neither overflow nor vanish
    diagonal = increased(cov.diagonal() / unit + error / unit)
    sums = np.cumsum(squared(tops / unit), axis=1)
    descending = np.sort(diagonal)[::-1]
    d = len(diagonal)
    table = np.zeros((r + 1, k + 1))
    for q in range(1, k + 1):
        trace = sum_above(descending[:q])
        for s in range(1, r + 1):
            if q <= s:
                table[s, q] = trace
                continue
            first = increased(diagonal + table[s - 1, q - 1])
            width = min(q - 1, tops.shape[1])
            coupling = norms_above(sums[:, width - 1], width, error / unit)
            bounds = larger_root_above(first, coupling, float(table[s, q - 1]))
            bound = float(np.partition(bounds, d - q)[d - q])
            table[s, q] = min(bound, trace) if cov.known_psd else bound
    found = table * unit
    lost = found / unit < table  # digits, below the normal numbers
    return np.where(lost, np.nextafter(found, np.inf), found)
