"""Selection and sorting of largest numbers, in place, for all kernels."""

from .options import INNER, njit


@njit(**INNER)
def move_largest_first(values, count, q):
    """Reorder values[:count] so that its q largest come first (quickselect)."""
    low = 0
    high = count - 1
    target = q - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                swap = values[i]
                values[i] = values[j]
                values[j] = swap
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            return


@njit(**INNER)
def sum_of_largest(values, count, q):
    """Sum of the q largest of values[:count], which it reorders."""
    if q < count:
        if q <= 0:
            return 0.0
        move_largest_first(values, count, q)
        count = q
    total = 0.0
    for i in range(count):
        total += values[i]
    return total


@njit(**INNER)
def _first_gap(count):
    """The first gap of a Shell sort (Knuth): 1, 4, 13, …; // 3 leads to the next."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    return gap


@njit(**INNER)
def sort_descending(keys, level, orders, count):
    """Shell sort of keys[:count], largest first, carrying orders[level] along."""
    gap = _first_gap(count)
    while gap >= 1:
        for i in range(gap, count):
            key = keys[i]
            label = orders[level, i]
            j = i
            while j >= gap and keys[j - gap] < key:
                keys[j] = keys[j - gap]
                orders[level, j] = orders[level, j - gap]
                j -= gap
            keys[j] = key
            orders[level, j] = label
        gap //= 3


@njit(**INNER)
def sort_front(values, count):
    """Shell sort of values[:count], largest first."""
    gap = _first_gap(count)
    while gap >= 1:
        for i in range(gap, count):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit(**INNER)
def insert(values, indices, row, value, index):
    """Put `value` into the row's list, largest first; return the new smallest."""
    j = values.shape[1] - 1
    while j > 0 and values[row, j - 1] < value:
        values[row, j] = values[row, j - 1]
        indices[row, j] = indices[row, j - 1]
        j -= 1
    values[row, j] = value
    indices[row, j] = index
    return values[row, values.shape[1] - 1]


@njit(**INNER)
def insert_value(largest, count, value):
    """Put `value` into the descending list of the `count` largest values so far."""
    position = count - 1
    while position > 0 and largest[position - 1] < value:
        largest[position] = largest[position - 1]
        position -= 1
    largest[position] = value
