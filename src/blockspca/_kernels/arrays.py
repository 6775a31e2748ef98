"""Types of arrays in the signatures of kernels: in C order, inputs read-only.

One compiled version serves writable, read-only and memory-mapped inputs.
"""

from numba import types


def _read(kind: types.Type, n: int) -> types.Array:
    return types.Array(kind, n, "C", readonly=True)


# Inputs.
VECTOR, MATRIX = (_read(types.float64, n) for n in (1, 2))
INDEX, INDICES = (_read(types.int64, n) for n in (1, 2))
POSITIONS = _read(types.int32, 1)  # of nonzeros, or in a list
SPARSE = (INDEX, POSITIONS, VECTOR)  # CSR or CSC

# What a kernel writes.
FLOATS, TABLE, TABLES = (types.Array(types.float64, n, "C") for n in (1, 2, 3))
INTS, LABELS = (types.Array(types.int64, n, "C") for n in (1, 2))
