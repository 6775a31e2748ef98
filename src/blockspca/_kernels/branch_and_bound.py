"""Depth-first part of branch and bound: bound a node, reduce it, dive, branch.

A node is a row of `states`: 1 for a feature fixed in, 2 for one fixed out, 0 for free.
All tests compare with τ, a value the search has reached and wants to beat, and cost no
eigenvalue: whether λmax(A_SS) ≤ τ is whether τI − A_SS has a Cholesky factor.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

FINISHED, BUDGET_USED, BETTER_SUPPORT = 0, 1, 2

_MATRIX = types.Array(types.float64, 2, "C", readonly=True)
_VECTOR = types.Array(types.float64, 1, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C")
_FLOATS_2D = types.Array(types.float64, 2, "C")
_INTS = types.Array(types.int64, 1, "C")
_STATES = types.Array(types.uint8, 2, "C")


@njit(
    types.boolean(_MATRIX, _INTS, types.int64, types.float64, _FLOATS_2D),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def factorise(A, features, count, tau, U):
    """Write U with U'U = τI − A_SS, upper triangular; False if there is none.

    Row by row, so that the innermost loop runs over memory in order.
    """
    for j in range(count):
        a = features[j]
        for i in range(j, count):
            U[j, i] = -A[a, features[i]]
        U[j, j] += tau
        for q in range(j):
            weight = U[q, j]
            for i in range(j, count):
                U[j, i] -= weight * U[q, i]
        if U[j, j] <= 0.0:
            return False
        pivot = np.sqrt(U[j, j])
        for i in range(j, count):
            U[j, i] /= pivot
    return True


@njit(
    types.void(_FLOATS, types.int64, types.float64),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def insert(largest, count, value):
    """Put `value` into the descending list of the `count` largest values so far."""
    position = count - 1
    while position > 0 and largest[position - 1] < value:
        largest[position] = largest[position - 1]
        position -= 1
    largest[position] = value


@njit(
    types.float64(
        _MATRIX, _INTS, types.int64, _INTS, types.int64, types.int64, _FLOATS, _FLOATS,
        _INTS, types.float64,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)  # fmt: skip
def dive(A, inside, n_in, free, n_free, need, x, y, chosen, shift):
    """Truncated power iteration with the features `inside` kept; return x'Ax.

    `chosen` becomes the support found, x its loadings on inside and free features.
    """
    m = n_in + n_free
    best_row, best_sum = 0, -1.0
    for i in range(m):
        a = inside[i] if i < n_in else free[i - n_in]
        if n_in > 0 and i >= n_in:
            break
        total = 0.0
        for j in range(m):
            total += abs(A[a, inside[j] if j < n_in else free[j - n_in]])
        if total > best_sum:
            best_row, best_sum = i, total
    start = inside[best_row] if best_row < n_in else free[best_row - n_in]
    for j in range(m):
        y[j] = A[start, inside[j] if j < n_in else free[j - n_in]]
    value = 0.0
    previous = -np.inf
    for _ in range(12):
        count = n_in
        for i in range(n_in):
            chosen[i] = i
        for _pick in range(need):
            arg, size = -1, -1.0
            for j in range(n_in, m):
                if abs(y[j]) > size:
                    taken = False
                    for q in range(n_in, count):
                        if chosen[q] == j:
                            taken = True
                            break
                    if not taken:
                        arg, size = j, abs(y[j])
            chosen[count] = arg
            count += 1
        for j in range(m):
            x[j] = 0.0
        length = 0.0
        for q in range(count):
            length += y[chosen[q]] ** 2
        if length == 0.0:
            x[chosen[0]] = 1.0
        else:
            length = np.sqrt(length)
            for q in range(count):
                x[chosen[q]] = y[chosen[q]] / length
        for j in range(m):
            y[j] = 0.0
        for q in range(count):
            i = chosen[q]
            a = inside[i] if i < n_in else free[i - n_in]
            for j in range(m):
                y[j] += x[i] * A[a, inside[j] if j < n_in else free[j - n_in]]
        value = 0.0
        for q in range(count):
            value += x[chosen[q]] * y[chosen[q]]
        if value - previous <= 1e-6 * abs(value):
            break
        previous = value
        for q in range(count):
            y[chosen[q]] += shift * x[chosen[q]]
    return value


@njit(
    types.int64(
        _MATRIX, types.int64, types.float64, types.float64, types.float64, _VECTOR,
        types.float64, types.float64, types.int64, types.int64, _STATES, _FLOATS,
        _INTS, _INTS,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)  # fmt: skip
def explore(
    A, k, tau, defect, shift, weights, low, span, eigen_size, budget, states,
    bounds, counters, support,
):  # fmt: skip
    """Explore the nodes on the stack depth first, for `budget` nodes at most.

    Parameters
    ----------
    tau : the value to beat; a node is dropped once no support in it can
    defect : A + defect · I is positive semidefinite; infinite if that is not known
    shift : multiple of the identity that makes the dive ascend
    weights, low, span : x'Ax ≤ low + span · Σ of `weights` over the support of x
    eigen_size : test λmax of what remains for at most that many features
    states, bounds : the stack, with an upper bound of each node
    counters : in and out, the height of the stack and the number of nodes explored;
        out, the number of features in `support`
    support : out, a support that beats τ, if the answer is BETTER_SUPPORT

    Returns FINISHED, BUDGET_USED or BETTER_SUPPORT.
    """
    d = A.shape[0]
    inside = np.empty(d, np.int64)
    free = np.empty(d, np.int64)
    every = np.empty(d, np.int64)
    chosen = np.empty(d, np.int64)
    x = np.empty(d)
    y = np.empty(d)
    diagonal = np.empty(d)
    row_bound = np.empty(d)
    row_norm = np.empty(d)
    largest = np.empty(k + 1)
    U = np.empty((max(k, eigen_size), max(k, eigen_size)))
    W = np.empty((k, d))
    row = np.empty(d)
    size = counters[0]
    done = 0
    while size > 0:
        if done >= budget:
            counters[0] = size
            counters[1] += done
            return BUDGET_USED
        size -= 1
        bound = bounds[size]
        if bound <= tau:
            continue
        done += 1
        state = states[size]
        n_in = 0
        n_free = 0
        for j in range(d):
            if state[j] == 1:
                inside[n_in] = j
                n_in += 1
            elif state[j] == 0:
                free[n_free] = j
                n_free += 1
        need = k - n_in
        pruned = False
        leaf = False
        reducing = True
        passes = 0
        while reducing:
            if need == 0 or n_free <= need:
                leaf = True
                break
            before = n_free
            passes += 1
            # 1. x'Ax ≤ low + span Σ_S weights, the most from the largest weights
            for q in range(need):
                largest[q] = -1.0
            for q in range(n_free):
                if weights[free[q]] > largest[need - 1]:
                    insert(largest, need, weights[free[q]])
            total = 0.0
            for q in range(n_in):
                total += weights[inside[q]]
            for q in range(need):
                total += largest[q]
            bound = min(bound, low + span * total)
            if bound <= tau:
                pruned = True
                break
            kept = 0
            for q in range(n_free):
                j = free[q]
                gain = min(0.0, weights[j] - largest[need - 1])
                if low + span * (total + gain) > tau:
                    free[kept] = j
                    kept += 1
                else:
                    state[j] = 2
            n_free = kept
            if n_free <= need:
                leaf = True
                break
            # 2. Schur complement: S = I ∪ T beats τ exactly if B_TT does, where
            #    B = A_FF + W'W,  W = U⁻ᵀ A_IF,  U'U = τI − A_II
            if not factorise(A, inside, n_in, tau, U):
                for q in range(n_in):
                    support[q] = inside[q]
                counters[2] = n_in
                counters[0] = size + 1
                counters[1] += done
                return BETTER_SUPPORT
            for q in range(n_free):
                diagonal[q] = A[free[q], free[q]]
            for i in range(n_in):
                a = inside[i]
                for q in range(n_free):
                    W[i, q] = A[a, free[q]]
                for p in range(i):
                    weight = U[p, i]
                    for q in range(n_free):
                        W[i, q] -= weight * W[p, q]
                pivot = U[i, i]
                for q in range(n_free):
                    W[i, q] /= pivot
                    diagonal[q] += W[i, q] * W[i, q]
            for q in range(need):
                largest[q] = -np.inf
            for q in range(n_free):
                if diagonal[q] > largest[need - 1]:
                    insert(largest, need, diagonal[q])
            if need == 1:
                bound = min(bound, max(tau, largest[0]))
                if bound <= tau:
                    pruned = True
                    break
                best = 0
                for q in range(n_free):
                    if diagonal[q] > diagonal[best]:
                        best = q
                for q in range(n_in):
                    support[q] = inside[q]
                support[n_in] = free[best]
                bounds[size] = bound
                counters[2] = n_in + 1
                counters[0] = size + 1
                counters[1] += done
                return BETTER_SUPPORT
            rest = np.inf  # bounds what need − 1 features of B can reach
            if defect < np.inf:  # λmax ≤ trace − (need − 1) λmin
                total = (need - 1) * defect
                for q in range(need):
                    total += largest[q]
                bound = min(bound, max(tau, total))
                if bound <= tau:
                    pruned = True
                    break
                rest = total - largest[need - 1] - defect
                threshold = largest[need - 1]
                kept = 0
                for q in range(n_free):
                    j = free[q]
                    if total + min(0.0, diagonal[q] - threshold) > tau:
                        free[kept] = j
                        diagonal[kept] = diagonal[q]
                        for i in range(n_in):
                            W[i, kept] = W[i, q]
                        kept += 1
                    else:
                        state[j] = 2
                n_free = kept
                if n_free <= need:
                    leaf = True
                    break
            # 3. Gershgorin on B: row sums of the need − 1 largest entries
            highest = -np.inf
            highest_rest = -np.inf
            for q in range(n_free):
                j = free[q]
                for p in range(need - 1):
                    largest[p] = 0.0
                for r in range(n_free):
                    row[r] = A[j, free[r]]
                for i in range(n_in):
                    weight = W[i, q]
                    for r in range(n_free):
                        row[r] += weight * W[i, r]
                row[q] = 0.0
                for r in range(n_free):
                    value = abs(row[r])
                    if value > largest[need - 2]:
                        insert(largest, need - 1, value)
                total = 0.0
                square = 0.0
                for p in range(need - 1):
                    total += largest[p]
                    square += largest[p] * largest[p]
                row_bound[q] = diagonal[q] + total
                row_norm[q] = square
                highest = max(highest, row_bound[q])
                highest_rest = max(highest_rest, row_bound[q] - largest[need - 2])
            bound = min(bound, max(tau, highest))
            if bound <= tau:
                pruned = True
                break
            # 4. drop j if [[B_jj, ‖B_jT‖], [‖B_jT‖, rest]] stays below τ
            rest = min(rest, highest_rest)
            kept = 0
            for q in range(n_free):
                room = tau - diagonal[q]
                out = room > 0.0 and rest < tau and row_norm[q] <= room * (tau - rest)
                if out:
                    state[free[q]] = 2
                else:
                    free[kept] = free[q]
                    row_bound[kept] = row_bound[q]
                    kept += 1
            n_free = kept
            reducing = n_free < before and passes < 10
        if pruned:
            continue
        m = n_in + n_free
        if leaf or m <= eigen_size:
            for q in range(n_in):
                every[q] = inside[q]
            for q in range(n_free):
                every[n_in + q] = free[q]
            if leaf and n_free > need:
                m = n_in
            if factorise(A, every, m, tau, U):
                continue
            if leaf:
                for q in range(m):
                    support[q] = every[q]
                counters[2] = m
                counters[0] = size
                counters[1] += done
                return BETTER_SUPPORT
        value = dive(A, inside, n_in, free, n_free, need, x, y, chosen, shift)
        if value > tau:
            for q in range(k):
                i = chosen[q]
                support[q] = inside[i] if i < n_in else free[i - n_in]
            bounds[size] = bound
            counters[2] = k
            counters[0] = size + 1
            counters[1] += done
            return BETTER_SUPPORT
        # Some feature of T must have a row bound above τ: branch on one of those.
        branch = -1
        loading = -1.0
        for q in range(n_free):
            if row_bound[q] > tau:
                if abs(x[n_in + q]) > loading:
                    branch, loading = q, abs(x[n_in + q])
                elif abs(x[n_in + q]) == loading and row_bound[q] > row_bound[branch]:
                    branch = q
        if branch < 0:
            continue
        j = free[branch]
        for i in range(d):
            states[size + 1, i] = state[i]
        states[size, j] = 2
        states[size + 1, j] = 1
        bounds[size] = bound
        bounds[size + 1] = bound
        size += 2
    counters[0] = 0
    counters[1] += done
    return FINISHED
