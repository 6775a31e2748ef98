"""What one pass over A tells before a search: sums of its rows, the best pair."""

from __future__ import annotations

import numpy as np
from numba import types

from .arrays import FLOATS, INTS, MATRIX
from .constants import EPS
from .options import ENTRY, njit
from .selection import insert_value


@njit(types.float64(MATRIX, types.int64, types.int64, types.int64, FLOATS), **ENTRY)
def row_sums(A, k, first, last, sums):
    """Write A_ii plus the k − 1 largest |A_ij|, rounded up; return max |A_ij|.

    For rows first, …, last − 1 of the matrix.
    """
    largest = np.empty(k)  # |entries| of the row, descending, its own among them
    scale = 0.0
    for i in range(first, last):
        for q in range(k):
            largest[q] = 0.0
        for j in range(A.shape[1]):
            value = abs(A[i, j])
            if value > largest[k - 1]:
                insert_value(largest, k, value)
        scale = max(scale, largest[0])
        own = abs(A[i, i])
        total = 0.0
        for q in range(k):
            total += largest[q]
        total -= max(own, largest[k - 1])  # its own entry, or the one too many
        sums[i] = A[i, i] + total + 2 * (k + 2) * EPS * (own + total)
    return scale


@njit(types.float64(MATRIX, types.int64, types.int64, types.float64, INTS), **ENTRY)
def best_pair(A, first, last, best, pair):
    """Return the larger of `best` and λmax over the pairs j < i, first ≤ i < last.

    Values are rounded up, so that the last answer bounds every pair; `pair` becomes the
    pair that has it. No square root where Gershgorin's bound, rounded up, is below
    `best`. The squares of the entries must be in range.
    """
    for i in range(first, last):
        own = A[i, i]
        for j in range(i):
            other = A[j, j]
            coupling = abs(A[i, j])
            slack = 16 * EPS * (abs(own) + abs(other) + coupling)
            # By Gershgorin: few pairs need a root.
            if max(own, other) + coupling + slack > best:
                half = (own - other) / 2
                value = (own + other) / 2 + np.sqrt(half * half + coupling * coupling)
                value += slack
                if value > best:
                    best = value
                    pair[0], pair[1] = j, i
    return best
