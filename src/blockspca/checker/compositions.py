"""Rule "compositions": how many features of each part a better set could have.

Counts of features are closed by the tables of `CompositionTables`, in float64 from
above, whichever arithmetic decides; what bounds a part, and the trees of the cases that
are left, are decided in that of the matrix.

The tree of a case is that of section 5. Parts that a set has as a whole are chosen
before its first node; the others are groups, of which a set has at most as many
features as are counted. Features that a case leaves out must drop by screening.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from .arithmetic import Forms, Number, level_of
from .composition_file import Case, Compositions
from .composition_tables import CompositionTables
from .fields import ProofError
from .groups import Groups, Rooms
from .integers import IntegerMatrix
from .screening import BLOCK, UpperBounds, above
from .tree_text import WrittenTree

AT_ONCE = 256  # counts whose matrices are eliminated together


@dataclass(frozen=True)
class CaseCounts:
    """Features of parts that a set has all of, and of those that it has some of."""

    whole: np.ndarray  # in the order of parts
    some: np.ndarray
    part: np.ndarray  # of each feature of the matrix
    room: np.ndarray  # the count of each part

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], begin: Sequence[int]) -> CaseCounts:
        """Return what counts say; those that are not there are 0."""
        room = np.zeros(len(parts), dtype=np.int64)
        room[: len(begin)] = begin
        whole = [part for part, s in zip(parts, room, strict=True) if s == len(part)]
        some = [part for part, s in zip(parts, room, strict=True) if 0 < s < len(part)]
        none = np.zeros(0, dtype=np.int64)
        of_feature = np.zeros(sum(map(len, parts)), dtype=np.int64)
        for g, part in enumerate(parts):
            of_feature[part] = g
        return cls(
            np.concatenate([none, *whole]),
            np.concatenate([none, *some]),
            of_feature,
            room,
        )

    @property
    def groups(self) -> Groups:
        """The parts as groups, of which a set has as many features as are counted."""
        return Groups(self.part, self.room)

    def largest_sums(
        self, squares: np.ndarray, columns: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Return for each row the sum of its largest squares that a set can have.

        A set with the feature of the row has one less of its part. It is the choice of
        `Groups.largest` for many rows: part by part, as all features are in one.
        """
        total = np.zeros(len(rows))
        for g in np.flatnonzero(self.room):
            inside = np.sort(squares[:, self.part[columns] == g], axis=1)[:, ::-1]
            most = self.room[g] - (self.part[rows] == g)
            sums = np.cumsum(inside, axis=1)
            places = np.minimum(most, inside.shape[1]) - 1
            if inside.shape[1]:
                found = sums[np.arange(len(rows)), np.maximum(places, 0)]
                total += np.where(places >= 0, found, 0.0)
        return total


class CompositionCheck(Generic[Number]):
    """Checks one record; `uppers` are the U_q of the chain."""

    def __init__(
        self,
        forms: Forms[Number],
        bounds: UpperBounds,
        k: int,
        upper: Number,
        uppers: dict[int, Number],
        given: Compositions,
    ) -> None:
        self.forms: Forms[Number] = forms
        self.upper: Number = upper
        self.uppers: dict[int, Number] = uppers
        self.bounds, self.k, self.given = bounds, k, given
        rest = np.setdiff1d(
            np.arange(len(bounds.diagonal)), np.concatenate(given.parts)
        )
        self.parts = [np.array(part, dtype=np.int64) for part in given.parts]
        self.parts += [rest] if len(rest) else []
        level = forms.matrix.number_below(forms.matrix.number(given.level))
        self.tables = CompositionTables(bounds, self.parts, len(rest) > 0, level, k)

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what}")

    def check(self) -> None:
        """Show that no set of k features is above U."""
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            if not self.tables.is_level():
                raise self.fail("an entry beside the parts is above the level")
            self.tables.finish(self.shown_bounds())
            self.add_to_chain()
            self.beginning([], iter(self.given.counts), iter(self.given.cases))
        self.forms.matrix.nodes += len(self.given.counts)

    def shown_bounds(self) -> list[list[tuple[float, np.ndarray]]]:
        """Return t and v̂² of the matrices that are shown to be above their part."""
        found: list[list[tuple[float, np.ndarray]]] = []
        for part, items in zip(self.given.parts, self.given.bounds, strict=True):
            found.append([])
            for item in items:
                t = self.forms.matrix.number(item.t)
                v = self.forms.signed_weights(item.v)
                if not self.forms.bounds_part(part, t, v, self.k):
                    raise self.fail("vv' + tI is not shown to bound a part")
                squares = self.forms.squares_above(v)
                found[-1].append((self.forms.matrix.number_above(t), squares))
        return [*found, []]  # none of the rest

    def add_to_chain(self) -> None:
        """Lower the U_q of the chain to u_1(q), which bounds all sets of q features."""
        self.chain: dict[int, Number] = dict(self.uppers)
        most = self.tables.most[0]
        for q in range(1, self.k):
            if np.isfinite(most[q]):
                here = self.forms.from_above(float(most[q]))
                self.chain[q] = min(here, self.chain.get(q, here))

    # -- counts ---------------------------------------------------------------------

    def beginning(
        self, begin: list[int], nodes: Iterator[Any], cases: Iterator[Case]
    ) -> None:
        """Read the node of a beginning of counts; a call for each part at the most."""
        node, q = next(nodes), self.k - sum(begin)
        if q == 0:
            if node.letter != "L":
                raise self.fail("a case is expected where all features are counted")
            self.check_case(begin, next(cases))
            return
        if node.letter != "S" or len(begin) == len(self.parts):
            raise self.fail("counts of the next part are expected")
        room = min(q, len(self.parts[len(begin)]))
        if node.opened and node.opened[-1] > room:
            raise self.fail(
                f"{node.opened[-1]} features of a part with room for {room}"
            )
        closing = np.setdiff1d(np.arange(room + 1), node.opened)
        top = self.forms.matrix.number_below(self.upper)
        for start in range(0, len(closing), AT_ONCE):
            counts = closing[start : start + AT_ONCE]
            shown = self.tables.are_closed(begin, counts, top)
            if not shown.all():
                at = [*begin, int(counts[~shown][0])]
                raise self.fail(f"the counts {at} are not shown to be below U")
        for count in node.opened:
            self.beginning([*begin, count], nodes, cases)

    # -- cases ----------------------------------------------------------------------

    def check_case(self, begin: Sequence[int], case: Case) -> None:
        """Show that the sets with these counts are not above U."""
        k, matrix = self.k, self.forms.matrix
        counts = CaseCounts.of(self.parts, begin)
        if not np.isin(case.features, counts.some).all():
            raise self.fail("a case has features that its counts leave out")
        dropped = np.setdiff1d(counts.some, case.features)
        if len(dropped):
            self.drop(counts, dropped)
        whole: list[int] = counts.whole.tolist()
        if len(whole) == k and [node.letter for node in case.tree] != ["L"]:
            raise self.fail("a case without a choice is closed by L")
        names = (*whole, *case.features)
        uppers = {**self.chain, k: self.upper}
        choices = case.depth + len(whole)
        tree, B = matrix.tree(WrittenTree(case.tree, choices, k, names, uppers))
        for _ in whole:
            if not tree.pivot_fits(B, 0):
                raise self.fail("a whole part has B_pp ≥ τ")
            B = tree.child(B, 0, np.arange(1, tree.size(B)))
        if len(whole) < k:
            groups = counts.groups.restricted(case.features)
            places = np.arange(len(case.features))
            tree.node(B, places, k - len(whole), Rooms([groups]))
        matrix.nodes += len(case.tree)

    def drop(self, counts: CaseCounts, rows: np.ndarray) -> None:
        """Show that features are in no better set, one after the other (screening).

        r² is a sum over parts, of as many squares of each as the counts say, and one
        less of the part of the feature itself: k − 1 altogether.
        """
        u = self.chain.get(self.k - 1)
        if self.k > 1 and (u is None or u > self.upper):
            raise self.fail("screening needs U of k - 1, at most τ")
        matrix = self.forms.matrix
        alive = np.sort(np.concatenate([counts.whole, counts.some]))
        while len(rows):
            if u is None:  # k = 1
                found = [matrix.diagonal_at_most(i, self.upper) for i in rows]
                fits = np.array(found, dtype=bool)
            else:
                squares = self.largest_squares(counts, rows, alive)
                level = level_of(matrix, self.k, self.upper, u)
                fits = level.excludes(self.bounds.diagonal[rows], squares)
            out = rows[fits]
            if not len(out) and u is not None and isinstance(matrix, IntegerMatrix):
                out = _dropped_exactly(matrix, counts, rows, alive, (self.upper, u))
            if not len(out):
                what = matrix.problem.feature(rows[0])
                raise self.fail(f"{what} cannot be dropped")
            rows, alive = np.setdiff1d(rows, out), np.setdiff1d(alive, out)

    def largest_squares(
        self, counts: CaseCounts, rows: np.ndarray, alive: np.ndarray
    ) -> np.ndarray:
        """Bound r² of rows, within the features alive."""
        entries, size = self.bounds.entries(alive), len(alive)
        own = np.searchsorted(alive, rows)
        found = np.zeros(len(rows))
        step = max(1, BLOCK // size)
        for start in range(0, len(rows), step):
            part = np.arange(start, min(start + step, len(rows)))
            squares = above(entries(own[part], size) ** 2)
            squares[np.arange(len(part)), own[part]] = 0.0
            found[part] = counts.largest_sums(squares, alive, rows[part])
        return above(found, self.k + len(self.parts))


def _dropped_exactly(
    matrix: IntegerMatrix,
    counts: CaseCounts,
    rows: np.ndarray,
    alive: np.ndarray,
    question: tuple[int, int],
) -> np.ndarray:
    """Return a feature of `rows` that can be dropped from those alive, if any can.

    r² is the sum of the largest squares that the counts of a case leave room for, and
    `question` has τ and u.
    """
    groups, (tau, u) = counts.groups, question
    for i in rows.tolist():
        room = tau - matrix.entry(i, i)
        squares = [(matrix.entry(i, j) ** 2, j) for j in alive.tolist() if j != i]
        total = sum(groups.largest(squares, len(squares), i))
        if room >= 0 and total <= room * (tau - u):
            return np.array([i])
    return np.zeros(0, dtype=np.int64)
