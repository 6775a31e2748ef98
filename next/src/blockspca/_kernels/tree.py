"""Depth-first search for a k-set above τ; `search/tree.py` has the theorem.

A node is a matrix B over n features that may still be chosen, and m, how many of them.
The first level is A, its features in the order in which all nodes branch. A level's
matrix lies in the flat memory B from its start on; what a node drops is squeezed out.
"""

import numpy as np
from numba import types

from .options import inputs, njit, outputs

CLOSED, FOUND, PAUSED, MEMORY, FULL = range(5)
# Slots of `state`
DEPTH, NODES, ENTRIES, NEEDED, FOUND_SIZE, LISTED = range(6)
# Rows of `levels`
START, SIZE, CURSOR = range(3)


@njit()
def largest_squares(B, begin, end, skip, q, enough, largest):
    """Write the q largest squares of B[begin:end] but B[skip], descending.

    Return their sum, or any part of it that is above `enough`.
    """
    for a in range(q):
        largest[a] = 0.0
    total = 0.0
    for b in range(begin, end):
        value = B[b] * B[b]
        if value > largest[q - 1] and b != skip:
            total += value - largest[q - 1]
            a = q - 1
            while a > 0 and largest[a - 1] < value:
                largest[a] = largest[a - 1]
                a -= 1
            largest[a] = value
            if total > enough:
                return total
    total = 0.0
    for a in range(q):
        total += largest[a]
    return total


@njit()
def peel(B, start, n, m, tau, bound, labels, level, scratch, keep, state):
    """Squeeze out the features that are in no m-set above τ; return how many stay.

    bound ≥ opt_B(m − 1). With a bound above τ every feature stays.
    """
    margin = tau - bound
    kept = 0
    while margin >= 0.0 and n >= m and kept < n:
        kept = 0
        for i in range(n):
            row = start + i * n
            need = margin * (tau - B[row + i])
            total = largest_squares(B, row, row + n, row + i, m - 1, need, scratch[0])
            if not total <= need:
                keep[kept] = i
                kept += 1
        state[ENTRIES] += n * n
        if kept < n:
            for a in range(kept):
                row = start + keep[a] * n
                labels[level, a] = labels[level, keep[a]]
                for b in range(kept):
                    B[start + a * kept + b] = B[row + keep[b]]
            n, kept = kept, 0
    return n


@njit()
def is_below(B, start, n, tau, begin, state):
    """Whether λmax(B) < τ: write the Cholesky factor of τI − B from B[begin] on."""
    state[ENTRIES] += n * n * n // 6
    for a in range(n):
        target = begin + a * n
        pivot = tau - B[start + a * n + a]
        for b in range(a):
            row = begin + b * n
            value = -B[start + a * n + b]
            for c in range(b):
                value -= B[target + c] * B[row + c]
            value *= B[row + b]
            B[target + b] = value
            pivot -= value * value
        if not pivot > 0.0:  # nor a number: an overflow proves nothing
            return False
        B[target + a] = 1.0 / np.sqrt(pivot)
    return True


@njit()
def bound_suffixes(B, start, n, m, tau, upper, first, rest, level, scratch, state):
    """Write first[level, t], a bound on the m-sets whose first feature is t.

    rest[level, t] bounds the (m − 1)-sets after t. The table has, for the features
    after t, bounds on the q-sets among them.
    """
    largest, table = scratch[0], scratch[1]
    chosen = upper.shape[0] - 1 - m
    for q in range(m + 1):
        table[q] = -np.inf
    for t in range(n - 1, -1, -1):
        row = start + t * n
        own = B[row + t]
        width = min(m - 1, n - 1 - t)
        if width > 0:
            largest_squares(B, row + t + 1, row + n, -1, width, np.inf, largest)
            for a in range(1, width):
                largest[a] += largest[a - 1]
        first[level, t] = -np.inf
        rest[level, t] = table[m - 1]
        for q in range(min(m, n - t), 0, -1):
            value = own
            if q > 1:
                coupling, below = largest[q - 2], table[q - 1]
                value = max(own, below)
                if coupling > 0.0:
                    half = 0.5 * abs(own - below)
                    value += coupling / (half + np.sqrt(half * half + coupling))
            if q == m:
                first[level, t] = value
            else:
                if upper[chosen + q] <= tau:
                    value = min(value, upper[chosen + q])
                table[q] = max(table[q], value)
    state[ENTRIES] += n * (n // 2 + 8 * m)


@njit()
def places(group, room, g, level, levels, labels):
    """How many more features of group g may follow those chosen above a level."""
    left = room[g]
    for h in range(level):
        left -= group[labels[h, levels[CURSOR, h] - 1]] == g
    return left


@njit()
def pair_above(B, start, n, tau, group, room, level, levels, labels, begin):
    """Return a n + b for the first pair b < a from `begin` on above τ, or −1."""
    for a in range(begin // n, n):
        slack = tau - B[start + a * n + a]
        for b in range(begin % n if a == begin // n else 0, a):
            value = B[start + a * n + b]
            if value * value <= slack * (tau - B[start + b * n + b]):
                continue
            g = group[labels[level, a]]
            if (
                g < 0
                or g != group[labels[level, b]]
                or places(group, room, g, level, levels, labels) > 1
            ):
                return a * n + b
    return -1


REAL, WHOLE = types.float64, types.int64
VECTOR, LABELS, SETS = inputs(REAL, 1), inputs(WHOLE, 1), outputs(WHOLE, 2)
FLOATS, TABLE, INTS = outputs(REAL, 1), outputs(REAL, 2), outputs(WHOLE, 1)


@njit(
    WHOLE(
        inputs(REAL, 2), WHOLE, REAL, VECTOR, LABELS, LABELS, FLOATS, SETS, SETS, TABLE,
        TABLE, TABLE, INTS, INTS, SETS, INTS, WHOLE,
    )
)  # fmt: skip
def explore(
    A, k, tau, upper, group, room, B, levels, labels, first, rest, scratch, keep,
    found, listed, state, budget,
):  # fmt: skip
    """Search on from `state` until about `budget` entries of matrices were read.

    Parameters
    ----------
    A : (n, n) in the order of branching; k ≥ 2; tau.
    upper : (k + 1,) upper[q] ≥ opt(q) for q < k; +inf where there is no bound.
    group : (n,) the group of each feature, −1 for none; room : places in each group.
    B : flat memory of the levels' matrices and of a factor.
    levels : (3, k) start, size and the next feature to branch on, of each level.
    labels, first, rest : (k, n) feature of each column, bound on the sets that it
    begins, and on those of one feature less that come after it.
    scratch : (2, k + 1), keep : (n,) hold nothing from one call to the next.
    found : (k,) the set above τ that ended the search, of found_size ≤ k features.
    listed : (m, k) with m > 0 lists the sets above τ instead of ending at the first.
    state : (6,) state[DEPTH] = −1 begins a search.

    Returns CLOSED (no set above τ, or no more), FOUND, PAUSED, MEMORY (`needed` entries
    of B) or FULL (the list).
    """
    stop_at = state[ENTRIES] + budget
    n = A.shape[0]
    level = state[DEPTH]
    is_new = level < 0
    if is_new:
        level = 0
        if B.shape[0] < 2 * n * n:
            state[NEEDED] = 2 * n * n
            return MEMORY
        for i in range(n):
            labels[0, i] = i
            for j in range(n):
                B[i * n + j] = A[i, j]
        levels[START, 0] = 0
        levels[SIZE, 0] = n
    while level >= 0:
        state[DEPTH] = level
        start = levels[START, level]
        n = levels[SIZE, level]
        m = k - level
        if is_new:
            is_new = False
            state[NODES] += 1
            state[ENTRIES] += n * n // 2 + 1
            pair = -1
            for a in range(n):
                if not B[start + a * n + a] < tau:
                    pair = a * n + a
            if pair < 0 and m == 2:
                pair = pair_above(
                    B, start, n, tau, group, room, level, levels, labels, 0
                )
            while pair >= 0:
                a, b = pair // n, pair % n
                if listed.shape[0] == 0 or a == b:
                    for h in range(level):
                        found[h] = labels[h, levels[CURSOR, h] - 1]
                    found[level] = labels[level, b]
                    found[level + 1 - (a == b)] = labels[level, a]
                    state[FOUND_SIZE] = level + 2 - (a == b)
                    return FOUND
                if state[LISTED] == listed.shape[0]:
                    return FULL
                for h in range(level):
                    listed[state[LISTED], h] = labels[h, levels[CURSOR, h] - 1]
                listed[state[LISTED], level] = labels[level, b]
                listed[state[LISTED], level + 1] = labels[level, a]
                state[LISTED] += 1
                pair = pair_above(
                    B, start, n, tau, group, room, level, levels, labels, pair + 1
                )
            if m > 2:
                bound = upper[k - 1]
                n = peel(
                    B, start, n, m, tau, bound, labels, level, scratch, keep, state
                )
            if m == 2 or (
                n <= 2 * m and is_below(B, start, n, tau, start + n * n, state)
            ):
                n = 0
            else:
                bound_suffixes(
                    B, start, n, m, tau, upper, first, rest, level, scratch, state
                )
            levels[SIZE, level] = n
            levels[CURSOR, level] = 0
        t = levels[CURSOR, level]
        while t <= n - m and first[level, t] <= tau:
            t += 1
        levels[CURSOR, level] = t
        if t > n - m:
            level -= 1
            continue
        if state[ENTRIES] >= stop_at:
            return PAUSED
        pivot = start + t * n
        remaining = tau - B[pivot + t]
        top = largest_squares(
            B, pivot + t + 1, pivot + n, -1, m - 1, np.inf, scratch[0]
        )
        state[ENTRIES] += n
        smallest = scratch[0, m - 2]
        least = (tau - rest[level, t]) * remaining - (top - smallest)
        g = group[labels[level, t]]
        if g >= 0 and places(group, room, g, level, levels, labels) > 1:
            g = -1
        kept = 0
        for a in range(t + 1, n):
            square = B[pivot + a] * B[pivot + a]
            if square <= least and square < smallest:
                continue
            if g < 0 or group[labels[level, a]] != g:
                keep[kept] = a
                kept += 1
        begin = start + n * n
        if begin + 2 * kept * kept > B.shape[0]:
            state[NEEDED] = begin + 2 * kept * kept
            return MEMORY
        for a in range(kept):
            i = keep[a]
            labels[level + 1, a] = labels[level, i]
            factor = B[pivot + i] / remaining
            for b in range(a + 1):
                j = keep[b]
                value = B[start + i * n + j] + factor * B[pivot + j]
                B[begin + a * kept + b] = value
                B[begin + b * kept + a] = value
        levels[CURSOR, level] = t + 1
        level += 1
        levels[START, level] = begin
        levels[SIZE, level] = kept
        is_new = True
    state[DEPTH] = level
    return CLOSED
