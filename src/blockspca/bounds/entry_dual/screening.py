"""Which of many features can be in a set above τ, by a bound on opt(k − 1).

The inequality is that of `certify/screening.py`: if opt(k − 1) ≤ u and r_i² is the sum
of the k − 1 largest squares of row i, beside A_ii, no set with i and at most k features
exceeds the larger eigenvalue of [[A_ii, r_i], [r_i, u]].  There u comes from the chain
of smaller k.  Here it comes from a point of the entry dual, whose weights bound k − 1
as well, with k − 2 for k − 1 in the prices: about one feature less, so that it works
as soon as the gap is less than a feature is worth.

The rows are those of the strong pairs.  Entries that are not listed are at most ℓ, so
that r_i² ≤ Σ (listed, at most k − 1) + (k − 1 − listed) ℓ².  Features that are out need
not be counted in the rows of the others: repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import EPS, TINY, larger_root_above, norms_above, squared
from .pairs import Pairs

_ROUNDS = 8  # at most: what a round rules out may rule out others
_FEW = 0.03  # of the features, that a round has to rule out for another


def survivors(
    pairs: Pairs,
    diagonal: FloatArray,
    k: int,
    tau: float,
    upper: float,
    level: float,
    error: float,
) -> NDArray[np.intp]:
    """Return the features that may be in a set of k ≥ 2 above τ, ascending.

    Parameters
    ----------
    pairs : Pairs
        All with |A_ij| > `level`, up to the error, in the units of all else.
    upper : float
        At least opt(k − 1), errors of entries included.
    error : float
        How far entries may be from A_ij.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.bounds.entry_dual.pairs import Pairs
    >>> pairs = Pairs(np.array([0]), np.array([1]), np.array([0.8]))
    >>> survivors(pairs, np.ones(4), 2, 1.5, 1.0, 0.1, 0.0)
    array([0, 1])
    """
    from scipy.sparse import coo_array

    d = len(diagonal)
    alive = np.arange(d)
    if not tau > upper:
        return alive
    own = diagonal + error
    own += 2 * EPS * np.abs(own)
    # Products of levels were rounded when the pairs were listed.
    unlisted = max(level * level, TINY) * (1 + 16 * EPS)

    def stays(sums: FloatArray, alive: NDArray[np.intp]) -> NDArray[np.bool_]:
        coupling = norms_above(sums, 2 * (k - 1), error)
        return ~(larger_root_above(own[alive], coupling, upper) <= tau)

    # At first without selecting the largest of each row, which most do not need.
    squares = squared(pairs.values)
    counts = np.bincount(pairs.rows, minlength=d)
    counts += np.bincount(pairs.columns, minlength=d)
    listed = np.bincount(pairs.rows, squares, d)
    listed = listed + np.bincount(pairs.columns, squares, d)
    sums = listed * (1 + counts * EPS) + np.maximum(k - 1 - counts, 0) * unlisted
    left = stays(np.asarray(sums, dtype=np.float64), alive)
    kept = np.flatnonzero(left[pairs.rows] & left[pairs.columns])
    i, j, squares = pairs.rows[kept], pairs.columns[kept], squares[kept]
    both, others = np.concatenate([i, j]), np.concatenate([j, i])
    entries = (np.concatenate([squares, squares]), (both, others))
    matrix: Any = coo_array(entries, shape=(d, d)).tocsr()
    for _ in range(_ROUNDS):
        kept, alive = np.flatnonzero(left), alive[left]
        matrix = matrix[kept][:, kept]
        left = stays(_largest_sums(matrix, k - 1, unlisted), alive)
        if np.count_nonzero(~left) <= _FEW * len(alive):
            break
    return alive[left]


def _largest_sums(matrix: Any, q: int, unlisted: float) -> FloatArray:
    """Sums of the q largest of each row, where those not stored are at most so much."""
    starts, values = matrix.indptr, matrix.data
    counts = np.diff(starts)
    n = len(counts)
    # No more than n − 1 others are there at all.
    room = np.maximum(np.minimum(q, n - 1) - counts, 0)
    sums = np.bincount(np.repeat(np.arange(n), counts), values, n)
    for i in np.flatnonzero(counts > q):
        row = values[starts[i] : starts[i + 1]]
        sums[i] = np.partition(row, len(row) - q)[len(row) - q :].sum()
    return np.asarray(sums + room * unlisted, dtype=np.float64)
