"""Positive definite matrices in float64, by elimination: no LAPACK is called."""

from __future__ import annotations

import numpy as np

from .fields import ProofError
from .screening import TINY, TINY_NORM, UNIT, above

SMALL = 32  # rows that are inverted one by one
SQUARINGS = 26  # of a matrix, to find its largest eigenvalue


def eliminate_all(B: np.ndarray, tau: float) -> np.ndarray:
    """Eliminate τI − B for each B of G × s × s; bound the errors.

    The bound is ∞ if a pivot is not positive. Else λmax(B + E) < τ for a matrix E with
    at most the norm that is returned. With d = fl(τ − B̂_pp), v = fl(w/fl(√d)), w the
    row of p, a step adds ww'/d with errors of at most 6u|v||v|' + u|B̂|. Norms are added
    up: ‖|v||v|'‖ = ‖v‖², ‖|B̂|‖ is at most its Frobenius norm; and the errors ud of the
    pivots are on the diagonal. `TINY` is for what underflows.
    """
    largest = np.abs(B).max(axis=(1, 2), initial=0.0)
    total = 2 * UNIT * (abs(tau) + largest) + TINY
    while B.shape[1] and np.isfinite(total).any():
        pivot = tau - B[:, 0, 0]
        good = pivot > 0
        v = B[:, 0, 1:] / np.sqrt(np.where(good, pivot, 1.0))[:, None]
        B = B[:, 1:, 1:] + v[:, :, None] * v[:, None, :]
        norms = np.sqrt(np.sum(B**2, axis=(1, 2))) + TINY_NORM
        total += 1.01 * UNIT * (6 * np.sum(v**2, axis=1) + norms)
        total[~good] = np.inf
    return total


def are_below(B: np.ndarray, tau: float, margin: float) -> np.ndarray:
    """Say for which B λmax(B) < τ is shown, by eliminating τ − margin."""
    return eliminate_all(B, tau - margin) <= margin / 2


def largest_eigenvalue_is_below(B: np.ndarray, tau: float, margin: float) -> bool:
    """Say whether λmax(B) < τ is shown."""
    return bool(are_below(B[None], tau, margin)[0])


def larger_root(a: np.ndarray, b: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return what is at least λmax [[a, r], [r, b]].

    (a + b)/2 + √(((a − b)/2)² + r²) in float64 is within 8u(|a| + |b| + r) of it.
    """
    found = (a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + squares)
    lost = 8 * UNIT * (np.abs(a) + np.abs(b) + np.sqrt(squares)) + TINY
    return found + lost


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
    R = inverse(N)
    R = (R + R.T) / 2
    product = 1.01 * n * UNIT * np.sqrt(np.sum((np.abs(N) @ np.abs(R)) ** 2))
    delta = float(np.sqrt(np.sum((np.eye(n) - N @ R) ** 2)) + above(2 * product, n * n))
    norm = float(above(np.abs(N).sum(axis=1).max(), n))
    # N itself has been rounded: by 4u of each entry at the most, twice.
    lost = error + 8 * UNIT * (abs(t) + norm) + 1.01 * delta * norm / (1 - delta)
    if not (delta < 0.5 and 1.01 * lost <= s):
        raise ProofError("a matrix of a round is too nearly singular for float64")
    return R


def inverse(N: np.ndarray) -> np.ndarray:
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
    P = inverse(N[:h, :h])
    PB = P @ N[:h, h:]
    S = inverse(N[h:, h:] - N[h:, :h] @ PB)
    corner = -PB @ S
    return np.block([[P - corner @ PB.T, corner], [corner.T, S]])


def largest_eigenvalues(B: np.ndarray) -> np.ndarray:
    """Return what is at least λmax of each of the symmetric matrices B, G × s × s.

    ρ(X)² = ρ(X²) for the largest |eigenvalue|, and ρ(X) ≤ ‖X‖, Frobenius' norm. So with
    X_0 = (B + σI)/f_0 and X_(j+1) = X_j²/f_(j+1), all of norm 1, ρ(B + σI) = f_0 √f_1
    ⁴√f_2 …, up to a factor of s^(2^−27) after 26 squarings. σ ≥ ‖B‖ makes that λmax; it
    is at least 2⁻⁵⁰⁰, so that no square that matters underflows. A product errs by
    1.01su in norm, where f ≥ ρ(X)² ≥ 1/s and ρ(X_(j+1)) ≥ 1/√s: by less than 2s³u of
    itself, which the roots halve again and again; (8s³ + 64)u is for all.
    """
    size = B.shape[1]
    if size == 1:
        return B[:, 0, 0]
    shift = np.sqrt(np.einsum("gij,gij->g", B, B)) + TINY_NORM
    X = B + shift[:, None, None] * np.eye(size)
    factors = []
    for _ in range(SQUARINGS + 1):
        norms = np.sqrt(np.einsum("gij,gij->g", X, X))
        factors.append(norms)
        X = X / np.where(norms > 0, norms, 1.0)[:, None, None]
        X = X @ X
    found = np.ones(len(B))
    for norms in factors[:0:-1]:
        found = np.sqrt(norms * found)
    found = factors[0] * found * (1 + (8 * size**3 + 64) * UNIT)
    return found - shift + 8 * UNIT * (found + shift) + TINY
