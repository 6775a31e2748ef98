"""Turns of components: exchanges and loadings that raise a goal of the whole set.

The set V is given by its supports and loadings, A and B = A² on the features that may
be used. With the scores of the others as they are, `components/prediction.py` says what
a component adds; here is its turn. A feature is exchanged for one of those that pull
most, as long as the goal rises, and loadings follow by power steps on its derivative.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from .arrays import INTS, LABELS, MATRIX, TABLE, VECTOR
from .options import ENTRY, INNER, njit
from .prediction_constants import CANDIDATES, DEPENDENT, FITS, GAIN, REFINED, TINY
from .prediction_sets import (
    Components,
    Measures,
    basis,
    goal_slopes,
    goal_value,
    images,
    measure,
    sandwich,
    together,
)

FITTED = 1e-6  # gain of the last step to the loadings of a support


class Others(NamedTuple):
    """The other components: what they have, and what they leave.

    `have` is their adjusted variance, with what they predict. With R an orthonormal
    basis of their scores, N = RV'A, T = RV'B and Q = RV'BVR'N: A − N'N is left of A,
    and B − T'N − N'T + N'Q of its square. (In the innermost loops only `have` is
    passed on: each array of a tuple is counted there, which took 3 % of the time.)
    """

    have: Any
    N: Any
    T: Any
    Q: Any


class Blocks(NamedTuple):
    """What is left of A, and its square: of a support (a, b) and beside it.

    Columns of `cross_a` and `cross_b` are those of new features, the rows of `own`
    their diagonal entries.
    """

    a: Any
    b: Any
    cross_a: Any
    cross_b: Any
    own: Any


@njit(**INNER)
def _value(goal, others_have, s, q):
    """The goal with a component of variance s more, which predicts q / s more."""
    adjusted, predicted = others_have
    if not s > DEPENDENT * (adjusted + abs(s)):
        return -np.inf
    return goal_value(goal, adjusted + s, predicted + q / s)


@njit(**INNER)
def _with(goal, others_have, s, q):
    """The goal with a component of variance s more, and its slopes by s and by q."""
    adjusted, predicted = others_have
    if not s > DEPENDENT * (adjusted + abs(s)):
        return -np.inf, 1.0, 0.0
    ratio = q / s
    value = goal_value(goal, adjusted + s, predicted + ratio)
    on_adjusted, on_predicted = goal_slopes(goal, adjusted + s, predicted + ratio)
    return value, on_adjusted - on_predicted * ratio / s, on_predicted / s


@njit(**INNER)
def _forms(a, b, x, ax, bx):
    """x'ax and x'bx, with the vectors ax and bx in the last two."""
    s, q = 0.0, 0.0
    for i in range(len(x)):
        first, second = 0.0, 0.0
        for j in range(len(x)):
            first += a[i, j] * x[j]
            second += b[i, j] * x[j]
        ax[i], bx[i] = first, second
        s += x[i] * first
        q += x[i] * second
    return s, q


@njit(**INNER)
def _fit(goal, others_have, a, b, x):
    """Improve the loadings x of a support on which what is left is a, its square b."""
    k = len(x)
    best, shift, s, q = -np.inf, 0.0, 0.0, 0.0
    kept, step = x.copy(), np.zeros(k)
    ax, bx = np.empty(k), np.empty(k)
    for _ in range(FITS):
        new_s, new_q = _forms(a, b, x, ax, bx)
        value, on_first, on_second = _with(goal, others_have, new_s, new_q)
        if value > best or best == -np.inf:
            settled = value <= best + FITTED and best > -np.inf
            best, s, q = value, new_s, new_q
            kept[:] = x
            if settled:
                break
            size = 0.0
            for i in range(k):
                step[i] = on_first * ax[i] + on_second * bx[i]
                size += step[i] * step[i]
            size = np.sqrt(size)
        else:  # too far: a longer way through the same point
            shift = max(4.0 * shift, size)
            if shift > 64.0 * size:
                break
        length = 0.0
        for i in range(k):
            x[i] = step[i] + shift * kept[i]
            length += x[i] * x[i]
        length = np.sqrt(length)
        if not length > TINY:
            break
        x /= length
    x[:] = kept
    return best, s, q


@njit(**INNER)
def _pulling_most(pull, support, closed, new):
    """The features outside, that pull most, in `new`; how many."""
    for f in support:
        pull[f] = 0.0
    count, sizes = 0, np.zeros(len(new))
    for f in range(len(pull)):
        size = 0.0 if closed[f] else abs(pull[f])
        if size > 0.0 and (count < len(new) or size > sizes[count - 1]):
            place = min(count, len(new) - 1)
            while place > 0 and sizes[place - 1] < size:
                sizes[place], new[place] = sizes[place - 1], new[place - 1]
                place -= 1
            sizes[place], new[place] = size, f
            count = min(count + 1, len(new))
    return count


@njit(**INNER)
def _one_step(goal, others_have, blocks, x, slopes):
    """Best exchanges by one step, (REFINED, 5): value, out, in, cos t, sin t.

    And how many there are.

    The other loadings keep their proportions: with u the unit vector that is left
    without feature i, the best of u cos t + e_f sin t by the derivative of the goal.
    """
    a, b, cross_a, cross_b, own = blocks
    k, count = len(x), cross_a.shape[1]
    found, reached = np.zeros((REFINED, 5)), 0
    ax, bx = np.empty(k), np.empty(k)
    xa, xb = np.zeros(count), np.zeros(count)
    s, q = _forms(a, b, x, ax, bx)
    for i in range(k):
        for f in range(count):
            xa[f] += x[i] * cross_a[i, f]
            xb[f] += x[i] * cross_b[i, f]
    for i in range(k):
        rest = max(1.0 - x[i] * x[i], 0.0)
        alone = rest < 1e-14
        rest = 1.0 if alone else rest
        root = np.sqrt(rest)
        sa = (s - 2.0 * x[i] * ax[i] + x[i] * x[i] * a[i, i]) / rest
        sb = (q - 2.0 * x[i] * bx[i] + x[i] * x[i] * b[i, i]) / rest
        for f in range(count):
            ca = (xa[f] - x[i] * cross_a[i, f]) / root
            cb = (xb[f] - x[i] * cross_b[i, f]) / root
            fa, fb = own[0, f], own[1, f]
            near = slopes[0] * sa + slopes[1] * sb
            far = slopes[0] * fa + slopes[1] * fb
            cross = slopes[0] * ca + slopes[1] * cb
            # Cosine and sine of half the angle of (near − far, 2 cross).
            ratio = near - far
            length = np.sqrt(ratio * ratio + 4.0 * cross * cross)
            ratio = ratio / length if length > 0.0 else 1.0
            c, z = np.sqrt(0.5 * (1.0 + ratio)), np.sqrt(0.5 * (1.0 - ratio))
            if cross < 0.0:
                z = -z
            if alone:
                c, z = 0.0, 1.0
            new_s = c * c * sa + 2.0 * c * z * ca + z * z * fa
            new_q = c * c * sb + 2.0 * c * z * cb + z * z * fb
            value = _value(goal, others_have, new_s, new_q)
            if reached < REFINED or value > found[reached - 1, 0]:
                place = min(reached, REFINED - 1)
                while place > 0 and found[place - 1, 0] < value:
                    found[place] = found[place - 1]
                    place -= 1
                found[place, 0], found[place, 1] = value, i
                found[place, 2], found[place, 3], found[place, 4] = f, c, z
                reached = min(reached + 1, REFINED)
    return found, reached


@njit(**INNER)
def _leave(A, B, others, support, new, blocks):
    """Write what the others leave for a support and for new features."""
    _, N, T, Q = others
    a, b, cross_a, cross_b, own = blocks
    k, count, r = len(support), len(new), len(N)
    for i in range(k):
        f = support[i]
        for j in range(k + count):
            g = support[j] if j < k else new[j - k]
            first, second = A[f, g], B[f, g]
            for row in range(r):
                first -= N[row, f] * N[row, g]
                second += N[row, f] * (Q[row, g] - T[row, g]) - T[row, f] * N[row, g]
            if j < k:
                a[i, j], b[i, j] = first, second
            else:
                cross_a[i, j - k], cross_b[i, j - k] = first, second
    for j in range(count):
        g = new[j]
        own[0, j], own[1, j] = A[g, g], B[g, g]
        for row in range(r):
            own[0, j] -= N[row, g] * N[row, g]
            own[1, j] += N[row, g] * (Q[row, g] - 2.0 * T[row, g])


@njit(**INNER)
def _turn(A, B, goal, others, closed, support, loadings, exchanges):
    """Exchange features of one component while the goal rises, at most so often."""
    others_have, N, T, Q = others
    k, d = len(support), len(A)
    many = min(CANDIDATES, d - k)
    a, b = np.empty((k, k)), np.empty((k, k))
    cross_a, cross_b = np.empty((k, many)), np.empty((k, many))
    own, new = np.empty((2, many)), np.empty(many, np.int64)
    once, twice = np.empty(d), np.empty(d)
    blocks = Blocks(a, b, cross_a, cross_b, own)
    _leave(A, B, others, support, new[:0], blocks)
    value, s, q = _fit(goal, others_have, a, b, loadings)
    for _ in range(exchanges if many > 0 else 0):
        _, on_first, on_second = _with(goal, others_have, s, q)
        images(A, B, support, loadings, k, once, twice)
        for row in range(len(N)):
            n, t = 0.0, 0.0
            for i in range(k):
                n += N[row, support[i]] * loadings[i]
                t += (T[row, support[i]] - Q[row, support[i]]) * loadings[i]
            for f in range(d):
                once[f] -= n * N[row, f]
                twice[f] -= n * T[row, f] + t * N[row, f]
        for f in range(d):
            once[f] = on_first * once[f] + on_second * twice[f]
        count = _pulling_most(once, support, closed, new)
        if count == 0:
            break
        ca, cb = cross_a[:, :count].copy(), cross_b[:, :count].copy()
        blocks = Blocks(a, b, ca, cb, own)
        _leave(A, B, others, support, new[:count], blocks)
        slopes = (on_first, on_second)
        steps, found = _one_step(goal, others_have, blocks, loadings, slopes)
        best, best_x, best_out, best_in = value + GAIN, loadings, -1, -1
        for trial in range(found):
            out, into = int(steps[trial, 1]), int(steps[trial, 2])
            c, z = steps[trial, 3], steps[trial, 4]
            x = loadings.copy()
            x[out] = 0.0
            size = np.sqrt(np.sum(x * x))
            if size > 0.0:
                x *= c / size
            x[out] = z
            swapped_a, swapped_b = a.copy(), b.copy()
            for i in range(k):
                swapped_a[i, out] = swapped_a[out, i] = ca[i, into]
                swapped_b[i, out] = swapped_b[out, i] = cb[i, into]
            swapped_a[out, out], swapped_b[out, out] = own[0, into], own[1, into]
            reached, new_s, new_q = _fit(goal, others_have, swapped_a, swapped_b, x)
            if reached > best:
                best, best_x, best_out, best_in = reached, x, out, into
                s, q = new_s, new_q
        if best_out < 0:
            break
        value = best
        loadings[:] = best_x
        support[best_out] = new[best_in]


@njit(
    types.Tuple((types.int64, types.int64, types.float64, types.float64))(
        MATRIX,
        MATRIX,
        VECTOR,
        types.NamedTuple((LABELS, TABLE, INTS), Components),
        types.boolean,
        types.boolean,
        types.UniTuple(types.int64, 5),
    ),
    **ENTRY,
)
def take_turns(A, B, goal, components, in_place, disjoint, state):
    """Let components take turns until none gains, or so many turns were taken.

    `state` is whose turn it is, how many gained nothing in a row, how many turns there
    may be, of how many exchanges each, and how many steps of all loadings together. The
    first two are returned, with the adjusted variance of the set and what it predicts.
    More than m turns in vain: nor did all loadings together gain.
    `in_place`: the order of components is not free.
    """
    supports, loadings, counts = components
    m, d = len(supports), len(A)
    j, in_vain, most, exchanges, steps = state
    AV, BV = np.empty((m, d)), np.empty((m, d))
    G, H = np.empty((m, m)), np.empty((m, m))
    R, slope = np.zeros((m, m)), np.zeros((m, m))
    work = Measures(AV, BV, G, H, R, slope)
    value, adjusted, predicted = measure(A, B, goal, components, in_place, work)
    for _ in range(most):
        if in_vain >= m:
            before = value
            value, adjusted, predicted = together(
                A, B, goal, components, in_place, work, steps
            )
            if not value > before + GAIN:
                in_vain = m + 1
                break
            in_vain = 0
        k = counts[j]
        count, rest, known = basis(G, H, j, in_place, R, slope)
        N, T, Q = np.zeros((count, d)), np.zeros((count, d)), np.zeros((count, d))
        square = sandwich(R[:count], H)
        for row in range(count):
            for i in range(m):
                if i != j:
                    for f in range(d):
                        N[row, f] += R[row, i] * AV[i, f]
                        T[row, f] += R[row, i] * BV[i, f]
        for row in range(count):
            for i in range(count):
                for f in range(d):
                    Q[row, f] += square[row, i] * N[i, f]
        closed = np.zeros(d, np.bool_)
        if disjoint:
            for i in range(m):
                if i != j:
                    for place in range(counts[i]):
                        closed[supports[i, place]] = True
        support, x = supports[j, :k].copy(), loadings[j, :k].copy()
        old_support, old_x = support.copy(), x.copy()
        others = Others((rest, known), N, T, Q)
        _turn(A, B, goal, others, closed, support, x, exchanges)
        supports[j, :k], loadings[j, :k] = support, x
        reached, new_adjusted, new_predicted = measure(
            A, B, goal, components, in_place, work
        )
        in_vain += 1
        if reached > value:
            if reached > value + GAIN:
                in_vain = 1  # its own turn is over
            value, adjusted, predicted = reached, new_adjusted, new_predicted
        else:
            supports[j, :k], loadings[j, :k] = old_support, old_x
            measure(A, B, goal, components, in_place, work)
        j = (j + 1) % m
    return j, in_vain, adjusted, predicted
