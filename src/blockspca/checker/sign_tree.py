"""Rule "signs": trees for vectors without negative entries (section 8).

Such a record bounds x'Ax for x ≥ 0 on sets of k features, and not their eigenvalues: a
tree of section 5 on Ã, whose negative entries may be raised, with one more token. `N`
closes a node by numbers N_ij ≥ 0 on P ∪ F, if τI − A − N is positive semidefinite, A
being the matrix before entries are raised: x'Ax ≤ x'(A + N)x ≤ τ x'x for x ≥ 0. A node
whose P is not below τ in Ã, or has a B_ii > τ while more than one feature is to be
chosen, is *bare*: it has no B, and is closed by `N`, or its features are opened.

Margins are those of `float_tree.py`, and for `N` those of `positive.py`: vectors have k
entries. Bounds of the chain that are by this rule hold where P is empty: there x ≥ 0 is
split into its i-th entry and the rest, and A_ij x_j ≤ |Ã_ij| x_j. In other nodes a
Schur complement is used, which knows no signs, and only bounds of eigenvalues count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .fields import ProofError
from .float_tree import FloatTree
from .integer_tree import IntegerTree, skip_node
from .positive import (
    Rows,
    eliminate,
    is_nonnegative,
    is_nonnegative_by_factor,
    is_positive_semidefinite,
)
from .problem import Limits
from .proof_file import Added, Record
from .screening import TINY, UNIT
from .tree_file import Node


class SignTree:
    """Reads the nodes of one tree, in order.

    Rows of matrices are the features of `include`, `inside` of them, and then those of
    the record. F are positions in the record, P rows. A node is what an arithmetic
    makes of B on F, or None if it is bare.
    """

    nodes: Any
    k: int
    inside: int
    chain: dict[int, Any]
    at_root: dict[int, Any]
    within: dict[int, Any]
    added: Sequence[Added]
    places: dict[int, int]
    child: Callable[[Any, int, list[int]], Any]  # choose the t-th, keep some later ones
    kept: Callable[[Any, list[int]], Any]
    drops: Callable[[Any, int], list[int]]
    last_holds: Callable[[Any, list[int], int, Limits | None], None]
    close_all: Callable[[Any, int], None]
    open_places: Callable[[Any, int], Sequence[int]]
    is_bare: Callable[[Any, int], bool]
    check_added: Callable[[list[int], list[float]], None]

    def name(self, record: Record, inside: list[int]) -> None:
        """Give every feature its row: those of `include`, and those of the record."""
        self.added, self.inside = record.added, len(inside)
        self.places = {i: row for row, i in enumerate([*inside, *record.features])}

    def visit(
        self, P: list[int], B: Any, F: list[int], m: int, groups: Limits | None
    ) -> None:
        """Read a node with its children: no P ∪ T has more than τ."""
        self.chain = self.within if P else self.at_root
        if m == 0:
            F = []  # P is all there is
        if B is not None and self.is_bare(B, m):
            B = None
        node = next(self.nodes)
        while node.letter == "D":
            if B is None:
                raise self.failed("D in a bare node")
            keep = self.drops(B, m)
            B, F = self.kept(B, keep), [F[t] for t in keep]
            node = next(self.nodes)
        if node.letter == "N":
            self.check_with(self.added[node.number], P + [self.inside + p for p in F])
        elif node.letter == "S":
            self.open(node, P, B, F, m, groups)
        elif node.letter == "L":
            together = len(F) if groups is None else groups.capacity(F)
            if together < m or (m == 0 and B is not None):
                return
            if B is None:
                raise self.failed("L in a bare node")
            self.last_holds(B, F, m, groups)
        elif B is None:
            raise self.failed("P in a bare node")
        else:
            self.close_all(B, self.k - m)

    def open(
        self,
        node: Node,
        P: list[int],
        B: Any,
        F: list[int],
        m: int,
        groups: Limits | None,
    ) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 1:
            raise self.failed("S where all features are chosen")
        places = self.open_places(B, m) if B is not None else range(len(F) - m + 1)
        left = {F[t] for t in places} - {*node.opened}
        if left:
            raise self.failed(f"S without position {min(left)}")
        for position in node.opened:
            if position not in F:
                skip_node(self.nodes)
                continue
            t = F.index(position)
            room = groups and groups.after([position])
            after = [
                s for s in range(t + 1, len(F)) if room is None or room.has_room(F[s])
            ]
            child = None if B is None else self.child(B, t, after)
            rows = [*P, self.inside + position]
            self.visit(rows, child, [F[s] for s in after], m - 1, room)

    def check_with(self, added: Added, needed: list[int]) -> None:
        """Close by an added matrix, of all features that are needed, or more."""
        if not all(i in self.places for i in added.features):
            raise self.failed("N with features that are not in the tree")
        rows = [self.places[i] for i in added.features]
        if not {*needed} <= {*rows}:
            raise self.failed("N without all features of its node")
        self.check_added(rows, added.numbers)

    def failed(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what} is not shown to hold")


class FloatSignTree(SignTree, FloatTree):
    """Decides in float64, at τ₁. A node is B."""

    def __init__(
        self,
        record: Record,
        B: np.ndarray,
        plain: np.ndarray,
        error: float,
        inside: list[int],
    ) -> None:
        """B and `plain` are Ã, and Ã before entries are raised, within `error`."""
        FloatTree.__init__(self, iter(record.tree), record, B, error)
        self.plain, self.depth = plain, record.k
        self.name(record, inside)

    def check(
        self,
        B: np.ndarray,
        bounds: dict[int, float],
        signs: dict[int, float],
        groups: Limits | None,
        number: Callable[[float], Any],
    ) -> None:
        """Read the tree; `signs` are bounds by this rule, `number` is that of N."""
        self.begin(bounds)
        self.within, self.number = self.chain, number
        lower = {q: min(bounds.get(q, u), u) for q, u in signs.items()}
        self.begin({**bounds, **lower})
        self.at_root = self.chain
        start: Any = B
        for _ in range(self.inside):
            after = list(range(1, len(start) if start is not None else 0))
            start = None if start is None else self.child(start, 0, after)
        size = len(B) - self.inside
        rows, m = list(range(self.inside)), self.k - self.inside
        self.visit(rows, start, list(range(size)), m, groups)

    def child(self, B: np.ndarray, t: int, after: list[int]) -> np.ndarray | None:
        if not self.tau - B[t, t] > 0:
            return None
        v = B[t, after] / np.sqrt(self.tau - B[t, t])
        return np.asarray(B[np.ix_(after, after)] + v[:, None] * v)

    def kept(self, B: np.ndarray, keep: list[int]) -> np.ndarray:
        return B[np.ix_(keep, keep)]

    def drops(self, B: np.ndarray, m: int) -> list[int]:
        return [int(t) for t in self.drop(B, m)]

    def last_holds(
        self, B: np.ndarray, F: list[int], m: int, groups: Limits | None
    ) -> None:
        if m == 1 and not B.diagonal().max() <= self.tau:
            raise self.failed("L with m = 1")
        self.last(B, np.array(F), m, groups)

    def close_all(self, B: np.ndarray, chosen: int) -> None:
        self.check_positive(B, chosen)

    def open_places(self, B: np.ndarray, m: int) -> Sequence[int]:
        if m == 1:
            return [t for t, own in enumerate(B.diagonal()) if not own <= self.tau]
        return [int(t) for t in self.open_by_suffix(B, m)]

    def is_bare(self, B: np.ndarray, m: int) -> bool:
        return m >= 2 and not B.diagonal().max(initial=-np.inf) <= self.tau

    def check_added(self, rows: list[int], numbers: list[float]) -> None:
        """Show τI − A − N ⪰ 0 for vectors of k entries; A is off by `error`."""
        n = len(rows)
        if not n:
            return
        N = np.zeros((n, n))
        N[np.triu_indices(n, 1)] = [float(self.number(x)) for x in numbers]
        N += N.T
        X = -self.plain[np.ix_(rows, rows)] - N
        size = float(np.abs(X).max()) + abs(self.tau)
        margin = 2.0**-38 * abs(self.tau)
        lost = margin + 1.01 * self.k * (self.error + 8 * UNIT * size + TINY)
        X.flat[:: n + 1] += self.tau - lost
        if not is_nonnegative_by_factor(X, self.k, margin):
            raise self.failed("N")


class IntegerSignTree(SignTree, IntegerTree):
    """Decides in integers. A node is M = q (τI − B), with q."""

    def __init__(
        self, record: Record, plain: Rows, tau: int, inside: list[int]
    ) -> None:
        """`plain` is A, before entries are raised."""
        IntegerTree.__init__(self, iter(record.tree), record.k, {})
        self.plain, self.tau = plain, tau
        self.name(record, inside)

    def check(
        self,
        M: Rows,
        bounds: dict[int, int],
        signs: dict[int, int],
        groups: Limits | None,
        number: Callable[[float], int],
    ) -> None:
        """Read the tree; `signs` are bounds by this rule, `number` is that of N."""
        self.number = number
        lower = {q: min(bounds.get(q, u), u) for q, u in signs.items()}
        self.within = self.slacks(bounds)
        self.at_root = self.slacks({**bounds, **lower})
        start: Any = (M, 1)
        for _ in range(self.inside):
            after = list(range(1, len(start[0]) if start is not None else 0))
            start = None if start is None else self.child(start, 0, after)
        size = len(M) - self.inside
        rows, m = list(range(self.inside)), self.k - self.inside
        self.visit(rows, start, list(range(size)), m, groups)

    def slacks(self, bounds: dict[int, int]) -> dict[int, int]:
        return {
            q: self.tau - u for q, u in bounds.items() if u <= self.tau and q < self.k
        }

    def child(
        self, node: tuple[Rows, int], t: int, after: list[int]
    ) -> tuple[Rows, int] | None:
        M, q = node
        return (eliminate(M, q, t, after), M[t][t]) if M[t][t] > 0 else None

    def kept(self, node: tuple[Rows, int], keep: list[int]) -> tuple[Rows, int]:
        M, q = node
        return [[M[i][j] for j in keep] for i in keep], q

    def drops(self, node: tuple[Rows, int], m: int) -> list[int]:
        return self.drop(*node, list(range(len(node[0]))), m)[1]

    def last_holds(
        self, node: tuple[Rows, int], F: list[int], m: int, groups: Limits | None
    ) -> None:
        self.last(node[0], F, m, groups)

    def close_all(self, node: tuple[Rows, int], chosen: int) -> None:
        if not is_positive_semidefinite(*node):
            raise self.failed("P")

    def open_places(self, node: tuple[Rows, int], m: int) -> Sequence[int]:
        M, q = node
        if m == 1:
            return [t for t, row in enumerate(M) if row[t] < 0]
        return self.open_by_suffix(M, q, m)

    def is_bare(self, node: tuple[Rows, int], m: int) -> bool:
        return m >= 2 and any(row[t] < 0 for t, row in enumerate(node[0]))

    def check_added(self, rows: list[int], numbers: list[float]) -> None:
        """Show τI − A − N ⪰ 0 for vectors of k entries."""
        X = [[-self.plain[i][j] for j in rows] for i in rows]
        given = iter(numbers)
        for a, row in enumerate(X):
            row[a] += self.tau
            for b in range(a + 1, len(X)):
                row[b] -= self.number(next(given))
                X[b][a] = row[b]
        if not is_nonnegative(X, self.k):
            raise self.failed("N")
