"""Spectral bound: what the leading eigenvectors of A_FF say about the k-sets in F.

Let λ1 ≥ λ2 ≥ … be the eigenvalues of A_FF, u_j its eigenvectors, and keep p of them.
With t = λ_{p+1}, A_FF ⪯ GG' + tI where G has the columns sqrt(λ_j − t) u_j, so for
S ⊂ F

    λ(S) ≤ t + max over unit z in R^p of  sum over i in S of (g_i'z)²,

g_i the i-th row of G, and opt(k, F) ≤ t + max_z (sum of the k largest (g_i'z)²).  For
p = 1 there is only one z.  For p = 2, 3 the unit sphere is covered by cells whose
corners lie within an angle ρ of the centre: a unit z in a cell is s ≤ 1 / cos ρ times a
convex combination of the corners, and the sum is a convex function of z of degree two,
so its maximum is at most that over the corners divided by cos² ρ.

The same with i in S (or not in S) shows that a feature cannot be (or must be) in a set
above τ.  The bound is exact for A of rank p, and strong where few directions dominate
and F is not much larger than k: large k, where the 2×2 bounds of `screening.py` fade.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..numerics.linalg import leading_eigenpairs

# Share of ‖A‖ set aside for the rounding of LAPACK's eigenvalues and eigenvectors.
_ROUNDING = 1e-13

# Cells of the circle, and along an edge of the cube: 1 / cos² ρ is 1.00004 and 1.0026,
# with 256 and 2523 directions to look at.
_CELLS = {2: 256, 3: 28}


@dataclass(frozen=True)
class Fixing:
    """What is left of F: a k-set above τ lies in `candidates`, with all of `fixed_in`.

    Both are positions in F; `candidates` includes `fixed_in` and is empty if no k-set
    in F exceeds τ.  `bound` ≥ max(opt(k, candidates)) at the last round.
    """

    candidates: NDArray[np.int64]
    fixed_in: NDArray[np.int64]
    bound: float

    @classmethod
    def nothing_known(cls, n: int) -> Fixing:
        """Return that all of n features are candidates and none is fixed."""
        return cls(np.arange(n, dtype=np.int64), np.empty(0, np.int64), np.inf)


@lru_cache(maxsize=4)
def directions(p: int) -> tuple[FloatArray, float]:
    """Corners (N, p) of a covering of the unit sphere up to sign, and 1 / cos² ρ."""
    if p == 1:
        return np.ones((1, 1)), 1.0
    cells = _CELLS[p]
    if p == 2:
        angles = np.arange(cells) * (np.pi / cells)
        half = np.pi / (2 * cells)
        return np.column_stack([np.cos(angles), np.sin(angles)]), 1 / np.cos(half) ** 2
    # Three faces of a cube, each cut into cells × cells squares of side h.  Centre
    # and corner are h/√2 apart on a plane at distance 1: ρ ≤ 2 atan(h / √8).
    grid = np.linspace(-1.0, 1.0, cells + 1)
    a, b = (m.ravel() for m in np.meshgrid(grid, grid))
    one = np.ones_like(a)
    corners = np.concatenate(
        [np.stack(face, 1) for face in ((one, a, b), (a, one, b), (a, b, one))]
    )
    corners /= np.linalg.norm(corners, axis=1)[:, None]
    radius = 2 * np.arctan(2.0 / cells / np.sqrt(8.0))
    return corners, 1 / np.cos(radius) ** 2


def spectral_fixing(
    A: FloatArray, k: int, tau: float, p: int, stop: Callable[[], bool] = lambda: False
) -> Fixing:
    """Fix features in or out by the spectral bound until nothing changes.

    Parameters
    ----------
    tau : float
        Only k-sets S with λ(S) > τ matter.
    p : {1, 2, 3}
        Eigenvectors kept.
    stop : callable
        Asked before each round; True ends them, with what is fixed out by then.
    """

    candidates = np.arange(len(A), dtype=np.int64)
    nothing = np.empty(0, dtype=np.int64)
    bound = np.inf
    while True:
        n = len(candidates)
        if n < k:
            return Fixing(nothing, nothing, bound)
        if n == k:
            return Fixing(candidates, candidates, bound)
        if stop():
            return Fixing(candidates, nothing, bound)
        block = A[candidates[:, None], candidates]
        q = min(p, n - 1)
        values, vectors = leading_eigenpairs(block, q + 1)
        tail = float(values[0])
        slack = _ROUNDING * n * float(np.abs(block).sum(axis=1).max())
        G = vectors[:, 1:] * np.sqrt(np.maximum(values[1:] - tail, 0.0))
        Z, inflation = directions(q)
        squares = (Z @ G.T) ** 2
        largest = -np.partition(-squares, (k - 1, k), axis=1)
        total = largest[:, :k].sum(axis=1)
        last = largest[:, k - 1][:, None]
        spare = largest[:, k][:, None]
        # λ(S) exceeds τ only if its sum exceeds this.
        floor = (tau - tail - slack) / inflation
        bound = tail + inflation * float(total.max()) + slack
        if bound <= tau:
            return Fixing(nothing, nothing, bound)
        member = squares >= last
        with_it = np.where(member, total[:, None], total[:, None] - last + squares)
        possible = with_it.max(axis=0) > floor
        if not possible.all():
            candidates = candidates[possible]
            continue
        without = np.where(member, total[:, None] - squares + spare, total[:, None])
        needed = without.max(axis=0) <= floor
        return Fixing(candidates, candidates[needed], bound)


def eliminate(
    A: FloatArray, chosen: NDArray[np.int64], rest: NDArray[np.int64], tau: float
) -> FloatArray | None:
    """B = A_TT + A_TP (τI − A_PP)^{-1} A_PT; None if λ(P) is not below τ."""
    shifted = tau * np.eye(len(chosen)) - A[chosen[:, None], chosen]
    try:
        factor = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return None
    W = np.linalg.solve(factor, A[chosen[:, None], rest])
    B: FloatArray = A[rest[:, None], rest] + W.T @ W
    return B
