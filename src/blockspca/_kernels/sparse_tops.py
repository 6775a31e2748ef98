"""Running lists of the K largest |A_ij| of every row, from sparse A or sparse data."""

from __future__ import annotations

from numba import types

from .arrays import FLOATS, INDEX, LABELS, SPARSE, TABLE, VECTOR
from .options import ENTRY, njit
from .selection import insert

_ROWS = (types.int64, types.int64)  # from, and up to
_LISTS = (TABLE, LABELS)

LISTED = float("nan")  # compares as false with everything


@njit(types.void(*_ROWS, *SPARSE, *_LISTS), **ENTRY)
def add_stored(start, stop, pointers, positions, data, values, indices):
    """Enter rows start, …, stop − 1 of a sparse A (CSR) into their lists."""
    last = values.shape[1] - 1
    for i in range(start, stop):
        floor = values[i, last]
        for p in range(pointers[i], pointers[i + 1]):
            j = positions[p]
            value = abs(data[p])
            if value > floor and j != i:
                floor = insert(values, indices, i, value, j)


@njit(
    types.void(
        *_ROWS, *SPARSE, *SPARSE,
        VECTOR, VECTOR, INDEX, types.float64, FLOATS, *_LISTS,
    ),
    **ENTRY,
)  # fmt: skip
def add_products(
    start, stop, sample_pointers, sample_features, sample_data,
    feature_pointers, feature_samples, feature_data,
    factor, shift, labels, largest_factor, total, values, indices,
):  # fmt: skip
    """Rows start, …, stop − 1 of A_ij = factor_i factor_j (X'X)_ij − shift_i shift_j.

    X comes by samples (CSR, features ascending) and by features (CSC). Features are
    numbered by descending |shift|; `labels` gives their true numbers. `total`, scratch,
    is all zero before and after.

    With X ≥ 0 an entry is at most the larger of its two terms, so the first term is
    compared with the smallest listed value before anything else is computed, and the
    second matters for the first few features only. `largest_factor` is the largest
    factor then, and infinite if X has negative entries.
    """
    last = values.shape[1] - 1
    for i in range(start, stop):
        row = labels[i]
        scale = factor[i]
        offset = shift[i]
        first, behind = feature_pointers[i], feature_pointers[i + 1]
        for q in range(first, behind):
            weight = feature_data[q]
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] += weight * sample_data[p]
        floor = values[row, last]
        to_total = (1.0 - 1e-14) / (scale * largest_factor)
        cut = floor * to_total
        for q in range(first, behind):
            s = feature_samples[q]
            low, high = sample_pointers[s], sample_pointers[s + 1]
            own = low
            beyond = high
            while own < beyond:  # where feature i itself stands in the sample
                middle = (own + beyond) // 2
                if sample_features[middle] < i:
                    own = middle + 1
                else:
                    beyond = middle
            # Features as frequent as i, equal ones among them, stand next to it:
            # taken first, they raise the floor at once.
            for p in range(own, high):
                j = sample_features[p]
                if abs(total[j]) > cut:
                    value = abs(scale * factor[j] * total[j] - offset * shift[j])
                    if value > floor and j != i:
                        floor = insert(values, indices, row, value, labels[j])
                        cut = floor * to_total
                        total[j] = LISTED
            for p in range(own - 1, low - 1, -1):
                j = sample_features[p]
                if abs(total[j]) > cut:
                    value = abs(scale * factor[j] * total[j] - offset * shift[j])
                    if value > floor:
                        floor = insert(values, indices, row, value, labels[j])
                        cut = floor * to_total
                        total[j] = LISTED
        for j in range(factor.shape[0]):
            if abs(offset * shift[j]) <= floor:
                break
            value = abs(scale * factor[j] * total[j] - offset * shift[j])
            if value > floor and j != i:
                floor = insert(values, indices, row, value, labels[j])
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] = 0.0
