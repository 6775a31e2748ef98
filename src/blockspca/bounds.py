"""Upper bounds on the optimum that cost no more than reading the matrix."""

from __future__ import annotations

import numpy as np

from ._validation import FloatArray


def row_sum_bound(A: FloatArray, k: int) -> float:
    """Return max_i (A_ii + sum of the k − 1 largest |A_ij|, j ≠ i).

    By Gershgorin's theorem every eigenvalue of a k × k principal submatrix is at most
    A_ii plus the absolute off-diagonal sum of one of its rows. Holds for every
    symmetric A.
    """
    d = len(A)
    off_diagonal = np.abs(A)
    np.fill_diagonal(off_diagonal, 0.0)
    if k == 1:
        return float(np.diagonal(A).max())
    if k < d:
        first = d - k + 1
        off_diagonal = np.partition(off_diagonal, first, axis=1)[:, first:]
    sums = off_diagonal.sum(axis=1)
    # k rounded additions, of terms no larger in all than |A_ii| plus the sum
    slack = 2 * k * np.finfo(float).eps * (np.abs(np.diagonal(A)) + sums)
    return float((np.diagonal(A) + sums + slack).max())


def largest_eigenvalue_bound(A: FloatArray) -> float:
    """Return λmax(A), plus the rounding error of computing it."""
    eigenvalues = np.linalg.eigvalsh(A)
    size = max(abs(eigenvalues[0]), abs(eigenvalues[-1]))
    return float(eigenvalues[-1] + 4 * len(A) * np.finfo(float).eps * size)


def cheap_bound(A: FloatArray, k: int) -> float:
    """Return the least of the bounds that are cheap beside solving the block."""
    bound = row_sum_bound(A, k)
    if len(A) <= 300:
        bound = min(bound, largest_eigenvalue_bound(A))
    return bound
