"""Spectral-gap bound: what the two largest eigenvalues of A_FF say about k-sets in F.

Let λ1 ≥ λ2 be the largest eigenvalues of A_FF, u the unit eigenvector of λ1, S ⊂ F and
y a unit vector on S.  As A_FF ⪯ λ1 uu' + λ2 (I − uu'),

    y'Ay ≤ λ2 + (λ1 − λ2)(u'y)²,   (u'y)² ≤ sum of u_i² over S,

so opt(k, F) ≤ λ2 + (λ1 − λ2) σ_k, σ_k the sum of the k largest u_i².  The same with i
in S (or not in S) shows that a feature cannot be (or must be) in a set above τ.  It is
exact for a rank-one A, and strong where one direction dominates and F is not much
larger than k: large k, where the 2×2 bounds of `screening.py` wear out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .._validation import FloatArray

# Share of λ1 set aside for the rounding of LAPACK's eigenvalues and eigenvector.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Tightened:
    """What is left of F: a k-set above τ lies in `kept` and contains `forced`.

    Both are positions in F; `kept` includes `forced`.  `bound` ≥ opt(k, F).
    """

    kept: NDArray[np.int64]
    forced: NDArray[np.int64]
    bound: float


def spectral_bound(A: FloatArray, k: int) -> float:
    """opt(k) ≤ λ2 + (λ1 − λ2) σ_k."""
    return tighten(A, k, np.inf).bound


def tighten(A: FloatArray, k: int, tau: float) -> Tightened:
    """Drop and force features by the spectral-gap bound until nothing changes.

    Parameters
    ----------
    A : (n, n) array
    k : int
        1 ≤ k ≤ n.
    tau : float
        Only k-sets S with λ(S) > τ matter.

    Returns
    -------
    Tightened
        With `kept` empty if no k-set exceeds τ.
    """
    kept = np.arange(len(A), dtype=np.int64)
    nothing = np.empty(0, dtype=np.int64)
    bound = np.inf
    while True:
        n = len(kept)
        if n < k:
            return Tightened(nothing, nothing, min(bound, tau))
        block = A[kept[:, None], kept]
        first = max(n - 2, 0)
        values, vectors = eigh(block, subset_by_index=[first, n - 1])
        slack = _ROUNDING * n * max(abs(values[-1]), abs(block).max())
        largest = float(values[-1])
        second = float(values[0])
        weight = vectors[:, -1] ** 2
        rank = np.argsort(-weight, kind="stable")
        total = float(weight[rank[:k]].sum())
        spread = largest - second

        here = second + spread * min(total, 1.0) + slack
        # Sets outside `kept` are at most τ, the others at most `here`.
        bound = min(bound, here if n == len(A) else max(here, tau))
        if here <= tau:
            return Tightened(nothing, nothing, bound)
        inside, outside = rank[:k], rank[k:]
        short = total - weight[rank[k - 1]]
        possible = second + spread * (short + weight[outside]) + slack > tau
        if not possible.all():
            kept = np.sort(np.concatenate([kept[inside], kept[outside[possible]]]))
            continue
        spare = weight[outside].max() if len(outside) else 0.0
        needed = second + spread * (total - weight[inside] + spare) + slack <= tau
        if len(outside) == 0:
            needed = np.ones(k, dtype=bool)
        return Tightened(kept, np.sort(kept[inside[needed]]), bound)


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
