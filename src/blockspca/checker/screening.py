"""Screening in float64: bounds from above on entries of Ã, and what they rule out.

All that is used of Ã here are numbers that are provably no smaller. A feature that is
not provably out stays; what then becomes of it is for the caller to say. Everything is
in units in which the largest entry of Ã is neither huge nor tiny, so that nothing
overflows, and `TINY` covers all underflow.

Rounding. A sum of N non-negative numbers, each with a relative error of at most a few u
= 2⁻⁵³, added in any order, has one of at most (N + a few) u (1 + O(Nu)). `above(x, N)`
and `below(x, N)` allow (2N + 32) u: enough for all formulas here, none of which has
more than ten operations beside its sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

UNIT = 2.0**-53
TINY = 2.0**-900
BLOCK = 2**23  # entries of Ã that are formed at a time

Entries = Callable[[np.ndarray], np.ndarray]


def above(x: Any, terms: int = 0) -> Any:
    """Return what is no less than the non-negative number whose rounding x is."""
    return x * (1 + (2 * terms + 32) * UNIT) + TINY


def below(x: Any, terms: int = 0) -> Any:
    """Return what is no more than the non-negative number whose rounding x is."""
    return x * (1 - (2 * terms + 32) * UNIT) - TINY


@dataclass(frozen=True)
class Level:
    """A question: may a set of k features have more than τ, if none of k − 1 has u?"""

    k: int
    tau: float  # rounded down
    u: float  # rounded up, and at most τ

    def excludes(self, diagonal: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Say which features are in no better set (section 5, screening).

        λmax [[a, r], [r, u]] ≤ τ if a ≤ τ, u ≤ τ and r² ≤ (τ − a)(τ − u).
        """
        room = below((self.tau - diagonal) * (self.tau - self.u))
        return (diagonal <= self.tau) & (squares <= room) & (self.u <= self.tau)


@dataclass(frozen=True)
class UpperBounds:
    """What is known of Ã from above, in float64.

    diagonal_i ≥ Ã_ii. |Ã_ij| ≤ roots_i roots_j + error, where `roots` are there, which
    is Cauchy's inequality for A, positive semidefinite. `entries(columns)` gives a
    function of positions in `columns`, which bounds the |Ã_ij| of these rows.
    """

    diagonal: np.ndarray
    roots: np.ndarray | None
    error: float
    entries: Callable[[np.ndarray], Entries]

    def row_norms(self, k: int, alive: np.ndarray) -> np.ndarray | None:
        """Bound r² = Σ Ã_ij² over any k − 1 of the features alive, by Cauchy.

        r ≤ roots_i ‖roots_R‖ + error √(k − 1), by the triangle inequality.
        """
        if self.roots is None:
            return None
        most = np.sort(self.roots[alive])[::-1][: k - 1]
        norm = np.sqrt(above(np.sum(most**2), k))
        return above(above(self.roots * norm + self.error * np.sqrt(k)) ** 2)

    def left_by_cauchy(self, level: Level) -> np.ndarray:
        """Return a mask of the features that Cauchy's inequality leaves."""
        alive = np.ones(len(self.diagonal), dtype=bool)
        while True:
            squares = self.row_norms(level.k, alive)
            if squares is None:
                return alive
            out = alive & level.excludes(self.diagonal, squares)
            if not out.any():
                return alive
            alive &= ~out


class RowLists:
    """The L largest |Ã_ij|, bounded from above, of some rows within some columns."""

    def __init__(
        self, bounds: UpperBounds, rows: np.ndarray, columns: np.ndarray, length: int
    ) -> None:
        self.columns = columns
        self.length = max(0, min(length, len(columns) - 1))
        self.whole = self.length >= len(columns) - 1
        self.place = np.full(len(bounds.diagonal), -1)
        self.place[rows] = np.arange(len(rows))
        self.values = np.zeros((len(rows), self.length))
        self.names = np.zeros((len(rows), self.length), dtype=np.int64)
        if not self.length:
            return
        entries = bounds.entries(columns)
        positions = np.searchsorted(columns, rows)
        step = max(1, BLOCK // len(columns))
        for start in range(0, len(rows), step):
            part = positions[start : start + step]
            found = entries(part)
            found[np.arange(len(part)), part] = -1.0  # the diagonal is no neighbour
            order = np.argpartition(found, len(columns) - self.length, axis=1)
            order = order[:, len(columns) - self.length :]
            largest = np.take_along_axis(found, order, axis=1)
            falling = np.argsort(-largest, axis=1)
            filled = slice(start, start + len(part))
            self.values[filled] = np.take_along_axis(largest, falling, axis=1)
            self.names[filled] = columns[np.take_along_axis(order, falling, axis=1)]

    def row_norms(self, rows: np.ndarray, k: int, alive: np.ndarray) -> np.ndarray:
        """Bound r² of rows: the k − 1 largest squares within the features alive.

        An entry that is not in a list is at most the last of the list.
        """
        values = self.values[self.place[rows]] ** 2
        inside = alive[self.names[self.place[rows]]]
        inside &= np.cumsum(inside, axis=1) <= k - 1
        squares = np.sum(values * inside, axis=1)
        if not self.whole:
            missing = min(k - 1, int(alive.sum()) - 1) - inside.sum(axis=1)
            squares += np.maximum(missing, 0) * values[:, -1]
        return above(squares, self.length + k)


def undecided_by_lists(
    bounds: UpperBounds, lists: RowLists, level: Level, features: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Drop what can be dropped; return the mask of what is alive, and what should not.

    Features that are to stay are not tried: fewer of them would do no harm, but a
    tree names all of them. When the lists, which are of all records, help no more, new
    ones are made of the features alive.
    """
    alive = bounds.left_by_cauchy(level)
    stays = np.zeros(len(alive), dtype=bool)
    stays[list(features)] = True
    alive |= stays
    is_fresh = False
    while True:
        rows = np.flatnonzero(alive & ~stays)
        squares = lists.row_norms(rows, level.k, alive)
        out = rows[level.excludes(bounds.diagonal[rows], squares)]
        alive[out] = False
        if not len(out) and (is_fresh or not len(rows)):
            return alive, rows
        is_fresh = not len(out)
        if is_fresh:
            lists = RowLists(bounds, rows, np.flatnonzero(alive), level.k - 1)


def rows_above(bounds: UpperBounds, k: int, upper: float) -> np.ndarray:
    """Return the rows with Ã_ii + the k − 1 largest |Ã_ij| not provably ≤ `upper`."""
    d = len(bounds.diagonal)
    room = below(upper - bounds.diagonal)  # negative where the diagonal is too large
    if k == 1:
        return np.flatnonzero(bounds.diagonal > upper)
    rows = np.arange(d)
    if bounds.roots is not None:
        most = above(np.sum(np.sort(bounds.roots)[::-1][: k - 1]), k)
        rows = np.flatnonzero(above(bounds.roots * most + bounds.error * k) > room)
    if not len(rows):
        return rows
    entries = bounds.entries(np.arange(d))
    left = []
    for start in range(0, len(rows), max(1, BLOCK // d)):
        part = rows[start : start + max(1, BLOCK // d)]
        found = entries(part)
        found[np.arange(len(part)), part] = 0.0
        largest = np.partition(found, d - k + 1, axis=1)[:, d - k + 1 :]
        left.append(part[above(np.sum(largest, axis=1), k) > room[part]])
    return np.concatenate(left)
