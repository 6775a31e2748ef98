"""Rows of X'X for sparse X, at the cost of its products, to a few roundings."""

from __future__ import annotations

from numba import types

from .options import inputs, njit, outputs

SPARSE = (inputs(types.int64, 1), inputs(types.int32, 1), inputs(types.float64, 1))
ROW, TABLE = outputs(types.float64, 1), outputs(types.float64, 2)


@njit(
    types.void(
        types.int64, types.int64, types.int64, *SPARSE, *SPARSE, ROW, ROW, TABLE
    )
)  # fmt: skip
def add_rows(
    start, stop, block, sample_pointers, sample_features, sample_data,
    feature_pointers, feature_samples, feature_data, part, rest, out,
):  # fmt: skip
    """Set out[i, j] = (X'X)_ij for i = start, …, stop − 1 and j ≥ i.

    X comes by samples (CSR, features ascending) and by features (CSC). The products of
    `block` samples are added up in `part`, and these sums in out[i] + `rest` with what
    each addition loses (Knuth's sum of two): the result errs by (block + 3) u of the
    sum of the sizes, and terms of second order, for any number of samples. `part` and
    `rest` are scratch.
    """
    d = out.shape[1]
    for i in range(start, stop):
        row = out[i]
        for j in range(i, d):
            row[j] = part[j] = rest[j] = 0.0
        behind = feature_pointers[i + 1]
        first = feature_pointers[i]
        while first < behind:
            last = min(first + block, behind)
            for q in range(first, last):
                weight = feature_data[q]
                s = feature_samples[q]
                for p in range(sample_pointers[s + 1] - 1, sample_pointers[s] - 1, -1):
                    j = sample_features[p]
                    if j < i:
                        break
                    part[j] += weight * sample_data[p]
            for j in range(i, d):
                before, added = row[j], part[j]
                after = before + added
                back = after - before
                rest[j] += (before - (after - back)) + (added - back)
                row[j] = after
                part[j] = 0.0
            first = last
        for j in range(i, d):
            row[j] += rest[j]
