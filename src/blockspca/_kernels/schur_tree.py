"""Depth-first proof that no k-set has an eigenvalue above τ (Schur recursion).

A node is a matrix B over the features F that may still be chosen, and m, how many
of them.  The question is always the same one: is there an m-set T in F with
λmax(B_TT) > τ?  At the root B = A and m = k.  Choosing feature p turns B into

    B'_ij = B_ij + B_ip B_jp / (τ − B_pp),      m' = m − 1,

the Schur complement of τI − A, so a set beats τ under B' exactly when the set with
p added beats it under B.  `search/schur_tree.py` derives the bounds.
"""

import numpy as np
from numba import types

from .arrays import FLOATS, INDEX, INTS, LABELS, MATRIX, TABLE, TABLES, VECTOR
from .options import ENTRY, INNER, njit
from .selection import move_largest_first, sort_descending, sort_front, sum_of_largest
from .set_lists import list_pairs, list_singles, pair_above, places_in, record_set
from .tree_layout import (
    DEEPEST,
    DEPTH,
    FIRST,
    FOUND_SIZE,
    LEAVES,
    MEMORY,
    NODES,
    NORM,
    PRUNED_FIRST,
    PRUNED_PEEL,
    PRUNED_SUM,
    REST,
    REST2,
    ROOT_STOP,
)
from .tree_parts import Block, Groups, Path, Scratch

FINISHED, FOUND, PAUSED, NEEDS_MEMORY, LIST_FULL = range(5)

# Up to this many, the largest are found by insertion, beyond by quickselect.
SHORT = 24


@njit(**INNER)
def _larger_root(a, coupling, b):
    """Larger eigenvalue of [[a, c], [c, b]] with c² = coupling.

    As `numerics.rounding.larger_root`, which kernels cannot call.
    Written as max(a, b) plus what the coupling adds: the mean plus the square root
    would lose every digit of b beside an a of −1e9.
    """
    high = max(a, b)
    if coupling <= 0.0:
        return high
    half = 0.5 * (high - min(a, b))
    return high + coupling / (half + np.sqrt(half * half + coupling))


@njit(**INNER)
def _row_norm(B, row, level, orders, count, skip, q, squares):
    """Sum of the q largest B_ij² over the level's features but the one at `skip`."""
    if q > SHORT or q >= count - 1:
        for b in range(count):
            value = B[row + orders[level, b]]
            squares[b] = value * value
        squares[skip] = 0.0
        return sum_of_largest(squares, count, q)
    for a in range(q):
        squares[a] = 0.0
    smallest = 0.0
    for b in range(count):
        value = B[row + orders[level, b]]
        value *= value
        if value > smallest and b != skip:
            a = q - 1
            while a > 0 and squares[a - 1] < value:
                squares[a] = squares[a - 1]
                a -= 1
            squares[a] = value
            smallest = squares[q - 1]
    total = 0.0
    for a in range(q):
        total += squares[a]
    return total


@njit(**INNER)
def _peel(block, m, tau, bound, level, orders, bounds, scratch):
    """Drop every feature that is in no m-set above τ; repeat until none drops.

    Feature i stays if r² > (τ − bound)(τ − B_ii), where r² is the sum of the m − 1
    largest B_ij², j ≠ i still there, and bound ≥ opt_B(m − 1).  Returns the number
    left; orders[level, :count] lists them, keys[:count] has their 2×2 bounds and
    bounds[NORM, level] their r, by column.  With bound > τ the inequality says nothing,
    and every feature stays.
    """
    B, start, n = block
    keys, squares, _, fresh = scratch
    count = n
    margin = tau - bound if bound <= tau else -np.inf
    changed = True
    while changed and count >= m:
        changed = False
        kept = 0
        for a in range(count):
            i = orders[level, a]
            row = start + i * n
            need = margin * (tau - B[row + i])
            total = _row_norm(B, row, level, orders, count, a, m - 1, squares)
            if margin < 0.0 or total > need:
                fresh[kept] = i
                bounds[NORM, level, i] = np.sqrt(total)
                keys[kept] = _larger_root(B[row + i], total, bound)
                kept += 1
            else:
                changed = True
        count = kept
        for a in range(count):
            orders[level, a] = fresh[a]
    return count


@njit(**INNER)
def _suffix_bounds(block, m, count, tau, upper, level, orders, bounds, scratch):
    """Bound opt_B(q, F_t) for the suffixes F_t = orders[level, t:], the last first.

    U[q][t] = min(upper[level + q], max(U[q][t+1], λmax[[B_tt, r], [r, U[q−1][t+1]]]))

    with r² the sum of the q − 1 largest B_tj², j in F_{t+1}.  Keeps, for each t, the
    bound on m-sets whose first member is t, U[m−1][t+1] and U[m−2][t+1].
    """
    B, start, n = block
    _, squares, table, _ = scratch
    for q in range(m + 1):
        table[q] = -np.inf
    for t in range(count - 1, -1, -1):
        i = orders[level, t]
        row = start + i * n
        diagonal = B[row + i]
        later = count - 1 - t
        for b in range(later):
            value = B[row + orders[level, t + 1 + b]]
            squares[b] = value * value
        width = min(later, m - 1)
        if width < later:
            move_largest_first(squares, later, width)
        sort_front(squares, width)
        total = 0.0
        for q in range(width):
            total += squares[q]
            squares[q] = total
        bounds[REST, level, t] = table[m - 1]
        bounds[REST2, level, t] = table[m - 2]
        for q in range(m, 0, -1):
            value = diagonal
            if q > 1 and width > 0:
                value = _larger_root(
                    diagonal, squares[min(q - 1, width) - 1], table[q - 1]
                )
            if q == m:
                bounds[FIRST, level, t] = value
            elif upper[level + q] <= tau:
                value = min(value, upper[level + q])
            if value > table[q]:
                table[q] = value


@njit(**INNER)
def _all_below(block, count, tau, level, orders, begin):
    """True if λmax(B) over the level's features is below τ (Cholesky succeeds).

    The factor of τI − B is written from B[begin] on.
    """
    B, start, n = block
    for a in range(count):
        row = start + orders[level, a] * n
        target = begin + a * count
        pivot = tau - B[row + orders[level, a]]
        for b in range(a):
            other = begin + b * count
            value = -B[row + orders[level, b]]
            for c in range(b):
                value -= B[target + c] * B[other + c]
            value *= B[other + b]
            B[target + b] = value
            pivot -= value * value
        if not pivot > 0.0:  # nor a number: nothing is proved by an overflow
            return False
        B[target + a] = 1.0 / np.sqrt(pivot)
    return True


@njit(**INNER)
def _open_level(block, m, tau, upper, bound, level, orders, bounds, scratch):
    """Peel, order (strongest first) and bound one level; returns how many stay."""
    for a in range(block.n):
        orders[level, a] = a
    count = _peel(block, m, tau, bound, level, orders, bounds, scratch)
    if count < m:
        return 0
    sort_descending(scratch.keys, level, orders, count)
    begin = block.start + block.n * block.n
    if (
        count <= 2 * m
        and begin + count * count <= block.B.shape[0]
        and _all_below(block, count, tau, level, orders, begin)
    ):
        return 0
    _suffix_bounds(block, m, count, tau, upper, level, orders, bounds, scratch)
    return count


@njit(**INNER)
def _shrink(
    block, t, left, tau, chain, level, count, path, bounds, scratch, group, full
):
    """Features that can still matter once p is chosen; −1 if a pair exceeds τ.

    With c = B_·p / sqrt(τ − B_pp), opt_B'(q) ≤ opt_B(q) + (sum of the q largest c_j²).
    Feature j stays if that bound for q = left, with c_j² in the sum, exceeds τ, and if
    it passes the peeling test under B' with r' ≤ r + |c_j| ‖c_T‖, r its norm under B.
    Writes the kept features to fresh, and keys[0] = a bound on opt_B'(left − 1); a
    pair {p, j} above τ goes to fresh[0]. Features of the group `full`, if that is not
    negative, may not follow p: they drop out.
    """
    B, start, n = block
    labels, orders, _ = path
    gains, largest, _, fresh = scratch
    p = orders[level, t]
    base = bounds[REST, level, t]
    pivot_row = start + p * n
    remaining = tau - B[pivot_row + p]
    later = count - 1 - t
    for b in range(later):
        j = orders[level, t + 1 + b]
        if full >= 0 and group[labels[level, j]] == full:
            largest[b] = 0.0
            continue
        value = B[pivot_row + j]
        gain = value * value / remaining
        if gain != gain:  # 0 / 0: p alone is at τ, and j has nothing to do with it
            gain = 0.0
        gains[b] = gain
        largest[b] = gain
        if B[start + j * n + j] + gain > tau:
            fresh[0] = j
            return -1
    if left == 1:
        return 0
    top = sum_of_largest(largest, later, left)
    if base + top <= tau:
        return 0
    smallest = np.inf
    for b in range(min(left, later)):
        smallest = min(smallest, largest[b])
    # A feature outside the `left` best replaces the smallest of them.
    others = max(top - smallest, 0.0)
    floor = tau - base - others
    bound = min(bounds[REST2, level, t] + others, chain)
    margin = tau - bound if bound <= tau else -np.inf
    length = np.sqrt(others)
    kept = 0
    for b in range(later):
        gain = gains[b]
        j = orders[level, t + 1 + b]
        if full >= 0 and group[labels[level, j]] == full:
            continue
        if gain > floor or gain >= smallest:
            norm = bounds[NORM, level, j] + np.sqrt(gain) * length
            room = tau - B[start + j * n + j] - gain
            if margin < 0.0 or norm * norm > margin * room:
                fresh[kept] = j
                kept += 1
    gains[0] = bound
    return kept


@njit(**INNER)
def _eliminate(block, p, tau, kept, fresh, begin):
    """B' over fresh[:kept], the Schur complement after p, from B[begin] on."""
    B, start, n = block
    pivot_row = start + p * n
    remaining = tau - B[pivot_row + p]
    for a in range(kept):
        i = fresh[a]
        source = start + i * n
        target = begin + a * kept
        factor = B[pivot_row + i] / remaining if B[pivot_row + i] != 0.0 else 0.0
        for b in range(a + 1):
            j = fresh[b]
            value = B[source + j] + factor * B[pivot_row + j]
            B[target + b] = value
            B[begin + b * kept + a] = value


@njit(**INNER)
def _place_root(A, k, tau, B, starts, sizes, labels, found, state):
    """Copy A to the first level: PAUSED, unless that decides or does not fit."""
    n = A.shape[0]
    if n < k:
        return FINISHED
    for i in range(n):
        if A[i, i] > tau:
            found[0] = i
            state[FOUND_SIZE] = 1
            return FOUND
    if k == 1:
        return FINISHED
    if B.shape[0] < n * n:
        state[MEMORY] = n * n
        return NEEDS_MEMORY
    for i in range(n):
        labels[0, i] = i
        for j in range(n):
            B[i * n + j] = A[i, j]
    starts[0] = 0
    sizes[0] = n
    return PAUSED


@njit(**INNER)
def _close_with_pairs(block, tau, level, path, groups, listed, found, state):
    """Look for pairs that complete a set above τ: FINISHED, FOUND or LIST_FULL."""
    if listed.shape[0] > 0:
        if list_pairs(block, tau, level, path, groups, listed, state):
            return FINISHED
        return LIST_FULL
    pair = pair_above(block, tau, level, path, groups)
    if pair < 0:
        return FINISHED
    one, other = path.labels[level, pair // block.n], path.labels[level, pair % block.n]
    record_set(level, path, one, other, found, state)
    return FOUND


@njit(
    (
        MATRIX, types.int64, types.float64, VECTOR, FLOATS, INTS, INTS, INTS,
        INTS, LABELS, LABELS, TABLES, TABLE, INTS, INTS, INTS, types.int64,
        INDEX, INDEX, LABELS,
    ),
    **ENTRY,
)  # fmt: skip
def explore(
    A, k, tau, upper, B, starts, sizes, counts, cursors, labels, orders, bounds, work,
    fresh, found, state, budget, group, room, listed,
):  # fmt: skip
    """Search on from `state` for at most `budget` nodes.

    Parameters
    ----------
    A : (n, n) survivors' matrix; k ≥ 1; tau.
    upper : (k + 1,) upper[q] ≥ opt(q) for q < k; +inf where nothing is known.
    B : flat memory of the levels' matrices; level l is sizes[l]² from starts[l].
    counts, cursors : (k + 1,) features left and the next one to branch on.
    labels, orders : (k + 1, n) level's column → column of A; branching order.
    bounds : (4, k + 1, n) what `_suffix_bounds` keeps.
    work : (3, max(n, k) + 1) scratch; fresh : (n,) scratch.
    found : (k + 1,) columns of a set above τ, when one is found.
    state : (N_STATE,) see `tree_layout`; state[DEPTH] = −1 starts a search.
    group : (n,) the group of each column, −1 for none.
    room : how many columns of each group a set may have, at least 1.

    listed : (m, k) with m > 0 lists every k-set above τ, in rows, instead of ending at
    the first; LIST_FULL ends a search that found more than m. For τ ≥ upper[k − 1] and
    k ≥ 2: then no smaller set is above τ, and a search that comes upon one, which
    rounding may feign, ends with FOUND.

    With groups the question is about the sets that keep these limits, and so is
    `upper`; all their subsets keep them, too. A feature whose group is full is dropped.

    Returns FINISHED (no set above τ, or no other), FOUND, PAUSED, NEEDS_MEMORY or
    LIST_FULL.
    """
    stop_at = state[NODES] + budget
    path, groups = Path(labels, orders, cursors), Groups(group, room)
    scratch = Scratch(work[0], work[1], work[2], fresh)
    child = -1
    bound = np.inf
    # opt_B(m − 1) ≤ upper[k − 1] at every node, where that is at most τ.
    chain = upper[k - 1] if upper[k - 1] <= tau else np.inf
    if state[DEPTH] < 0:
        code = _place_root(A, k, tau, B, starts, sizes, labels, found, state)
        if code != PAUSED:
            return code
        state[DEPTH] = 0
        bound = upper[k - 1]
        child = 0
    while state[DEPTH] >= 0:
        if child >= 0:
            block = Block(B, starts[child], sizes[child])
            cursors[child] = 0
            counts[child] = _open_level(
                block, k - child, tau, upper, bound, child, orders, bounds, scratch
            )
            if counts[child] == 0:
                state[PRUNED_PEEL] += 1
            else:
                state[DEPTH] = child
                state[DEEPEST] = max(state[DEEPEST], child)
            child = -1
        level = state[DEPTH]
        t = cursors[level]
        if t >= counts[level] or (level == 0 and t >= state[ROOT_STOP]):
            state[DEPTH] = level - 1
            continue
        m = k - level
        if bounds[FIRST, level, t] <= tau or counts[level] - t < m:
            state[PRUNED_FIRST] += 1
            cursors[level] = t + 1
            continue
        if state[NODES] >= stop_at:
            return PAUSED
        n = sizes[level]
        block = Block(B, starts[level], n)
        p = orders[level, t]
        left = m - 1
        full = group[labels[level, p]]
        if full >= 0:
            places = places_in(level, path, groups, full)
            full = full if places == 1 else -1
        if listed.shape[0] > 0 and left == 1:
            if not list_singles(
                block, tau, level, t, counts[level], path, group, full, listed, state
            ):
                return LIST_FULL
            state[NODES] += 1
            state[LEAVES] += 1
            cursors[level] = t + 1
            continue
        kept = _shrink(
            block, t, left, tau, chain, level, counts[level], path, bounds, scratch,
            group, full,
        )  # fmt: skip
        bound = scratch.keys[0]
        begin = block.start + n * n
        if kept >= left and begin + kept * kept > B.shape[0]:
            state[MEMORY] = begin + kept * kept
            return NEEDS_MEMORY
        state[NODES] += 1
        cursors[level] = t + 1
        if kept < 0:
            # A pair above τ ends the search; it may be smaller than k.
            other = labels[level, fresh[0]]
            record_set(level, path, labels[level, p], other, found, state)
            return FOUND
        if left == 1:
            state[LEAVES] += 1
            continue
        if kept < left:
            state[PRUNED_SUM] += 1
            continue
        _eliminate(block, p, tau, kept, fresh, begin)
        for a in range(kept):
            labels[level + 1, a] = labels[level, fresh[a]]
        if left == 2:
            state[LEAVES] += 1
            pairs = Block(B, begin, kept)
            code = _close_with_pairs(
                pairs, tau, level + 1, path, groups, listed, found, state
            )
            if code != FINISHED:
                return code
            continue
        child = level + 1
        starts[child] = begin
        sizes[child] = kept
    return FINISHED
