"""Running lists of the K largest |A_ij| of every row, fed by parts of A.

The lists hold the bit patterns of |A_ij|: without the sign bit these are integers in
the order of the values, and the compiler vectorises a maximum of integers, which it may
not do for floats. Most stretches of a row have nothing to enter, so that maximum is
nearly all the work.
"""

from __future__ import annotations

from numba import types

from .arrays import INDEX, INDICES, LABELS
from .options import ENTRY, INNER, njit
from .selection import insert

WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
# Entries whose maximum is looked at first. A chunk that enters something is read again,
# so that 32 beat 64.
CHUNK = 32


@njit(types.int64(INDEX), **INNER)
def _largest(row):
    top = 0
    for b in range(row.shape[0]):
        top = max(top, row[b] & WITHOUT_SIGN)
    return top


@njit(types.void(INDICES, INDEX, INDEX, LABELS, LABELS), **ENTRY)
def add_rows(block, rows, columns, values, indices):
    """Enter block = A[rows, columns] into the lists of its rows.

    An entry whose row and column are the same feature is passed over.
    """
    last = values.shape[1] - 1
    width = block.shape[1]
    for a in range(block.shape[0]):
        i = rows[a]
        floor = values[i, last]
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if _largest(block[a, start:stop]) <= floor:
                continue
            for b in range(start, stop):
                value = block[a, b] & WITHOUT_SIGN
                if value > floor and columns[b] != i:
                    floor = insert(values, indices, i, value, columns[b])
