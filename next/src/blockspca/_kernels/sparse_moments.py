"""Sums of stored samples, as `moments` has them; a file of its own compiles alone."""

from __future__ import annotations

import numpy as np
from numba import types

from .options import inputs, njit, outputs

VECTOR = inputs(types.float64, 1)
SPARSE = (inputs(types.int64, 1), inputs(types.int32, 1), VECTOR)
SUMS, MARKS = outputs(types.float64, 2), outputs(types.uint64, 1)
ZERO = np.uint64(2**63)  # the bits of −0.0, which counts as 0.0


@njit(types.void(*SPARSE, VECTOR, VECTOR, types.int64, SUMS, MARKS))
def add_sparse(pointers, indices, data, shift, weights, start, sums, marks):
    """Add the stored numbers of a sparse block (CSR); zeros are not looked at."""
    bits = data.view(np.uint64)
    for s in range(len(pointers) - 1):
        w = weights[s]
        v = np.uint64(start + s) * np.uint64(0x9E3779B97F4A7C15)
        v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        v = (v ^ (v >> np.uint64(27))) | np.uint64(1)
        for p in range(pointers[s], pointers[s + 1]):
            j = indices[p]
            x = data[p]
            c = x - shift[j]
            term = w * c
            before = sums[0, j]
            after = before + term
            back = after - before
            sums[1, j] += (before - (after - back)) + (term - back)
            sums[0, j] = after
            term *= c
            before = sums[2, j]
            after = before + term
            back = after - before
            sums[3, j] += (before - (after - back)) + (term - back)
            sums[2, j] = after
            size = abs(x)
            sums[4, j] = size if size > sums[4, j] else sums[4, j]
            sums[5, j] += w if x != shift[j] else 0.0
            sums[6, j] += w
            h = bits[p] if bits[p] != ZERO else np.uint64(0)
            h = (h ^ (h >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
            marks[j] += v * (h ^ (h >> np.uint64(29)))
