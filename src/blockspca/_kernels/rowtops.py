"""Running list of the K largest |A_ij| of every row, fed by tiles of A."""

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}


@njit(**_INNER)
def _insert(values, indices, row, value, index):
    """Put |A_row,index| into the row's list; returns its new smallest value."""
    last = values.shape[1] - 1
    j = last
    while j > 0 and values[row, j - 1] < value:
        values[row, j] = values[row, j - 1]
        indices[row, j] = indices[row, j - 1]
        j -= 1
    values[row, j] = value
    indices[row, j] = index
    return values[row, last]


@njit(**_OPTIONS)
def add_tile(block, row_start, column_start, values, indices, smallest):
    """Enter block = A[row_start:, column_start:] into the rows and the columns.

    Only entries above the diagonal count; each serves both its row and its column.
    `values` is (d, K), largest first; `smallest` is its last column, kept apart
    so that the common case is one comparison with contiguous memory.
    """
    for a in range(block.shape[0]):
        i = row_start + a
        floor = smallest[i]
        first = max(0, i + 1 - column_start)
        for b in range(first, block.shape[1]):
            value = abs(block[a, b])
            j = column_start + b
            if value > floor:
                floor = _insert(values, indices, i, value, j)
            if value > smallest[j]:
                smallest[j] = _insert(values, indices, j, value, i)
        smallest[i] = floor
