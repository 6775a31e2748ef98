"""Sums of samples about a shift, compensated, with a fingerprint of the numbers.

Row 0 of `sums` gets Σ w (x − m), row 2 Σ w (x − m)², rows 1 and 3 what the additions
lose (Knuth's sum of two): the sum of both rows errs by 3u of the sum of the sizes, for
any number of samples below 2⁴⁰. Row 4 is the largest |x|, row 5 the weight of the
samples with x ≠ m, row 6, of sparse data, the weight of the samples that are stored.

The fingerprint of a column is Σ_s v(s) h(x_s) modulo 2⁶⁴, where h is a bijection of the
64 bits of a number with h(0) = 0, and v(s) is odd and looks random. A change of one
number always changes the sum.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .options import inputs, njit, outputs

VECTOR, MATRIX = inputs(types.float64, 1), inputs(types.float64, 2)
BITS = inputs(types.uint64, 2)
SUMS, MARKS = outputs(types.float64, 2), outputs(types.uint64, 1)
ZERO = np.uint64(2**63)  # the bits of −0.0, which counts as 0.0
WIDTH = 256  # columns at a time: their sums stay in the cache of the core


@njit(types.void(MATRIX, BITS, VECTOR, VECTOR, types.int64, SUMS, MARKS))
def add_dense(block, bits, shift, weights, start, sums, marks):
    """Add the samples start, start + 1, … of a dense block; `bits` are its bits."""
    n, d = block.shape
    for low in range(0, d, WIDTH):
        high = min(low + WIDTH, d)
        for s in range(n):
            w = weights[s]
            for j in range(low, high):
                x = block[s, j]
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
            # splitmix64 of the sample's number
            v = np.uint64(start + s) * np.uint64(0x9E3779B97F4A7C15)
            v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            v = (v ^ (v >> np.uint64(27))) | np.uint64(1)
            for j in range(low, high):
                h = bits[s, j] if bits[s, j] != ZERO else np.uint64(0)
                h = (h ^ (h >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
                marks[j] += v * (h ^ (h >> np.uint64(29)))
