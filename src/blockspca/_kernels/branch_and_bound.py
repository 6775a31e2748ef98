"""Depth-first part of branch and bound: bound a node, reduce it, dive, branch.

A node is a row of `states`: 1 for a feature fixed in, 2 for one fixed out, 0 for free.
All tests compare with τ, a value the search has reached and wants to beat, and cost no
eigenvalue: whether λmax(A_SS) ≤ τ is whether τI − A_SS has a Cholesky factor.

Python calls `explore` and `first_support`; their signatures compile the others.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import types

from .arrays import FLOATS, INTS, MATRIX, VECTOR
from .options import ENTRY, INNER, njit
from .selection import insert_value

FINISHED, BUDGET_USED, BETTER_SUPPORT = 0, 1, 2
PRUNED, LEAF, OPEN, INSIDE_BEATS, ONE_MORE_BEATS = range(5)  # what became of a node
PASSES = 10  # over the tests of a node, as long as features drop out
ASCENT = 12  # power iterations at most in a node
STARTS = 3  # power iterations before the search

_STATES = types.Array(types.uint8, 2, "C")

# x'Ax ≤ low + span · Σ of `weights` over the support of x; A + defect · I ⪰ 0
Problem = namedtuple("Problem", "A k tau defect shift weights low span")

# Features fixed in and free, I and F, and what is known of the free, in their order:
# U'U = τI − A_II, W = U⁻ᵀA_IF, the diagonal of B = A_FF + W'W, bounds of its rows.
Node = namedtuple("Node", "inside free U W diagonal row_bound row_norm largest row")


@njit(**INNER)
def new_node(d, k, eigen_size):
    """Room for any node; U also for what remains of it, if that is tested."""
    size = max(k, eigen_size)
    integers = np.empty((2, d), np.int64)
    reals = np.empty((4, d))
    return Node(
        integers[0], integers[1], np.empty((size, size)), np.empty((k, d)),
        reals[0], reals[1], reals[2], np.empty(k + 1), reals[3],
    )  # fmt: skip


@njit(**INNER)
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


@njit(**INNER)
def feature(node, n_in, i):
    """The i-th of the features fixed in, and after them of the free."""
    return node.inside[i] if i < n_in else node.free[i - n_in]


@njit(**INNER)
def choose_largest(y, n_in, m, need, chosen):
    """Positions of those fixed in and of the `need` largest |y| of the others."""
    for i in range(n_in):
        chosen[i] = i
    count = n_in
    for _ in range(need):
        arg, size = -1, -1.0
        for j in range(n_in, m):
            if abs(y[j]) > size:
                taken = False
                for q in range(n_in, count):
                    taken |= chosen[q] == j
                if not taken:
                    arg, size = j, abs(y[j])
        chosen[count] = arg
        count += 1


@njit(**INNER)
def dive(problem, node, n_in, n_free, start, x, y, chosen):
    """Truncated power iteration with the features fixed in kept; return x'Ax.

    From row `start` of A. `chosen` becomes the support found, x its loadings; both go
    by position among the features fixed in and free.
    """
    A = problem.A
    m = n_in + n_free
    count = problem.k
    for j in range(m):
        y[j] = A[start, feature(node, n_in, j)]
    value = 0.0
    previous = -np.inf
    for _ in range(ASCENT):
        choose_largest(y, n_in, m, count - n_in, chosen)
        for j in range(m):
            x[j] = 0.0
        length = 0.0
        for q in range(count):
            length += y[chosen[q]] ** 2
        for q in range(count):
            x[chosen[q]] = y[chosen[q]] / np.sqrt(length) if length > 0.0 else 0.0
        if length == 0.0:
            x[chosen[0]] = 1.0
        for j in range(m):
            y[j] = 0.0
        for q in range(count):
            weight = x[chosen[q]]
            a = feature(node, n_in, chosen[q])
            for j in range(n_in):
                y[j] += weight * A[a, node.inside[j]]
            for j in range(n_free):
                y[n_in + j] += weight * A[a, node.free[j]]
        value = 0.0
        for q in range(count):
            value += x[chosen[q]] * y[chosen[q]]
        # Enough for a support, of which loadings are computed anew.
        if value - previous <= 1e-6 * abs(value):
            break
        previous = value
        for q in range(count):
            y[chosen[q]] += problem.shift * x[chosen[q]]
    return value


@njit(**INNER)
def unpack(state, node):
    """List the features fixed in and the free; return how many there are."""
    n_in = 0
    n_free = 0
    for j in range(state.shape[0]):
        if state[j] == 1:
            node.inside[n_in] = j
            n_in += 1
        elif state[j] == 0:
            node.free[n_free] = j
            n_free += 1
    return n_in, n_free


@njit(**INNER)
def list_largest(values, count, largest, length):
    """Write the `length` largest of the first `count` values, descending."""
    for q in range(length):
        largest[q] = -np.inf
    for q in range(count):
        if values[q] > largest[length - 1]:
            insert_value(largest, length, values[q])


@njit(**INNER)
def bound_weights(problem, state, node, n_in, n_free, bound):
    """x'Ax ≤ low + span Σ_S weights, the most from the largest weights."""
    need, weights = problem.k - n_in, problem.weights
    for q in range(n_free):
        node.row[q] = weights[node.free[q]]
    list_largest(node.row, n_free, node.largest, need)
    total = 0.0
    for q in range(n_in):
        total += weights[node.inside[q]]
    for q in range(need):
        total += node.largest[q]
    bound = min(bound, problem.low + problem.span * total)
    if bound <= problem.tau:
        return n_free, bound
    kept = 0
    for q in range(n_free):
        gain = min(0.0, node.row[q] - node.largest[need - 1])
        if problem.low + problem.span * (total + gain) > problem.tau:
            node.free[kept] = node.free[q]
            kept += 1
        else:
            state[node.free[q]] = 2
    return kept, bound


@njit(**INNER)
def complement(A, node, n_in, n_free):
    """Write W = U⁻ᵀ A_IF and the diagonal of B = A_FF + W'W."""
    W, U, free, diagonal = node.W, node.U, node.free, node.diagonal
    for q in range(n_free):
        diagonal[q] = A[free[q], free[q]]
    for i in range(n_in):
        a = node.inside[i]
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


@njit(**INNER)
def bound_trace(problem, state, node, n_in, n_free, bound):
    """λmax ≤ trace − (k' − 1) λmin; answers third what k' − 1 features can reach."""
    if problem.defect == np.inf:
        return n_free, bound, np.inf
    need, diagonal = problem.k - n_in, node.diagonal
    list_largest(diagonal, n_free, node.largest, need)
    total = (need - 1) * problem.defect
    for q in range(need):
        total += node.largest[q]
    bound = min(bound, max(problem.tau, total))
    threshold = node.largest[need - 1]
    rest = total - threshold - problem.defect
    if bound <= problem.tau:
        return n_free, bound, rest
    kept = 0
    for q in range(n_free):
        if total + min(0.0, diagonal[q] - threshold) > problem.tau:
            node.free[kept] = node.free[q]
            diagonal[kept] = diagonal[q]
            for i in range(n_in):
                node.W[i, kept] = node.W[i, q]
            kept += 1
        else:
            state[node.free[q]] = 2
    return kept, bound, rest


@njit(**INNER)
def bound_rows(A, node, n_in, n_free, need):
    """Gershgorin on B: sums and squares of the k' − 1 largest entries of each row.

    Returns the largest bound for k' features, and for k' − 1.
    """
    row, largest = node.row, node.largest
    highest, highest_rest = -np.inf, -np.inf
    for q in range(n_free):
        j = node.free[q]
        for r in range(n_free):
            row[r] = A[j, node.free[r]]
        for i in range(n_in):
            weight = node.W[i, q]
            for r in range(n_free):
                row[r] += weight * node.W[i, r]
        row[q] = 0.0
        for p in range(need - 1):
            largest[p] = 0.0
        for r in range(n_free):
            value = abs(row[r])
            if value > largest[need - 2]:
                insert_value(largest, need - 1, value)
        total = 0.0
        square = 0.0
        for p in range(need - 1):
            total += largest[p]
            square += largest[p] * largest[p]
        node.row_bound[q] = node.diagonal[q] + total
        node.row_norm[q] = square
        highest = max(highest, node.row_bound[q])
        highest_rest = max(highest_rest, node.row_bound[q] - largest[need - 2])
    return highest, highest_rest


@njit(**INNER)
def drop_uncoupled(tau, state, node, n_free, rest):
    """Drop j if [[B_jj, ‖B_jT‖], [‖B_jT‖, rest]] stays below τ."""
    kept = 0
    for q in range(n_free):
        room = tau - node.diagonal[q]
        if room > 0.0 and rest < tau and node.row_norm[q] <= room * (tau - rest):
            state[node.free[q]] = 2
        else:
            node.free[kept] = node.free[q]
            node.row_bound[kept] = node.row_bound[q]
            kept += 1
    return kept


@njit(**INNER)
def reduce_node(problem, state, node, n_in, n_free, bound):
    """Test the node and drop features from it, until nothing more drops.

    S = I ∪ T beats τ exactly if T beats it in the Schur complement B. Returns what
    became of the node, how many features stay free, and an upper bound.
    """
    tau, need = problem.tau, problem.k - n_in
    for _ in range(PASSES):
        before = n_free
        if need == 0 or n_free <= need:
            return LEAF, n_free, bound
        n_free, bound = bound_weights(problem, state, node, n_in, n_free, bound)
        if bound <= tau:
            return PRUNED, n_free, bound
        if n_free <= need:
            return LEAF, n_free, bound
        if not factorise(problem.A, node.inside, n_in, tau, node.U):
            return INSIDE_BEATS, n_free, bound
        complement(problem.A, node, n_in, n_free)
        if need == 1:
            return best_single(tau, node, n_free, bound)
        n_free, bound, rest = bound_trace(problem, state, node, n_in, n_free, bound)
        if bound <= tau:
            return PRUNED, n_free, bound
        if n_free <= need:
            return LEAF, n_free, bound
        highest, highest_rest = bound_rows(problem.A, node, n_in, n_free, need)
        bound = min(bound, max(tau, highest))
        if bound <= tau:
            return PRUNED, n_free, bound
        n_free = drop_uncoupled(tau, state, node, n_free, min(rest, highest_rest))
        if n_free == before:
            break
    return OPEN, n_free, bound


@njit(**INNER)
def best_single(tau, node, n_free, bound):
    """One feature is missing: the one of the largest B_jj, which comes first then."""
    best = 0
    for q in range(n_free):
        if node.diagonal[q] > node.diagonal[best]:
            best = q
    bound = min(bound, max(tau, node.diagonal[best]))
    node.free[0], node.free[best] = node.free[best], node.free[0]
    return (PRUNED if bound <= tau else ONE_MORE_BEATS), n_free, bound


@njit(**INNER)
def strongest_row(A, node, n_in, n_free):
    """Where a dive starts: a row fixed in of largest sum, or the best row bound."""
    start = 0
    if n_in == 0:
        for q in range(n_free):
            if node.row_bound[q] > node.row_bound[start]:
                start = q
        return node.free[start]
    best = -1.0
    for i in range(n_in):
        total = 0.0
        for j in range(n_in + n_free):
            total += abs(A[node.inside[i], feature(node, n_in, j)])
        if total > best:
            start, best = i, total
    return node.inside[start]


@njit(**INNER)
def branching_feature(tau, node, n_in, n_free, x):
    """The free feature of largest loading, of those whose row bound is above τ.

    Some feature of every T that beats τ has such a row bound; −1 if none has.
    """
    branch = -1
    loading = -1.0
    for q in range(n_free):
        if node.row_bound[q] > tau:
            size = abs(x[n_in + q])
            if size > loading:
                branch, loading = q, size
            elif size == loading and node.row_bound[q] > node.row_bound[branch]:
                branch = q
    return node.free[branch] if branch >= 0 else -1


@njit(
    types.int64(
        MATRIX, types.int64, types.float64, types.float64, types.float64, VECTOR,
        types.float64, types.float64, types.int64, types.int64, _STATES, FLOATS,
        INTS, INTS,
    ),
    **ENTRY,
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
    problem = Problem(A, k, tau, defect, shift, weights, low, span)
    node = new_node(d, k, eigen_size)
    every = np.empty(d, np.int64)
    chosen = np.empty(k, np.int64)
    x = np.empty(d)
    y = np.empty(d)
    size = counters[0]
    done = 0
    outcome = FINISHED
    while size > 0:
        if done >= budget:
            outcome = BUDGET_USED
            break
        size -= 1
        if bounds[size] <= tau:
            continue
        done += 1
        state = states[size]
        n_in, n_free = unpack(state, node)
        bound = bounds[size]
        verdict, n_free, bound = reduce_node(problem, state, node, n_in, n_free, bound)
        bounds[size] = bound
        if verdict == PRUNED:
            continue
        count = n_in + n_free
        if verdict == INSIDE_BEATS or (verdict == LEAF and n_in == k):
            count = n_in
        elif verdict == ONE_MORE_BEATS:
            count = k
        for q in range(count):
            every[q] = feature(node, n_in, q)
        tested = verdict == LEAF or (verdict == OPEN and count <= eigen_size)
        if tested and factorise(A, every, count, tau, node.U):
            continue
        if verdict == OPEN:
            start = strongest_row(A, node, n_in, n_free)
            if dive(problem, node, n_in, n_free, start, x, y, chosen) <= tau:
                j = branching_feature(tau, node, n_in, n_free, x)
                if j >= 0:  # fixed out, and on top of it fixed in
                    for i in range(d):
                        states[size + 1, i] = state[i]
                    states[size, j] = 2
                    states[size + 1, j] = 1
                    bounds[size + 1] = bound
                    size += 2
                continue
            count = k
        for q in range(count):
            support[q] = every[chosen[q] if verdict == OPEN else q]
        if verdict != LEAF:  # the rest of the node is still to be explored
            size += 1
        counters[2] = count
        outcome = BETTER_SUPPORT
        break
    counters[0] = size
    counters[1] += done
    return outcome


@njit(types.float64(MATRIX, types.int64, VECTOR, INTS), **ENTRY)
def first_support(A, k, sums, support):
    """Write the best support of power iterations from the rows of largest `sums`."""
    d = A.shape[0]
    problem = Problem(A, k, 0.0, 0.0, 0.0, sums, 0.0, 0.0)
    node = new_node(d, k, k)
    chosen = np.empty(k, np.int64)
    x = np.empty(d)
    y = np.empty(d)
    n_in, n_free = unpack(np.zeros(d, np.uint8), node)  # all features are free
    for j in range(d):
        node.row_bound[j] = sums[j]
    best = -np.inf
    for _ in range(STARTS):
        start = strongest_row(A, node, n_in, n_free)
        node.row_bound[start] = -np.inf
        value = dive(problem, node, n_in, n_free, start, x, y, chosen)
        if value > best:
            best = value
            for q in range(k):
                support[q] = chosen[q]
    return best
