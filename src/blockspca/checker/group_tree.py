"""Rule "group-tree": units of features that are used as a whole (section 8).

A node has a matrix B on the features of its units, one unit after the other. Of units g
and h, N_gg ≥ λmax(B_gg) and N_gh ≥ ‖B_gh‖ in the norm of Frobenius; the suffix bounds
of `FloatTree` and `IntegerTree` are used for N. As sets may have fewer than m units,
m further ones are added that are tied to nothing, with an N_gg that is no larger than
any other: then every set can be filled up to m, and no bound is smaller.

**λmax(B_gg) from above**, without LAPACK. Let C = B + cI, c ≥ ‖B‖, and P_0 = C, P_{i+1}
the square of P_i/2^e_i. Then λ_i = ‖P_i‖₂ ≤ 2^e_i √(λ_{i+1}/(1 − δ)), as a square is
rounded by at most 1.01 s u ‖P‖_F² ≤ 1.01 s² u ‖P‖₂² in norm, δ ≥ 1.01 s² u of it; and
λ_J ≤ ‖P_J‖_F. After J steps the bound exceeds ‖C‖₂ by a factor of s^(2^−J), and by (1 −
δ)^−1. *In integers* it gives a number that is then shown to be right, by elimination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import isqrt, sqrt
from typing import Any

import numpy as np

from .columns import shifted
from .fields import ProofError
from .float_tree import FloatTree
from .integer_tree import IntegerTree, skip_node
from .positive import Rows, eliminate, is_positive_semidefinite
from .proof_file import Record
from .screening import TINY, UNIT, above
from .tree_file import Node

SQUARINGS = 24


def eigenvalue_from_above(B: np.ndarray) -> float:
    """Return what is no less than λmax(B), and near."""
    s = len(B)
    if s == 1:
        return float(B[0, 0])
    c = float(above(np.abs(B).sum(axis=1).max(), s))
    P, exponents = B + c * np.eye(s), []
    for _ in range(SQUARINGS):
        exponents.append(int(np.frexp(np.abs(P).max())[1]))
        P = np.ldexp(P, -exponents[-1])
        P = P @ P
    found = float(above(np.sqrt(np.sum(P * P)), s * s))
    for e in reversed(exponents):
        found = float(above(np.ldexp(sqrt(found), e)))
    found *= 1 + 4 * s * s * UNIT
    return float(found - c + 8 * UNIT * (found + c) + TINY)


class GroupTree:
    """Reads the nodes of one tree, in order; units are positions.

    A node is what an arithmetic makes of B on the features of `include` and then of the
    units in their order: `chosen` takes some rows and chooses the first of them,
    `close_all` is the token `P`, and `open_units` says which are not closed by suffix
    bounds, of units whose rows are given and of which a set has at most m.
    """

    nodes: Iterator[Node]
    k: int
    sizes: Sequence[int]
    chosen: Any
    close_all: Any
    open_units: Any

    def check(self, start: Any, inside: int) -> None:
        """Choose `include`, and read the tree."""
        room = self.k - inside
        F = [g for g, size in enumerate(self.sizes) if size <= room]
        spans = self.spans(range(len(self.sizes)))
        rows = [*range(inside), *(inside + row for g in F for row in spans[g])]
        self.visit(self.chosen(start, rows, inside), F, room)

    def visit(self, B: Any, F: list[int], room: int) -> None:
        """Read a node with its children."""
        node = next(self.nodes)
        if node.letter == "P":
            self.close_all(B, room)
        elif node.letter == "S":
            self.open(node, B, F, room)
        elif node.letter != "L" or F:
            raise ProofError(f"k = {self.k}: {node.letter} with {len(F)} units left")

    def open(self, node: Node, B: Any, F: list[int], room: int) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        spans = self.spans(F)
        still_open = self.open_units(B, spans, self.most(F, room)) if F else []
        left = {F[t] for t in still_open if t < len(F)} - {*node.opened}
        if left:
            raise ProofError(f"k = {self.k}: S, unit {min(left)} is not open")
        for g in node.opened:
            if g not in F:
                skip_node(self.nodes)
                continue
            t = F.index(g)
            size = self.sizes[g]
            after = [p for p in range(t + 1, len(F)) if self.sizes[F[p]] <= room - size]
            rows = [*spans[t], *(row for p in after for row in spans[p])]
            child = self.chosen(B, rows, size)
            self.visit(child, [F[p] for p in after], room - size)

    def most(self, F: list[int], room: int) -> int:
        """Return how many units of F have at most `room` features together."""
        count = 0
        for size in sorted(self.sizes[g] for g in F):
            room -= size
            count += room >= 0
        return count

    def spans(self, F: Sequence[int]) -> list[range]:
        """Return the rows of each unit, in a matrix that has those of F in turn."""
        ends = [*accumulate((self.sizes[g] for g in F), initial=0)]
        return [range(a, b) for a, b in pairwise(ends)]


class FloatGroupTree(GroupTree, FloatTree):
    """Decides in float64, at τ₁; `FloatTree` has the margins. A node is B."""

    def __init__(
        self, record: Record, B: np.ndarray, error: float, sizes: Sequence[int]
    ) -> None:
        FloatTree.__init__(self, iter(record.tree), record, B, error)
        self.sizes, self.depth = sizes, record.k

    def chosen(self, B: np.ndarray, rows: list[int], count: int) -> np.ndarray:
        """Keep some rows, and choose the first of them, one after the other."""
        B = B[np.ix_(rows, rows)]
        for _ in range(count):
            B, _ = self.choose(B, np.arange(len(B)), 0)
        if not B.diagonal().max(initial=-np.inf) <= self.tau:
            raise self.fail("B_ii ≤ τ")
        return B

    def close_all(self, B: np.ndarray, room: int) -> None:
        """Show that all features together are below τ₁."""
        self.check_positive(B, self.k - room)

    def open_units(self, B: np.ndarray, spans: list[range], m: int) -> np.ndarray:
        """Find N, and what its suffix bounds leave."""
        n = len(spans)
        N = np.zeros((n + m, n + m))
        for g, rows in enumerate(spans):
            own = slice(rows.start, rows.stop)
            N[g, g] = eigenvalue_from_above(B[own, own])
            for h in range(g):
                block = B[own, spans[h].start : spans[h].stop]
                square = above(np.sum(block * block), block.size)
                N[g, h] = N[h, g] = above(np.sqrt(square))
        N[range(n, n + m), range(n, n + m)] = N.diagonal()[:n].min()
        if m == 1:
            return np.flatnonzero(~(N.diagonal() <= self.tau))
        return self.open_by_suffix(N, m)


class IntegerGroupTree(GroupTree, IntegerTree):
    """Decides in integers. A node is M = q (τI − B), with q."""

    def __init__(self, record: Record, sizes: Sequence[int]) -> None:
        IntegerTree.__init__(self, iter(record.tree), record.k, {})
        self.sizes = sizes

    def chosen(
        self, node: tuple[Rows, int], rows: list[int], count: int
    ) -> tuple[Rows, int]:
        """Keep some rows, and choose the first of them, one after the other."""
        M, q = node
        M = [[M[i][j] for j in rows] for i in rows]
        for _ in range(count):
            if M[0][0] <= 0:
                raise ProofError(f"k = {self.k}: a unit has B_pp ≥ τ")
            M, q = eliminate(M, q, 0, range(1, len(M))), M[0][0]
        return M, q

    def close_all(self, node: tuple[Rows, int], room: int) -> None:
        """Show that all features together are at most τ."""
        if not is_positive_semidefinite(*node):
            raise ProofError(f"k = {self.k}: P, the matrix has a larger eigenvalue")

    def open_units(
        self, node: tuple[Rows, int], spans: list[range], m: int
    ) -> list[int]:
        """Find q (τI − N), and what its suffix bounds leave."""
        M, q = node
        n = len(spans)
        N = [[0] * (n + m) for _ in range(n + m)]
        for g, rows in enumerate(spans):
            N[g][g] = _least([[M[i][j] for j in rows] for i in rows])
            for h in range(g):
                square = sum(M[i][j] ** 2 for i in rows for j in spans[h])
                N[g][h] = N[h][g] = isqrt(square) + 1 if square else 0
        for d in range(n, n + m):
            N[d][d] = max(N[g][g] for g in range(n))
        if m == 1:
            return [g for g in range(n) if N[g][g] < 0]
        return self.open_by_suffix(N, q, m)


def _least(M: Rows) -> int:
    """Return what is at most the least eigenvalue of M, and near."""
    if len(M) == 1:
        return M[0][0]
    bits = max(max(map(abs, row)) for row in M).bit_length()
    negative = [[-x / (1 << bits) for x in row] for row in M]
    about = -eigenvalue_from_above(np.array(negative))
    for room in (2.0**-40, 2.0**-20, 4.0 * len(M)):
        least = shifted(int((about - room) * 2.0**52), bits - 52)
        lower = [[*row] for row in M]
        for i, row in enumerate(lower):
            row[i] -= least
        if is_positive_semidefinite(lower):
            return least
    raise ProofError("the least eigenvalue of a unit is not shown")
