"""Rule "compositions": how many features a set takes from each part (section 5).

Let S have s_g features in part g, a_g(s) ≥ λmax(Ã_TT) for all T of s features of the
part, and c_gh ≥ ‖Ã_{S_g S_h}‖₂. For a unit vector x with parts x_g, x'Ãx ≤ Σ a_g(s_g)
‖x_g‖² + Σ_{g≠h} c_gh ‖x_g‖ ‖x_h‖: λ(S) is at most the largest eigenvalue of the matrix
M of these numbers. As ‖B‖₂² ≤ ‖B‖₁ ‖B‖_∞, c_gh² = r_gh(s_h) r_hg(s_g) will do, r_gh(s)
being the largest sum of s entries |Ã_ij| with one i in part g and different j in part
h. Parts may be unions of others: u_g(r) bounds all sets of r features of the parts from
g on.

*Rounding.* Entries, and sums of them, are float64 from above in both arithmetics
(`screening.py`), as they are in screening. What is made of them, roots and matrices of
a row per part, is rounded up: in integers, or in float64 by 8.1u(|a| + |b| + c) for the
larger eigenvalue of [[a, c], [c, b]] (`float_tree.py`). Off their diagonals these
matrices are not negative, so that larger entries have larger eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, isqrt, sqrt
from typing import Any

import numpy as np

from .composition_file import Composed, ComposedCase
from .fields import ProofError
from .positive import is_positive_semidefinite, largest_eigenvalue_is_below
from .problem import Groups
from .proof_file import Record
from .screening import (
    BLOCK,
    TINY,
    UNIT,
    UpperBounds,
    above,
    undecided_in_groups,
)
from .tree_file import Node

MOST_ENTRIES = 2**27  # between the features of parts and all
NEAR = 2.0**-40  # margin of float64, beside τ and the largest entry


class FloatNumbers:
    """Numbers as float64, rounded up."""

    @staticmethod
    def of(x: float) -> float:
        """Return a number of the tables."""
        return x

    @staticmethod
    def bound(upper: Fraction) -> float:
        """Return a bound of a record, which is a float64."""
        return float(upper)

    @staticmethod
    def product(a: float, b: float) -> float:
        """Bound ab, of numbers that are not negative."""
        return float(above(a * b)) if a and b else 0.0

    @staticmethod
    def root(square: float) -> float:
        """Bound the root of a number that is not negative."""
        return float(above(sqrt(square))) if square else 0.0

    @staticmethod
    def larger(a: float, square: float, b: float) -> float:
        """Bound the larger eigenvalue of [[a, c], [c, b]], c² being `square`."""
        found = (a + b + sqrt((a - b) * (a - b) + 4 * square)) / 2
        return found + 8.1 * UNIT * (abs(a) + abs(b) + sqrt(square)) + TINY

    @staticmethod
    def is_below(M: list[list[float]], tau: float) -> bool:
        """Say whether λmax(M) ≤ τ is shown."""
        B = np.array(M)
        margin = NEAR * (abs(tau) + float(np.abs(B).max()))
        return bool(np.isfinite(B).all()) and largest_eigenvalue_is_below(
            B, tau, margin
        )


class IntegerNumbers:
    """Numbers as integers, rounded up: 2^`bits` times those of the tables."""

    def __init__(self, bits: int) -> None:
        self.factor = 2.0**bits

    def of(self, x: float) -> Any:
        """Return a number of the tables."""
        return ceil(x * self.factor) if np.isfinite(x) else x

    @staticmethod
    def bound(upper: int) -> int:
        """Return a bound of a record, which is an integer."""
        return upper

    @staticmethod
    def product(a: int, b: int) -> int:
        """Return ab."""
        return a * b

    @staticmethod
    def root(square: int) -> int:
        """Bound the root of a number that is not negative."""
        return isqrt(square - 1) + 1 if square else 0

    @classmethod
    def larger(cls, a: int, square: int, b: int) -> int:
        """Bound the larger eigenvalue of [[a, c], [c, b]], c² being `square`."""
        return -((-a - b - cls.root((a - b) ** 2 + 4 * square)) // 2)

    @staticmethod
    def is_below(M: list[list[int]], tau: int) -> bool:
        """Say whether λmax(M) ≤ τ."""
        return is_positive_semidefinite(
            [[tau * (i == j) - x for j, x in enumerate(row)] for i, row in enumerate(M)]
        )


# -- tables ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PartTables:
    """What the entries say, in float64 from above.

    `within[g][s]` is a_g(s) by sums of rows, −∞ for 0 and for more than there are.
    `rows[g][h][s]` is r_gh(s); `later[g][h][s]` the same from part h ≤ g to all parts
    after g. All are there for s = 0, …, k.
    """

    sizes: list[int]
    within: list[np.ndarray]
    rows: list[list[np.ndarray]]
    later: list[list[np.ndarray]]

    @classmethod
    def of(
        cls, bounds: UpperBounds, parts: Sequence[Sequence[int]], level: float, k: int
    ) -> PartTables:
        """Sum up; `level` must bound |Ã_ij| between features in none of the parts."""
        d = len(bounds.diagonal)
        strong = np.array([i for part in parts for i in part], dtype=np.int64)
        if len(strong) * d > MOST_ENTRIES:
            raise ProofError(f"k = {k}: the parts are too large for a table")
        rest = np.setdiff1d(np.arange(d), strong)
        columns = np.concatenate([strong, rest])
        ends = np.cumsum([0, *map(len, parts), len(rest)]).tolist()
        places = [slice(a, b) for a, b in pairwise(ends) if b > a]
        E = bounds.entries(columns)(np.arange(len(strong)), d)
        E[np.arange(len(strong)), np.arange(len(strong))] = 0.0
        within = [
            _row_bounds(bounds.diagonal[columns[at]], E[at, at], k)
            for at in places[: len(parts)]
        ]
        if len(rest):
            _check_weak(bounds, rest, level, k)
            own = float(bounds.diagonal[rest].max())
            sums = np.arange(k) * level
            found = np.full(k + 1, -inf)
            found[1:] = own + sums + 8 * UNIT * (abs(own) + sums) + TINY
            found[len(rest) + 1 :] = -inf
            within.append(found)
        return cls(
            [at.stop - at.start for at in places],
            within,
            _between(E, places, len(parts), k),
            _beyond(E, places, len(parts), k),
        )


def _between(
    E: np.ndarray, places: list[slice], strong: int, k: int
) -> list[list[np.ndarray]]:
    m = len(places)
    rows = [[np.zeros(k + 1) for _ in range(m)] for _ in range(m)]
    for g in range(strong):
        for h in range(m):
            if h != g:
                rows[g][h] = _largest_sums(E[places[g], places[h]], k)
        if strong < m:
            rows[m - 1][g] = _largest_sums(E[places[g], places[m - 1]].T, k)
    return rows


def _beyond(
    E: np.ndarray, places: list[slice], strong: int, k: int
) -> list[list[np.ndarray]]:
    """The largest sums of rows in all parts after one, of the parts up to it."""
    found: list[list[np.ndarray]] = [[] for _ in places]
    largest = np.zeros((len(E), 0))
    for g in range(len(places) - 1, 0, -1):
        merged = np.concatenate([largest, E[:, places[g]]], axis=1)
        largest = -np.sort(-merged, axis=1)[:, :k]
        found[g - 1] = [_largest_sums(largest[places[h]], k) for h in range(g)]
    return found


def _largest_sums(block: np.ndarray, k: int) -> np.ndarray:
    """The largest sum of s entries of a row, s = 0, …, k; of all, if there are less."""
    sums = np.zeros(k + 1)
    n = min(k, block.shape[1])
    if n and len(block):
        largest = -np.sort(-block, axis=1)[:, :n]
        sums[1 : n + 1] = above(np.cumsum(largest, axis=1), k).max(axis=0)
        sums[n + 1 :] = sums[n]
    return sums


def _row_bounds(diagonal: np.ndarray, E: np.ndarray, k: int) -> np.ndarray:
    """Ã_ii and the s − 1 largest |Ã_ij| of its row, the largest for each s."""
    found, most = np.full(k + 1, -inf), min(k, len(E))
    largest = -np.sort(-E, axis=1)[:, : most - 1]
    sums = np.zeros((len(E), most))
    sums[:, 1:] = above(np.cumsum(largest, axis=1), k)
    own = diagonal[:, None]
    bounds = own + sums + 8 * UNIT * (np.abs(own) + sums) + TINY
    found[1 : most + 1] = bounds.max(axis=0)
    return found


def _check_weak(bounds: UpperBounds, rest: np.ndarray, level: float, k: int) -> None:
    """Show |Ã_ij| ≤ level for all pairs of some features.

    In the order of falling roots, of which Cauchy's inequality says how many columns
    of a row can be above it. A pair is in the row of the later of the two.
    """
    roots = np.full(len(rest), inf)
    if bounds.roots is not None:
        roots = bounds.roots[rest]
    order = np.argsort(-roots, kind="stable")
    rest, roots = rest[order], roots[order]
    entries, start = bounds.entries(rest), 1
    while start < len(rest):
        size = above(roots[start] * roots + bounds.error)
        width = int(np.sum(~(size <= level)))
        if width == 0:
            return
        stop = min(len(rest), start + max(1, BLOCK // width))
        rows, width = np.arange(start, stop), min(width, stop)
        found = entries(rows, width)
        found[rows[:, None] <= np.arange(width)] = 0.0
        if not (found <= level).all():
            raise ProofError(f"k = {k}: an entry beside the parts is above the level")
        start = stop


# -- bounds by counts -----------------------------------------------------------------


class Counts:
    """What sets with given counts can have.

    `numbers` are `FloatNumbers` or `IntegerNumbers`; `points[g]` has lists of further
    a_g(s), s = 0, …, k.
    """

    def __init__(
        self,
        tables: PartTables,
        points: Sequence[Sequence[Sequence[Any]]],
        k: int,
        numbers: Any,
    ) -> None:
        self.k, self.sizes, self.numbers = k, tables.sizes, numbers
        m = len(self.sizes)
        self.left = [sum(self.sizes[g:]) for g in range(m + 1)]
        self.within = [
            [
                min(numbers.of(float(x)), *(point[s] for point in more), inf)
                for s, x in enumerate(own)
            ]
            for own, more in zip(tables.within, [*points, ()], strict=False)
        ]
        self.rows = [[self._all(r) for r in row] for row in tables.rows]
        self.later = [[self._all(r) for r in row] for row in tables.later]
        self.back = [
            [
                [max(self.rows[i][h][s] for i in range(g + 1, m)) for s in range(k + 1)]
                for h in range(g + 1)
            ]
            for g in range(m - 1)
        ]
        self.after = self._suffix_bounds()

    def _all(self, table: np.ndarray) -> list[Any]:
        return [self.numbers.of(x) for x in table.tolist()]

    def _suffix_bounds(self) -> list[list[Any]]:
        """u_g(r) for every part g, and one more, and r = 0, …, k."""
        k, m, numbers = self.k, len(self.sizes), self.numbers
        after: list[list[Any]] = [[-inf] * (k + 1) for _ in range(m + 1)]
        for g in range(m - 1, -1, -1):
            a, later, here = self.within[g], after[g + 1], after[g]
            for r in range(1, k + 1):
                here[r] = max(a[r], later[r])
                if g == m - 1:
                    continue
                for s in range(1, min(r - 1, self.sizes[g]) + 1):
                    q = r - s
                    if later[q] == -inf:
                        continue
                    square = numbers.product(self.later[g][g][q], self.back[g][g][s])
                    here[r] = max(here[r], numbers.larger(a[s], square, later[q]))
        return after

    def are_closed(self, counts: Sequence[int], tau: Any) -> bool:
        """Say whether no set that begins with these counts has more than τ."""
        g, q = len(counts) - 1, self.k - sum(counts)
        if q > self.left[g + 1]:
            return True  # there is no such set
        active = [h for h, count in enumerate(counts) if count]
        size = len(active) + (q > 0)
        M: list[list[Any]] = [[0] * size for _ in range(size)]
        for i, h in enumerate(active):
            M[i][i] = self.within[h][counts[h]]
            for j, f in enumerate(active[:i]):
                M[i][j] = M[j][i] = self._coupling(
                    self.rows[h][f][counts[f]], self.rows[f][h][counts[h]]
                )
            if q:
                M[i][-1] = M[-1][i] = self._coupling(
                    self.later[g][h][q], self.back[g][h][counts[h]]
                )
        if q:
            M[-1][-1] = self.after[g + 1][q]
        # −∞ says that there is no set; of counts that fit there are some
        if not all(row[i] > -inf for i, row in enumerate(M)):
            raise ProofError(f"k = {self.k}: the counts {counts} have no bound")
        return self.numbers.is_below(M, tau)

    def _coupling(self, one: Any, other: Any) -> Any:
        return self.numbers.root(self.numbers.product(one, other))


class CountTree:
    """Reads the nodes of `counts`, in order; a case is checked for each `L`."""

    def __init__(
        self,
        given: Composed,
        bounds: Counts,
        tau: Any,
        check: Callable[[ComposedCase, list[int]], None],
    ) -> None:
        self.nodes: Iterator[Node] = iter(given.counts)
        self.cases = iter(given.cases)  # as many as there are L: `composition_file`
        self.bounds, self.tau, self.check = bounds, tau, check

    def node(self, counts: list[int]) -> None:
        """Read what follows some counts, of the first parts."""
        node, bounds = next(self.nodes), self.bounds
        left, g = bounds.k - sum(counts), len(counts)
        if left == 0:
            if node.letter != "L":
                raise self.fail("a case is expected where all features are counted")
            missing = len(bounds.sizes) - g
            self.check(next(self.cases), counts + [0] * missing)
            return
        if node.letter != "S" or g == len(bounds.sizes):
            raise self.fail("counts of the next part are expected")
        most = min(left, bounds.sizes[g])
        if node.opened and node.opened[-1] > most:
            raise self.fail(
                f"{node.opened[-1]} features of a part with room for {most}"
            )
        for s in {*range(most + 1)} - {*node.opened}:
            if not bounds.are_closed([*counts, s], self.tau):
                raise self.fail(
                    f"the counts {[*counts, s]} are not shown to be below U"
                )
        for s in node.opened:
            self.node([*counts, s])

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.bounds.k}: {what}")


# -- the rule -------------------------------------------------------------------------


def check_compositions(
    matrix: Any, bounds: UpperBounds, record: Record, uppers: dict[int, Any]
) -> None:
    """Show that no set of k features has more than U_k, `uppers[k]`."""
    given, k, numbers = record.composed, record.k, matrix.numbers
    assert given is not None
    uppers = {q: numbers.bound(upper) for q, upper in uppers.items()}
    tau = uppers[k]
    level = matrix.number(given.level)
    tables = PartTables.of(bounds, given.parts, matrix.below_in_floats(level), k)
    points = [
        [matrix.part_bound(part, point, k) for point in more]
        for part, more in zip(given.parts, given.points, strict=True)
    ]
    counts = Counts(tables, points, k, numbers)
    held = {i for part in given.parts for i in part}
    rest = tuple(i for i in range(len(bounds.diagonal)) if i not in held)
    parts = [*given.parts, rest] if rest else [*given.parts]
    chain = {
        q: min(uppers.get(q, inf), counts.after[0][q])
        for q in range(1, k)
        if min(uppers.get(q, inf), counts.after[0][q]) <= tau
    }
    check = CaseCheck(matrix, bounds, record, parts, {**chain, k: tau})
    CountTree(given, counts, tau, check.check).node([])
    matrix.nodes += len(given.counts) + sum(len(case.tree) for case in given.cases)


@dataclass(frozen=True)
class CaseCheck:
    """Checks sets with given counts: whole parts are chosen, and a tree has the rest.

    `chain[q]` is U_q ≤ τ, of this record's own tables or of another record; that of k
    is τ.
    """

    matrix: Any
    bounds: UpperBounds
    record: Record
    parts: list[tuple[int, ...]]
    chain: dict[int, Any]

    def check(self, case: ComposedCase, counts: list[int]) -> None:
        """Check one case, of so many features of each part."""
        k = self.record.k
        used = {g: i for g, i in enumerate(self.parts) if counts[g]}
        chosen = [i for g, part in used.items() if counts[g] == len(part) for i in part]
        label = {i: g for g, part in used.items() for i in part}
        if not {*case.features} <= label.keys() - {*chosen}:
            raise ProofError(f"k = {k}: a case has features that its counts leave out")
        stays = (*chosen, *case.features)
        if len(stays) < len(label):
            self._screen(stays, Groups(label, tuple(counts)))
        groups = Groups(label, tuple(counts)).at(case.features)
        record = replace(
            self.record, features=case.features, tree=case.tree, depth=k, rule="tree"
        )
        if len(chosen) == k and [node.letter for node in case.tree] != ["L"]:
            raise ProofError(f"k = {k}: a case of one set is closed by L")
        self.matrix.check_case(record, chosen, groups, self.chain)

    def _screen(self, stays: tuple[int, ...], groups: Groups) -> None:
        """Drop the features of the case that its tree does not name."""
        k, tau = self.record.k, self.chain[self.record.k]
        if k - 1 not in self.chain:
            raise ProofError(f"k = {k}: screening needs U of k - 1, at most τ")
        u = self.chain[k - 1]
        among = np.zeros(len(self.bounds.diagonal), dtype=bool)
        among[list(groups.label)] = True
        level = self.matrix.level(k, tau, u)
        alive, rows = undecided_in_groups(self.bounds, groups, level, stays, among)
        self.matrix.check_screening(alive, rows, k, tau, u, groups)
