"""Lists of the largest |A_ij| of rows, from sparse data with means and a low rank.

A row of X'X costs the nonzeros of the samples that have the feature.
"""

from __future__ import annotations

from numba import types

from .options import inputs, njit, outputs

FACTOR, SHIFT, DEVIATION, NORM = range(4)  # columns of `features`
SEEN = float("nan")  # compares as false with everything

_SPARSE = (inputs(types.int64, 1), inputs(types.int32, 1), inputs(types.float64, 1))
_TABLE = inputs(types.float64, 2)


@njit()
def _insert(values, indices, row, value, index):
    """Put `value` into a descending list; return the new last value."""
    last = values.shape[1] - 1
    p = last
    while p > 0 and values[row, p - 1] < value:
        values[row, p] = values[row, p - 1]
        indices[row, p] = indices[row, p - 1]
        p -= 1
    values[row, p] = value
    indices[row, p] = index
    return values[row, last]


@njit(
    types.void(
        types.int64, types.int64, *_SPARSE, *_SPARSE, _TABLE, _TABLE, _TABLE,
        types.float64, outputs(types.float64, 1), outputs(types.float64, 2),
        outputs(types.int64, 2),
    )
)  # fmt: skip
def add_sparse_rows(
    start, stop, sample_pointers, sample_features, sample_data,
    feature_pointers, feature_samples, feature_data,
    features, left, right, largest_factor, total, values, indices,
):  # fmt: skip
    """Fill the lists of rows start, …, stop − 1 of A.

    A_ij = f_i f_j (X'X)_ij − s_i s_j − (LR' + RL')_ij.

    X comes by samples (CSR, features ascending) and by features (CSC). f, s and two
    bounds are columns of `features`, which are numbered by descending NORM. `total`,
    scratch, is all zero before and after.

    No |A_ij| exceeds the product of the two DEVIATIONs, so that most entries are not
    computed. An entry with (X'X)_ij = 0 is at most the product of the two NORMs, those
    of (s_i, L_i, R_i), and only the first few features have such entries that matter.

    If X ≥ 0 and there is no L, no entry exceeds the larger one of f_i f_j (X'X)_ij and
    s_i s_j. So (X'X)_ij is compared with the last listed value first, by the largest
    factor. `largest_factor` is infinite otherwise.
    """
    last, rank = values.shape[1] - 1, left.shape[1]
    for i in range(start, stop):
        first, behind = feature_pointers[i], feature_pointers[i + 1]
        for q in range(first, behind):
            weight = feature_data[q]
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] += weight * sample_data[p]
        total[i] = SEEN
        scale, offset = features[i, FACTOR], features[i, SHIFT]
        deviation, norm = features[i, DEVIATION], features[i, NORM]
        floor = values[i, last]
        to_total = (1.0 - 1e-14) / (scale * largest_factor)
        cut = floor * to_total
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                j = sample_features[p]
                product = total[j]
                if abs(product) > cut:
                    value = 0.0
                    if deviation * features[j, DEVIATION] > floor:
                        value = scale * features[j, FACTOR] * product
                        value -= offset * features[j, SHIFT]
                        for r in range(rank):
                            value -= left[i, r] * right[j, r] + right[i, r] * left[j, r]
                        value = abs(value)
                    if value > floor:
                        floor = _insert(values, indices, i, value, j)
                        cut = floor * to_total
                        total[j] = SEEN
                    elif rank:  # a second look would cost more
                        total[j] = SEEN
        for j in range(features.shape[0]):
            if norm * features[j, NORM] <= floor:
                break
            product = total[j]
            if product == product:
                value = scale * features[j, FACTOR] * product
                value -= offset * features[j, SHIFT]
                for r in range(rank):
                    value -= left[i, r] * right[j, r] + right[i, r] * left[j, r]
                value = abs(value)
                if value > floor:
                    floor = _insert(values, indices, i, value, j)
        total[i] = 0.0
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] = 0.0
