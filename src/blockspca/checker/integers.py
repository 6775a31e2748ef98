"""Ã in integers, and all rules decided by exact integer arithmetic.

The unit is a power of two, 2⁻⁶⁴ of what bounds all |A_ij|, and Ã_ij is A_ij in units,
rounded down. So |Ã_ij − A_ij| < e = 1 unit; e = 0 if nothing had to be rounded. With
`scale`, the columns g_i have been rounded before. With t = 2⁻⁹⁶, |g_i'g_j t² − w_i'w_j|
≤ t√n (‖w_i‖ + ‖w_j‖) + t²n ≤ 2t√(nN) + t²n, and divided by N ≥ 1 that is at most 3nt:
less than a unit, so e = 2. Of columns that are deflated, or continued for features that
are chosen, `columns` says what their products are off by. What is taken off beside
(`taken.py`) is rounded down as well: two such numbers differ by what the exact ones do,
within a unit. Negative entries that are raised to 0 change by no more than before.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .columns import ExactColumns, dot, fraction_bits, scaled, shifted
from .composition_file import PartBound
from .compositions import IntegerNumbers
from .entries import ExactEntries
from .entry import (
    SHARE_BITS,
    integer_matrix,
    rest_of_rows,
    weights_in,
    whole_weights,
)
from .fields import ProofError
from .group_tree import IntegerGroupTree
from .integer_direction import IntegerDirections
from .integer_entry_tree import IntegerEntryTree
from .integer_tree import IntegerTree
from .positive import eliminate, is_nonnegative
from .problem import Groups, Problem
from .proof_file import Direction, Entry, Record
from .screening import (
    Entries,
    Level,
    Raised,
    UpperBounds,
    above,
    rows_above,
    top_sum,
)
from .sign_tree import IntegerSignTree
from .taken import FloatTaken, Taken

BITS = 64
LARGEST_N = 250  # samples: larger matrices take minutes to eliminate
LARGEST_DENSE = 1200  # features: of as many a matrix of integers takes half a minute
LARGEST = 500  # bits of a bound in units: floats must hold its square


class IntegerMatrix:
    """Ã in units of 2^`exponent`, from exact arithmetic on the data."""

    name = "exact integers"
    numbers = IntegerNumbers(BITS)

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.problem, self.nodes = problem, 0
        self.known: dict[tuple[int, int], int] = {}  # Ã_ij, i < j, computed so far
        self.raised = Raised.of(problem)
        self.is_given = problem.kind == "matrix"
        kept = list(problem.kept)
        if self.is_given and (problem.vectors or problem.chosen):
            self._take(ExactEntries(Y, problem), kept)
        elif self.is_given:
            self.Y = Y = Y[np.ix_(kept, kept)] if len(kept) < problem.d else Y
            self.bits = fraction_bits(Y)
            self.exponent = int(np.frexp(np.abs(Y).max())[1]) - BITS
            # (Y_ij + Y_ji)/2 is an integer times 2^−(bits + 1).
            self.e = int(self.bits + 1 + self.exponent > 0)
            self.diagonal = [self._pair(i, i) for i in range(len(kept))]
        else:
            self.data = data = ExactColumns(Y, problem)
            self.column = lru_cache(maxsize=4096)(lambda i: data.column(kept[i]))
            self.taken = Taken(problem)
            squares = [dot(g, g) for g in map(data.column, kept)]
            most = max(squares) // data.denominator
            sizes = (self.taken.size(i) for i in kept if i in self.taken.rows)
            taken = max(sizes, default=Fraction(0)) * Fraction(2) ** data.two_bits
            most = max(most, int(taken))
            self.exponent = most.bit_length() - data.two_bits - BITS
            unit = Fraction(2) ** -(self.exponent + BITS)
            self.float_taken = FloatTaken(self.taken, problem.kept, unit)
            self.diagonal = [
                self._rounded(square) - self._taken(i, i)
                for i, square in enumerate(squares)
            ]
            self.e = 2 if problem.scale else 1
            if not data.is_plain:
                self.e = self._rounded(data.entry_error) + 2

    def _take(self, exact: ExactEntries, kept: list[int]) -> None:
        """Take all entries of a matrix that is made of the given one, rounded down."""
        pairs = [(i, j) for j in range(len(kept)) for i in range(j + 1)]
        tops = [exact.top(kept[i], kept[j]) for i, j in pairs]
        bits = max(map(abs, tops)).bit_length() - exact.bottom.bit_length()
        self.e, self.exponent = 1, bits + 1 - BITS
        up, down = max(-self.exponent, 0), max(self.exponent, 0)
        self.known = {
            pair: (top << up) // (exact.bottom << down)
            for pair, top in zip(pairs, tops, strict=True)
        }
        self.diagonal = [self.known[i, i] for i in range(len(kept))]

    # -- entries --------------------------------------------------------------------

    def _pair(self, i: int, j: int) -> int:
        bits, Y = self.bits, self.Y
        both = scaled(float(Y[i, j]), bits) + scaled(float(Y[j, i]), bits)
        return shifted(both, -bits - 1 - self.exponent)

    def _rounded(self, product: int) -> int:
        shift = -self.data.two_bits - self.exponent
        if shift >= 0:
            return (product << shift) // self.data.denominator
        return product // (self.data.denominator << -shift)

    def _taken(self, i: int, j: int) -> int:
        names = self.problem.kept
        if not self.taken.has(names[i], names[j]):
            return 0
        top, shift = self.taken.top(names[i], names[j]), -self.exponent
        return (top << max(shift, 0)) // (self.taken.bottom << max(-shift, 0))

    def entry(self, i: int, j: int, raised: bool = True) -> int:
        """Return Ã_ij in units; perhaps as it is before it is raised."""
        if i == j:
            return self.diagonal[i]
        place = (i, j) if i < j else (j, i)
        if place not in self.known:
            if self.is_given:
                found = self._pair(i, j)
            else:
                found = self._rounded(dot(self.column(i), self.column(j)))
                found -= self._taken(i, j)
            self.known[place] = found
        found = self.known[place]
        return found if found >= 0 or self.raised.keeps(i, j) or not raised else 0

    # -- numbers --------------------------------------------------------------------

    def number(self, value: float) -> int:
        """Return a real number in units, rounded down."""
        found = Fraction(value) * Fraction(2) ** -self.exponent // 1
        if abs(found) > 2**LARGEST:
            raise ProofError(f"the bound {value} is out of all proportion to the data")
        return found

    def largest_diagonal(self, k: int) -> int:
        """Return the sum of the k largest Ã_ii."""
        return sum(sorted(self.diagonal)[-k:])

    def smallest_diagonal(self) -> int:
        """Return the smallest Ã_ii."""
        return min(self.diagonal)

    # -- float64, from above --------------------------------------------------------

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs, in units of 2^(exponent + 64)."""
        diagonal = np.array([_rounded_up(found) for found in self.diagonal])
        roots = None
        if not self.is_given:
            taken = self.float_taken
            squares = diagonal + taken.diagonal() + taken.sizes + taken.error
            roots = above(np.sqrt(above(squares + self.e * 2.0**-BITS)))
        bounds = self._matrix_entries if roots is None else self._data_entries
        return UpperBounds(diagonal, roots, self.e * 2.0**-BITS, bounds)

    def _matrix_entries(self, columns: np.ndarray) -> Entries:
        if self.problem.vectors or self.problem.chosen or self.raised.is_used:
            names = columns.tolist()
            return lambda rows, width: np.array(
                [[_rounded_up(abs(self.entry(names[i], j))) for j in names[:width]]
                 for i in rows]
            )  # fmt: skip
        Y, shift = self.Y, -self.exponent - BITS - 1

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            one = np.ldexp(Y[np.ix_(columns[rows], columns[:width])], shift)
            other = np.ldexp(Y[np.ix_(columns[:width], columns[rows])].T, shift)
            return above(np.abs(one + other)) + self.e * 2.0**-BITS

        return entries

    def _data_entries(self, columns: np.ndarray) -> Entries:
        """Bound |Ã_ij| by products of columns that are exact in float64.

        Column i is cut to 2b bits, r_i = ⌊g_i/2^s_i⌋ with 2^−s_i g_i − r_i in [0, 1),
        and split: r_i = 2^b h_i + l_i, |h_i| ≤ 2^b, 0 ≤ l_i < 2^b. As n·4^b ≤ 2⁵³, the
        products h'h, h'l and l'l and all their partial sums are integers of at most 53
        bits: they are exact in whichever order they are added. And 2^−(s_i + s_j)
        |g_i'g_j| ≤ |r_i'r_j| + ‖r_i‖₁ + ‖r_j‖₁ + n.
        """
        n = self.data.n
        bits = (53 - (n - 1).bit_length()) // 2
        r = np.zeros((n, len(columns)), dtype=np.int64)
        factors = np.zeros(len(columns))
        root = self.data.two_bits + BITS + self.exponent  # of the unit of the bounds
        for place, i in enumerate(columns.tolist()):
            column = self.column(i)
            size = max(y.bit_length() for y in map(abs, column))
            r[:, place] = [shifted(y, 2 * bits - size) for y in column]
            # 2^s_i in the unit of the bounds; `root` is odd or even, so halved late.
            factors[place] = 2.0 ** (size - 2 * bits - root // 2)
        high, low = (part.astype(float) for part in (r >> bits, r & (2**bits - 1)))
        sums = np.abs(r).sum(axis=0).astype(float)
        divisor = float(self.data.denominator) * (1 - 2.0**-50) * 2.0 ** (root % 2)

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            h, ell = high[:, rows].T, low[:, rows].T
            cross = 2.0**bits * (h @ low[:, :width] + ell @ high[:, :width])
            found = 4.0**bits * (h @ high[:, :width]) + cross + ell @ low[:, :width]
            # Each of the three was rounded: to 53 bits of at most 4^(2b) n.
            off = 8 * 2.0**-53 * 16.0**bits * n + n + sums[rows][:, None] + sums[:width]
            unit = (factors[rows] / divisor)[:, None] * factors[:width]
            found *= unit
            lost = self.float_taken.subtract(found, columns[rows], columns[:width])
            self.raised.apply(found, columns[rows], columns[:width])
            return above(np.abs(found) + off * unit + lost) + 2.0**-BITS

        return entries

    # -- rules that need rows -------------------------------------------------------

    def check_rows(self, bounds: UpperBounds, k: int, upper: int) -> None:
        """Rule "rows": rows that floats do not decide are summed in integers."""
        groups = self.problem.places
        for i in rows_above(bounds, k, _rounded_down(upper), groups).tolist():
            others = (j for j in range(len(self.diagonal)) if j != i)
            row = [(abs(self.entry(i, j)), j) for j in others]
            if self.diagonal[i] + top_sum(row, k - 1, groups, i) > upper:
                raise ProofError(f"k = {k}: the row sum of feature {i} is above U")

    def diagonal_at_most(self, i: int, tau: int) -> bool:
        """Say whether Ã_ii ≤ τ."""
        return self.diagonal[i] <= tau

    def level(self, k: int, tau: int, u: int) -> Level:
        """Return the question of a record, rounded for screening."""
        return Level(k, _rounded_down(tau), _rounded_up(u))

    def check_screening(
        self,
        alive: np.ndarray,
        rows: np.ndarray,
        k: int,
        tau: int,
        u: int,
        groups: Groups | None,
    ) -> None:
        """Drop the features `rows` from those alive, in integers."""
        left = set(np.flatnonzero(alive).tolist())
        waiting = rows.tolist()
        while waiting:
            again = []
            for i in waiting:
                squares = [(self.entry(i, j) ** 2, j) for j in left if j != i]
                rest = tau - self.diagonal[i]
                if rest < 0 or top_sum(squares, k - 1, groups, i) > rest * (tau - u):
                    again.append(i)
                else:
                    left.discard(i)
            if len(again) == len(waiting):
                raise ProofError(f"k = {k}: feature {again[0]} cannot be dropped")
            waiting = again

    def check_direction(self, k: int, upper: int, given: Direction) -> None:
        """Rule "direction"; Ã_ij is the product of g_i and g_j within a unit."""
        n, data = self.problem.n, self.data
        if n > LARGEST_N:
            raise ProofError(f"k = {k}: direction in integers is for n ≤ {LARGEST_N}")
        unit = data.denominator * Fraction(2) ** data.two_bits  # of g_i'g_i
        level = (upper - k) * Fraction(2) ** self.exponent * unit
        directions = IntegerDirections(self.column, len(self.diagonal), n, k, level)
        # any vector of a round will do, so that its unit need not be exact
        root = Fraction(data.denominator**0.5) * Fraction(2) ** (data.two_bits // 2)
        with np.errstate(all="ignore"):  # what is not finite is refused
            for one in given.rounds:
                vector = [Fraction(y) * root for y in one.vector]
                directions.check_round(self._rho(one.direction) * unit, one, vector)
            directions.check_last(self._rho(given) * unit, given)

    def _rho(self, given: Direction) -> Fraction:
        self.number(given.rho)  # refuses what floats could not hold
        return Fraction(given.rho)

    def check_entry(
        self, bounds: UpperBounds, k: int, upper: int, given: Entry
    ) -> None:
        """Rule "entry", with weights in integers, as floats hold them too."""
        m, t = whole_weights(weights_in(given.weights, self.exponent + BITS))
        w = np.ldexp(np.array(m, dtype=float), -t)
        added = rest_of_rows(bounds, k, _rounded_down(upper), w, given)
        if len(given.dense) > LARGEST_DENSE:
            raise ProofError(
                f"k = {k}: entry in integers is for {LARGEST_DENSE} dense features"
            )
        X = integer_matrix(self.entry, BITS, k, upper, m, t, added, given)
        if not is_nonnegative(X, k):
            raise ProofError(f"k = {k}: U is not shown to bound the weighted matrix")

    def check_entry_tree(self, record: Record, upper: int) -> None:
        """Rule "entry-tree", after screening."""
        k, features = record.k, record.features
        if len(features) > LARGEST_DENSE:
            raise ProofError(
                f"k = {k}: entry-tree in integers is for {LARGEST_DENSE} features"
            )
        shift = self.exponent + BITS
        nodes = (
            node.in_units(lambda given: weights_in(given, shift))
            for node in record.nodes
        )
        tree = IntegerEntryTree(
            nodes,
            lambda i, j: self.entry(features[i], features[j]),
            len(features),
            k,
            upper,
            BITS,
        )
        with np.errstate(all="ignore"):  # what is not finite is not used
            tree.node(np.arange(0), np.arange(len(features)))
        self.nodes += len(record.nodes)

    def check_tree(self, record: Record, uppers: dict[int, int]) -> None:
        """Read the tree of a record; U_j is `uppers[j]`, in units."""
        tau = uppers[record.k]
        chain = {k: tau - upper for k, upper in uppers.items() if upper <= tau}
        M = [[-self.entry(i, j) for j in record.features] for i in record.features]
        for i, row in enumerate(M):
            row[i] += tau
        groups = self.problem.limits_of(record.features)
        tree = IntegerTree(iter(record.tree), record.k, chain)
        tree.node(M, 1, list(range(len(M))), record.k, groups)
        self.nodes += len(record.tree)

    def below_in_floats(self, number: int) -> float:
        """Return a number in the units of `upper_bounds`, rounded down."""
        return max(_rounded_down(number), 0.0)

    def part_bound(self, part: tuple[int, ...], given: PartBound, k: int) -> list[Any]:
        """Show Ã ⪯ vv' + tI on a part, for sets of k; return what it has for s ≤ k.

        v is rounded first, as any vector will do, and nothing after.
        """
        if len(part) > LARGEST_DENSE:
            raise ProofError(
                f"k = {k}: parts in integers have {LARGEST_DENSE} features"
            )
        size = [abs(x) for x in given.v]
        w, b = whole_weights(weights_in(size, self.exponent + BITS))
        v = [-x if y < 0 else x for x, y in zip(w, given.v, strict=True)]
        t, shift = self.number(given.t), 2 * b + SHARE_BITS - BITS
        X = [
            [
                (v[p] * v[q] << SHARE_BITS) - (self.entry(i, j) << shift)
                for q, j in enumerate(part)
            ]
            for p, i in enumerate(part)
        ]
        for p, row in enumerate(X):
            row[p] += t << shift
        if not is_nonnegative(X, k):
            raise ProofError(f"k = {k}: vv' + tI is not shown to bound a part")
        squares = sorted((x * x for x in v), reverse=True)[:k]
        sums = [sum(squares[:s]) << SHARE_BITS for s in range(1, k + 1)]
        return [float("inf"), *(t - (-total >> shift) for total in sums)]

    def check_case(
        self,
        record: Record,
        chosen: list[int],
        groups: Groups,
        chain: dict[int, int],
    ) -> None:
        """Read the tree of a case, once the features of whole parts are chosen."""
        k, names = record.k, [*chosen, *record.features]
        tau = chain[k]
        M = [[-self.entry(i, j) for j in names] for i in names]
        for i, row in enumerate(M):
            row[i] += tau
        pivot = 1
        for _ in chosen:
            if M[0][0] <= 0:
                raise ProofError(f"k = {k}: a whole part has B_pp ≥ τ")
            M, pivot = eliminate(M, pivot, 0, range(1, len(M))), M[0][0]
        tree = IntegerTree(iter(record.tree), k, {q: tau - u for q, u in chain.items()})
        if len(chosen) < k:
            F = list(range(len(record.features)))
            tree.node(M, pivot, F, k - len(chosen), groups)

    def check_signs(
        self, record: Record, uppers: dict[int, int], signs: dict[int, int]
    ) -> None:
        """Rule "signs", after screening."""
        place = {name: position for position, name in enumerate(self.problem.kept)}
        inside = [place[i] for i in self.problem.include]
        rows, tau = [*inside, *record.features], uppers[record.k]
        if len(rows) > LARGEST_DENSE:
            raise ProofError(
                f"k = {record.k}: signs in integers are for {LARGEST_DENSE} rows"
            )
        plain = [[self.entry(i, j, raised=False) for j in rows] for i in rows]
        M = [[-self.entry(i, j) for j in rows] for i in rows]
        for i, row in enumerate(M):
            row[i] += tau
        limits = self.problem.limits_of(rows)
        if limits is not None:
            held = limits.after(range(len(inside)))
            limits = held.at(range(len(inside), len(rows)))
        tree = IntegerSignTree(record, plain, tau, inside)
        tree.check(M, uppers, {} if inside else signs, limits, self.number)
        self.nodes += len(record.tree)

    def check_group_tree(self, record: Record, upper: int) -> None:
        """Rule "group-tree"."""
        features, inside, sizes = self.problem.in_units(record.features)
        if len(features) > LARGEST_DENSE:
            raise ProofError(
                f"k = {record.k}: group-tree in integers is for {LARGEST_DENSE} rows"
            )
        M = [[-self.entry(i, j) for j in features] for i in features]
        for i, row in enumerate(M):
            row[i] += upper
        IntegerGroupTree(record, sizes).check((M, 1), inside)
        self.nodes += len(record.tree)


def _rounded_down(units: int) -> float:
    """Return what is at most units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, -np.inf))


def _rounded_up(units: int) -> float:
    """Return what is at least units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, np.inf))
