"""Ã in float64, and all rules decided with margins that are derived.

u = 2⁻⁵³. Data are first multiplied by a power of two, so that all |Y_si| ≤ 1; what then
underflows changes an entry of A by less than n·2⁻¹⁰⁰⁰, which is in e.

Ã = H'H − T̂, the exact product of the columns of `float_columns`, which has what they
are off by, less what is taken off beside (`taken.py`), in float64. A matrix that is
given is taken as it is; what is made of it is rounded from exact fractions, to within u
of each entry.

**Products** in float64, in any order, with or without fused operations:
|fl(H_i'H_j) − H_i'H_j| ≤ 1.01 n u ‖H_i‖ ‖H_j‖ for n u < 0.01.

`float_tree` has the margins of trees.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .composition_file import PartBound
from .compositions import FloatNumbers
from .direction import FloatDirections
from .entries import ExactEntries
from .entry import float_point_holds, rest_of_rows, weights_in
from .entry_tree import FloatEntryTree
from .fields import ProofError
from .float_columns import FloatColumns, rounded_down
from .float_tree import FloatTree
from .group_tree import FloatGroupTree
from .positive import is_nonnegative_by_factor
from .problem import Groups, Problem
from .proof_file import Direction, Entry, Record
from .screening import (
    TINY,
    UNIT,
    Entries,
    Level,
    Raised,
    UpperBounds,
    above,
    below,
    rows_above,
)
from .sign_tree import FloatSignTree
from .taken import FloatTaken, Taken


class FloatMatrix:
    """Ã in float64; `factor` · A is what it is about."""

    name = "float64 with derived margins"
    numbers = FloatNumbers()

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.problem, self.nodes = problem, 0
        self.divisor = problem.n - problem.ddof
        self.raised = Raised.of(problem)
        self.is_given = problem.kind == "matrix"
        if self.is_given:
            self._take(Y)
            return
        columns = FloatColumns(Y, problem)
        self.factor, self.shift = columns.factor, columns.shift
        self.A, self.error = columns.H, columns.error
        self.n = n = len(self.A)
        squares = np.einsum("si,si->i", self.A, self.A)
        self.taken = FloatTaken(Taken(problem), problem.kept, self.factor)
        self.error += self.taken.error
        own, self.squares = self.taken.diagonal(), above(squares, n)
        # a difference is rounded once, by at most u of both
        lost = (self.taken.place >= 0) * (8 * UNIT * self.squares + self.taken.error)
        self.low = below(squares, n) - own - lost
        self.high = self.squares - own + lost
        self.product_error = float(above(1.01 * n * UNIT * self.squares.max()))
        self.product_error += float(lost.max())
        self.e = Fraction(self.error)  # records and claims are compared exactly

    def _take(self, Y: np.ndarray) -> None:
        """Take the matrix that is given, or what is made of it, rounded once."""
        problem, kept = self.problem, list(self.problem.kept)
        if problem.vectors or problem.chosen:
            exact = ExactEntries(Y, problem)
            tops = [
                [exact.top(i, j) for j in kept[: p + 1]] for p, i in enumerate(kept)
            ]
            bits = max(abs(top) for row in tops for top in row).bit_length()
            self.shift = bits - exact.bottom.bit_length() + 1  # then all are below 1
            up, down = max(-self.shift, 0), max(self.shift, 0)
            self.A = np.zeros((len(kept), len(kept)))
            for p, row in enumerate(tops):
                numbers = [(top << up) / (exact.bottom << down) for top in row]
                self.A[p, : p + 1] = self.A[: p + 1, p] = numbers
            self.error = 2 * UNIT
        else:
            Y = Y[np.ix_(kept, kept)] if len(kept) < problem.d else Y
            self.shift = int(np.frexp(np.abs(Y).max())[1])
            scaled = np.ldexp(Y, -self.shift)
            self.A = (scaled + scaled.T) / 2
            back = np.ldexp(scaled, self.shift)
            same = np.array_equal(Y, Y.T) and np.array_equal(back, Y)
            self.error = 0.0 if same else 2 * UNIT
        self.factor = Fraction(2) ** -self.shift
        place = np.arange(len(kept))
        self.plain = self.A.copy() if self.raised.is_used else self.A
        self.raised.apply(self.A, place, place)
        self.low = self.high = np.diagonal(self.A).copy()
        self.product_error = 0.0
        self.e = Fraction(self.error)

    # -- numbers: exact fractions of float64 ----------------------------------------

    def number(self, value: float) -> Fraction:
        """Return `factor` times a real number, rounded down to a float64."""
        return Fraction(rounded_down(Fraction(value) * self.factor))

    def largest_diagonal(self, k: int) -> Fraction:
        """Return a bound on the sum of the k largest Ã_ii."""
        return sum(map(Fraction, np.sort(self.high)[-k:].tolist()), Fraction(0))

    def smallest_diagonal(self) -> Fraction:
        """Return what is at most the smallest Ã_ii."""
        return Fraction(float(self.low.min()))

    # -- float64, from above --------------------------------------------------------

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs."""
        if self.is_given:
            return UpperBounds(self.high, None, self.error, self._matrix_entries)
        roots = above(np.sqrt(above(self.squares + self.taken.sizes + self.error)))
        return UpperBounds(self.high, roots, self.error, self._data_entries)

    def _matrix_entries(self, columns: np.ndarray) -> Entries:
        return lambda rows, width: np.abs(
            self.A[np.ix_(columns[rows], columns[:width])]
        )

    def _data_entries(self, columns: np.ndarray) -> Entries:
        H = np.ascontiguousarray(self.A[:, columns])
        n = self.n
        norms = np.sqrt(self.squares[columns])

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            found = H[:, rows].T @ H[:, :width]
            lost = self.taken.subtract(found, columns[rows], columns[:width])
            self.raised.apply(found, columns[rows], columns[:width])
            np.abs(found, out=found)
            found += lost
            found += (1.02 * n * UNIT * norms[rows])[:, None] * norms[:width]
            return above(found)

        return entries

    # -- rules that need rows -------------------------------------------------------

    def check_rows(self, bounds: UpperBounds, k: int, upper: Fraction) -> None:
        """Rule "rows"."""
        left = rows_above(bounds, k, float(upper), self.problem.places)
        if len(left):
            raise ProofError(f"k = {k}: row sum of feature {left[0]} not shown below U")

    def diagonal_at_most(self, i: int, tau: Fraction) -> bool:
        """Say whether Ã_ii is shown to be at most τ."""
        return bool(self.high[i] <= float(tau))

    def level(self, k: int, tau: Fraction, u: Fraction) -> Level:
        """Return the question of a record."""
        return Level(k, float(tau), float(u))

    def check_screening(
        self,
        alive: np.ndarray,
        rows: np.ndarray,
        k: int,
        tau: Fraction,
        u: Fraction,
        groups: Groups | None,
    ) -> None:
        """Refuse: what floats do not drop, stays."""
        if len(rows):
            raise ProofError(f"k = {k}: feature {rows[0]} is not shown to drop")

    def check_direction(self, k: int, upper: Fraction, given: Direction) -> None:
        """Rule "direction", with c_i = H_i: Ã_ij is their exact product."""
        directions = FloatDirections(self.A, self.high, k, upper)
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            for one in given.rounds:
                vector = np.array(one.vector or [0.0] * self.problem.n)
                vector = np.ldexp(vector * np.sqrt(self.divisor), -self.shift)
                directions.check_round(self._rho(one.direction), one, vector)
            directions.check_last(self._rho(given), given)

    def _rho(self, given: Direction) -> float:
        rho = float(self.number(given.rho))
        if rho <= 0:
            raise ProofError("rho is too small for float64")
        return rho

    def check_entry(
        self, bounds: UpperBounds, k: int, upper: Fraction, given: Entry
    ) -> None:
        """Rule "entry", with weights of the unit in which Ã is."""
        w = self._weights(given.weights)
        added = rest_of_rows(bounds, k, float(upper), w, given)
        dense = list(given.dense)
        B, error = self._block(dense), self.product_error
        np.fill_diagonal(B, self.high[dense])
        if not float_point_holds(B, error, k, float(upper), w[dense], added, given):
            raise ProofError(f"k = {k}: U is not shown to bound the weighted matrix")

    def _weights(self, given: list[float]) -> np.ndarray:
        if self.is_given:
            return weights_in(given, self.shift)
        return weights_in(given, 2 * self.shift, self.divisor)

    def check_entry_tree(self, record: Record, upper: Fraction) -> None:
        """Rule "entry-tree", after screening."""
        features = list(record.features)
        A = self._block(features)
        np.fill_diagonal(A, self.high[features])
        nodes = (node.in_units(self._weights) for node in record.nodes)
        tree = FloatEntryTree(nodes, A, self.product_error, record.k, float(upper))
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            tree.node(np.arange(0), np.arange(len(features)))
        self.nodes += len(record.nodes)

    def _block(self, features: list[int], raised: bool = True) -> np.ndarray:
        """Return Ã between features, within `product_error`; perhaps not raised."""
        if self.is_given:
            A = self.A if raised else self.plain
            return A[np.ix_(features, features)]
        H = np.ascontiguousarray(self.A[:, features])
        B = H.T @ H
        B = np.tril(B) + np.tril(B, -1).T  # one value for both of a pair
        place = np.array(features, dtype=np.int64)
        self.taken.subtract(B, place, place)
        if raised:
            self.raised.apply(B, place, place)
        return B

    def check_tree(self, record: Record, uppers: dict[int, Fraction]) -> None:
        """Read the tree of a record; U_j is `uppers[j]`, a float64."""
        features = list(record.features)
        B = self._block(features)
        tree = FloatTree(iter(record.tree), record, B, self.product_error)
        tree.begin({k: float(upper) for k, upper in uppers.items()})
        groups = self.problem.limits_of(features)
        tree.node(B, np.arange(len(features)), record.k, groups)
        self.nodes += len(record.tree)

    def below_in_floats(self, number: Fraction) -> float:
        """Return a number in the units of `upper_bounds`, rounded down."""
        return float(number)

    def part_bound(
        self, part: tuple[int, ...], given: PartBound, k: int
    ) -> list[float]:
        """Show Ã ⪯ vv' + tI on a part, for sets of k; return what it has for s ≤ k.

        Entries of vv' − Ã are off by the error of Ã and three roundings, which costs k
        times as much: a vector has k entries that are not 0.
        """
        names, size = list(part), [abs(x) for x in given.v]
        v = np.copysign(self._weights(size), given.v)
        t = float(self.number(given.t))
        B = self._block(names)
        np.fill_diagonal(B, self.high[names])
        largest = float(np.abs(B).max()) + float(np.max(v * v))
        entry = self.product_error + 8 * UNIT * (largest + abs(t)) + TINY
        margin = 2.0**-32 * (largest + abs(t))
        N = np.outer(v, v) - B
        N.flat[:: len(B) + 1] += t
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            holds = is_nonnegative_by_factor(N, k, margin)
        if not holds:
            raise ProofError(f"k = {k}: vv' + tI is not shown to bound a part")
        squares = np.zeros(k)
        squares[: len(v)] = np.sort(v * v)[::-1][:k]
        sums = above(np.cumsum(squares), k)
        lost = margin + 1.01 * k * entry
        found = t + lost + sums + 8 * UNIT * (abs(t) + lost + sums)
        return [float("inf"), *found.tolist()]

    def check_case(
        self,
        record: Record,
        chosen: list[int],
        groups: Groups,
        chain: dict[int, Fraction],
    ) -> None:
        """Read the tree of a case, once the features of whole parts are chosen."""
        B = self._block([*chosen, *record.features])
        tree = FloatTree(iter(record.tree), record, B, self.product_error)
        tree.begin({k: float(upper) for k, upper in chain.items()})
        for _ in chosen:
            B, _ = tree.choose(B, np.arange(len(B)), 0)
        if len(chosen) < record.k:
            F = np.arange(len(record.features))
            tree.node(B, F, record.k - len(chosen), groups)

    def check_signs(
        self, record: Record, uppers: dict[int, Fraction], signs: dict[int, Fraction]
    ) -> None:
        """Rule "signs", after screening."""
        place = {name: position for position, name in enumerate(self.problem.kept)}
        inside = [place[i] for i in self.problem.include]
        rows = [*inside, *record.features]
        B, plain = self._block(rows), self._block(rows, raised=False)
        limits = self.problem.limits_of(rows)
        if limits is not None:
            held = limits.after(range(len(inside)))
            limits = held.at(range(len(inside), len(rows)))
        tree = FloatSignTree(record, B, plain, self.product_error, inside)
        bounds, of_signs = (
            {k: float(upper) for k, upper in known.items()}
            for known in (uppers, {} if inside else signs)
        )
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            tree.check(B, bounds, of_signs, limits, self.number)
        self.nodes += len(record.tree)

    def check_group_tree(self, record: Record, upper: Fraction) -> None:
        """Rule "group-tree"."""
        features, inside, sizes = self.problem.in_units(record.features)
        B = self._block(features)
        tree = FloatGroupTree(record, B, self.product_error, sizes)
        tree.begin({record.k: float(upper)})
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            tree.check(B, inside)
        self.nodes += len(record.tree)
