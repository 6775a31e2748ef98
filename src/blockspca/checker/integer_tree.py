"""Trees decided by exact integer arithmetic.

M = τI − B is eliminated without fractions (Bareiss): M⁰ = τI − Ã, and
choosing p makes M'_ij = (M_pp M_ij − M_ip M_jp) / q, q being the last pivot, 1 at
first. All these are minors of M⁰, so that the division leaves no rest, and the Schur
complement of the node is M/q. All tests are homogeneous: B_ii ≤ τ is M_ii ≥ 0, and r² ≤
(τ − B_ii)(τ − u) is Σ M_ij² ≤ M_ii (τ − u) q.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import isqrt

from .fields import ProofError
from .positive import Rows, eliminate, is_positive_semidefinite
from .problem import Limits
from .tree_file import Node

SHORT = 160  # bits that decide drops and suffix bounds; 64 is a unit at the root


class IntegerTree:
    """Reads the nodes of one tree, in order (section 5).

    `chain[j]` is τ − U_j, where U_j ≤ τ. A node is given as M, the pivot q, the
    positions F that M's rows belong to, the number m of features still to be chosen,
    and what room groups have left for them.
    """

    def __init__(self, nodes: Iterator[Node], k: int, chain: dict[int, int]) -> None:
        self.nodes, self.k, self.chain = nodes, k, chain

    def node(
        self,
        M: Rows,
        q: int,
        F: list[int],
        m: int,
        groups: Limits | None = None,
    ) -> None:
        node = next(self.nodes)
        while node.letter == "D":
            M, F = self.drop(M, q, F, m)
            node = next(self.nodes)
        if node.letter == "S":
            self.split(node, M, q, F, m, groups)
        elif node.letter == "L":
            self.last(M, F, m, groups)
        elif not is_positive_semidefinite(M, q):
            raise ProofError(f"k = {self.k}: P, the matrix has a larger eigenvalue")

    def drop(self, M: Rows, q: int, F: list[int], m: int) -> tuple[Rows, list[int]]:
        """Drop all i with M_ii ≥ 0 and Σ (m − 1 largest M_ij²) ≤ M_ii (τ − u) q."""
        if m < 2 or self.k - 1 not in self.chain:
            raise ProofError(f"k = {self.k}: D needs m ≥ 2 and U of k - 1, at most τ")
        short, q = shortened(M, q)
        room = self.chain[self.k - 1] * q
        ranked = [
            sorted(((x * x, j) for j, x in enumerate(row) if j != i), reverse=True)
            for i, row in enumerate(short)
        ]
        left = set(range(len(M)))
        while True:
            out = set()
            for i in left:
                squares = [square for square, j in ranked[i] if j in left][: m - 1]
                if short[i][i] >= 0 and sum(squares) <= short[i][i] * room:
                    out.add(i)
            if not out:
                break
            left -= out  # together: what is out for the larger F is out for the smaller
        keep = sorted(left)
        return [[M[i][j] for j in keep] for i in keep], [F[i] for i in keep]

    def last(self, M: Rows, F: list[int], m: int, groups: Limits | None) -> None:
        """Close by too few features, or by all sets of one or two."""
        if (len(F) if groups is None else groups.capacity(F)) < m:
            return
        if m > 2 or any(row[i] < 0 for i, row in enumerate(M)):
            raise ProofError(f"k = {self.k}: L with m = {m} does not hold")
        if m == 2 and any(
            M[i][j] ** 2 > M[i][i] * M[j][j]
            and (groups is None or groups.after([F[i]]).has_room(F[j]))
            for i in range(len(M))
            for j in range(i)
        ):
            raise ProofError(f"k = {self.k}: L, a pair has a larger eigenvalue")

    def split(
        self,
        node: Node,
        M: Rows,
        q: int,
        F: list[int],
        m: int,
        groups: Limits | None,
    ) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 2:
            raise ProofError(f"k = {self.k}: S needs m ≥ 2")
        still_open = {F[t] for t in self.open_by_suffix(M, q, m)} - {*node.opened}
        if still_open:
            raise ProofError(f"k = {self.k}: S, position {min(still_open)} is not open")
        for position in node.opened:
            if position not in F:
                skip_node(self.nodes)
                continue
            t = F.index(position)
            if M[t][t] <= 0:
                raise ProofError(f"k = {self.k}: position {position} has B_pp ≥ τ")
            left = groups and groups.after([position])
            after = [
                s for s in range(t + 1, len(M)) if left is None or left.has_room(F[s])
            ]
            child = eliminate(M, q, t, after)
            self.node(child, M[t][t], [F[s] for s in after], m - 1, left)

    def open_by_suffix(self, M: Rows, q: int, m: int) -> list[int]:
        """Return the t whose suffix bound first[m][t] is not at most τ.

        `slacks` are q (τ − T[j][t]), rounded down, for the t with j features from t on.
        With α = τ − a and β = τ − b, τ − λmax [[a, r], [r, b]] is
        (α + β − √((α − β)² + 4r²))/2, and at least 0 if α, β ≥ 0 and r² ≤ αβ.
        """
        M, q = shortened(M, q)
        N = len(M)
        sums = []
        for t, row in enumerate(M):
            squares = sorted((x * x for x in row[t + 1 :]), reverse=True)
            sums.append(list(accumulate(squares[: m - 1])))
        slacks = first = [row[t] for t, row in enumerate(M)]
        for j in range(1, m):
            if j > 1:
                first = [
                    _slack(M[t][t], slacks[t + 1], sums[t][j - 2])
                    for t in range(N - j + 1)
                ]
            slacks = list(accumulate(reversed(first), min))[::-1]
            if self.k - m + j in self.chain:
                cap = self.chain[self.k - m + j] * q
                slacks = [max(slack, cap) for slack in slacks]
        return [
            t
            for t in range(N - m + 1)
            if min(M[t][t], slacks[t + 1]) < 0
            or sums[t][m - 2] > M[t][t] * slacks[t + 1]
        ]


def _slack(alpha: int, beta: int, square: int) -> int:
    """Return ⌊(α + β − √((α − β)² + 4r²))/2⌋, or less."""
    root = (alpha - beta) ** 2 + 4 * square
    return (alpha + beta - (isqrt(root - 1) + 1 if root else 0)) // 2


def shortened(M: Rows, q: int) -> tuple[Rows, int]:
    """Return a node with shorter integers whose drops and suffix bounds are no better.

    All is divided by a power of two: the diagonal, which is slack, and q, by which
    slacks are multiplied, are rounded down, and all |M_ij|, i ≠ j, up.
    """
    bits = max((max(map(abs, row)) for row in M), default=0).bit_length() - SHORT
    if bits <= 0:
        return M, q
    short = [[-(-abs(x) >> bits) for x in row] for row in M]
    for i, row in enumerate(short):
        row[i] = M[i][i] >> bits
    return short, q >> bits


def skip_node(nodes: Iterator[Node]) -> None:
    """Read one node, with its children, that need not hold."""
    waiting = 1
    while waiting:
        node = next(nodes)
        if node.letter != "D":
            waiting += len(node.opened) - 1
