"""The depth-first proof once more, plainly in NumPy, to check the compiled one.

Slow and short on purpose. The mathematics is that of `proof_tree.py`: after choosing P,
the rest of the problem is sparse PCA on B = A + A_·P (τI − A_PP)⁻¹ A_P· at the same τ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Deadline
from .spectral import Tightened, eliminate, tighten

SPECTRAL_FROM = 10  # from this k on the search begins with the leading eigenvectors
SPECTRAL_SIZE = 600


class Refuted(Exception):
    """A set with an eigenvalue above τ exists, so the claim is false."""


class NodeCapReached(Exception):
    """The proof is larger than the number of nodes that was allowed."""


def prove_none_above(
    A: FloatArray,
    k: int,
    tau: float,
    upper: FloatArray,
    max_nodes: int,
    deadline: Deadline | None = None,
) -> int:
    """Prove that no k-set S has λmax(A_SS) > τ; return the number of nodes it took.

    Parameters
    ----------
    A : array of shape (n, n)
        The survivors of screening.
    upper : array of shape (k,)
        upper[q] ≥ opt(q) for q = 1, …, k − 1; upper[0] is not used.

    Raises
    ------
    Refuted
        If such a set is found.
    NodeCapReached
        If `max_nodes` nodes did not suffice, or the deadline passed.
    """
    nodes = 0

    def visit(B: FloatArray, chosen: int) -> None:
        nonlocal nodes
        nodes += 1
        if nodes > max_nodes or (deadline is not None and deadline.passed()):
            raise NodeCapReached
        m = k - chosen
        if (np.diagonal(B) > tau).any():
            raise Refuted
        if m == 1:
            return
        # opt_B(q) ≤ upper[chosen + q] wherever that is at most τ
        known = np.where(upper <= tau, upper, np.inf)[chosen:]
        B, strength = _peel(B, m, tau, known[m - 1])
        if len(B) < m or np.linalg.eigvalsh(B)[-1] <= tau:
            return
        order = np.argsort(-strength, kind="stable")
        B = B[np.ix_(order, order)]
        first, rest = _suffix_bounds(B, m, known)
        for t in range(len(B) - m + 1):
            if first[t] <= tau:
                continue
            column, room = B[t + 1 :, t], tau - B[t, t]
            if room == 0 and column.any():  # λ > B_tt = τ for a pair
                raise Refuted
            gains = column**2 / room if room else np.zeros(len(column))
            if (np.diagonal(B)[t + 1 :] + gains > tau).any():
                raise Refuted
            if m == 2 or rest[t] + np.sort(gains)[-(m - 1) :].sum() <= tau:
                continue
            later = B[t + 1 :, t + 1 :]
            if room:
                later = later + np.outer(column, column) / room
            visit(later, chosen + 1)

    if k >= SPECTRAL_FROM:
        kept, forced = _tightened(A, k, tau)
        if len(kept) < k:
            return 1
        rest = np.setdiff1d(kept, forced)
        reduced = eliminate(A, forced, rest, tau) if len(forced) < k else None
        if reduced is not None:
            visit(reduced, len(forced))
            return nodes
    if len(A) >= k:
        visit(A, 0)
    return nodes


def _tightened(
    A: FloatArray, k: int, tau: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the leading eigenvectors exclude and force; see `spectral.py`."""
    tightened = Tightened.nothing_known(len(A))
    for p in (1, 2, 3):
        if len(A) <= SPECTRAL_SIZE:
            tightened = tighten(A, k, tau, p)
        if len(tightened.kept) < k:
            break
    return tightened.kept, tightened.forced


def _larger_root(a: FloatArray, coupling: FloatArray, b: float) -> FloatArray:
    """Larger eigenvalue of [[a, c], [c, b]] with c² = coupling."""
    if b == np.inf:
        return np.full_like(coupling, np.inf)
    half = (a - b) / 2
    return (a + b) / 2 + np.sqrt(half**2 + coupling)


def squared_norms(B: FloatArray, q: int) -> FloatArray:
    """Return r_q(i)², the sum of the q largest B_ij² over j ≠ i, for every i."""
    squares = B**2
    np.fill_diagonal(squares, 0.0)
    if q < len(B):
        squares = np.partition(squares, len(B) - q, axis=1)[:, len(B) - q :]
    return squares.sum(axis=1)


def _peel(
    B: FloatArray, m: int, tau: float, bound: float
) -> tuple[FloatArray, FloatArray]:
    """Drop what is in no m-set above τ, given bound ≥ opt_B(m − 1); and 2×2 bounds."""
    while len(B) >= m:
        norms = squared_norms(B, m - 1)
        diagonal = np.diagonal(B)
        if bound == np.inf:
            return B, diagonal + np.sqrt(norms)
        keep = norms > (tau - diagonal) * (tau - bound)
        if keep.all():
            return B, _larger_root(diagonal, norms, bound)
        B = B[np.ix_(keep, keep)]
    return B, np.diagonal(B)


def _suffix_bounds(
    B: FloatArray, m: int, known: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bound m-sets by their first member t, and (m − 1)-sets among those after t."""
    n = len(B)
    table = np.full(m + 1, -np.inf)  # table[q] ≥ opt_B(q) over the features so far
    first, rest = np.empty(n), np.empty(n)
    for t in range(n - 1, -1, -1):
        rest[t] = table[m - 1]
        squares = np.sort(B[t, t + 1 :] ** 2)[::-1][: m - 1]
        norms = np.cumsum(squares)
        for q in range(m, 0, -1):
            value = B[t, t]
            if q > 1 and len(norms):
                coupling = norms[min(q - 1, len(norms)) - 1]
                value = _larger_root(value, np.asarray(coupling), table[q - 1])
            if q == m:
                first[t] = value
            else:
                value = min(value, known[q])
            table[q] = max(table[q], value)
    return first, rest
