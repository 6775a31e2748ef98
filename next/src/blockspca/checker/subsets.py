"""Counts strong sets: docs/proof-format.md, section 5. In float64, rounded up."""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 2**16  # numbers of an array that stays in cache


def count_strong(G: Any, k: int, limit: int) -> int | None:
    """Return how many sets of fewer than k features are strong, G = τI − A in float64.

    None if there are more than `limit`, or one of k features.
    """
    n, d = len(G), G.diagonal()
    if n > limit or not (d > 0).all():
        return None
    N = G / np.sqrt(d) / np.sqrt(d)[:, None]
    np.fill_diagonal(N, 0.0)
    sets, total = np.arange(n)[:, None], n
    for j in range(2, k + 1):
        M, larger, rows = N * ((k - 1) / (j - 1)), [], 0
        step = max(1, BLOCK // n)
        for first in range(0, len(sets), step):
            larger.append(_stronger(M, sets[first : first + step]))
            rows += len(larger[-1])
            if rows > j * (limit - total):  # a set comes from j others at most
                return None
        sets = np.unique(np.concatenate(larger), axis=0)
        total += len(sets)
        if not len(sets):
            return total
        if total > limit:
            return None
    return None


def _stronger(M: Any, sets: Any) -> Any:
    """Return the sets with one more feature on which I + M has no Cholesky factor."""
    count, size = sets.shape
    L = np.zeros((count, size, len(M)))
    left = np.ones((count, len(M)))  # the last pivot, for each feature
    at = np.arange(count)
    with np.errstate(all="ignore"):
        for a in range(size):
            i = sets[:, a]
            L[:, a] = M[i]
            for b in range(a):
                L[:, a] -= L[at, b, i][:, None] * L[:, b]
            L[:, a] /= np.sqrt(left[at, i])[:, None]
            left -= L[:, a] ** 2
    strong = ~(left > 0)  # NaN, too: a pivot was not positive
    strong[at[:, None], sets] = False
    which, feature = np.nonzero(strong)
    return np.sort(np.column_stack([sets[which], feature]), axis=1)
