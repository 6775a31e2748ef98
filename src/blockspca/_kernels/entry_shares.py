"""Rows of the entry dual's matrix between features of the core, from a density.

The density X = YY' moves shares V from where they were, v = clip(v₀ + σ x/(w_i w_j)),
as `bounds/entry_dual/proximal.py` derives; all that is said of a row is made in one
pass, while it is in the cache. Sums go by columns, of which the compiler makes vectors:
V and X are symmetric, and rows of a stripe are what columns of it are to the others.
"""

from __future__ import annotations

from numba import types

from .options import ENTRY, njit

_GIVEN = types.Array(types.float32, 2, "C", readonly=True)
_MADE = types.Array(types.float32, 2, "C")


@njit(
    types.void(_MADE, _GIVEN, _GIVEN, _GIVEN, types.int64, types.float32, _MADE, _MADE),
    **ENTRY,
)
def moved_rows(X, A, V, weights, first, sigma, slopes, sums):
    """Turn rows of X into those of A − U, and say how far and at what price they moved.

    Parameters
    ----------
    X : (s, m)
        Rows `first`, …, `first` + s − 1; overwritten by A_ij − v w_i w_j.
    A, V : (s, m)
        The same rows of A, with a zero diagonal, and of the shares so far.
    weights : (2, m)
        w and 1/w.
    slopes : (s, m)
        Filled with d(v x)/dx.
    sums : (2, m)
        Added to: ((v − v₀) w_i w_j)² and v x w_i, by columns.
    """
    one, zero = types.float32(1.0), types.float32(0.0)
    for a in range(X.shape[0]):
        i = first + a
        own = weights[0, i]
        factor = sigma * weights[1, i]
        X[a, i] = zero
        for j in range(X.shape[1]):
            product = own * weights[0, j]
            x, before = X[a, j], V[a, j]
            move = factor * x * weights[1, j]
            share = min(max(before + move, -one), one)
            slopes[a, j] = share + (move if abs(share) < one else zero)
            X[a, j] = A[a, j] - share * product
            moved = (share - before) * product
            sums[0, j] += moved * moved
            sums[1, j] += share * x * own
        X[a, i] = slopes[a, i] = zero


@njit(types.void(_MADE, _GIVEN, _GIVEN, types.int64, types.float32), **ENTRY)
def moved_shares(X, V, weights, first, sigma):
    """Turn rows of X into those of the shares that it moves to."""
    one = types.float32(1.0)
    for a in range(X.shape[0]):
        i = first + a
        factor = sigma * weights[1, i]
        for j in range(X.shape[1]):
            share = V[a, j] + factor * X[a, j] * weights[1, j]
            X[a, j] = min(max(share, -one), one)
        X[a, i] = types.float32(0.0)
