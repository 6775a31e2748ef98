"""x'Xx ≥ 0 for all x with at most k entries not 0: by a factor, multiplied out.

Let L be any matrix, X = LL' + E. Then x'Xx ≥ x'Ex, and for x with at most k entries

    x'Ex ≥ Σ E_ii x_i² − max |E_ij| ((Σ |x_i|)² − ‖x‖²)
         ≥ (min E_ii − (k − 1) max |E_ij|) ‖x‖²,    i ≠ j.

L is Cholesky's factor of X − sI in float64, s being a little more than what E
can be by rounding; nothing is assumed of it, as E is what is looked at. All x are
meant if k is the number of rows.

In float64, LL' is added up in pieces of 128 columns: each entry is within 1.01(128 +
g/128 + 2)u ‖l_i‖ ‖l_j‖ of the exact one. In integers it is exact: L is rounded to 58
bits, and split into three numbers of 20 bits, whose products, and sums of up to 2¹² of
them, are exact in float64.
"""

from __future__ import annotations

import numpy as np

from .exact_entries import shifted
from .integer_tree import is_positive_semidefinite
from .screening import TINY, UNIT, above

PIECE = 128  # columns that are multiplied at a time
DIGITS = 20  # bits of a third of an integer
FACTOR_BITS = 58
MOST_ROWS = 2**12
FEW_ROWS = 48  # for which elimination without fractions takes no long time


def cholesky(X: np.ndarray) -> np.ndarray | None:
    """Return about L, X = LL', or None if a pivot is not positive."""
    L = np.tril(X)
    size = len(L)
    for start in range(0, size, PIECE):
        stop = min(start + PIECE, size)
        for j in range(start, stop):
            column = L[j:, j] - L[j:, start:j] @ L[j, start:j]
            if not column[0] > 0:
                return None
            L[j:, j] = column / np.sqrt(column[0])
        below_it = L[stop:, start:stop]
        L[stop:, stop:] -= np.tril(below_it @ below_it.T)
    return L


def is_shown_in_floats(X: np.ndarray, error: float, k: int) -> bool:
    """Show x'X'x ≥ 0 for all X' with |X'_ij − X_ij| ≤ error, and x with k entries."""
    size = len(X)
    if not size:
        return True
    k = min(k, size)
    diagonal = np.diagonal(X)
    scale = float(diagonal.max())
    if not (diagonal.min() > 0 and np.isfinite(X).all() and np.isfinite(error)):
        return False
    rounding = 1.01 * (PIECE + size / PIECE + 8) * UNIT
    shift = 2 * k * (error + 2 * rounding * scale) + TINY
    L = cholesky(X - shift * np.eye(size))
    if L is None:
        return False
    product = np.zeros_like(X)
    for start in range(0, size, PIECE):
        part = L[start:, start : start + PIECE]
        product[start:, start:] += part @ part.T
    rest = X - product
    most = float(np.diagonal(product).max())
    lost = error + above(rounding * most + 2 * UNIT * float(np.abs(rest).max()))
    least = float(np.diagonal(rest).min()) - lost
    np.fill_diagonal(rest, 0.0)
    beside = above((k - 1) * (float(np.abs(rest).max()) + lost))
    # `least` is a difference of numbers above 0, rounded once more.
    return bool(least - 4 * UNIT * abs(least) >= beside)


def is_shown_in_integers(X: np.ndarray, k: int) -> bool:
    """Show x'Xx ≥ 0 for a matrix of Python's integers, and x with k entries."""
    size = len(X)
    if not size:
        return True
    k = min(k, size)
    if min(X.diagonal()) < 0 or size > MOST_ROWS:
        return False
    bits = max(np.abs(X).max().bit_length(), 1)
    rounded = shifted(X, 62 - bits).astype(np.int64).astype(float) / 2.0**62
    scale = float(np.diagonal(rounded).max())
    shift = 4 * k * (PIECE + size / PIECE + 8) * UNIT * scale
    L = cholesky(rounded - shift * np.eye(size))
    if L is not None:
        whole = np.rint(np.ldexp(L, FACTOR_BITS)).astype(np.int64)
        # X is about 2^(bits − 2 FACTOR_BITS) times the product.
        more = 2 * FACTOR_BITS - bits
        rest = shifted(X, max(more, 0)) - shifted(exact_product(whole), max(-more, 0))
        least = min(rest.diagonal())
        np.fill_diagonal(rest, 0)
        if least >= (k - 1) * np.abs(rest).max():
            return True
    return size <= FEW_ROWS and is_positive_semidefinite(X.tolist())


def exact_product(L: np.ndarray) -> np.ndarray:
    """Return LL' in Python's integers, for |L_ij| < 2^59 and at most 2¹² columns."""
    digit = 2**DIGITS - 1
    parts = (L >> 2 * DIGITS, (L >> DIGITS) & digit, L & digit)
    a, b, c = (part.astype(float) for part in parts)
    ab, ac, bc = a @ b.T, a @ c.T, b @ c.T
    places = (c @ c.T, bc + bc.T, ac + ac.T + b @ b.T, ab + ab.T, a @ a.T)
    total = np.zeros((len(L), len(L)), dtype=object)
    for place, found in enumerate(places):
        total += found.astype(np.int64).astype(object) << place * DIGITS
    return total
