"""Positive semidefinite matrices, in integers and in float64: no LAPACK is called."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from .fields import ProofError
from .screening import UNIT, above

SMALL = 32  # rows that are inverted, or eliminated in integers, one by one
CUT_BITS = 44  # of the entries of an integer matrix that a factor is found of


Rows = list[list[int]]


def is_nonnegative(X: Rows, k: int) -> bool:
    """Say whether x'Xx ≥ 0 is shown for all x with at most k entries."""
    if len(X) <= SMALL:
        return is_positive_semidefinite(X)
    return is_nonnegative_in_integers(X, k)


def is_positive_semidefinite(M: Rows, q: int = 1) -> bool:
    """Decide by elimination without fractions: section 9."""
    while M:
        if any(row[i] < 0 for i, row in enumerate(M)):
            return False
        p = next((i for i, row in enumerate(M) if row[i] > 0), None)
        if p is None:
            return not any(map(any, M))
        others = [i for i in range(len(M)) if i != p]
        M, q = eliminate(M, q, p, others), M[p][p]
    return True


def eliminate(M: Rows, q: int, p: int, others: Sequence[int]) -> Rows:
    """Return (M_pp M_ij − M_ip M_jp)/q for i, j in `others`: a symmetric matrix."""
    pivot, row = M[p][p], M[p]
    found: Rows = []
    for place, i in enumerate(others):
        left = [above_it[place] for above_it in found]
        this, factor = M[i], row[i]
        right = [(pivot * this[j] - factor * row[j]) // q for j in others[place:]]
        found.append(left + right)
    return found


def eliminate_all(B: np.ndarray, tau: float) -> float:
    """Eliminate all rows of τI − B; bound the error, or ∞ if a pivot is not positive.

    Then λmax(B + E) < τ for a matrix E with at most the norm that is returned. With
    d = fl(τ − B̂_pp), v = fl(w/fl(√d)), w the row of p, a step adds ww'/d with errors of
    at most 6u|v||v|' + u|B̂|. Norms are added up: ‖|v||v|'‖ = ‖v‖², ‖|B̂|‖ is at most its
    Frobenius norm; and the errors ud of the pivots are on the diagonal.
    """
    total = 2 * UNIT * (abs(tau) + float(np.abs(B).max(initial=0.0)))
    while len(B):
        pivot = tau - B[0, 0]
        if not pivot > 0:
            return np.inf
        v = B[0, 1:] / sqrt(pivot)
        B = B[1:, 1:] + v[:, None] * v
        total += 1.01 * UNIT * (6 * float(v @ v) + sqrt(np.vdot(B, B)))
    return total


def is_nonnegative_by_factor(N: np.ndarray, k: int, margin: float) -> bool:
    """Say whether x'(N + margin I)x ≥ 0 is shown for all x with at most k entries.

    For any matrix L and E = N − LL', x'Nx ≥ x'Ex ≥ −k max |E_ij| x'x: x has k entries,
    so Σ|x_i| ≤ √k ‖x‖. LL' in float64 is within 1.01 n u ‖L_i‖ ‖L_j‖ of the product,
    and the difference is rounded once.
    """
    L = factor(N)
    if L is None:
        return False
    n = len(N)
    product = L @ L.T
    largest = float(above(np.sum(L * L, axis=1).max(), n))
    error = float(np.abs(N - product).max()) * (1 + 4 * UNIT)
    error += above(1.01 * n * UNIT * largest)
    return bool(1.01 * k * error <= margin)


def is_nonnegative_in_integers(X: list[list[int]], k: int) -> bool:
    """Say whether x'Xx ≥ 0 is shown for all x with at most k entries, by a factor.

    With X' = ⌊X/2^s⌋, x'Xx ≥ 2^s (x'X'x − k x'x), as what is cut off is in [0, 1). And
    x'(X' − kI)x ≥ 0 if for some number a and matrix L of integers all entries of
    4^h (X' − (k + a)I) − LL' are at most 4^h a/k in size. L comes from float64.
    """
    largest = max(max(map(abs, row)) for row in X)
    cut = largest.bit_length() - CUT_BITS
    n, a = len(X), 16 * k  # entries of L are rounded to about as many bits as X'
    X = [[x >> cut if cut >= 0 else x << -cut for x in row] for row in X]
    for i, row in enumerate(X):
        row[i] -= k + a
    L = factor(np.array(X, dtype=float))
    if L is None:
        return False
    bits = (53 - n.bit_length()) // 2
    h = 2 * bits - int(np.frexp(np.abs(L).max(initial=1.0))[1])
    product = exact_gram(np.rint(np.ldexp(L, h)).astype(np.int64), bits)
    most = (a << 2 * h) // k
    return all(
        abs((x << 2 * h) - y) <= most
        for row, of_factor in zip(X, product, strict=True)
        for x, y in zip(row, of_factor, strict=True)
    )


def factor(G: np.ndarray) -> np.ndarray | None:
    """Return L with LL' about G; None if a pivot is not positive."""
    found = _factor_and_inverse(G)
    return None if found is None else found[0]


def _factor_and_inverse(G: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a lower triangular L with LL' about G, and about L⁻¹, by halves."""
    n = len(G)
    if n <= SMALL:
        L = np.zeros((n, n))
        for i in range(n):
            if not G[0, 0] > 0:
                return None
            L[i:, i] = G[:, 0] / np.sqrt(G[0, 0])
            G = G[1:, 1:] - np.outer(L[i + 1 :, i], L[i + 1 :, i])
        inverse = np.eye(n)
        for i in range(n):
            inverse[i] = (inverse[i] - L[i, :i] @ inverse[:i]) / L[i, i]
        return L, inverse
    h = n // 2
    top = _factor_and_inverse(G[:h, :h])
    if top is None:
        return None
    side = G[h:, :h] @ top[1].T
    side += (G[h:, :h] - side @ top[0].T) @ top[1].T  # L⁻¹ has lost some digits
    rest = _factor_and_inverse(G[h:, h:] - side @ side.T)
    if rest is None:
        return None
    nothing = np.zeros((h, n - h))
    corner = -rest[1] @ (side @ top[1])
    return (
        np.block([[top[0], nothing], [side, rest[0]]]),
        np.block([[top[1], nothing], [corner, rest[1]]]),
    )


def exact_gram(V: np.ndarray, bits: int) -> list[list[int]]:
    """Return VV' for integers below 4^bits: products of halves are exact in float64."""
    high, low = (part.astype(float) for part in (V >> bits, V & (2**bits - 1)))
    cross = high @ low.T
    parts = [high @ high.T, cross, cross.T, low @ low.T]
    rows = zip(*(part.astype(np.int64).tolist() for part in parts), strict=True)
    return [
        [
            (hh << 2 * bits) + ((hl + lh) << bits) + ll
            for hh, hl, lh, ll in zip(*row, strict=True)
        ]
        for row in rows
    ]


def largest_eigenvalue_is_below(B: np.ndarray, tau: float, margin: float) -> bool:
    """Say whether λmax(B) < τ is shown, by eliminating τ − margin."""
    return eliminate_all(B, tau - margin) <= margin / 2


def inverse_from_above(t: float, M: np.ndarray, error: float) -> np.ndarray:
    """Return a symmetric R with 0 ≺ R⁻¹ ⪯ tI − M', for all M' within `error` of M.

    Let s be a part of t, N = (t − s)I − M, and R about its inverse, from anywhere. If N
    is positive definite and δ = ‖I − NR‖ < 1, R is positive definite: NR = I − Δ has
    the eigenvalues of N^½RN^½, and they are within δ of 1. As R⁻¹ = (I − Δ)⁻¹N,
    ‖N − R⁻¹‖ = ‖ΔR⁻¹‖ ≤ δ‖N‖/(1 − δ). If this and `error` together are at most s, then
    R⁻¹ ⪯ N + (s − error)I ⪯ tI − M'. NR in float64 is within 1.01nu |N||R|.
    """
    n, s = len(M), 2.0**-22 * abs(t)  # a quarter of the room that writers leave
    if not largest_eigenvalue_is_below(M, t - 2 * s, s / 4):
        raise ProofError("a matrix of a round is not shown to be positive definite")
    N = (t - s) * np.eye(n) - M
    R = spd_inverse(N)
    R = (R + R.T) / 2
    product = 1.01 * n * UNIT * np.sqrt(np.sum((np.abs(N) @ np.abs(R)) ** 2))
    delta = float(np.sqrt(np.sum((np.eye(n) - N @ R) ** 2)) + above(2 * product, n * n))
    norm = float(above(np.abs(N).sum(axis=1).max(), n))
    # N itself has been rounded: by 4u of each entry at the most, twice.
    lost = error + 8 * UNIT * (abs(t) + norm) + 1.01 * delta * norm / (1 - delta)
    if not (delta < 0.5 and 1.01 * lost <= s):
        raise ProofError("a matrix of a round is too nearly singular for float64")
    return R


def spd_inverse(N: np.ndarray) -> np.ndarray:
    """Return about N⁻¹, for a positive definite N, by halves."""
    n = len(N)
    if n <= SMALL:
        R = np.hstack([N, np.eye(n)])
        for i in range(n):
            row = R[i] / R[i, i]
            R -= np.outer(R[:, i], row)
            R[i] = row
        return R[:, n:]
    h = n // 2
    P = spd_inverse(N[:h, :h])
    PB = P @ N[:h, h:]
    S = spd_inverse(N[h:, h:] - N[h:, :h] @ PB)
    corner = -PB @ S
    return np.block([[P - corner @ PB.T, corner], [corner.T, S]])
