"""Upper bounds on the optimum that cost no more than reading the matrix."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..limits import Deadline

EPS = float(np.finfo(np.float64).eps)
ENTRIES_AT_ONCE = 2**21
SMALL = 300  # features of a block whose eigenvalues are cheap beside solving it


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
    step = max(1, ENTRIES_AT_ONCE // d)
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


def largest_eigenvalue_bound(A: FloatArray) -> float:
    """Return λmax(A), plus the rounding error of computing it."""
    largest = float(np.abs(A).max())
    return float(np.linalg.eigvalsh(A)[-1]) + eigenvalue_error(len(A), largest)


def cheap_bound(A: FloatArray, k: int, deadline: Deadline | None = None) -> float:
    """Return the least of the bounds that are cheap beside solving the block."""
    bound = row_sum_bound(A, k, deadline)
    if len(A) <= SMALL:
        bound = min(bound, largest_eigenvalue_bound(A))
    return bound
