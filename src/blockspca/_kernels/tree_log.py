"""The tree of `schur_tree.py` once more, with one order of the features, written down.

Each node is what `docs/proof-format.md` calls it: features are dropped (D), the node is
closed by its pairs (L), by a Cholesky factor (P), or by suffix bounds (S) with a child
for each first feature whose bound is above τ. Tests are made at τ' < τ, which leaves
room for those who check them; the matrices of the nodes are those of τ.

**Errors of A.** With W = (τI − A_PP)⁻¹ A_PF, the weights of the chosen features P, an
error E of A changes B by [I W'] E [I W']' to first order. If ‖E‖ ≤ δ, then |B_ij|
changes by at most δ g_i g_j, where g_i² = 1 + ‖W_i‖², and λmax(B) by no more than it
does when δ (I + W'W) is added. Tests are made with these added, as near the optimum g²
may be in the thousands: room in B alone would be none in A.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from .arrays import FLOATS, INDICES, INTS, LABELS, MATRIX, TABLE, TABLES, VECTOR
from .options import ENTRY, INNER, njit
from .schur_tree import _all_below, _eliminate, _peel, _suffix_bounds
from .tree_layout import FIRST
from .tree_parts import Block, Scratch

CLOSED, NOT_CLOSED, NODES_SPENT, LOG_FULL, NEEDS_MEMORY = range(5)

# Of the log; positions are not negative. S is followed by how many are open, and these.
DROP, LEAF, POSITIVE, SUFFIX = -1, -2, -3, -4

# Slots of `state`, and rows of `levels`
WRITTEN, NODES, MEMORY = range(3)
START, SIZE, LEFT, OPEN, CURSOR = range(5)


class Tree(NamedTuple):
    """What `write_tree` says of its levels."""

    levels: Any
    labels: Any
    orders: Any
    opens: Any
    bounds: Any


@njit(**INNER)
def _excludes(group, rooms, i, j):
    """Whether no set has features i and j: a group of both has room for one."""
    for kind in range(group.shape[0]):
        g = group[kind, i]
        if g >= 0 and g == group[kind, j] and rooms[g] < 2:
            return True
    return False


@njit(**INNER)
def _has_room(group, rooms, i):
    """Whether all groups of a feature have room for one more."""
    for kind in range(group.shape[0]):
        g = group[kind, i]
        if g >= 0 and rooms[g] <= 0:
            return False
    return True


@njit(**INNER)
def _leaf_holds(block, m, below, level, labels, group, rooms):
    """Whether no feature (m = 1), or no pair that is allowed (m = 2), is above τ'."""
    B, start, n = block
    for a in range(n):
        slack = below - B[start + a * n + a]
        if not slack >= 0.0:
            return False
        if m == 2:
            for b in range(a):
                if _excludes(group, rooms[level], labels[level, a], labels[level, b]):
                    continue
                value = B[start + a * n + b]
                if not value * value <= slack * (below - B[start + b * n + b]):
                    return False
    return True


@njit(**INNER)
def _widen(B, start, n, chosen, error, gains, begin):
    """Write |B_ij| + δ g_i g_j of a level from B[begin] on; B_ii has no | |."""
    weights = start + n * n
    for a in range(n):
        total = 1.0
        for c in range(chosen):
            value = B[weights + c * n + a]
            total += value * value
        gains[a] = np.sqrt(total)
    for a in range(n):
        row = start + a * n
        target = begin + a * n
        for b in range(n):
            B[target + b] = abs(B[row + b]) + error * gains[a] * gains[b]
        B[target + a] = B[row + a] + error * gains[a] * gains[a]


@njit(**INNER)
def _add_gram(B, start, n, chosen, error, order, count, begin):
    """Write B + δ (I + W'W), of some features of a level, from B[begin] on."""
    weights = start + n * n
    for a in range(count):
        i = order[a]
        for b in range(a + 1):
            j = order[b]
            total = 0.0
            for c in range(chosen):
                total += B[weights + c * n + i] * B[weights + c * n + j]
            B[begin + i * n + j] = B[start + i * n + j] + error * total
            B[begin + j * n + i] = B[begin + i * n + j]
        B[begin + i * n + i] += error


@njit(**INNER)
def _continue_weights(block, p, tau, chosen, kept, fresh, begin):
    """Write the weights of a child, to be kept after its matrix, from B[begin] on."""
    B, start, n = block
    pivot_row = start + p * n
    weights = start + n * n
    remaining = tau - B[pivot_row + p]
    for a in range(kept):
        own = B[pivot_row + fresh[a]] / remaining
        for c in range(chosen):
            row = weights + c * n
            B[begin + c * kept + a] = B[row + fresh[a]] + own * B[row + p]
        B[begin + chosen * kept + a] = own


@njit(**INNER)
def _open_node(
    B, k, below, error, first, upper, chain, level, tree, scratch, log, written, group,
    rooms,
):  # fmt: skip
    """Write one node; return the length of the log, −1 if the node is not closed.

    levels[OPEN, level] says how many children it has, opens[level] which; `first` is
    how many features were chosen before the tree begins.
    """
    levels, labels, orders, opens, bounds = tree
    n, start, m = levels[SIZE, level], levels[START, level], k - level
    chosen = first + level
    begin = start + n * (n + chosen)
    _widen(B, start, n, chosen, error, scratch.squares, begin)
    block = Block(B, begin, n)
    levels[OPEN, level] = 0
    levels[CURSOR, level] = 0
    if n < m or m <= 2:
        if n >= m and not _leaf_holds(block, m, below, level, labels, group, rooms):
            return -1
        log[written] = LEAF
        return written + 1
    for a in range(n):
        orders[level, a] = a
        if not B[begin + a * n + a] <= below:
            return -1
    left = _peel(block, m, below, chain, level, orders, bounds, scratch)
    levels[LEFT, level] = left
    if left < n:
        log[written] = DROP
        written += 1
    if left < m:
        log[written] = LEAF
        return written + 1
    if left <= 2 * m:
        gram = begin + n * n
        _add_gram(B, start, n, chosen, error, orders[level], left, gram)
        raised = Block(B, gram, n)
        if _all_below(raised, left, below, level, orders, gram + n * n):
            log[written] = POSITIVE
            return written + 1
    _suffix_bounds(block, m, left, below, upper, level, orders, bounds, scratch)
    count = 0
    for t in range(left - m + 1):
        if not bounds[FIRST, level, t] <= below:
            opens[level, count] = t
            log[written + 2 + count] = labels[level, orders[level, t]]
            count += 1
    log[written] = SUFFIX
    log[written + 1] = count
    levels[OPEN, level] = count
    return written + 2 + count


@njit(
    (
        MATRIX, MATRIX, types.int64, types.float64, types.float64, types.float64,
        VECTOR, FLOATS, LABELS, LABELS, LABELS, LABELS, TABLES, TABLE, INTS, INTS,
        types.int64, INTS, INDICES, LABELS,
    ),
    **ENTRY,
)  # fmt: skip
def write_tree(
    A, weights, k, tau, below, error, upper, B, levels, labels, orders, opens, bounds,
    work, fresh, log, most, state, group, rooms,
):  # fmt: skip
    """Write a proof that no k-set S has λmax(A_SS) > τ, k ≥ 2, in preorder.

    Parameters
    ----------
    A : (n, n), its features in the order of all nodes; tau; below : τ' < τ.
    weights : (p, n) W of p features that are chosen before, whose B is A.
    error : δ, of A.
    upper : (k + 1,) upper[q] ≥ opt(q) for q < k; +inf where nothing is known.
    B : flat memory of the levels' matrices, one after the other.
    levels : (5, k + 1) where the matrix of a level begins, its size, how many of its
    columns are left, how many children it has, and the next of them.
    labels, orders, opens : (k + 1, n) column → position, columns left, children.
    bounds : (4, k + 1, n), work : (3, max(n, k) + 1), fresh : (n,) scratch.
    log : the tokens; most : nodes; state : what was written, nodes, memory needed.
    group : (kinds, n) of each feature and kind of groups, −1 for none; rooms : (k + 1,
    groups of all kinds) how many more of each there may be at a level, the first row as
    it is given.

    Returns CLOSED, NOT_CLOSED (a set above τ', or too near to tell), NODES_SPENT,
    LOG_FULL or NEEDS_MEMORY.
    """
    tree = Tree(levels, labels, orders, opens, bounds)
    scratch = Scratch(work[0], work[1], work[2], fresh)
    n = A.shape[0]
    first = weights.shape[0]
    written = 0
    nodes = 0
    chain = upper[k - 1] if upper[k - 1] <= below else np.inf
    if B.shape[0] < n * (4 * n + first):
        state[MEMORY] = n * (4 * n + first)
        return NEEDS_MEMORY
    for i in range(n):
        labels[0, i] = i
        for j in range(n):
            B[i * n + j] = A[i, j]
    for c in range(first):
        for j in range(n):
            B[n * n + c * n + j] = weights[c, j]
    levels[START, 0] = 0
    levels[SIZE, 0] = n
    level = 0
    is_new = True
    while level >= 0:
        if is_new:
            is_new = False
            nodes += 1
            state[NODES] = nodes
            if nodes > most:
                return NODES_SPENT
            if written + levels[SIZE, level] + 4 > log.shape[0]:
                return LOG_FULL
            written = _open_node(
                B, k, below, error, first, upper, chain, level, tree, scratch, log,
                written, group, rooms,
            )  # fmt: skip
            if written < 0:
                return NOT_CLOSED
        if levels[CURSOR, level] >= levels[OPEN, level]:
            level -= 1
            continue
        t = opens[level, levels[CURSOR, level]]
        levels[CURSOR, level] += 1
        n, start = levels[SIZE, level], levels[START, level]
        left = levels[LEFT, level]
        for g in range(rooms.shape[1]):
            rooms[level + 1, g] = rooms[level, g]
        for kind in range(group.shape[0]):
            own = group[kind, labels[level, orders[level, t]]]
            if own >= 0:
                rooms[level + 1, own] -= 1
        kept = 0
        for a in range(t + 1, left):
            i = orders[level, a]
            if _has_room(group, rooms[level + 1], labels[level, i]):
                fresh[kept] = i
                labels[level + 1, kept] = labels[level, i]
                kept += 1
        chosen = first + level
        begin = start + n * (n + chosen)
        needed = begin + kept * (4 * kept + chosen + 1)  # B, two of it, and a factor
        if needed > B.shape[0]:
            state[MEMORY] = needed
            return NEEDS_MEMORY
        block, p = Block(B, start, n), orders[level, t]
        _eliminate(block, p, tau, kept, fresh, begin)
        _continue_weights(block, p, tau, chosen, kept, fresh, begin + kept * kept)
        level += 1
        levels[START, level] = begin
        levels[SIZE, level] = kept
        is_new = True
    state[WRITTEN] = written
    return CLOSED
