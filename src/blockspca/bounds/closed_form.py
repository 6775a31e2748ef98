"""Closed-form upper bounds on opt(k) = max x'Ax, ‖x‖₂ = 1, ‖x‖₀ ≤ k.

Every function returns a number that is at least opt(k), rounding included, for any
symmetric A unless it says otherwise. A diagonal shift changes nothing, because x'x = 1:
opt(A) = opt(A + δI) − δ carries bounds for PSD matrices over to all.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._validation import FloatArray
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..covariance.dominance import Dominance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.linalg import largest_by_lanczos
from ..numerics.rounding import EPS, sum_above
from ..numerics.upper_eigenvalues import eigenvalue_ceiling

#: Seconds that are there also when time is up.
MOMENT = 0.3
_LARGEST_ORDER = 3000  # of a matrix that is held as a whole
_ENTRIES_AT_ONCE = 2**21  # of rows whose largest are looked for: 16 MiB
SMALL = 300  # features of a block whose eigenvalues are cheap beside solving it
_LARGEST_BLOCK = 2000  # of which golden sections compute eigenvalues time and again
_SECTIONS = 12  # golden sections: they narrow ε to a 300th of where they began


def largest_eigenvalue_bound(
    cov: Covariance | FloatArray, *, by_lanczos: bool = False
) -> float:
    """Return λmax(A) ≥ opt(k), the bound without sparsity.

    From data with n < d it is λmax(CC'), n × n. An array is taken as it is: symmetric,
    of which the lower triangle is read. By Lanczos' method most of the time is saved,
    and the bound may be wider by some ulps.
    """

    def ceiling(B: FloatArray) -> float:
        return eigenvalue_ceiling(B, *(_estimate(B) if by_lanczos else ()))

    if isinstance(cov, np.ndarray):
        return ceiling(cov)
    if cov.known_psd and cov.n_samples is not None and cov.n_samples < cov.n_features:
        gram = cov.gram(np.ones(cov.n_features))
        trace = float(np.trace(gram))
        rounding = 2 * (cov.n_features + 16) * EPS * trace
        # ‖(C + E)(C + E)' − CC'‖ ≤ 2 ‖C‖ ‖E‖ + ‖E‖²
        error = cov.factor_error
        rounding += 2 * np.sqrt(trace) * error + error**2
        return float(ceiling(gram) + rounding)
    return ceiling(cov.submatrix(slice(None)))


def _estimate(B: FloatArray) -> tuple[float | None, float]:
    """An estimate of λmax, None if there is none, and its relative error, perhaps."""
    near = 64 * len(B) * EPS
    found = largest_by_lanczos(B) if len(B) >= SMALL else None
    return None if found is None else found[1] * found[0], near


def eigenvalue_error(size: int, largest_entry: float) -> float:
    """Bound the rounding error of the eigenvalues of a symmetric matrix.

    LAPACK is backward stable: they are exact for a matrix that differs by a modest
    multiple of eps · ‖A‖, and ‖A‖ ≤ size · max |A_ij|.
    """
    return 4 * size * EPS * size * largest_entry


def row_sum_bound(A: FloatArray, k: int, deadline: Deadline | None = None) -> float:
    """Return max_i (A_ii + sum of the k − 1 largest |A_ij|, j ≠ i).

    By Gershgorin's theorem every eigenvalue of a k × k principal submatrix is at most
    A_ii plus the absolute off-diagonal sum of one of its rows. Holds for every
    symmetric A. Infinite if the deadline passes first.
    """
    d = len(A)
    diagonal = np.diagonal(A)
    if k == 1:
        return float(diagonal.max())
    step = max(1, _ENTRIES_AT_ONCE // d)
    bound = -np.inf
    for start in range(0, d, step):
        if deadline is not None and deadline.passed():
            return np.inf
        rows = np.abs(A[start : start + step])
        here = np.arange(len(rows))
        rows[here, start + here] = 0.0
        if k < d:
            first = d - k + 1
            rows = np.partition(rows, first, axis=1)[:, first:]
        sums = rows.sum(axis=1)
        own = diagonal[start : start + step]
        # k rounded additions, of terms no larger in all than |A_ii| plus the sum
        slack = 2 * k * EPS * (np.abs(own) + sums)
        bound = max(bound, float((own + sums + slack).max()))
    return bound


def cheap_bound(A: FloatArray, k: int, deadline: Deadline) -> float:
    """Return the least of the bounds that are cheap beside solving the block."""
    bound = row_sum_bound(A, k, deadline)
    if len(A) <= SMALL:
        bound = min(bound, eigenvalue_ceiling(A))
    return bound


class ObviousBounds:
    """Bounds on opt(k), for any k, that take no more than a moment.

    Whatever a search has or has not come to, no reported bound is above these: the sum
    of the largest variances, if A is positive semidefinite; the largest entry of each
    row, k − 1 times, if A is in memory; and λmax. The last two are computed once, where
    that takes at most so many seconds. Of a contrast also those of its target, of
    which it is less (`covariance.dominance`).

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> bounds = ObviousBounds(Covariance.from_matrix(np.ones((4, 4))))
    >>> value, name = bounds.least(2)
    >>> round(value, 6), str(name)
    (2.0, 'row sums')
    """

    def __init__(self, cov: Covariance, seconds: float = MOMENT) -> None:
        self.cov, self.seconds = cov, seconds

    @cached_property
    def _strongest(self) -> FloatArray | None:
        """The largest |A_ij|, j ≠ i, of each row."""
        d = self.cov.n_features
        if not self.cov.in_memory or _cost.passes(1, d * d) > self.seconds:
            return None
        sizes = np.abs(self.cov.submatrix(slice(None)))
        np.fill_diagonal(sizes, 0.0)
        return sizes.max(axis=1)

    @cached_property
    def _largest_eigenvalue(self) -> float:
        cov = self.cov
        order = cov.n_features if cov.in_memory else cov.n_samples
        if order is None or order > _LARGEST_ORDER:
            return np.inf
        seconds = _cost.eigenvalues(order) + _cost.cholesky(order)
        if not cov.in_memory:
            seconds += _cost.product(order, cov.n_features, order)
        return largest_eigenvalue_bound(cov) if seconds <= self.seconds else np.inf

    def least(self, k: int) -> tuple[float, BoundName]:
        """The least bound and its name; infinite and `NONE` if there is none."""
        diagonal = self.cov.diagonal()
        if k == 1:
            return float(diagonal.max()) + self.cov.entry_error, BoundName.VARIANCES
        known = [(np.inf, BoundName.NONE)]
        if self._largest_eigenvalue < np.inf:
            known.append((self._largest_eigenvalue, BoundName.LARGEST_EIGENVALUE))
        if self.cov.known_psd:
            known.append((trace_bound(diagonal, k), BoundName.VARIANCES))
        if self._strongest is not None:
            sums = (k - 1) * self._strongest
            rounding = 4 * EPS * (np.abs(diagonal) + sums)
            most = float((diagonal + sums + rounding).max())
            known.append((most, BoundName.ROW_SUMS))
        value, name = min(known)
        value += k * self.cov.entry_error
        if self._of_target is None or self.cov.dominance is None:
            return value, name
        least = above_target(self._of_target.least(k)[0], self.cov.dominance)
        return min((value, name), (least, BoundName.TARGET))

    @cached_property
    def _of_target(self) -> ObviousBounds | None:
        dominance = self.cov.dominance
        if dominance is None or dominance.seconds > self.seconds:
            return None
        return ObviousBounds(dominance.matrix, self.seconds)


def above_target(bound: float, dominance: Dominance) -> float:
    """The bound of a contrast by one of its target; see `covariance.dominance`."""
    excess = dominance.excess
    return bound if excess == 0 else sum_above([bound, excess])


def trace_bound(diagonal: FloatArray, k: int) -> float:
    """Return the sum of the k largest variances, of a positive semidefinite matrix.

    Its largest eigenvalue is at most its trace.
    """
    smaller = len(diagonal) - k
    if smaller > 0:
        diagonal = np.partition(diagonal, smaller)[smaller:]
    total = float(np.sum(diagonal))
    return total + 2 * (k + 2) * EPS * total


def threshold_bound(A: FloatArray, k: int, epsilon: float, deadline: Deadline) -> float:
    """Return max over blocks of (a bound on the block) + (k − 1) ε.

    Let U be symmetric with a zero diagonal and |U_ij| ≤ ε. For ‖x‖₂ = 1, ‖x‖₀ ≤ k,

        −x'Ux ≤ ε ((Σ|x_i|)² − Σx_i²) ≤ ε (k − 1),

    so opt(A) ≤ opt(A + U) + (k − 1) ε. Dropping the off-diagonal entries |A_ij| ≤ ε is
    one such U; moving every off-diagonal entry towards zero by ε is another, usually
    better, and taken here. A + U falls into blocks, and the best k-sparse vector of a
    block-diagonal matrix lives in one block. Eigenvalues of blocks are computed until
    the deadline, row sums always.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    A = np.asarray(A, dtype=np.float64)
    size = np.abs(A)
    kept = size > epsilon
    np.fill_diagonal(kept, True)
    B = np.where(kept, np.copysign(size - epsilon, A), 0.0)
    np.fill_diagonal(B, np.diagonal(A))
    graph: Any = csr_array(kept)
    _, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    blocks = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    bounds = [
        float(A[block[0], block[0]])
        if len(block) == 1
        else _cheap_block_bound(B[np.ix_(block, block)], min(k, len(block)), deadline)
        for block in blocks
    ]
    # ε ± an ulp of A_ij is what was subtracted in floating point
    rounding = k * EPS * float(size.max(initial=0.0))
    return max(bounds) + (k - 1) * epsilon * (1 + 2 * EPS) + rounding


def best_threshold_bound(
    A: FloatArray, k: int, deadline: Deadline | None = None
) -> tuple[float, float]:
    """Minimise `threshold_bound` over ε by golden sections; return (bound, ε).

    Of those up to the deadline, the first of which takes no more than d² operations.
    """
    deadline = deadline or Deadline(None)
    ratio = (np.sqrt(5) - 1) / 2
    off = np.abs(A - np.diag(np.diagonal(A)))
    low, high = 0.0, float(off.max(initial=0.0))
    best = (threshold_bound(A, k, high, deadline), high)

    def bound_at(epsilon: float) -> float:
        if deadline.passed():
            return float("inf")
        return threshold_bound(A, k, epsilon, deadline)

    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [bound_at(epsilon) for epsilon in inner]
    for _ in range(_SECTIONS):
        best = min(best, *zip(values, inner, strict=True))
        if deadline.passed():
            break
        if values[0] < values[1]:
            high = inner[1]
            inner = [high - ratio * (high - low), inner[0]]
            values = [bound_at(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + ratio * (high - low)]
            values = [values[1], bound_at(inner[1])]
    return min(best, *zip(values, inner, strict=True))


def _cheap_block_bound(B: FloatArray, k: int, deadline: Deadline) -> float:
    bound = row_sum_bound(B, k)
    seconds = _cost.eigenvalues(len(B)) + 2 * _cost.cholesky(len(B))
    if len(B) > _LARGEST_BLOCK or not deadline.affords(seconds):
        return bound
    return min(bound, eigenvalue_ceiling(B))
