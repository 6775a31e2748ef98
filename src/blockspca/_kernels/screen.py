"""Nested screening over all features from their row tops."""

from numba import types

from .arrays import INDICES, INTS, MATRIX, VECTOR
from .constants import EPS
from .options import ENTRY, njit

_REAL = types.float64


@njit(
    (
        VECTOR, MATRIX, INDICES, MATRIX, types.int64, _REAL, _REAL, _REAL, INTS,
        INTS,
    ),
    **ENTRY,
)  # fmt: skip
def screen(
    diagonal, values, indices, prefix, k, tau, upper, inflation, alive, survivors
):
    """Features that can be in a k-set above τ, given upper ≥ opt(k − 1), k ≥ 2.

    Feature i stays if r_{k−1}(i)² > (τ − upper)(τ − A_ii).  r is taken over the
    features still there, so dropping repeats until nothing changes.  An entry that
    is not in the row's list is at most the list's last value.

    Rounding: a sum of q squares errs by (q + 1) u relative to itself, the root and the
    square by 4u more, and the right side by 3u.  Raising the left side by (q + 8) eps
    drops no feature that the exact inequality keeps, except where squares underflow.

    Parameters
    ----------
    diagonal : (d,); values, indices : (d, K) row tops; prefix : (d, K) running sums
    of squares; inflation ≥ 0 : bound on the rounding error of one entry.
    alive : (d,) int64 scratch; survivors : (d,) output.

    Returns
    -------
    Number of survivors and number of rounds.
    """
    d = diagonal.shape[0]
    width = values.shape[1]
    margin = max(tau - upper, 0.0)
    q = k - 1
    extra = inflation * q**0.5
    upwards = 1.0 + (q + 8) * EPS
    count = 0
    for i in range(d):
        total = prefix[i, min(q, width) - 1]
        if q > width:
            total += (q - width) * values[i, width - 1] ** 2
        if extra > 0.0:
            total = (total**0.5 + extra) ** 2
        if total * upwards > margin * (tau - diagonal[i]):
            alive[i] = 1
            survivors[count] = i
            count += 1
        else:
            alive[i] = 0
    rounds = 1
    changed = count < d
    while changed and count >= k:
        changed = False
        rounds += 1
        kept = 0
        members = count
        for a in range(count):
            i = survivors[a]
            need = margin * (tau - diagonal[i])
            total = 0.0
            taken = 0
            j = 0
            while j < width and taken < q and indices[i, j] >= 0:
                if alive[indices[i, j]] == 1:
                    total += values[i, j] * values[i, j]
                    taken += 1
                j += 1
            if taken < q and j == width:
                beyond = min(q, members - 1) - taken
                if beyond > 0:
                    total += beyond * values[i, width - 1] ** 2
            if extra > 0.0:
                total = (total**0.5 + extra) ** 2
            if total * upwards > need:
                survivors[kept] = i
                kept += 1
            else:
                alive[i] = 0
                members -= 1
                changed = True
        count = kept
    return count, rounds
