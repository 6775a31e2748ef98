"""Screening of all features by the largest entries of their rows."""

from numba import types

from .options import inputs, njit, outputs

REAL, WHOLE = types.float64, types.int64


@njit(
    WHOLE(
        inputs(REAL, 1), inputs(REAL, 2), inputs(WHOLE, 2), inputs(REAL, 2), WHOLE,
        REAL, REAL, REAL, outputs(WHOLE, 1), outputs(WHOLE, 1),
    )
)  # fmt: skip
def screen(diagonal, values, indices, sums, k, tau, upper, error, alive, survivors):
    """Write the features that can be in a k-set above τ ≥ upper; return their number.

    Feature i stays if r² > (τ − upper)(τ − A_ii), r² being the sum of the k − 1 largest
    squares of its row, see `prove/screening.py`. They are taken over the features that
    stay, so dropping repeats until nothing changes. An entry that is not in the list of
    its row counts as the last of the list.

    Rounding: a sum of q squares errs by (q + 1) u, the root and the square by 4u more,
    and the right side by 3u. The left side is raised by (q + 8) eps.

    Parameters
    ----------
    diagonal : (d,), k ≥ 2; values, indices : (d, width) of `Lists`.
    sums : (d, width) running sums of squared values.
    error : bounds the error of a value.
    alive, survivors : (d,) scratch, and the result.
    """
    d, width = values.shape
    q = k - 1
    margin = max(tau - upper, 0.0)
    extra = error * q**0.5
    upwards = 1.0 + (q + 8) * 2.0**-52
    for i in range(d):
        alive[i] = 1
        survivors[i] = i
    count, is_first, changed = d, True, True
    while changed and count >= k:
        changed = False
        members, kept = count, 0
        for a in range(count):
            i = survivors[a]
            total, taken, j = 0.0, 0, 0
            if is_first:
                taken = j = min(q, width)
                total = sums[i, taken - 1]
            while j < width and taken < q and indices[i, j] >= 0:
                if alive[indices[i, j]] == 1:
                    total += values[i, j] * values[i, j]
                    taken += 1
                j += 1
            if j == width and taken < q:
                total += max(min(q, members - 1) - taken, 0) * values[i, j - 1] ** 2
            if extra > 0.0:
                total = (total**0.5 + extra) ** 2
            if total * upwards > margin * (tau - diagonal[i]):
                survivors[kept] = i
                kept += 1
            else:
                alive[i] = 0
                members -= 1
                changed = True
        count, is_first = kept, False
    return count
