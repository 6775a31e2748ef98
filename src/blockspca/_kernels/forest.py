"""Prim's algorithm for the maximum spanning forest of |A|, one row at a time.

Entries come as the bit patterns of float64: without the sign bit these are integers in
the order of |A_ij|, and the compiler vectorises a maximum of integers, which it may not
do for floats. (Measured on rows in cache: 0.35 ns an entry, against 2.0 on floats.)

The signatures are declared, inputs as read-only: one compiled version serves writable,
read-only and memory-mapped arrays alike.
"""

from __future__ import annotations

from numba import njit, types

_MATRIX = types.Array(types.int64, 2, "C", readonly=True)
_ROW = types.Array(types.int64, 1, "C", readonly=True)
_INTS = types.Array(types.int64, 1, "C")

WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
CHUNK = 256


@njit(
    types.int64(_ROW, types.int64, _INTS, _INTS),
    cache=True,
    nogil=True,
    error_model="numpy",
    no_cfunc_wrapper=True,
)
def _update(row, vertex, strength, parent):
    """Let `vertex` offer its edges to some vertices; return the largest strength.

    Counting from 0 tells the compiler that no index is negative, without which the
    loop is not vectorised.
    """
    top = -1
    for j in range(strength.shape[0]):
        current = strength[j]
        weight = row[j] & WITHOUT_SIGN
        stronger = (weight > current) & (current >= 0)
        current = weight if stronger else current
        parent[j] = vertex if stronger else parent[j]
        strength[j] = current
        top = max(top, current)
    return top


@njit(
    types.int64(_ROW, types.int64, _INTS, _INTS),
    cache=True,
    nogil=True,
    error_model="numpy",
    no_cfunc_wrapper=True,
)
def absorb(row, vertex, strength, parent):
    """Add `vertex`, whose row of A is given, to the tree; return the next vertex.

    strength[j] is the largest |A_ij| over tree vertices i, parent[j] that i, and −1
    marks the vertices of the tree. Returns −1 when all are in it.
    """
    d = strength.shape[0]
    strength[vertex] = -1
    best = -1
    best_chunk = 0
    for start in range(0, d, CHUNK):
        stop = min(start + CHUNK, d)
        top = _update(row[start:stop], vertex, strength[start:stop], parent[start:stop])
        if top > best:
            best = top
            best_chunk = start
    if best < 0:
        return -1
    following = best_chunk
    while strength[following] != best:
        following += 1
    return following


@njit(
    types.void(_MATRIX, _INTS, _INTS, _INTS, _INTS),
    cache=True,
    nogil=True,
    error_model="numpy",
    no_cfunc_wrapper=True,
)
def grow_forest(A, strength, parent, order, weights):
    """Run Prim's algorithm over a whole matrix.

    order[s] is the s-th vertex to join and weights[s] the strength of the edge to its
    parent, 0 for the first vertex of each tree.
    """
    vertex = 0
    for step in range(A.shape[0]):
        order[step] = vertex
        weights[step] = strength[vertex]
        vertex = absorb(A[vertex], vertex, strength, parent)
