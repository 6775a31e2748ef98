"""The entries of components in a lasso, feature by feature, for scores that are given.

In NumPy every step goes over all features, of which most have entries 0 that stay so;
here one of those takes a pass.
"""

from __future__ import annotations

from numba import types

from .arrays import MATRIX, TABLE
from .options import ENTRY, njit

PASSES = 10  # over the m entries of a feature; a few are enough from the last ones
SETTLED = 1e-4  # a pass that changes no entry by more is the last
UNUSED = 1e-12  # sum of squares of a component without features


@njit(types.void(MATRIX, MATRIX, types.float64, TABLE), **ENTRY)
def code(images, gram, penalty, V):
    """Lower ½ v'Gv − v'y + α Σ |v_j| of each feature, a column of V, in place.

    y are the columns of `images`, G is `gram`; by turns of the entries of v.
    """
    m, d = V.shape
    for f in range(d):
        for _ in range(PASSES):
            moved = 0.0
            for j in range(m):
                if gram[j, j] <= UNUSED:
                    V[j, f] = 0.0
                    continue
                left = images[j, f] + gram[j, j] * V[j, f]
                for i in range(m):
                    left -= gram[j, i] * V[i, f]
                new = 0.0
                if left > penalty:
                    new = (left - penalty) / gram[j, j]
                elif left < -penalty:
                    new = (left + penalty) / gram[j, j]
                moved = max(moved, abs(new - V[j, f]))
                V[j, f] = new
            if moved < SETTLED:
                break
