"""What a set of components has and predicts, the goal of both, and its derivative.

With A and B = A² on some features, and V the components: V'AV and V'BV are all that
counts. `components/prediction_goal.py` has the formula of the goal.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from .arrays import VECTOR
from .options import ENTRY, INNER, njit
from .prediction_constants import DEPENDENT, ROUNDED, TINY

# Slots of the goal.
WEIGHT, ADJUSTED, PREDICTED, LEFT = range(4)
ADJUSTED_WIDTH, PREDICTED_WIDTH, ADJUSTED_COST, PREDICTED_COST = range(4, 8)
HARD = 8  # not 0: what is below has no value

SETTLED = 1e-10  # gain of the last step to the loadings of all
FARTHEST = 64.0  # times the way: from nearer a step is not tried again


class Components(NamedTuple):
    """A set V, which searches change: of row j the first counts[j] places count."""

    supports: Any
    loadings: Any
    counts: Any


class Measures(NamedTuple):
    """What `measure` finds of V: AV, BV, G = V'AV, H = V'BV, and what `basis` does."""

    AV: Any
    BV: Any
    G: Any
    H: Any
    R: Any
    slope: Any


@njit(**INNER)
def _log_of_sum(t):
    """log(1 + exp(t)), for any t."""
    return max(t, 0.0) + np.log1p(np.exp(-abs(t)))


@njit(**INNER)
def _share(t):
    """1 / (1 + exp(−t)), for any t."""
    e = np.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@njit(types.float64(VECTOR, types.float64, types.float64), **ENTRY)
def goal_value(goal, adjusted, predicted):
    """What is raised; −∞ where either is nothing, or below a bound that is hard."""
    if not (adjusted > 0.0 and predicted > 0.0):
        return -np.inf
    least = 1.0 - ROUNDED
    if goal[HARD] != 0.0 and (
        adjusted < least * goal[ADJUSTED] or predicted < least * goal[PREDICTED]
    ):
        return -np.inf
    value = np.log(adjusted) + goal[WEIGHT] * np.log(predicted)
    if goal[ADJUSTED] > 0.0:
        above = np.log(adjusted / goal[ADJUSTED]) / goal[ADJUSTED_WIDTH]
        value -= goal[ADJUSTED_COST] * goal[ADJUSTED_WIDTH] * _log_of_sum(-above)
        above = (predicted - goal[PREDICTED]) / (goal[LEFT] * goal[PREDICTED_WIDTH])
        value -= goal[PREDICTED_COST] * goal[PREDICTED_WIDTH] * _log_of_sum(-above)
    return value


@njit(types.UniTuple(types.float64, 2)(VECTOR, types.float64, types.float64), **ENTRY)
def goal_slopes(goal, adjusted, predicted):
    """Its derivatives by the adjusted variance and by what is predicted."""
    adjusted, predicted = max(adjusted, TINY), max(predicted, TINY)
    on_adjusted, on_predicted = 1.0 / adjusted, goal[WEIGHT] / predicted
    if goal[ADJUSTED] > 0.0:
        above = np.log(adjusted / goal[ADJUSTED]) / goal[ADJUSTED_WIDTH]
        on_adjusted *= 1.0 + goal[ADJUSTED_COST] * _share(-above)
        above = (predicted - goal[PREDICTED]) / (goal[LEFT] * goal[PREDICTED_WIDTH])
        on_predicted += goal[PREDICTED_COST] / goal[LEFT] * _share(-above)
    return on_adjusted, on_predicted


@njit(**INNER)
def basis(G, H, skip, in_place, R, slope):
    """Orthonormalise scores but one; their number, adjusted and predicted variance.

    Rows of R are combinations of the components. Those that add most come first, or
    all in their places. `slope` is the derivative of the adjusted variances by G.
    """
    m = len(G)
    left = np.empty(m)
    for i in range(m):
        left[i] = G[i, i]
    done = np.zeros(m, np.bool_)
    if skip >= 0:
        done[skip] = True
    count, adjusted, predicted = 0, 0.0, 0.0
    slope[:] = 0.0
    for place in range(m):
        first = place if in_place else -1
        if not in_place:
            for i in range(m):
                if not done[i] and (first < 0 or left[i] > left[first]):
                    first = i
        if first < 0 or done[first]:
            continue
        done[first] = True
        if not left[first] > max(DEPENDENT * G[first, first], TINY):
            continue
        row = R[count]
        row[:] = 0.0
        row[first] = 1.0
        for _ in range(2):  # twice is enough
            for before in range(count):
                inner = 0.0
                for i in range(m):
                    for j in range(m):
                        inner += R[before, i] * G[i, j] * row[j]
                for i in range(m):
                    row[i] -= inner * R[before, i]
        size = 0.0
        for i in range(m):
            for j in range(m):
                size += row[i] * G[i, j] * row[j]
        if not size > max(DEPENDENT * G[first, first], TINY):
            continue
        adjusted += size
        for i in range(m):
            for j in range(m):
                # a residual variance is least in what is taken away: no other term
                slope[i, j] += row[i] * row[j]
        size = np.sqrt(size)
        for i in range(m):
            row[i] /= size
        for i in range(m):
            for j in range(m):
                predicted += row[i] * H[i, j] * row[j]
        for i in range(m):
            if not done[i]:
                inner = 0.0
                for j in range(m):
                    inner += row[j] * G[j, i]
                left[i] -= inner * inner
        count += 1
    return count, adjusted, predicted


@njit(**INNER)
def images(A, B, support, loadings, k, once, twice):
    """Ax and Bx of a component."""
    once[:] = 0.0
    twice[:] = 0.0
    for i in range(k):
        for f in range(len(once)):
            once[f] += loadings[i] * A[support[i], f]
            twice[f] += loadings[i] * B[support[i], f]


@njit(**INNER)
def _inner_products(components, work):
    supports, loadings, counts = components
    AV, BV, G, H, _, _ = work
    for i in range(len(G)):
        for j in range(len(G)):
            G[i, j], H[i, j] = 0.0, 0.0
            for place in range(counts[i]):
                f = supports[i, place]
                G[i, j] += loadings[i, place] * AV[j, f]
                H[i, j] += loadings[i, place] * BV[j, f]
    for i in range(len(G)):
        for j in range(i):
            G[i, j] = G[j, i] = 0.5 * (G[i, j] + G[j, i])
            H[i, j] = H[j, i] = 0.5 * (H[i, j] + H[j, i])


@njit(**INNER)
def _gram(R):
    """R'R."""
    found = np.zeros((R.shape[1], R.shape[1]))
    for row in range(len(R)):
        for i in range(R.shape[1]):
            for j in range(R.shape[1]):
                found[i, j] += R[row, i] * R[row, j]
    return found


@njit(**INNER)
def sandwich(R, H):
    """RHR'."""
    found = np.zeros((len(R), len(R)))
    for row in range(len(R)):
        for i in range(len(H)):
            inner = 0.0
            for j in range(len(H)):
                inner += H[i, j] * R[row, j]
            for other in range(len(R)):
                found[other, row] += R[other, i] * inner
    return found


@njit(**INNER)
def measure(A, B, goal, components, in_place, work):
    """The goal of a set, its adjusted and predicted variance; all else into `work`."""
    supports, loadings, counts = components
    AV, BV, G, H, R, slope = work
    for i in range(len(G)):
        images(A, B, supports[i], loadings[i], counts[i], AV[i], BV[i])
    _inner_products(components, work)
    count, adjusted, predicted = basis(G, H, -1, in_place, R, slope)
    R[count:] = 0.0
    return goal_value(goal, adjusted, predicted), adjusted, predicted


@njit(**INNER)
def together(A, B, goal, components, in_place, work, steps):
    """Improve the loadings of all components at once, by steps to the derivative.

    A turn takes its component for the last one, of which the adjusted variance is that
    of no other; here the order is the one that counts.
    """
    supports, loadings, counts = components
    AV, BV, _, H, R, slope = work
    m = len(loadings)
    value, adjusted, predicted = measure(A, B, goal, components, in_place, work)
    shift, step = 0.0, np.zeros_like(loadings)
    for _ in range(steps):
        g, h = goal_slopes(goal, adjusted, predicted)
        inverse = _gram(R)
        on_once = g * slope - h * sandwich(inverse, H)
        on_twice = h * inverse
        longest = TINY
        for j in range(m):
            length = 0.0
            for place in range(counts[j]):
                f, entry = supports[j, place], 0.0
                for i in range(m):
                    entry += on_once[i, j] * AV[i, f] + on_twice[i, j] * BV[i, f]
                step[j, place] = entry
                length += entry * entry
            longest = max(longest, np.sqrt(length))
        before, kept, reached = value, loadings.copy(), -np.inf
        while shift <= FARTHEST:
            for j in range(m):
                length = 0.0
                for place in range(counts[j]):
                    entry = step[j, place] / longest + shift * kept[j, place]
                    loadings[j, place] = entry
                    length += entry * entry
                length = np.sqrt(length)
                for place in range(counts[j]):
                    if length > TINY:
                        loadings[j, place] /= length
                    else:
                        loadings[j, place] = kept[j, place]
            reached, adjusted, predicted = measure(
                A, B, goal, components, in_place, work
            )
            if reached > value:
                break
            shift = max(4.0 * shift, 0.5)
        if not reached > value:
            loadings[:] = kept
            break
        value, shift = reached, 0.5 * shift
        if value <= before + SETTLED:
            break
    return measure(A, B, goal, components, in_place, work)
