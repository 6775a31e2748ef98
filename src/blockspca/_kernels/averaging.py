"""Grow every set that could be part of a winning m-set by adding one feature at a time.

N is symmetric with a zero diagonal and |N_ij| < 1.  Two tests of a set T of j features
steer the depth-first search, both carried out in rounded arithmetic:

    T may be visited     if λmax(N_TT) ≥ v_j = (j − 1)/(m − 1) − (m − j + 1)·allowance,
    T is a sure parent   if λmax(N_TT) ≥ p_j = v_j + allowance.

A set that is reached is skipped if leaving out one of its members behind the feature
just added gives a sure parent: T is then visited from that parent.  The rule depends on
T alone, so that the search needs no memory of the past.

**Nothing is lost.**  Put δ = allowance / 2 and let δ exceed the error of either test:
a test against t says yes if λmax(N_TT) ≥ t + δ, and no if λmax(N_TT) < t − δ.  Call T
*good* if λmax(N_TT) ≥ g_j, where g_j = v_j + δ = p_j − δ is halfway between.  Then
every good set is visited, or contains a set that was handed back in `strong`.  By
induction over j: all single features are visited.  If T of j ≥ 2 features is good, then
by the averaging argument of `search/averaging.py` some j − 1 of them have

    λmax ≥ (j − 2)/(j − 1) · g_j ≥ (j − 2)/(m − 1) − (2(m − j) + 1) δ = p_{j−1} + δ,

so that some member can be left out with the answer "sure parent".  Let a be the last
such member, and P the rest of T.  As the answer was yes, λmax(N_PP) ≥ p_{j−1} − δ
= g_{j−1}: P is good, hence visited, or contains a set that was handed back, and then so
does T.  If P is visited and not handed back itself, T is among its extensions, since
λmax(N_TT) ≥ g_j = v_j + δ (or since all extensions are taken, where `strong` is full).
And T is not skipped then, because no member behind a passes.

With one threshold for both tests this fails: a set within rounding of it may be called
a parent in one order of its features, not visited in another, and all of its supersets
are lost.  The price of two is that a set T may be visited more than once, if T without
some later member lies between v and p.  Each visit adds a feature: the search ends.

**Error of the tests.**  Both are Cholesky's method on t·I − N_TT, n = |T| ≤ m, t ≤ 1.
By Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, theorem 10.7, it
succeeds if λmax(N_TT) < t (1 − c) and fails if λmax(N_TT) ≥ t (1 + c), with
c = n γ_{n+1} / (1 − γ_{n+1}), γ_n = n u / (1 − n u), u = eps / 2.  The extension test
adds the new feature l as the last row, w = L⁻¹ N_Tl, and divides by way of a
reciprocal.  Row a of it (a = 0, …, n − 2) is a sum of a products and N_il, from left to
right, so that N_il is off by at most γ_{a+2} (|L| |w|)_a, and Σ w² is rounded n − 1
times: the backward error, and so the theorem, is the same.  The thresholds themselves
are off by less than 2 eps.  As c ≤ (m² + m) eps / 2 · (1 + 2 (m + 1) eps),

    δ = (m + 1)² eps

covers both.  Underflow adds less than 2⁻¹⁰²² and a failure by overflow is a failure.

A pair with N_ij = NaN is forbidden: no set that contains both is of interest.  It fails
the extension test.  Subsets of a set without forbidden pairs have none either, so the
argument is not disturbed.
"""

import numpy as np
from numba import types

from .arrays import FLOATS, INDEX, INTS, LABELS, MATRIX, TABLE, VECTOR
from .options import ENTRY, njit

FINISHED = 0
FOUND = 1
PAUSED = 2

# Slots of the integer state, which lets a paused search go on where it stopped.
DEPTH = 0
NODES = 1
N_STRONG = 2
N_STATE = 3


@njit(**ENTRY)
def _reaches(N, members, size, left_out, threshold, L):
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

    Sums go from left to right, which the error bound above relies on.
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
    # Most sets are small: for their rows one pass over d does, where a pass for each
    # earlier row would read and write W again and again.
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
    """List the l with λmax ≥ threshold on T ∪ {l}; −1 if T alone reaches it already.

    With L L' = threshold·I − N_TT, that is so if and only if ‖L⁻¹ N_Tl‖² ≥ threshold.
    A NaN fails the comparison, which is what it is for.
    """
    d = N.shape[0]
    if _reaches(N, members, size, -1, threshold, L):
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


@njit(**ENTRY)
def _all_allowed(N, members, size, found):
    """List the features that form no forbidden pair with `members`."""
    count = 0
    for new in range(N.shape[0]):
        allowed = True
        for a in range(size):
            i = members[a]
            if i == new or np.isnan(N[i, new]):
                allowed = False
                break
        if allowed:
            found[count] = new
            count += 1
    return count


@njit(
    (
        MATRIX, types.int64, types.float64, types.int64, INTS, LABELS, LABELS, LABELS,
        INTS, LABELS,
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
        Twice what covers rounding, see above.
    budget : int
        Sets to visit before pausing.
    state, sets, candidates, position : int64 (N_STATE,), (m + 1, m + 1), (m + 1, d),
        (m + 1, 2)
        Where the search stands. sets[j, :j] is sorted; position[j] holds the next
        candidate to try and how many there are.
    counts : int64 (m + 1,)
        Sets visited, by size.
    strong : int64 (capacity, m + 1)
        Sets that reach the threshold one level further up by themselves: so does every
        extension of them, so they are handed back instead (members, then the size in
        the last column) as long as there is room.

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
        sure_parent = (size - 2) * step - (m - size + 1) * allowance
        is_child = True
        for a in range(size - 1, place, -1):
            if _reaches(N, sets[size], size, a, sure_parent, L):
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
            if state[N_STRONG] < strong.shape[0]:
                count = 0
                row = state[N_STRONG]
                for a in range(size):
                    strong[row, a] = sets[size, a]
                strong[row, m] = size
                state[N_STRONG] += 1
            else:
                count = _all_allowed(N, sets[size], size, candidates[size])
        position[size, 0] = 0
        position[size, 1] = count
        depth = size
    state[DEPTH] = depth
    return FINISHED


@njit((MATRIX, INTS, types.float64, TABLE, TABLE, FLOATS, FLOATS), **ENTRY)
def couple(N, members, room, W, Z, gain, length):
    """What choosing the set T = `members` does to the other features.

    With L L' = I − N_TT, W = −L⁻¹ N_T·, so that W'W = N_·T (I − N_TT)⁻¹ N_T·.

    Parameters
    ----------
    N : float64 (d, d), C order
    members : int64 (s,)
    room : float
        How far λmax(N_TT) must stay below 1.
    W, Z : float64 (s, d)
        Outputs: W, and (I − N_TT)⁻¹ N_T· but for the sign.
    gain, length : float64 (d,)
        Outputs: the diagonal of W'W and the sums of |Z| over each column.

    Returns
    -------
    bool
        False if λmax(N_TT) may be 1 − room or more; the outputs are then void.
    """
    d = N.shape[0]
    s = members.shape[0]
    L = np.empty((s, s))
    # The first asks for room; the second leaves the factor of I − N_TT itself in L.
    if _reaches(N, members, s, -1, 1.0 - room, L):
        return False
    if _reaches(N, members, s, -1, 1.0, L):
        return False
    for a in range(s):
        _forward(N, members[a], a, L, W, gain)
    for new in range(d):
        length[new] = 0.0
    for a in range(s - 1, -1, -1):
        for new in range(d):
            Z[a, new] = W[a, new]
        for q in range(a + 1, s):
            factor = L[q, a]
            for new in range(d):
                Z[a, new] -= factor * Z[q, new]
        inverse = 1.0 / L[a, a]
        for new in range(d):
            Z[a, new] *= inverse
            length[new] += abs(Z[a, new])
    return True


@njit((MATRIX, INDEX, MATRIX, VECTOR, TABLE), **ENTRY)
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
