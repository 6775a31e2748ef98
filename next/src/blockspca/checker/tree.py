"""Repeats the search of a tree: docs/proof-format.md, section 5.

Nothing of the search is written in the proof but its size: rounding may decide which of
two equal branches is open, so a checker stops at twice the nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Floats, Integers
from .reading import ProofError
from .records import Tree

DEEPEST = 400  # features chosen one after the other: Python's stack ends


class Search:
    """The recursion; `label` is the group of each feature, or −1, `most` its room."""

    def __init__(
        self,
        record: Tree,
        numbers: Floats | Integers,
        label: np.ndarray,
        most: list[int],
    ) -> None:
        self.k, self.numbers, self.label = record.k, numbers, label
        self.nodes, self.limit = 0, 2 * record.nodes + 16
        self.most = most

    def run(self, include: int = 0) -> None:
        """Show that no k-set is above τ, or raise.

        Sets must contain the first `include` features.
        """
        if self.k > DEEPEST:
            raise ProofError(f"k = {self.k}: a tree can have k = {DEEPEST} at most")
        G: Any = self.numbers.G
        F, unit, room = np.arange(len(G)), 1, self.most
        for chosen in range(include):
            if not (len(F) and F[0] == chosen):
                return  # a group has no room for all of them
            G, unit, F, room = self._choose(G, unit, F, 0, room)
        self._node(G, unit, F, self.k - include, room)

    def _choose(self, G: Any, unit: Any, F: np.ndarray, t: int, room: list[int]) -> Any:
        """Return the node that chooses feature t of F, and has those after it."""
        rest, group = np.arange(t + 1, len(F)), self.label[F[t]]
        if group >= 0:
            room = list(room)
            room[group] -= 1
            if not room[group]:
                rest = rest[self.label[F[rest]] != group]
        if G[t, t] > 0:
            return *self.numbers.child(G, unit, t, rest), F[rest], room
        if G[t].any():
            raise self._above()
        return G[np.ix_(rest, rest)], unit, F[rest], room  # t is at τ, by itself

    def _node(self, G: Any, unit: Any, F: np.ndarray, m: int, room: list[int]) -> None:
        self.nodes += 1
        if self.nodes > self.limit:
            raise ProofError(
                f"k = {self.k}: the search needs more than {self.limit} nodes"
            )
        if len(F) < m or m == 0:
            return
        if not (G.diagonal() >= 0).all():
            raise self._above()
        if m == 1:
            return
        if m == 2:
            self._check_pairs(G, F, room)
            return
        keep = self._drop(G, unit, m)
        if len(keep) < m:
            return
        G, F = G[np.ix_(keep, keep)], F[keep]
        if len(F) <= 2 * m and self.numbers.is_semidefinite(G, m):
            return
        for t in self._open(G, unit, m):
            G_t, unit_t, F_t, room_t = self._choose(G, unit, F, t, room)
            self._node(G_t, unit_t, F_t, m - 1, room_t)

    def _above(self) -> ProofError:
        return ProofError(f"k = {self.k}: a set may be above `upper`")

    def _check_pairs(self, G: Any, F: np.ndarray, room: list[int]) -> None:
        diagonal = G.diagonal()
        fits = self.numbers.fits(G * G, np.outer(diagonal, diagonal))
        np.fill_diagonal(fits, True)
        full = np.array(
            [-1 if places > 1 else g for g, places in enumerate(room)] + [-1]
        )
        labels = full[self.label[F]]
        fits |= (labels[:, None] == labels) & (labels >= 0)
        if not fits.all():
            raise self._above()

    def _drop(self, G: Any, unit: Any, m: int) -> np.ndarray:
        """Return the features that Lemma 1 leaves."""
        slack, keep = self.numbers.slacks.get(self.k - 1, -1), np.arange(len(G))
        if not slack >= 0:
            return keep
        squares = G * G
        np.fill_diagonal(squares, 0)
        while len(keep) >= m:
            part = squares[np.ix_(keep, keep)]
            sums = self.numbers.sums(_largest(part, m - 1))[:, -1]
            out = self.numbers.fits(sums, G.diagonal()[keep] * slack * unit)
            if not out.any():
                break
            keep = keep[~out]
        return keep

    def _open(self, G: Any, unit: Any, m: int) -> list[int]:
        """Return the features whose suffix bound is not at most τ, ascending.

        `table[q]` is the slack of the q-sets after t, `cap` that of U_{|P|+q}.
        """
        n, slacks, least = len(G), self.numbers.slacks, self.numbers.least
        sums = self.numbers.sums(_largest(np.triu(G * G, 1), m - 1)).tolist()
        diagonal = G.diagonal().tolist()
        caps = [slacks.get(self.k - m + q, -1) for q in range(m)]
        caps = [cap * unit if cap >= 0 else -np.inf for cap in caps]
        table: list[Any] = [None] * m
        opened = []
        for t in range(n - 1, -1, -1):
            own, squares, later = diagonal[t], sums[t], n - 1 - t
            if later >= m - 1 and not least(own, squares[m - 2], table[m - 1]) >= 0:
                opened.append(t)
            for q in range(min(later + 1, m - 1), 0, -1):
                if q <= later and table[q] <= caps[q]:
                    continue
                slack = own if q == 1 else least(own, squares[q - 2], table[q - 1])
                if q <= later:
                    slack = min(table[q], slack)
                table[q] = max(slack, caps[q])
        return opened[::-1]


def _largest(squares: Any, count: int) -> Any:
    """Return the largest of each row, falling."""
    count = min(count, len(squares))
    if squares.dtype != object and count < len(squares):
        squares = np.partition(squares, len(squares) - count, axis=1)[:, -count:]
    return np.sort(squares, axis=1)[:, ::-1][:, :count]
