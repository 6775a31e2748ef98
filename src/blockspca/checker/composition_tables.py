"""Tables of the rule "compositions": what sets can have of each part, from above.

All is in float64 and in the unit of `UpperBounds`, whichever arithmetic decides: in
place of any of these numbers a larger one will do. Sums of entries of at least 0 are
rounded up by `above`.

Parts are counted from 0, and `start[g]` is where the g-th begins in the order of all
features by parts; Z_g are the features from there on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .positive import are_below, larger_root
from .screening import BLOCK, TINY, UNIT, UpperBounds, above

MARGIN = 2.0**-20  # of U: an eighth of the room that writers leave


class CompositionTables:
    """a_g(s), r_{X→Y}(s) and u_g(r), for s and r up to k.

    `parts` has all features, the last of them being the rest, if `has_rest`; `level` is
    what its entries do not exceed. `others[g]` are pairs of t, rounded up, and v̂², for
    the matrices tI + v̂v̂' that are above part g.
    """

    def __init__(
        self,
        bounds: UpperBounds,
        parts: Sequence[np.ndarray],
        has_rest: bool,
        level: float,
        k: int,
    ) -> None:
        self.bounds, self.k, self.has_rest, self.level = bounds, k, has_rest, level
        self.parts = parts
        self.sizes = [len(part) for part in parts]
        self.start = np.concatenate([[0], np.cumsum(self.sizes)])
        self.count = len(parts)
        self.order = np.concatenate(parts)
        self.known = int(self.start[-2 if has_rest else -1])
        self.entries = self._entries()
        self.received = [self._received(g) for g in range(self.count)]
        self.sent = self._sent()

    def left(self, g: int) -> int:
        """Return the number of features of Z_g."""
        return int(self.start[-1] - self.start[g])

    # -- r_{X→Y} --------------------------------------------------------------------

    def _entries(self) -> np.ndarray:
        """Return |Ã_ij| for i in parts and all j, 0 for i = j."""
        d = len(self.order)
        found, entries = np.zeros((self.known, d)), self.bounds.entries(self.order)
        for first in range(0, self.known, max(1, BLOCK // d)):
            rows = np.arange(first, min(first + max(1, BLOCK // d), self.known))
            found[rows] = entries(rows, d)
        found[np.arange(self.known), np.arange(self.known)] = 0.0
        return found

    def is_level(self) -> bool:
        """Show |Ã_ij| ≤ level for all i ≠ j of the rest."""
        if not self.has_rest:
            return True
        rest, roots = self.parts[-1], self.bounds.roots
        if roots is not None:
            most = roots[rest].max()
            product = above(roots[rest] * most + self.bounds.error)
            rest = rest[~(product <= self.level)]
        entries, width = self.bounds.entries(rest), max(1, len(rest))
        for first in range(0, len(rest), max(1, BLOCK // width)):
            rows = np.arange(first, min(first + max(1, BLOCK // width), len(rest)))
            found = entries(rows, len(rest))
            found[np.arange(len(rows)), rows] = 0.0
            if not (found <= self.level).all():
                return False
        return True

    def _received(self, g: int) -> np.ndarray:
        """Return r_{P_f→P_g}(s) as an array of s and f ≠ g, and 0 for s = 0."""
        cut = slice(self.start[g], self.start[g + 1])
        most = min(self.k, self.sizes[g])
        found = np.zeros((most + 1, self.count))
        if self.has_rest and g == self.count - 1:
            columns, starts = self.entries[:, cut].T, self.start[:-2]
        else:
            columns, starts = self.entries[cut], self.start[:-1]
        sums = np.cumsum(_falling(columns, most, axis=0), axis=0)
        found[1:, : len(starts)] = above(
            np.maximum.reduceat(sums, starts, axis=1), most
        )
        return found

    def from_rest(self, g: int, h: int) -> np.ndarray:
        """Return r_{Z_g→P_h}(s) for s = 0, 1, …, and h < g."""
        return self.received[h][:, g:].max(axis=1)

    def _sent(self) -> list[list[np.ndarray]]:
        """Return r_{P_h→Z_g}(s) for all g, h < g, s = 0, 1, ….

        The largest entries of Z_g in a row are among those of P_g and Z_{g+1}.
        """
        sent: list[list[np.ndarray]] = [[] for _ in range(self.count + 1)]
        largest = np.zeros((self.known, 0))
        for g in range(self.count - 1, 0, -1):
            rows, end = self.start[g], self.start[g + 1]
            most = min(self.k, self.left(g))
            both = np.hstack([largest[:rows], self.entries[:rows, rows:end]])
            largest = _falling(both, most, axis=1)
            sums = above(np.cumsum(largest, axis=1), most)
            rising = np.maximum.reduceat(sums, self.start[:g], axis=0)
            sent[g] = list(np.hstack([np.zeros((g, 1)), rising]))
        return sent

    # -- a_g and u_g ----------------------------------------------------------------

    def finish(self, others: Sequence[Sequence[tuple[float, np.ndarray]]]) -> None:
        """Compute a_g and u_g; index 0 of them is of no meaning."""
        self.own = [self._own(g, others[g]) for g in range(self.count)]
        self.most: list[np.ndarray] = [np.full(1, -np.inf)]
        for g in range(self.count - 1, -1, -1):
            self.most.insert(0, self._bounds_from(g, self.most[0]))

    def _own(self, g: int, others: Sequence[tuple[float, np.ndarray]]) -> np.ndarray:
        """Return a_g(s), s ≤ k: by rows, and by matrices tI + vv'."""
        most = min(self.k, self.sizes[g])
        diagonal = self.bounds.diagonal[self.parts[g]]
        found = np.full(most + 1, np.nan)
        if self.has_rest and g == self.count - 1:
            steps = self.level * np.arange(most)
            return np.concatenate([found[:1], _sum(diagonal.max(), steps)])
        cut = slice(self.start[g], self.start[g + 1])
        largest = _falling(self.entries[cut, cut], most - 1, axis=1)
        zeros = np.zeros((len(diagonal), 1))
        sums = above(np.cumsum(np.hstack([zeros, largest]), axis=1), most)
        found[1:] = _sum(diagonal[:, None], sums).max(axis=0)
        for t, squares in others:
            falling = above(np.cumsum(np.sort(squares)[::-1][:most]), most)
            found[1:] = np.minimum(found[1:], _sum(t, falling))
        return found

    def _bounds_from(self, g: int, after: np.ndarray) -> np.ndarray:
        """Return u of Z_g, given that of Z_{g+1}."""
        found = np.full(min(self.k, self.left(g)) + 1, -np.inf)
        own = self.own[g]
        found[1 : len(after)] = after[1:]
        found[1 : len(own)] = np.maximum(found[1 : len(own)], own[1:])
        if len(after) > 1:
            there, back = self.sent[g + 1][g], self.from_rest(g + 1, g)
            for s in range(1, len(own)):
                rest = min(len(after) - 1, self.k - s)
                if rest < 1:
                    break
                squares = above(there[1 : rest + 1] * back[s])
                pair = larger_root(own[s], after[1 : rest + 1], squares)
                place = slice(s + 1, s + rest + 1)
                found[place] = np.maximum(found[place], pair)
        return found

    # -- beginnings of counts -------------------------------------------------------

    def are_closed(
        self, begin: Sequence[int], counts: np.ndarray, upper: float
    ) -> np.ndarray:
        """Say which of the beginnings (begin, s), s in `counts`, are shown below U.

        U is rounded down. All matrices are eliminated at once; a count of 0 has a row
        that is 0 beside its diagonal, where it does no harm.
        """
        g, q = len(begin), self.k - sum(begin)
        known = [h for h, s in enumerate(begin) if s]
        size, total = len(known) + 2, len(counts)
        M = np.zeros((total, size, size))
        harmless = upper - abs(upper)
        rest = q - counts
        is_none = rest > self.left(g + 1)
        here, after = counts > 0, (rest > 0) & ~is_none
        own, most = self.own[g], self.most[g + 1]
        M[:, -2, -2] = np.where(here, own[counts], harmless)
        M[:, -1, -1] = np.where(after, most[np.where(after, rest, 0)], harmless)
        if after.any():
            there, back = self.sent[g + 1][g], self.from_rest(g + 1, g)
            square = there[np.where(after, rest, 0)] * back[counts]
            M[:, -2, -1] = np.where(here & after, _root(square), 0.0)
        for a, h in enumerate(known):
            M[:, a, a] = self.own[h][begin[h]]
            for b, f in enumerate(known[:a]):
                M[:, b, a] = self._between(h, begin[h], f, begin[f])
            square = self.received[g][counts, h] * self.received[h][begin[h], g]
            M[:, a, -2] = np.where(here, _root(square), 0.0)
            if after.any():
                back = self.from_rest(g + 1, h)[begin[h]]
                square = self.sent[g + 1][h][np.where(after, rest, 0)] * back
                M[:, a, -1] = np.where(after, _root(square), 0.0)
        upper_half = np.triu(M, 1)
        M += upper_half.transpose(0, 2, 1)
        return is_none | are_below(M, upper, MARGIN * abs(upper))

    def _between(self, h: int, s: int, f: int, r: int) -> float:
        """Return M_hf of s features of P_h and r of P_f."""
        return float(_root(self.received[f][r, h] * self.received[h][s, f]))


def _falling(entries: np.ndarray, most: int, axis: int) -> np.ndarray:
    """Return the largest `most` entries along an axis, in falling order."""
    if not most:
        return np.take(entries, np.arange(0), axis=axis)
    cut = entries.shape[axis] - most
    if cut > 0:
        entries = np.partition(entries, cut, axis=axis)
        entries = np.take(entries, np.arange(cut, cut + most), axis=axis)
    return np.flip(np.sort(entries, axis=axis), axis=axis)


def _sum(one: np.ndarray | float, other: np.ndarray) -> np.ndarray:
    """Return one + other, of any sign, rounded up."""
    return one + other + 4 * UNIT * (np.abs(one) + np.abs(other)) + TINY


def _root(square: np.ndarray) -> np.ndarray:
    """Return the root of a product of two numbers of at least 0, rounded up."""
    return above(np.sqrt(above(square)))
