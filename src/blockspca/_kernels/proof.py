"""Depth-first proof that no k-set has an eigenvalue above τ (Schur recursion).

A node is a matrix B over the features F that may still be chosen, and m, how many
of them.  The question is always the same one: is there an m-set T in F with
λmax(B_TT) > τ?  At the root B = A and m = k.  Choosing feature p turns B into

    B'_ij = B_ij + B_ip B_jp / (τ − B_pp),      m' = m − 1,

the Schur complement of τI − A, so a set beats τ under B' exactly when the set with
p added beats it under B.  Every bound of the root is therefore available at every
node.  `docs` and the note in `certify/proof_tree.py` derive each one.
"""

import numpy as np
from numba import njit

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}

FINISHED = 0
FOUND = 1
PAUSED = 2
NEEDS_MEMORY = 3

# Slots of the integer state, which lets a paused search go on where it stopped.
DEPTH = 0
NODES = 1
DEEPEST = 2
PRUNED_FIRST = 3
PRUNED_SUM = 4
PRUNED_PEEL = 5
LEAVES = 6
FOUND_SIZE = 7
MEMORY = 8
ROOT_STOP = 9
N_STATE = 10


@njit(**_OPTIONS)
def _larger_root(a, coupling, b):
    """Larger eigenvalue of [[a, c], [c, b]] with c² = coupling."""
    if coupling <= 0.0:
        return max(a, b)
    half = 0.5 * (a - b)
    return 0.5 * (a + b) + np.sqrt(half * half + coupling)


@njit(**_OPTIONS)
def _move_largest_first(values, count, q):
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


@njit(**_OPTIONS)
def _sum_of_largest(values, count, q):
    """Sum of the q largest of values[:count], which it reorders."""
    if q < count:
        if q <= 0:
            return 0.0
        _move_largest_first(values, count, q)
        count = q
    total = 0.0
    for i in range(count):
        total += values[i]
    return total


@njit(**_OPTIONS)
def _sort_descending(keys, labels, count):
    """Shell sort of keys[:count], largest first, carrying the labels along."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            key = keys[i]
            label = labels[i]
            j = i
            while j >= gap and keys[j - gap] < key:
                keys[j] = keys[j - gap]
                labels[j] = labels[j - gap]
                j -= gap
            keys[j] = key
            labels[j] = label
        gap //= 3


@njit(**_OPTIONS)
def _sort_front(values, count):
    """Shell sort of values[:count], largest first."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit(**_OPTIONS)
def _peel(B, start, n, m, tau, bound, order, keys, fresh, squares):
    """Drop every feature that is in no m-set above τ; repeat until none drops.

    Feature i stays if r² > (τ − bound)(τ − B_ii), where r² is the sum of the m − 1
    largest B_ij², j ≠ i still there, and bound ≥ opt_B(m − 1).  Returns the number
    left; order[:count] lists them and keys[:count] has their 2×2 bounds.
    """
    count = n
    margin = max(tau - bound, 0.0)
    changed = True
    while changed and count >= m:
        changed = False
        kept = 0
        for a in range(count):
            i = order[a]
            row = start + i * n
            need = margin * (tau - B[row + i])
            total = 0.0
            for b in range(count):
                value = B[row + order[b]]
                value *= value
                squares[b] = value
                total += value
            total -= squares[a]
            if total > need and count > m:
                squares[a] = 0.0
                total = _sum_of_largest(squares, count, m - 1)
            if total > need:
                fresh[kept] = i
                keys[kept] = _larger_root(B[row + i], total, bound)
                kept += 1
            else:
                changed = True
        count = kept
        for a in range(count):
            order[a] = fresh[a]
    return count


@njit(**_OPTIONS)
def _suffix_bounds(
    B, start, n, m, count, chosen, tau, upper, order, first, rest, rest2, table, squares
):
    """Bound opt_B(q, F_t) for the suffixes F_t = order[t:], from the last one up.

    U[q][t] = min(upper[chosen + q], max(U[q][t+1], λmax[[B_tt, r], [r, U[q−1][t+1]]]))

    with r² the sum of the q − 1 largest B_tj², j in F_{t+1}.  Keeps, for each t, the
    bound `first` on m-sets whose first member is t, and `rest` = U[m−1][t+1],
    `rest2` = U[m−2][t+1].  Returns U[m−1][0], or +inf when m = 1.
    """
    for q in range(m + 1):
        table[q] = -np.inf
    for t in range(count - 1, -1, -1):
        i = order[t]
        row = start + i * n
        diagonal = B[row + i]
        later = count - 1 - t
        for b in range(later):
            value = B[row + order[t + 1 + b]]
            squares[b] = value * value
        width = min(later, m - 1)
        if width < later:
            _move_largest_first(squares, later, width)
        _sort_front(squares, width)
        total = 0.0
        for q in range(width):
            total += squares[q]
            squares[q] = total
        rest[t] = table[m - 1]
        rest2[t] = table[m - 2] if m >= 2 else -np.inf
        for q in range(m, 0, -1):
            if q == 1 or width == 0:
                value = diagonal
            else:
                value = _larger_root(
                    diagonal, squares[min(q - 1, width) - 1], table[q - 1]
                )
            if q == m:
                first[t] = value
            elif upper[chosen + q] <= tau:
                value = min(value, upper[chosen + q])
            if value > table[q]:
                table[q] = value
    return table[m - 1] if m >= 2 else np.inf


@njit(**_OPTIONS)
def _all_below(B, start, n, count, tau, order, begin):
    """True if λmax(B) over order[:count] is below τ: τI − B has a Cholesky factor.

    The factor is written from B[begin] on.
    """
    for a in range(count):
        row = start + order[a] * n
        target = begin + a * count
        pivot = tau - B[row + order[a]]
        for b in range(a):
            other = begin + b * count
            value = -B[row + order[b]]
            for c in range(b):
                value -= B[target + c] * B[other + c]
            value *= B[other + b]
            B[target + b] = value
            pivot -= value * value
        if pivot <= 0.0:
            return False
        B[target + a] = 1.0 / np.sqrt(pivot)
    return True


@njit(**_OPTIONS)
def _open_level(
    B, start, n, m, chosen, tau, upper, bound, order, first, rest, rest2, work, fresh
):
    """Peel, order (strongest first) and bound one level; returns how many stay."""
    keys = work[0]
    squares = work[1]
    table = work[2]
    for a in range(n):
        order[a] = a
    count = _peel(B, start, n, m, tau, bound, order, keys, fresh, squares)
    if count < m:
        return 0
    _sort_descending(keys, order, count)
    begin = start + n * n
    if count <= 2 * m and begin + count * count <= B.shape[0]:
        if _all_below(B, start, n, count, tau, order, begin):
            return 0
    _suffix_bounds(
        B,
        start,
        n,
        m,
        count,
        chosen,
        tau,
        upper,
        order,
        first,
        rest,
        rest2,
        table,
        squares,
    )
    return count


@njit(**_OPTIONS)
def explore(
    A,
    k,
    tau,
    upper,
    B,
    starts,
    sizes,
    counts,
    cursors,
    labels,
    orders,
    firsts,
    rests,
    rests2,
    work,
    fresh,
    found,
    state,
    budget,
):
    """Search on from `state` for at most `budget` nodes.

    Parameters
    ----------
    A : (n, n) survivors' matrix; k ≥ 1; tau.
    upper : (k + 1,) upper[q] ≥ opt(q) for q < k; +inf where nothing is known.
    B : flat memory of the levels' matrices; level l is sizes[l]² from starts[l].
    counts, cursors : (k + 1,) features left and the next one to branch on.
    labels, orders : (k + 1, n) level's column → column of A; branching order.
    firsts, rests, rests2 : (k + 1, n) the bounds of `_suffix_bounds`.
    work : (5, max(n, k) + 1) scratch; fresh : (n,) scratch.
    found : (k,) columns of a set above τ, when one is found.
    state : (N_STATE,) see the slots above; state[DEPTH] = −1 starts a search.

    Returns
    -------
    FINISHED (no set above τ), FOUND, PAUSED or NEEDS_MEMORY.
    """
    n_root = A.shape[0]
    stop_at = state[NODES] + budget
    gains = work[3]
    scratch = work[4]
    if state[DEPTH] < 0:
        if n_root < k:
            return FINISHED
        for i in range(n_root):
            if A[i, i] > tau:
                found[0] = i
                state[FOUND_SIZE] = 1
                return FOUND
        if k == 1:
            return FINISHED
        if B.shape[0] < n_root * n_root:
            state[MEMORY] = n_root * n_root
            return NEEDS_MEMORY
        for i in range(n_root):
            labels[0, i] = i
            for j in range(n_root):
                B[i * n_root + j] = A[i, j]
        starts[0] = 0
        sizes[0] = n_root
        cursors[0] = 0
        bound = upper[k - 1]
        counts[0] = _open_level(
            B,
            0,
            n_root,
            k,
            0,
            tau,
            upper,
            bound,
            orders[0],
            firsts[0],
            rests[0],
            rests2[0],
            work,
            fresh,
        )
        state[DEPTH] = 0
    while state[DEPTH] >= 0:
        level = state[DEPTH]
        t = cursors[level]
        if t >= counts[level] or (level == 0 and t >= state[ROOT_STOP]):
            state[DEPTH] = level - 1
            continue
        m = k - level
        if firsts[level, t] <= tau or counts[level] - t < m:
            state[PRUNED_FIRST] += 1
            cursors[level] = t + 1
            continue
        if state[NODES] >= stop_at:
            return PAUSED
        n = sizes[level]
        start = starts[level]
        order = orders[level]
        p = order[t]
        pivot_row = start + p * n
        remaining = tau - B[pivot_row + p]
        later = counts[level] - 1 - t
        left = m - 1

        # A pair already above τ ends the search; it may be smaller than k.
        for b in range(later):
            l = order[t + 1 + b]
            value = B[pivot_row + l]
            gain = value * value / remaining
            gains[b] = gain
            scratch[b] = gain
            if B[start + l * n + l] + gain > tau:
                for h in range(level):
                    found[h] = labels[h, orders[h, cursors[h] - 1]]
                found[level] = labels[level, p]
                found[level + 1] = labels[level, l]
                state[FOUND_SIZE] = level + 2
                cursors[level] = t + 1
                state[NODES] += 1
                return FOUND
        if left == 1:
            state[NODES] += 1
            state[LEAVES] += 1
            cursors[level] = t + 1
            continue

        # Sum: λmax(B_TT + cc') ≤ opt_B(left) + ‖c_T‖².
        base = rests[level, t]
        top = _sum_of_largest(scratch, later, left)
        if base + top <= tau:
            state[NODES] += 1
            state[PRUNED_SUM] += 1
            cursors[level] = t + 1
            continue
        smallest = np.inf
        for b in range(min(left, later)):
            if scratch[b] < smallest:
                smallest = scratch[b]
        # A feature outside the `left` best replaces the smallest of them.
        floor = tau - base - (top - smallest)
        kept = 0
        for b in range(later):
            if gains[b] > floor or gains[b] >= smallest:
                fresh[kept] = order[t + 1 + b]
                gains[kept] = gains[b]
                kept += 1
        if kept < left:
            state[NODES] += 1
            state[PRUNED_PEEL] += 1
            cursors[level] = t + 1
            continue

        child = level + 1
        begin = start + n * n
        if begin + kept * kept > B.shape[0]:
            state[MEMORY] = begin + kept * kept
            return NEEDS_MEMORY
        state[NODES] += 1
        cursors[level] = t + 1
        for a in range(kept):
            i = fresh[a]
            source = start + i * n
            target = begin + a * kept
            labels[child, a] = labels[level, i]
            factor = B[pivot_row + i] / remaining
            for b in range(a):
                l = fresh[b]
                value = B[source + l] + factor * B[pivot_row + l]
                B[target + b] = value
                B[begin + b * kept + a] = value
            B[target + a] = B[source + i] + factor * B[pivot_row + i]
        if left == 2:
            state[LEAVES] += 1
            for a in range(kept):
                slack = tau - B[begin + a * kept + a]
                for b in range(a):
                    value = B[begin + a * kept + b]
                    if value * value > slack * (tau - B[begin + b * kept + b]):
                        for h in range(child):
                            found[h] = labels[h, orders[h, cursors[h] - 1]]
                        found[child] = labels[child, a]
                        found[child + 1] = labels[child, b]
                        state[FOUND_SIZE] = child + 2
                        return FOUND
            continue
        bound = np.inf
        if upper[k - 1] <= tau:
            bound = upper[k - 1]
        for b in range(kept):
            scratch[b] = gains[b]
        top = rests2[level, t] + _sum_of_largest(scratch, kept, left - 1)
        bound = min(bound, top)
        starts[child] = begin
        sizes[child] = kept
        cursors[child] = 0
        counts[child] = _open_level(
            B,
            begin,
            kept,
            left,
            child,
            tau,
            upper,
            bound,
            orders[child],
            firsts[child],
            rests[child],
            rests2[child],
            work,
            fresh,
        )
        if counts[child] == 0:
            state[PRUNED_PEEL] += 1
        else:
            state[DEPTH] = child
            if child > state[DEEPEST]:
                state[DEEPEST] = child
    return FINISHED
