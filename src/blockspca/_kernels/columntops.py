"""The largest entries of each column of a block: for data, of which half is computed.

A file of its own, as a matrix in memory is read by rows alone and need not wait for
this to be compiled. The lists are those of `rowtops`.
"""

from __future__ import annotations

from numba import types

from .arrays import INDEX, INDICES, INTS, LABELS
from .options import ENTRY, INNER, njit
from .rowtops import CHUNK, WITHOUT_SIGN
from .selection import insert


@njit(types.int64(INDEX, INTS), **INNER)
def _largest_excess(row, floors):
    """The largest |row_b| − floors_b, of bit patterns, so that no sum overflows."""
    top = 0
    for b in range(row.shape[0]):
        top = max(top, (row[b] & WITHOUT_SIGN) - floors[b])
    return top


@njit(types.void(INDICES, INDEX, INDEX, LABELS, LABELS, INTS), **ENTRY)
def add_columns(block, rows, columns, values, indices, floors):
    """Enter block = A[rows, columns] into the lists of its columns.

    `floors` is scratch, one place for each column.
    """
    last = values.shape[1] - 1
    width = block.shape[1]
    for b in range(width):
        floors[b] = values[columns[b], last]
    for a in range(block.shape[0]):
        i = rows[a]
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if _largest_excess(block[a, start:stop], floors[start:stop]) <= 0:
                continue
            for b in range(start, stop):
                value = block[a, b] & WITHOUT_SIGN
                if value > floors[b] and columns[b] != i:
                    floors[b] = insert(values, indices, columns[b], value, i)
