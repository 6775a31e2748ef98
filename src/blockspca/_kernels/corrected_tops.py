"""Running lists of the K largest |A_ij| of every row, from sparse data less a low rank.

Of what deflation leaves of sparse data: entries of sparse products, as in
`sparse_tops`, less a few products of vectors.
"""

from __future__ import annotations

from numba import types

from .arrays import FLOATS, INDEX, LABELS, MATRIX, SPARSE, TABLE
from .options import ENTRY, njit
from .selection import insert

FACTOR, SHIFT, DEVIATION, NORM = range(4)  # columns of `features`
SEEN = float("nan")  # compares as false with everything


@njit(
    types.void(
        types.int64, types.int64, *SPARSE, *SPARSE,
        MATRIX, MATRIX, MATRIX, INDEX, FLOATS, TABLE, LABELS,
    ),
    **ENTRY,
)  # fmt: skip
def add_corrected(
    start, stop, sample_pointers, sample_features, sample_data,
    feature_pointers, feature_samples, feature_data,
    features, left, right, labels, total, values, indices,
):  # fmt: skip
    """Rows start, …, stop − 1 of A_ij = f_i f_j (X'X)_ij − s_i s_j − (LR' + RL')_ij.

    X comes by samples (CSR) and by features (CSC); f, s and two bounds are columns of
    `features`, which are numbered by descending NORM; `labels` gives their true
    numbers. `total`, scratch, is all zero before and after.

    No |A_ij| is above the product of the two DEVIATIONs, so that entries that cannot
    enter a list are not computed. An entry without a sample that has both features is
    at most the product of the two NORMs, those of (s_i, L_i, R_i), and only the first
    few features have such entries that matter.
    """
    last = values.shape[1] - 1
    rank = left.shape[1]
    for i in range(start, stop):
        row = labels[i]
        scale, offset = features[i, FACTOR], features[i, SHIFT]
        deviation, norm = features[i, DEVIATION], features[i, NORM]
        first, behind = feature_pointers[i], feature_pointers[i + 1]
        for q in range(first, behind):
            weight = feature_data[q]
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] += weight * sample_data[p]
        total[i] = SEEN
        floor = values[row, last]
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                j = sample_features[p]
                if total[j] == total[j]:
                    if deviation * features[j, DEVIATION] > floor:
                        value = scale * features[j, FACTOR] * total[j]
                        value -= offset * features[j, SHIFT]
                        for t in range(rank):
                            value -= left[i, t] * right[j, t] + right[i, t] * left[j, t]
                        value = abs(value)
                        if value > floor:
                            floor = insert(values, indices, row, value, labels[j])
                    total[j] = SEEN
        for j in range(labels.shape[0]):
            if norm * features[j, NORM] <= floor:
                break
            if total[j] == total[j]:
                value = -offset * features[j, SHIFT]
                for t in range(rank):
                    value -= left[i, t] * right[j, t] + right[i, t] * left[j, t]
                value = abs(value)
                if value > floor:
                    floor = insert(values, indices, row, value, labels[j])
        total[i] = 0.0
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] = 0.0
