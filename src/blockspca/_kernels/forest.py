"""Prim's algorithm for the maximum spanning forest of |A|, one row at a time.

The signatures are declared, inputs as read-only: one compiled version serves writable,
read-only and memory-mapped arrays alike.
"""

from __future__ import annotations

from numba import njit, types

_MATRIX = types.Array(types.float64, 2, "C", readonly=True)
_ROW = types.Array(types.float64, 1, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C")
_INTS = types.Array(types.int64, 1, "C")


@njit(
    types.int64(_ROW, types.int64, _FLOATS, _INTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def absorb(row, vertex, strength, parent):
    """Add `vertex`, whose row of A is given, to the tree; return the next vertex.

    strength[j] is the largest |A_ij| over tree vertices i, parent[j] that i, and −1
    marks the vertices of the tree. Returns −1 when all are in it.
    """
    strength[vertex] = -1.0
    best = -1.0
    following = -1
    for j in range(strength.shape[0]):
        current = strength[j]
        if current >= 0.0:
            weight = abs(row[j])
            if weight > current:
                current = weight
                strength[j] = weight
                parent[j] = vertex
            if current > best:
                best = current
                following = j
    return following


@njit(
    types.void(_MATRIX, _FLOATS, _INTS, _INTS, _FLOATS),
    cache=True,
    nogil=True,
    error_model="numpy",
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
