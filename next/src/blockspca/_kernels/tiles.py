"""Lists of the largest |A_ij| of rows and columns, from tiles of A.

The lists hold bit patterns of |A_ij|: without the sign bit these are integers in the
order of the values, and the compiler vectorises a comparison of integers. Most
stretches of a row of a tile have nothing to enter, so that comparison is nearly all the
work. One pass over a tile of the symmetric half serves the lists of its rows and of its
columns.

Functions are written for 32 and for 64 bits: `dtype.type` casts to the integers of the
tile, so that a vector register holds as many as possible. They are no closures, which
Numba does not find again in its cache.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from .options import inputs, njit, outputs

CHUNK = 32  # entries that are compared at once: a chunk that enters one is read again
ROWS, COLUMNS = 1, 2  # sides of a tile


@njit()
def _any_above(row, none, floor, floors):
    """Tell whether a value exceeds `floor` or the floor of its column."""
    cast = row.dtype.type
    # The sign of a difference: both are not negative, so nothing overflows.
    signs = cast(0)
    for b in range(row.shape[0]):
        value = cast(row[b] & none)
        signs = cast(signs | cast(cast(min(floor, floors[b])) - value))
    return signs < 0


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


def add_tile(
    tile, rows, columns, first, row_values, row_indices, column_values,
    column_indices, floors, sides, none,
):  # fmt: skip
    """Enter A[rows, columns] into lists of its rows, of its columns, or of both.

    The list of row i is row i − first of `row_values`, the list of column j is row j of
    `column_values`. `floors` is scratch, a place for each column. `none` has all bits
    but the sign.
    """
    last = row_values.shape[1] - 1
    width = columns.shape[0]
    for b in range(width):
        floors[b] = column_values[columns[b], last] if sides & COLUMNS else none
    for a in range(rows.shape[0]):
        i = rows[a]
        floor = row_values[i - first, last] if sides & ROWS else none
        for start in range(0, width, CHUNK):
            stop = min(start + CHUNK, width)
            if not _any_above(tile[a, start:stop], none, floor, floors[start:stop]):
                continue
            for b in range(start, stop):
                value = tile.dtype.type(tile[a, b] & none)
                j = columns[b]
                if i == j:
                    continue
                if value > floor:
                    floor = _insert(row_values, row_indices, i - first, value, j)
                if value > floors[b]:
                    floors[b] = _insert(column_values, column_indices, j, value, i)


def merge(values, indices, new_values, new_indices, start, stop):
    """Enter those new entries of each row whose columns are in start … stop − 1."""
    last = values.shape[1] - 1
    for row in range(values.shape[0]):
        for p in range(new_values.shape[1]):
            if new_values[row, p] <= values[row, last]:
                break
            j = new_indices[row, p]
            if start <= j < stop:
                _insert(values, indices, row, new_values[row, p], j)


@cache
def tile_kernels(bits: int) -> tuple[Any, Any, Any]:
    """Return `add_tile`, `merge` and `none` for floats of 32 or 64 bits, compiled."""
    kind = types.int32 if bits == 32 else types.int64
    tables = (outputs(kind, 2), outputs(kind, 2))
    labels = inputs(types.int64, 1)
    of_tile = types.void(
        inputs(kind, 2), labels, labels, types.int64, *tables, *tables,
        outputs(kind, 1), types.int64, kind,
    )  # fmt: skip
    of_merge = types.void(*tables, *tables, types.int64, types.int64)
    none = (np.int32 if bits == 32 else np.int64)(2 ** (bits - 1) - 1)
    return njit(of_tile)(add_tile), njit(of_merge)(merge), none
