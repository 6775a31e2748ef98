"""Trees decided by exact integer arithmetic.

M = τI − B is eliminated without fractions (Bareiss): M⁰ = τI − Ã, and choosing p makes
M'_ij = (M_pp M_ij − M_ip M_jp) / q, q being the last pivot, 1 at first. All these are
minors of M⁰, so that the division leaves no rest, and the Schur complement of the node
is M/q. All tests are homogeneous: B_ii ≤ τ is M_ii ≥ 0, and r² ≤ (τ − B_ii)(τ − u) is
Σ M_ij² ≤ M_ii (τ − u) q.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import isqrt

import numpy as np

from .fields import ProofError
from .tree import Tree
from .tree_text import Node

SHORT = 160  # bits that decide drops and suffix bounds; 64 is a unit at the root
Rows = list[list[int]]
Pivoted = tuple[Rows, int]  # M and q


class IntegerTree(Tree):
    """`chain[j]` is τ − U_j, where U_j ≤ τ; a B is a pair of M and the pivot q."""

    def __init__(self, nodes: Sequence[Node], k: int, chain: dict[int, int]) -> None:
        super().__init__(nodes, k)
        self.chain = chain

    def size(self, B: Pivoted) -> int:
        return len(B[0])

    def part(self, B: Pivoted, places: np.ndarray) -> Pivoted:
        names = places.tolist()
        return [[B[0][i][j] for j in names] for i in names], B[1]

    def too_large(self, B: Pivoted) -> np.ndarray:
        return np.array([row[i] < 0 for i, row in enumerate(B[0])], dtype=bool)

    def drop(self, B: Pivoted, m: int) -> np.ndarray:
        """Drop all i with M_ii ≥ 0 and Σ (m − 1 largest M_ij²) ≤ M_ii (τ − u) q."""
        short, q = shortened(*B)
        room = self.chain[self.k - 1] * q
        ranked = [
            sorted(((x * x, j) for j, x in enumerate(row) if j != i), reverse=True)
            for i, row in enumerate(short)
        ]
        left = set(range(len(short)))
        while True:
            out = set()
            for i in left:
                squares = [square for square, j in ranked[i] if j in left][: m - 1]
                if short[i][i] >= 0 and sum(squares) <= short[i][i] * room:
                    out.add(i)
            if not out:
                return np.array(sorted(left), dtype=np.int64)
            left -= out  # together: what is out for the larger F is out for the smaller

    def pivot_fits(self, B: Pivoted, t: int) -> bool:
        return B[0][t][t] > 0

    def child(self, B: Pivoted, t: int, places: np.ndarray) -> Pivoted:
        M, q = B
        return eliminate(M, q, t, places.tolist()), M[t][t]

    def check_last(self, B: Pivoted, m: int, pairs: np.ndarray | None) -> None:
        M = B[0]
        if self.exceeds(B):
            raise ProofError(f"k = {self.k}: L with m = {m} does not hold")
        if m == 2 and any(
            M[i][j] ** 2 > M[i][i] * M[j][j]
            for i in range(len(M))
            for j in range(i)
            if pairs is None or pairs[i, j]
        ):
            raise ProofError(f"k = {self.k}: L, a pair has a larger eigenvalue")

    def check_positive(self, B: Pivoted) -> None:
        if not is_positive_semidefinite(*B):
            raise ProofError(f"k = {self.k}: P, the matrix has a larger eigenvalue")

    def open_by_suffix(self, B: Pivoted, m: int) -> np.ndarray:
        """Return the t whose suffix bound first[m][t] is not at most τ.

        `slacks` are q (τ − T[j][t]), rounded down, for the t with j features from t on.
        With α = τ − a and β = τ − b, τ − λmax [[a, r], [r, b]] is
        (α + β − √((α − β)² + 4r²))/2, and at least 0 if α, β ≥ 0 and r² ≤ αβ.
        """
        M, q = shortened(*B)
        N = len(M)
        sums = []
        for t, row in enumerate(M):
            squares = sorted((x * x for x in row[t + 1 :]), reverse=True)
            sums.append(list(accumulate(squares[: m - 1])))
        slacks = first = [row[t] for t, row in enumerate(M)]
        for j in range(1, m if m <= N else 1):
            if j > 1:
                first = [
                    slack_of(M[t][t], slacks[t + 1], sums[t][j - 2])
                    for t in range(N - j + 1)
                ]
            slacks = list(accumulate(reversed(first), min))[::-1]
            if self.k - m + j in self.chain:
                cap = self.chain[self.k - m + j] * q
                slacks = [max(slack, cap) for slack in slacks]
        return np.array(
            [
                t
                for t in range(N - m + 1)
                if not pair_fits(M[t][t], slacks[t + 1], sums[t][m - 2])
            ],
            dtype=np.int64,
        )


def pair_fits(alpha: int, beta: int, square: int) -> bool:
    """Say whether λmax [[a, r], [r, b]] ≤ τ, by α = τ − a and β = τ − b."""
    return min(alpha, beta) >= 0 and square <= alpha * beta


def slack_of(alpha: int, beta: int, square: int) -> int:
    """Return ⌊(α + β − √((α − β)² + 4r²))/2⌋, or less."""
    root = (alpha - beta) ** 2 + 4 * square
    return (alpha + beta - (isqrt(root - 1) + 1 if root else 0)) // 2


def shortened(M: Rows, q: int) -> Pivoted:
    """Return a node with shorter integers whose drops and suffix bounds are no better.

    All is divided by a power of two: the diagonal, which is slack, and q, by which
    slacks are multiplied, are rounded down, and all |M_ij|, i ≠ j, up.
    """
    bits = bits_too_many(M)
    if not bits:
        return M, q
    short = [[-(-abs(x) >> bits) for x in row] for row in M]
    for i, row in enumerate(short):
        row[i] = M[i][i] >> bits
    return short, q >> bits


def bits_too_many(M: Rows) -> int:
    """Return the power of two that `shortened` divides by."""
    largest = max((max(map(abs, row)) for row in M), default=0)
    return max(0, largest.bit_length() - SHORT)


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
