"""Grow every set that could be part of a winning m-set, each one exactly once.

N is symmetric with a zero diagonal.  A set T of j features is *good* if

    λmax(N_TT) ≥ t_j,      t_j = (j − 1)/(m − 1) − (m − j + 1)·allowance.

A good set of j features contains a good set of j − 1 (the averaging argument of
`certify/growth.py`), so all good sets are reached by adding one feature at a time.
The parent of T is T without the last feature whose removal leaves a good set: a rule
that depends on T alone, so that the depth-first search needs no memory of the past.

A pair with N_ij = NaN is forbidden: no set that contains both is of interest. Subsets
of a set without forbidden pairs have none either, so the argument is not disturbed.
"""

import numpy as np
from numba import njit, types

from .options import ENTRY

_MATRIX = types.Array(types.float64, 2, "C", readonly=True)
_VECTOR = types.Array(types.float64, 1, "C", readonly=True)
_LIST = types.Array(types.int64, 1, "C", readonly=True)
_TABLE = types.Array(types.float64, 2, "C")
_INTS, _SETS = (types.Array(types.int64, n, "C") for n in (1, 2))

FINISHED = 0
FOUND = 1
PAUSED = 2

# Slots of the integer state, which lets a paused search go on where it stopped.
DEPTH = 0
NODES = 1
N_STRONG = 2
N_STATE = 3


@njit(**ENTRY)
def _is_good(N, members, size, left_out, threshold, L):
    """Tell whether λmax(N) ≥ threshold on members[:size] without one of them.

    Equivalent to: threshold·I − N is not positive definite, so its Cholesky
    factorization meets a pivot that is not positive.
    """
    row = 0
    for a in range(size):
        if a == left_out:
            continue
        column = 0
        for b in range(a):
            if b == left_out:
                continue
            value = -N[members[a], members[b]]
            for q in range(column):
                value -= L[row, q] * L[column, q]
            L[row, column] = value / L[column, column]
            column += 1
        pivot = threshold
        for q in range(row):
            pivot -= L[row, q] * L[row, q]
        if not pivot > 0.0:
            return True
        L[row, row] = np.sqrt(pivot)
        row += 1
    return False


@njit(**ENTRY)
def _forward(N, i, a, L, W, gain):
    """Row a of W = −L⁻¹ N_T·, and its squares into `gain`.

    The first rows are written out: one pass over the features instead of one for each
    row above takes half the time.
    """
    d = N.shape[0]
    inverse = 1.0 / L[a, a]
    if a == 0:
        for new in range(d):
            w = -inverse * N[i, new]
            W[0, new] = w
            gain[new] = w * w
        return
    if a == 1:
        f0 = L[1, 0]
        for new in range(d):
            w = -inverse * (N[i, new] + f0 * W[0, new])
            W[1, new] = w
            gain[new] += w * w
        return
    if a == 2:
        f0, f1 = L[2, 0], L[2, 1]
        for new in range(d):
            w = -inverse * (N[i, new] + f0 * W[0, new] + f1 * W[1, new])
            W[2, new] = w
            gain[new] += w * w
        return
    f0, f1, f2 = L[a, 0], L[a, 1], L[a, 2]
    for new in range(d):
        w = N[i, new] + f0 * W[0, new] + f1 * W[1, new] + f2 * W[2, new]
        W[a, new] = w
    for q in range(3, a):
        factor = L[a, q]
        for new in range(d):
            W[a, new] += factor * W[q, new]
    for new in range(d):
        w = -inverse * W[a, new]
        W[a, new] = w
        gain[new] += w * w


@njit(**ENTRY)
def _extensions(N, members, size, threshold, L, W, gain, found):
    """List the features l with members ∪ {l} good; −1 if `members` is good already.

    With L L' = threshold·I − N_TT, T ∪ {l} is good if and only if
    ‖L⁻¹ N_Tl‖² ≥ threshold. A NaN fails the comparison, which is what it is for.
    """
    d = N.shape[0]
    if _is_good(N, members, size, -1, threshold, L):
        return -1
    for a in range(size):
        _forward(N, members[a], a, L, W, gain)
    for a in range(size):
        gain[members[a]] = -1.0
    count = 0
    for new in range(d):
        if gain[new] >= threshold:
            found[count] = new
            count += 1
    return count


@njit(
    (
        _MATRIX, types.int64, types.float64, types.int64, _INTS, _SETS, _SETS, _SETS,
        _INTS, _SETS,
    ),
    **ENTRY,
)  # fmt: skip
def grow(N, m, allowance, budget, state, sets, candidates, position, counts, strong):
    """Search on for at most `budget` sets.

    Parameters
    ----------
    N : float64 (d, d), C order
    m : int, at least 3
    allowance : float
        Slack per level that covers rounding.
    budget : int
        Sets to visit before pausing.
    state, sets, candidates, position : int64 (N_STATE,), (m + 1, m + 1), (m + 1, d),
        (m + 1, 2)
        Where the search stands. sets[j, :j] is sorted; position[j] holds the next
        candidate to try and how many there are.
    counts : int64 (m + 1,)
        Sets visited, by size.
    strong : int64 (capacity, m + 1)
        Sets that are good one level further up by themselves: every extension of them
        is good, so they are handed back instead (members, then the size in the last
        column) as long as there is room.

    Returns
    -------
    FINISHED, FOUND (the set is sets[m]) or PAUSED.
    """
    d = N.shape[0]
    L = np.empty((m, m))
    W = np.empty((m, d))
    gain = np.empty(d)
    step = 1.0 / (m - 1)
    depth = state[DEPTH]
    visited = 0
    while depth >= 0:
        if position[depth, 0] >= position[depth, 1]:
            depth -= 1
            continue
        if visited >= budget:
            state[DEPTH] = depth
            return PAUSED
        new = candidates[depth, position[depth, 0]]
        position[depth, 0] += 1
        size = depth + 1
        place = depth
        while place > 0 and sets[depth, place - 1] > new:
            sets[size, place] = sets[depth, place - 1]
            place -= 1
        sets[size, place] = new
        for a in range(place):
            sets[size, a] = sets[depth, a]
        below = (size - 2) * step - (m - size + 2) * allowance
        is_child = True
        for a in range(size - 1, place, -1):
            if _is_good(N, sets[size], size, a, below, L):
                is_child = False
                break
        if not is_child:
            continue
        visited += 1
        state[NODES] += 1
        counts[size] += 1
        if size == m:
            state[DEPTH] = depth
            return FOUND
        threshold = size * step - (m - size) * allowance
        count = _extensions(
            N, sets[size], size, threshold, L, W, gain, candidates[size]
        )
        if count < 0:
            count = 0
            if state[N_STRONG] < strong.shape[0]:
                row = state[N_STRONG]
                for a in range(size):
                    strong[row, a] = sets[size, a]
                strong[row, m] = size
                state[N_STRONG] += 1
            else:
                for new in range(d):
                    allowed = True
                    for a in range(size):
                        i = sets[size, a]
                        if i == new or np.isnan(N[i, new]):
                            allowed = False
                            break
                    if allowed:
                        candidates[size, count] = new
                        count += 1
        position[size, 0] = 0
        position[size, 1] = count
        depth = size
    state[DEPTH] = depth
    return FINISHED


@njit((_MATRIX, _LIST, _MATRIX, _VECTOR, _TABLE), **ENTRY)
def include(N, kept, coupling, scale, reduced):
    """Write (N_ij + Σ_q coupling_qi coupling_qj) scale_i scale_j over `kept` features.

    The diagonal is put to zero; forbidden pairs stay NaN.

    Returns
    -------
    float
        The largest absolute value that was written, NaN aside.
    """
    n = kept.shape[0]
    largest = 0.0
    for a in range(n):
        i = kept[a]
        for b in range(n):
            reduced[a, b] = N[i, kept[b]]
        for q in range(coupling.shape[0]):
            factor = coupling[q, a]
            for b in range(n):
                reduced[a, b] += factor * coupling[q, b]
        factor = scale[a]
        for b in range(n):
            reduced[a, b] *= factor * scale[b]
        reduced[a, a] = 0.0
        for b in range(a):
            size = abs(reduced[a, b])
            if size > largest:
                largest = size
    return largest
