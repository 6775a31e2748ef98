"""Running lists of the K largest |A_ij| of every row, fed by parts of A.

The lists hold the bit patterns of |A_ij|: without the sign bit these are integers in
the order of the values, and the compiler vectorises a maximum of integers, which it may
not do for floats. Most stretches of a row have nothing to enter, so that maximum is
nearly all the work.

The signatures are declared, inputs as read-only: one compiled version serves writable,
read-only and memory-mapped arrays alike. `_insert` alone has two, for lists of bit
patterns and of floats.
"""

from __future__ import annotations

from numba import njit, types

_BITS = types.Array(types.int64, 2, "C", readonly=True)
_LABELS = types.Array(types.int64, 1, "C", readonly=True)
_POINTERS = types.Array(types.int64, 1, "C", readonly=True)
_POSITIONS = types.Array(types.int32, 1, "C", readonly=True)
_REALS = types.Array(types.float64, 1, "C", readonly=True)
_INT_LISTS = types.Array(types.int64, 2, "C")
_FLOAT_LISTS = types.Array(types.float64, 2, "C")
_INTS = types.Array(types.int64, 1, "C")
_FLOATS = types.Array(types.float64, 1, "C")

WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
CHUNK = 32
LISTED = float("nan")  # compares as false with everything


@njit(cache=True, nogil=True, error_model="numpy")
def _insert(values, indices, row, value, index):
    """Put `value` into the row's list, largest first; return the new smallest."""
    j = values.shape[1] - 1
    while j > 0 and values[row, j - 1] < value:
        values[row, j] = values[row, j - 1]
        indices[row, j] = indices[row, j - 1]
        j -= 1
    values[row, j] = value
    indices[row, j] = index
    return values[row, values.shape[1] - 1]


@njit(
    types.int64(types.Array(types.int64, 1, "C", readonly=True)),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def _largest(row):
    top = 0
    for b in range(row.shape[0]):
        top = max(top, row[b] & WITHOUT_SIGN)
    return top


@njit(
    types.int64(
        types.Array(types.int64, 1, "C", readonly=True),
        types.Array(types.int64, 1, "C"),
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def _largest_excess(row, floors):
    """The largest |row_b| − floors_b, of bit patterns, so that no sum overflows."""
    top = 0
    for b in range(row.shape[0]):
        top = max(top, (row[b] & WITHOUT_SIGN) - floors[b])
    return top


@njit(
    types.void(_BITS, _LABELS, _LABELS, _INT_LISTS, _INT_LISTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
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
                    floor = _insert(values, indices, i, value, columns[b])


@njit(
    types.void(_BITS, _LABELS, _LABELS, _INT_LISTS, _INT_LISTS, _INTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def add_columns(block, rows, columns, values, indices, span):
    """Enter block = A[rows, columns] into the lists of its columns.

    span[0], span[1] bound the columns to look at; what follows is scratch, one place
    for each column.
    """
    last = values.shape[1] - 1
    start0, stop0 = span[0], span[1]
    floors = span[2:]
    for b in range(start0, stop0):
        floors[b] = values[columns[b], last]
    for a in range(block.shape[0]):
        i = rows[a]
        for start in range(start0, stop0, CHUNK):
            stop = min(start + CHUNK, stop0)
            if _largest_excess(block[a, start:stop], floors[start:stop]) <= 0:
                continue
            for b in range(start, stop):
                value = block[a, b] & WITHOUT_SIGN
                if value > floors[b] and columns[b] != i:
                    floors[b] = _insert(values, indices, columns[b], value, i)


@njit(
    types.void(
        types.int64,
        types.int64,
        _POINTERS,
        _POSITIONS,
        _REALS,
        _FLOAT_LISTS,
        _INT_LISTS,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def add_stored(start, stop, pointers, positions, data, values, indices):
    """Enter rows start, …, stop − 1 of a sparse A (CSR) into their lists."""
    last = values.shape[1] - 1
    for i in range(start, stop):
        floor = values[i, last]
        for p in range(pointers[i], pointers[i + 1]):
            j = positions[p]
            value = abs(data[p])
            if value > floor and j != i:
                floor = _insert(values, indices, i, value, j)


@njit(
    types.void(
        types.int64,
        types.int64,
        _POINTERS,
        _POSITIONS,
        _REALS,
        _POINTERS,
        _POSITIONS,
        _REALS,
        _REALS,
        _REALS,
        _LABELS,
        types.float64,
        _FLOATS,
        _FLOAT_LISTS,
        _INT_LISTS,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def add_products(
    start,
    stop,
    sample_pointers,
    sample_features,
    sample_data,
    feature_pointers,
    feature_samples,
    feature_data,
    factor,
    shift,
    labels,
    largest_factor,
    total,
    values,
    indices,
):
    """Rows start, …, stop − 1 of A_ij = factor_i factor_j (X'X)_ij − shift_i shift_j.

    X comes by samples (CSR, features ascending) and by features (CSC). Features are
    numbered by descending |shift|; `labels` gives their true numbers. `total`, scratch,
    is all zero before and after.

    With X ≥ 0 an entry is at most the larger of its two terms, so the first term is
    compared with the smallest listed value before anything else is computed, and the
    second matters for the first few features only. `largest_factor` is the largest
    factor then, and infinite if X has negative entries.
    """
    last = values.shape[1] - 1
    for i in range(start, stop):
        row = labels[i]
        scale = factor[i]
        offset = shift[i]
        first, behind = feature_pointers[i], feature_pointers[i + 1]
        for q in range(first, behind):
            weight = feature_data[q]
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] += weight * sample_data[p]
        floor = values[row, last]
        to_total = (1.0 - 1e-14) / (scale * largest_factor)
        cut = floor * to_total
        for q in range(first, behind):
            s = feature_samples[q]
            low, high = sample_pointers[s], sample_pointers[s + 1]
            own = low
            beyond = high
            while own < beyond:  # where feature i itself stands in the sample
                middle = (own + beyond) // 2
                if sample_features[middle] < i:
                    own = middle + 1
                else:
                    beyond = middle
            # Features as frequent as i, equal ones among them, stand next to it:
            # taken first, they raise the floor at once.
            for p in range(own, high):
                j = sample_features[p]
                if abs(total[j]) > cut:
                    value = abs(scale * factor[j] * total[j] - offset * shift[j])
                    if value > floor and j != i:
                        floor = _insert(values, indices, row, value, labels[j])
                        cut = floor * to_total
                        total[j] = LISTED
            for p in range(own - 1, low - 1, -1):
                j = sample_features[p]
                if abs(total[j]) > cut:
                    value = abs(scale * factor[j] * total[j] - offset * shift[j])
                    if value > floor:
                        floor = _insert(values, indices, row, value, labels[j])
                        cut = floor * to_total
                        total[j] = LISTED
        for j in range(factor.shape[0]):
            if abs(offset * shift[j]) <= floor:
                break
            value = abs(scale * factor[j] * total[j] - offset * shift[j])
            if value > floor and j != i:
                floor = _insert(values, indices, row, value, labels[j])
        for q in range(first, behind):
            s = feature_samples[q]
            for p in range(sample_pointers[s], sample_pointers[s + 1]):
                total[sample_features[p]] = 0.0
