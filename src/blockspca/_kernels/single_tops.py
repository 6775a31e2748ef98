"""Lists of the largest entries of rows, in single precision, from tiles of both halves.

A tile A[rows, columns] of the symmetric half serves the lists of its rows and those of
its columns, in one pass over it: most stretches enter nothing anywhere, and two maxima,
which the compiler vectorises, say so. The lists hold bit patterns of |A_ij| without the
sign, as in `rowtops`. Then the entries that were listed are computed in double.
"""

from __future__ import annotations

import numpy as np
from numba import types

from .arrays import MATRIX, POSITIONS, TABLE
from .options import ENTRY, INNER, njit
from .selection import insert

_TILE = types.Array(types.int32, 2, "C", readonly=True)
_LISTS = types.Array(types.int32, 2, "C")
_FLOORS = types.Array(types.int32, 1, "C")

WITHOUT_SIGN = 0x7FFFFFFF
# As in `rowtops`.
CHUNK = 32
ROWS, COLUMNS = 1, 2


@njit(types.boolean(POSITIONS, types.int32, _FLOORS), **INNER)
def _any_above(row, floor, floors):
    """Tell whether an |row_b| exceeds `floor` or floors_b, by bit patterns.

    The sign of a difference of two of them, in 32 bits throughout, so that eight are
    looked at in one instruction: both are below 2³¹, and none overflows.
    """
    signs = np.int32(0)
    for b in range(row.shape[0]):
        value = np.int32(row[b] & np.int32(WITHOUT_SIGN))
        lower = np.int32(min(floor, floors[b]))
        signs = np.int32(signs | np.int32(lower - value))
    return signs < 0


@njit(
    types.void(_TILE, POSITIONS, POSITIONS, _LISTS, _LISTS, _FLOORS, types.int64),
    **ENTRY,
)
def add_tile(tile, rows, columns, values, indices, floors, sides):
    """Enter A[rows, columns] into the lists of its rows, of its columns, or of both.

    `sides` is ROWS, COLUMNS or their sum. `floors` is scratch, one place for each
    column.
    """
    last = values.shape[1] - 1
    width = tile.shape[1]
    none = np.int32(WITHOUT_SIGN)
    for b in range(width):
        floors[b] = values[columns[b], last] if sides & COLUMNS else none
    for a in range(tile.shape[0]):
        i = rows[a]
        floor = values[i, last] if sides & ROWS else none
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if not _any_above(tile[a, start:stop], floor, floors[start:stop]):
                continue
            for b in range(start, stop):
                value = tile[a, b] & none
                j = columns[b]
                if value > floor and j != i:
                    floor = insert(values, indices, i, value, j)
                if value > floors[b] and j != i:
                    floors[b] = insert(values, indices, j, value, i)


@njit(types.void(types.int64, types.int64, MATRIX, _TILE, TABLE), **ENTRY)
def listed_entries(start, stop, C, indices, values):
    """Set values[i, p] = |c_i'c_j|, j = indices[i, p], in double; 0 where j < 0.

    C has a feature in each row. i = start, …, stop − 1.
    """
    for i in range(start, stop):
        for p in range(indices.shape[1]):
            j = indices[i, p]
            if j < 0:
                values[i, p] = 0.0
                continue
            # Four sums, so that additions need not wait for one another.
            a = b = c = e = 0.0
            n = C.shape[1]
            for s in range(0, n - 3, 4):
                a += C[i, s] * C[j, s]
                b += C[i, s + 1] * C[j, s + 1]
                c += C[i, s + 2] * C[j, s + 2]
                e += C[i, s + 3] * C[j, s + 3]
            for s in range(n - n % 4, n):
                a += C[i, s] * C[j, s]
            values[i, p] = abs((a + b) + (c + e))
