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

from .problem import Groups, Problem

UNIT = 2.0**-53
TINY = 2.0**-900
BLOCK = 2**23  # entries of Ã that are formed at a time

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
    rows and the first `width` columns.
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
        d = len(bounds.diagonal)
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

        The values of a list are no less than what bounds entries that are not in it.
        """
        values = self.values[self.place[rows]] ** 2
        inside = alive[self.names[self.place[rows]]]
        inside &= np.cumsum(inside, axis=1) <= k - 1
        squares = np.sum(values * inside, axis=1)
        missing = min(k - 1, int(alive.sum()) - 1) - inside.sum(axis=1)
        squares += np.maximum(missing, 0) * self.others[self.place[rows]] ** 2
        return above(squares, self.length + k)


@dataclass(frozen=True)
class Raised:
    """Which negative entries off the diagonal are taken as 0: all but those of pairs.

    Pairs are of positions among the features that are kept, each in both orders.
    """

    is_used: bool
    pairs: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, problem: Problem) -> Raised:
        place = {name: position for position, name in enumerate(problem.kept)}
        pairs = {
            pair
            for i, j in problem.raised or ()
            if i in place and j in place
            for pair in ((place[i], place[j]), (place[j], place[i]))
        }
        return cls(problem.raised is not None, frozenset(pairs))

    def keeps(self, i: int, j: int) -> bool:
        """Say whether an entry stays as it is, also if it is negative."""
        return not self.is_used or i == j or (i, j) in self.pairs

    def apply(self, block: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
        """Raise the entries of a block, in place."""
        if not self.is_used:
            return
        stays = rows[:, None] == columns
        for i, j in self.pairs:
            stays |= np.logical_and.outer(rows == i, columns == j)
        block[~stays & (block < 0)] = 0.0


def top_sum(
    squares: list[tuple[Any, int]], most: int, groups: Groups | None, own: int
) -> Any:
    """Return the largest sum of squares that a set with feature `own` can meet.

    Of `most` features at the most, and of each group as many as there is room for: the
    largest of those that still fit, one after the other.
    """
    if groups is not None:
        groups = groups.after([own])
    total = 0
    for square, j in sorted(squares, reverse=True):
        if most > 0 and (groups is None or groups.has_room(j)):
            total += square
            most -= 1
            groups = groups and groups.after([j])
    return total


def members_of(groups: Groups, columns: np.ndarray) -> list[tuple[Any, Any]]:
    """Return, for each group, its places among some features, and these features."""
    labels = np.array([groups.label.get(i, -1) for i in columns.tolist()])
    places = [np.flatnonzero(labels == g) for g in range(len(groups.room))]
    return [(place, columns[place]) for place in places]


def keep_room(
    squares: np.ndarray,
    rows: np.ndarray,
    at: list[tuple[Any, Any]],
    room: Sequence[int],
) -> None:
    """Set to 0, in place, what no set with the row's feature can meet.

    `at` is of `members_of`; of a row only the room[g] largest of group g count, one
    less if the row's own feature is of the group.
    """
    for (places, members), most in zip(at, room, strict=True):
        own = np.isin(rows, members)
        for chosen, count in ((own, most - 1), (~own, most)):
            smaller = len(places) - count
            if smaller <= 0 or not chosen.any():
                continue
            place = np.ix_(chosen, places)
            part = squares[place]
            least = np.argpartition(part, smaller - 1, axis=1)[:, :smaller]
            np.put_along_axis(part, least, 0.0, axis=1)
            squares[place] = part


def undecided_in_groups(
    bounds: UpperBounds,
    groups: Groups,
    level: Level,
    features: tuple[int, ...],
    among: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """As `undecided_by_lists`, where sets have limits: `groups` of positions.

    Whole rows of the features alive are looked at, as which entries count changes with
    these. With `among`, a mask, sets have no other features.
    """
    alive = bounds.left_by_cauchy(level)
    if among is not None:
        alive &= among
    stays = np.zeros(len(alive), dtype=bool)
    stays[list(features)] = True
    alive |= stays
    while True:
        rows, columns = np.flatnonzero(alive & ~stays), np.flatnonzero(alive)
        entries, out = bounds.entries(columns), []
        own = np.searchsorted(columns, rows)
        members = members_of(groups, columns)
        step = max(1, BLOCK // max(1, len(columns)))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            squares = entries(own[part], len(columns)) ** 2
            squares[np.arange(len(squares)), own[part]] = 0.0
            keep_room(squares, rows[part], members, groups.room)
            most = max(len(columns) - level.k + 1, 0)
            if most:
                squares = np.partition(squares, most - 1, axis=1)[:, most:]
            sums = above(squares.sum(axis=1), level.k)
            fits = level.excludes(bounds.diagonal[rows[part]], sums)
            out.append(rows[part][fits])
        gone = np.concatenate(out) if out else rows[:0]
        alive[gone] = False
        if not len(gone):
            return alive, rows


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
            lists = RowLists(bounds, rows, np.flatnonzero(alive), level.k - 1)


def rows_above(
    bounds: UpperBounds, k: int, upper: float, groups: Groups | None = None
) -> np.ndarray:
    """Return the rows with Ã_ii + the k − 1 largest |Ã_ij| not provably ≤ `upper`.

    With `groups`, of positions, the largest that a set can meet.
    """
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
    left, at = [], [] if groups is None else members_of(groups, np.arange(d))
    for start in range(0, len(rows), max(1, BLOCK // d)):
        part = rows[start : start + max(1, BLOCK // d)]
        found = entries(part, d)
        found[np.arange(len(part)), part] = 0.0
        if groups is not None:
            keep_room(found, part, at, groups.room)
        largest = np.partition(found, d - k + 1, axis=1)[:, d - k + 1 :]
        left.append(part[above(np.sum(largest, axis=1), k) > room[part]])
    return np.concatenate(left)
