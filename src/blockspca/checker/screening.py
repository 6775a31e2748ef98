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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .groups import Groups

UNIT = 2.0**-53
TINY = 2.0**-900
# Added to a root of a sum of squares: squares that underflow lose at most 2⁻¹⁰⁷⁴ each,
# and the norm of s numbers √s 2⁻⁵³⁷. Where it is not small, floats decide nothing.
TINY_NORM = 2.0**-500
BLOCK = 2**23  # entries of Ã that are formed at a time
WHOLE_LISTS = 2**24  # entries of lists that may be as long as rows

Entries = Callable[[np.ndarray, int], np.ndarray]


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
    function of positions in `columns` and a width, which bounds the |Ã_ij| of these
    rows and the first `width` columns. Only sets that keep the `groups` count.
    """

    diagonal: np.ndarray
    roots: np.ndarray | None
    error: float
    entries: Callable[[np.ndarray], Entries]
    groups: Groups | None = None

    def row_norms(self, k: int, alive: np.ndarray) -> np.ndarray | None:
        """Bound r² = Σ Ã_ij² over any k − 1 of the features alive, by Cauchy.

        r ≤ roots_i ‖roots_R‖ + error √(k − 1), by the triangle inequality.
        """
        if self.roots is None:
            return None
        norm = np.sqrt(above(np.sum(self.largest_roots(k, alive) ** 2), k))
        return above(above(self.roots * norm + self.error * np.sqrt(k)) ** 2)

    def largest_roots(self, k: int, alive: np.ndarray) -> np.ndarray:
        """Return the k − 1 largest roots that a set of features alive can have."""
        assert self.roots is not None
        names = np.flatnonzero(alive)
        names = names[np.argsort(-self.roots[names], kind="stable")]
        if self.groups is not None:
            names = names[self.groups.has_room(names[None], None)[0]]
        return self.roots[names[: k - 1]]

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
    """The L largest |Ã_ij|, bounded from above, of some rows within some columns.

    Columns come in the order of falling `roots`. Of a row only the first columns are
    looked at, if Cauchy's inequality says that all others have entries too small to
    matter for the `levels` (where that is no great saving, it costs no more). An entry
    that is not in a list is at most `others` of the row.
    """

    def __init__(
        self,
        bounds: UpperBounds,
        rows: np.ndarray,
        columns: np.ndarray,
        length: int,
        levels: Sequence[Level] = (),
    ) -> None:
        d, self.groups = len(bounds.diagonal), bounds.groups
        self.length = max(0, min(length, len(columns) - 1))
        roots = np.full(d, np.inf) if bounds.roots is None else bounds.roots
        columns = columns[np.argsort(-roots[columns], kind="stable")]
        position = np.full(d, -1)
        position[columns] = np.arange(len(columns))
        rows = rows[np.argsort(position[rows])]
        self.place = np.full(d, -1)
        self.place[rows] = np.arange(len(rows))
        self.values = np.zeros((len(rows), self.length))
        self.names = np.zeros((len(rows), self.length), dtype=np.int64)
        self.others = np.zeros(len(rows))
        entries, start = bounds.entries(columns), 0
        while start < len(rows) and self.length:
            first = rows[start]
            small = _small_entry(levels, bounds.diagonal[first])
            bound = above(roots[first] * roots[columns] + bounds.error)
            width = max(int(np.sum(bound > small)), self.length + 1)
            part = slice(start, start + max(1, BLOCK // width))
            names = rows[part]
            self._fill(part, entries(position[names], width), position[names], columns)
            if width < len(columns):
                self.others[part] = np.maximum(self.others[part], bound[width])
            start = part.stop
        np.maximum(self.values, self.others[:, None], out=self.values)

    def _fill(
        self, part: slice, found: np.ndarray, own: np.ndarray, columns: np.ndarray
    ) -> None:
        """Keep the largest of the entries found, without the diagonal."""
        inside = np.flatnonzero(own < found.shape[1])
        found[inside, own[inside]] = -1.0
        kept = found.shape[1] - self.length
        order = np.argpartition(found, kept, axis=1)[:, kept:]
        largest = np.take_along_axis(found, order, axis=1)
        falling = np.argsort(-largest, axis=1)
        self.values[part] = np.take_along_axis(largest, falling, axis=1)
        self.names[part] = columns[np.take_along_axis(order, falling, axis=1)]
        if self.length < len(columns) - 1:
            self.others[part] = self.values[part][:, -1]

    def row_norms(self, rows: np.ndarray, k: int, alive: np.ndarray) -> np.ndarray:
        """Bound r² of rows: the k − 1 largest squares within the features alive.

        The values of a list are no less than what bounds entries that are not in it:
        so taking all of the list that has room, and then others, is the most there is.
        """
        values = self.values[self.place[rows]] ** 2
        names = self.names[self.place[rows]]
        inside, most = alive[names], int(alive.sum())
        if self.groups is not None:
            inside &= self.groups.has_room(np.where(inside, names, -1), rows)
            most = self.groups.capacity(np.flatnonzero(alive))
        inside &= np.cumsum(inside, axis=1) <= k - 1
        squares = np.sum(values * inside, axis=1)
        missing = min(k - 1, most - 1) - inside.sum(axis=1)
        squares += np.maximum(missing, 0) * self.others[self.place[rows]] ** 2
        return above(squares, self.length + k)


def _small_entry(levels: Sequence[Level], diagonal: float) -> float:
    """Return a size of which k − 1 entries make r² half of what rules a feature out."""
    squares = [
        (level.tau - diagonal) * (level.tau - level.u) / (2 * level.k)
        for level in levels
    ]
    return float(np.sqrt(max(0.0, min(squares, default=0.0))))


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
            columns, length = np.flatnonzero(alive), level.k - 1
            if bounds.groups is not None:  # some of these may have no room
                whole = len(rows) * len(columns) <= WHOLE_LISTS
                length = len(columns) if whole else 4 * level.k
            lists = RowLists(bounds, rows, columns, length)


def rows_above(bounds: UpperBounds, k: int, upper: float) -> np.ndarray:
    """Return the rows with Ã_ii + the k − 1 largest |Ã_ij| not provably ≤ `upper`."""
    d = len(bounds.diagonal)
    room = below(upper - bounds.diagonal)  # negative where the diagonal is too large
    if k == 1:
        return np.flatnonzero(bounds.diagonal > upper)
    rows = np.arange(d)
    if bounds.roots is not None:
        most = above(np.sum(bounds.largest_roots(k, np.ones(d, dtype=bool))), k)
        rows = np.flatnonzero(above(bounds.roots * most + bounds.error * k) > room)
    if not len(rows):
        return rows
    entries = bounds.entries(np.arange(d))
    left, count = [], max(1, BLOCK // d // (1 if bounds.groups is None else 8))
    for start in range(0, len(rows), count):
        part = rows[start : start + count]
        found = entries(part, d)
        found[np.arange(len(part)), part] = 0.0
        largest = _largest_allowed(found, part, k, bounds.groups)
        left.append(part[above(np.sum(largest, axis=1), k) > room[part]])
    return np.concatenate(left)


def _largest_allowed(
    found: np.ndarray, rows: np.ndarray, k: int, groups: Groups | None
) -> np.ndarray:
    """Return the k − 1 largest entries of each row that one set can have, or 0."""
    d = found.shape[1]
    if groups is None:
        return np.partition(found, d - k + 1, axis=1)[:, d - k + 1 :]
    order = np.argsort(-found, axis=1, kind="stable")
    order = order[order != rows[:, None]].reshape(len(rows), d - 1)
    inside = groups.has_room(order, rows)
    inside &= np.cumsum(inside, axis=1) <= k - 1
    return np.take_along_axis(found, order, axis=1) * inside
