"""Reads the nodes of a tree, in order: docs/proof-format.md, sections 5 and 8.

What a node shows is the same in every arithmetic; the matrix B of it is what
`FloatTree` and `IntegerTree` make of it, and is only handed on here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .fields import ProofError
from .groups import Rooms
from .tree_text import Node, skip_node

Schur = Any  # the matrix B of a node: an array, or rows of integers and a pivot


class Tree(ABC):
    """A tree for sets of k features; `rooms` are those of its features, by position.

    `chain` are the U_j that may be used, in the way of the arithmetic.
    """

    def __init__(self, nodes: Sequence[Node], k: int) -> None:
        self.nodes, self.k = iter(nodes), k
        self.chain: dict[int, Any] = {}

    # -- what an arithmetic has -----------------------------------------------------

    @abstractmethod
    def size(self, B: Schur) -> int:
        """Return the number of features of B."""

    @abstractmethod
    def part(self, B: Schur, places: np.ndarray) -> Schur:
        """Return B of some of its features."""

    @abstractmethod
    def too_large(self, B: Schur) -> np.ndarray:
        """Say of which features B_ii ≤ τ is not shown."""

    @abstractmethod
    def drop(self, B: Schur, m: int) -> np.ndarray:
        """Return the features that cannot be dropped; m ≥ 2, and there is a u."""

    @abstractmethod
    def pivot_fits(self, B: Schur, t: int) -> bool:
        """Say whether B_tt < τ is shown."""

    @abstractmethod
    def child(self, B: Schur, t: int, places: np.ndarray) -> Schur:
        """Return the B of choosing the t-th feature, on others; its pivot fits."""

    @abstractmethod
    def check_last(self, B: Schur, m: int, pairs: np.ndarray | None) -> None:
        """Show `L` for m = 1 or 2; of pairs only those that are true count."""

    @abstractmethod
    def check_positive(self, B: Schur) -> None:
        """Show that τI − B is positive semidefinite."""

    @abstractmethod
    def open_by_suffix(self, B: Schur, m: int) -> np.ndarray:
        """Return the features whose suffix bound is not shown to be at most τ."""

    needs_small_diagonal = False  # whether a node cannot be used if some B_ii > τ

    # -- reading --------------------------------------------------------------------

    def exceeds(self, B: Schur) -> bool:
        """Say whether some B_ii ≤ τ is not shown."""
        return bool(self.too_large(B).any())

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what} is not shown to hold")

    def node(self, B: Schur, F: np.ndarray, m: int, rooms: Rooms) -> None:
        """Read one node, with its children."""
        node = next(self.nodes)
        if self.needs_small_diagonal and self.exceeds(B) and rooms.holds(F, m):
            raise self.fail("B_ii ≤ τ")
        while node.letter == "D":
            B, F = self.dropped(B, F, m)
            node = next(self.nodes)
        if node.letter == "S":
            self.split(node, B, F, m, rooms)
        elif node.letter == "L":
            self.last(B, F, m, rooms)
        else:
            self.check_positive(B)

    def dropped(self, B: Schur, F: np.ndarray, m: int) -> tuple[Schur, np.ndarray]:
        """Return a node after `D`."""
        if m < 2 or self.k - 1 not in self.chain:
            raise ProofError(f"k = {self.k}: D needs m ≥ 2 and U of k - 1, at most τ")
        keep = self.drop(B, m)
        return self.part(B, keep), F[keep]

    def last(self, B: Schur, F: np.ndarray, m: int, rooms: Rooms) -> None:
        """Close by sets that cannot be had, or by all of one or two features."""
        if not rooms.holds(F, m):
            return
        if m > 2:
            raise self.fail(f"L with m = {m}")
        self.check_last(B, m, rooms.pairs(F) if m == 2 and rooms.kinds else None)

    def split(self, node: Node, B: Schur, F: np.ndarray, m: int, rooms: Rooms) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 2:
            raise ProofError(f"k = {self.k}: S needs m ≥ 2")
        for position, t in self.opened(node, F, F[self.open_by_suffix(B, m)]):
            if not self.pivot_fits(B, t):
                raise self.fail("B_pp < τ")
            after, places = rooms.chosen(position), np.arange(t + 1, len(F))
            places = places[after.is_open(F[places])]
            self.node(self.child(B, t, places), F[places], m - 1, after)

    def opened(
        self, node: Node, F: np.ndarray, still_open: np.ndarray
    ) -> Iterator[tuple[int, int]]:
        """Yield the positions that an `S` opens, with their places in F, ascending.

        All that are still open must be among them. The node of one that is not in F is
        read, and need not hold.
        """
        left = {*still_open.tolist()}.difference(node.opened)
        if left:
            raise ProofError(f"k = {self.k}: S, position {min(left)} is not open")
        for position in node.opened:
            t = int(np.searchsorted(F, position))
            if t < len(F) and F[t] == position:
                yield position, t
            else:
                skip_node(self.nodes)
