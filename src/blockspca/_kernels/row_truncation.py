"""Rows of a covariance of sparse data, cut to their k largest entries, and x'Ax there.

A = D (X'X − n μμ') D with X sparse; no row of A is ever stored as a whole.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .arrays import FLOATS, INDEX, INTS, VECTOR
from .options import ENTRY, njit


@njit(
    types.void(FLOATS, INTS, types.int64, types.int64),
    **ENTRY,
)
def select_largest(keys, labels, count, k):
    """Reorder so that the k largest of the first `count` keys come first."""
    low, high = 0, count - 1
    while low < high:
        a, b, c = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                labels[i], labels[j] = labels[j], labels[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break


@njit(
    types.float64(
        INDEX, INDEX, VECTOR, INDEX, INDEX, VECTOR, VECTOR, VECTOR, VECTOR,
        INDEX, types.int64, INDEX, types.float64, INTS,
    ),
    **ENTRY,
)  # fmt: skip
def best_truncated_row(
    row_starts, row_features, row_values, column_starts, column_samples,
    column_values, mean, factor, variance, by_mean, k, rows, best, support,
):  # fmt: skip
    """Return the largest x'Ax over the given rows, cut and normalised, and `best`.

    X is given by rows (samples) and by columns (features); `by_mean` lists the features
    by falling |factor · mean|, which orders the entries of A where X'X is zero. Rows
    that cannot beat `best`, since x'Ax ≤ trace A_SS, are not evaluated. `support`
    receives the support of a better one.
    """
    d = mean.shape[0]
    n = row_starts.shape[0] - 1
    product = np.zeros(d)
    touched = np.zeros(d, np.uint8)
    keys = np.empty(d)
    labels = np.empty(d, np.int64)
    scores = np.empty(n)
    for r in range(rows.shape[0]):
        i = rows[r]
        count = 0
        for p in range(column_starts[i], column_starts[i + 1]):
            s = column_samples[p]
            for q in range(row_starts[s], row_starts[s + 1]):
                j = row_features[q]
                if touched[j] == 0:
                    touched[j] = 1
                    labels[count] = j
                    count += 1
                product[j] += column_values[p] * row_values[q]
        left = k
        for q in range(d):  # of the others, at most the k largest can matter
            if left == 0:
                break
            if touched[by_mean[q]] == 0:
                labels[count] = by_mean[q]
                count += 1
                left -= 1
        for q in range(count):
            j = labels[q]
            product[j] = factor[i] * factor[j] * (product[j] - n * mean[i] * mean[j])
            if j == i:
                product[j] = variance[i]
            keys[q] = abs(product[j])
            touched[j] = 1
        select_largest(keys, labels, count, k)
        trace = 0.0
        length = 0.0
        for q in range(min(k, count)):
            trace += variance[labels[q]]
            length += product[labels[q]] ** 2
        if trace > best and length > 0.0:
            length = np.sqrt(length)
            centre = 0.0
            for s in range(n):
                scores[s] = 0.0
            for q in range(min(k, count)):
                j = labels[q]
                loading = product[j] / length * factor[j]
                centre += loading * mean[j]
                for p in range(column_starts[j], column_starts[j + 1]):
                    scores[column_samples[p]] += loading * column_values[p]
            value = 0.0
            for s in range(n):
                value += (scores[s] - centre) ** 2
            if value > best:
                best = value
                for q in range(min(k, count)):
                    support[q] = labels[q]
        for q in range(count):
            product[labels[q]] = 0.0
            touched[labels[q]] = 0
    return best
