"""Sums over the columns of a sparse matrix, at the cost of their nonzeros squared."""

from __future__ import annotations

from numba import types

from .arrays import FLOATS, MATRIX, POSITIONS, TABLE, VECTOR
from .options import ENTRY, njit


@njit(types.void(POSITIONS, POSITIONS, VECTOR, VECTOR, VECTOR, TABLE), **ENTRY)
def add_gram(starts, rows, values, weights, shift, total):
    """Add Σ_j weights_j y_j y_j' − s1' − 1s' to `total`, y_j the columns, s the shift.

    The rows of each column ascend, and `total` is symmetric: only its lower half is
    read.
    """
    for j in range(weights.shape[0]):
        weight = weights[j]
        if weight == 0.0:
            continue
        for a in range(starts[j], starts[j + 1]):
            row = total[rows[a]]
            scaled = weight * values[a]
            for b in range(starts[j], a + 1):
                row[rows[b]] += scaled * values[b]
    n = total.shape[0]
    for i in range(0, n, 32):  # by tiles, or the upper half would miss the cache
        for j in range(0, i + 1, 32):
            for a in range(i, min(i + 32, n)):
                row = total[a]
                for b in range(j, min(j + 32, a + 1)):
                    row[b] -= shift[a] + shift[b]
                    total[b, a] = row[b]


@njit(types.void(POSITIONS, POSITIONS, VECTOR, MATRIX, FLOATS), **ENTRY)
def quadratic_forms(starts, rows, values, S, forms):
    """Set forms_j = y_j'Sy_j for symmetric S."""
    for j in range(forms.shape[0]):
        form = 0.0
        for a in range(starts[j], starts[j + 1]):
            row = S[rows[a]]
            inner = 0.0
            for b in range(starts[j], a):
                inner += values[b] * row[rows[b]]
            form += values[a] * (2.0 * inner + values[a] * row[rows[a]])
        forms[j] = form
