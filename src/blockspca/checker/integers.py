"""Ã in integers, and trees decided by exact integer arithmetic.

The unit is a power of two, 2⁻⁶⁴ of what bounds all |A_ij|, and Ã_ij is A_ij in units,
rounded down. So |Ã_ij − A_ij| < e = 1 unit; e = 0 if nothing had to be rounded. With
`scale`, the columns g_i have been rounded before. With t = 2⁻⁹⁶, |g_i'g_j t² − w_i'w_j|
≤ t√n (‖w_i‖ + ‖w_j‖) + t²n ≤ 2t√(nN) + t²n, and divided by N ≥ 1 that is at most 3nt:
less than a unit, so e = 2.

**Trees.** M = τI − B is eliminated without fractions (Bareiss): M⁰ = τI − Ã, and
choosing p makes M'_ij = (M_pp M_ij − M_ip M_jp) / q, q being the last pivot, 1 at
first. All these are minors of M⁰, so that the division leaves no rest, and the Schur
complement of the node is M/q. All tests are homogeneous: B_ii ≤ τ is M_ii ≥ 0, and r² ≤
(τ − B_ii)(τ − u) is Σ M_ij² ≤ M_ii (τ − u) q.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import isqrt

import numpy as np

from .columns import ExactColumns, dot, fraction_bits, scaled
from .direction import find_vectors
from .entry import integer_matrix, rest_of_rows, weights_in, whole_weights
from .fields import ProofError
from .positive import SMALL, exact_gram, is_nonnegative_in_integers
from .proof_file import Direction, Entry, Node, Problem, Record
from .screening import Entries, Level, UpperBounds, above, rows_above

BITS = 64
SHORT = 160  # bits that decide drops and suffix bounds; 64 is a unit at the root
LARGEST_N = 250  # samples: larger matrices take minutes to eliminate
LARGEST_DENSE = 1200  # features: of as many a matrix of integers takes half a minute
LARGEST = 500  # bits of a bound in units: floats must hold its square


class IntegerMatrix:
    """Ã in units of 2^`exponent`, from exact arithmetic on the data."""

    name = "exact integers"

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.Y, self.problem, self.nodes = Y, problem, 0
        self.known: dict[tuple[int, int], int] = {}  # Ã_ij, i < j, computed so far
        if problem.kind == "matrix":
            self.bits = fraction_bits(Y)
            self.exponent = int(np.frexp(np.abs(Y).max())[1]) - BITS
            # (Y_ij + Y_ji)/2 is an integer times 2^−(bits + 1).
            self.e = int(self.bits + 1 + self.exponent > 0)
            self.diagonal = [self._pair(i, i) for i in range(Y.shape[1])]
        else:
            self.data = data = ExactColumns(Y, problem)
            self.column = lru_cache(maxsize=4096)(data.column)
            self.e = 2 if problem.scale else 1
            squares = [dot(g, g) for g in map(data.column, range(Y.shape[1]))]
            most = max(squares) // data.denominator
            self.exponent = most.bit_length() - data.two_bits - BITS
            self.diagonal = [self._rounded(square) for square in squares]

    # -- entries --------------------------------------------------------------------

    def _pair(self, i: int, j: int) -> int:
        bits, Y = self.bits, self.Y
        both = scaled(float(Y[i, j]), bits) + scaled(float(Y[j, i]), bits)
        return _shift(both, -bits - 1 - self.exponent)

    def _rounded(self, product: int) -> int:
        shift = -self.data.two_bits - self.exponent
        if shift >= 0:
            return (product << shift) // self.data.denominator
        return product // (self.data.denominator << -shift)

    def entry(self, i: int, j: int) -> int:
        """Return Ã_ij in units."""
        if i == j:
            return self.diagonal[i]
        place = (i, j) if i < j else (j, i)
        if place not in self.known:
            if self.problem.kind == "matrix":
                self.known[place] = self._pair(i, j)
            else:
                product = dot(self.column(i), self.column(j))
                self.known[place] = self._rounded(product)
        return self.known[place]

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
        if self.problem.kind == "data":
            roots = above(np.sqrt(above(diagonal + self.e * 2.0**-BITS)))
        bounds = self._matrix_entries if roots is None else self._data_entries
        return UpperBounds(diagonal, roots, self.e * 2.0**-BITS, bounds)

    def _matrix_entries(self, columns: np.ndarray) -> Entries:
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
        bits = (53 - (self.problem.n - 1).bit_length()) // 2
        r = np.zeros((self.problem.n, len(columns)), dtype=np.int64)
        factors = np.zeros(len(columns))
        root = self.data.two_bits + BITS + self.exponent  # of the unit of the bounds
        for place, i in enumerate(columns.tolist()):
            column = self.data.column(i)
            size = max(y.bit_length() for y in map(abs, column))
            r[:, place] = [_shift(y, 2 * bits - size) for y in column]
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
            found = np.abs(found) + 8 * 2.0**-53 * 16.0**bits * self.problem.n
            found += sums[rows][:, None] + sums[:width] + self.problem.n
            found *= (factors[rows] / divisor)[:, None] * factors[:width]
            return above(found) + 2.0**-BITS

        return entries

    # -- rules that need rows -------------------------------------------------------

    def check_rows(self, bounds: UpperBounds, k: int, upper: int) -> None:
        """Rule "rows": rows that floats do not decide are summed in integers."""
        for i in rows_above(bounds, k, _rounded_down(upper)).tolist():
            row = (abs(self.entry(i, j)) for j in range(len(self.diagonal)) if j != i)
            if self.diagonal[i] + sum(sorted(row)[::-1][: k - 1]) > upper:
                raise ProofError(f"k = {k}: the row sum of feature {i} is above U")

    def diagonal_at_most(self, i: int, tau: int) -> bool:
        """Say whether Ã_ii ≤ τ."""
        return self.diagonal[i] <= tau

    def level(self, k: int, tau: int, u: int) -> Level:
        """Return the question of a record, rounded for screening."""
        return Level(k, _rounded_down(tau), _rounded_up(u))

    def check_screening(
        self, alive: np.ndarray, rows: np.ndarray, k: int, tau: int, u: int
    ) -> None:
        """Drop the features `rows` from those alive, in integers."""
        left = set(np.flatnonzero(alive).tolist())
        waiting = rows.tolist()
        while waiting:
            again = []
            for i in waiting:
                squares = sorted(self.entry(i, j) ** 2 for j in left if j != i)
                rest = tau - self.diagonal[i]
                if rest < 0 or sum(squares[::-1][: k - 1]) > rest * (tau - u):
                    again.append(i)
                else:
                    left.discard(i)
            if len(again) == len(waiting):
                raise ProofError(f"k = {k}: feature {again[0]} cannot be dropped")
            waiting = again

    def check_direction(self, k: int, upper: int, given: Direction) -> None:
        """Rule "direction", with columns c_i = g_i/2^h and integer vectors v_i·2^b.

        Ã_ij is the product of g_i and g_j within a unit, so that U ≥ k units + kρ +
        λmax(VV') is what has to hold. That matrix is cut to 48 bits before it is
        eliminated: with X' = ⌊X/2^s⌋, X ⪰ 2^s (X' − nI).
        """
        n, data = self.problem.n, self.data
        if n > LARGEST_N:
            raise ProofError(f"k = {k}: direction in integers is for n ≤ {LARGEST_N}")
        if given.rounds:
            raise ProofError(f"k = {k}: rounds of directions are not done in integers")
        self.number(given.rho)  # refuses what floats could not hold
        rho = Fraction(given.rho) * data.denominator * 2**data.two_bits  # of g_i'g_i
        products = [dot(g, g) for g in map(self.column, range(len(self.diagonal)))]
        names = [i for i, product in enumerate(products) if product > rho]
        columns = [self.column(i) for i in names]
        h = max((abs(y) for g in columns for y in g), default=1).bit_length()
        C = np.array([[y / 2**h for y in g] for g in columns]).reshape(-1, n).T
        with np.errstate(all="ignore"):
            V = find_vectors(C, float(rho / 4**h), given, 2.0**-34)
        if not np.isfinite(V).all():
            raise ProofError(f"k = {k}: the directions give no vectors")
        bits = (53 - len(names).bit_length()) // 2
        b = 2 * bits - 1 - int(np.frexp(np.abs(V).max(initial=0.0))[1])
        whole = np.rint(np.ldexp(V, b)).astype(np.int64)
        for place, (i, g) in enumerate(zip(names, columns, strict=True)):
            v = whole[:, place].tolist()
            room = (products[i] - rho) * (rho * Fraction(4) ** (b - h) + dot(v, v))
            if dot(g, v) ** 2 < room:
                raise ProofError(
                    f"k = {k}: the vector of feature {i} is not good enough"
                )
        level = (upper - k) * Fraction(2) ** self.exponent - k * Fraction(given.rho)
        level *= data.denominator * 2**data.two_bits * Fraction(4) ** (b - h)
        X = [[-x for x in row] for row in exact_gram(whole, bits)]
        for i, row in enumerate(X):
            row[i] += level // 1
        shift = max(abs(x) for row in X for x in row).bit_length() - 48
        X = [[_shift(x, -shift) for x in row] for row in X]
        for i, row in enumerate(X):
            row[i] -= n
        if not is_positive_semidefinite(X):
            raise ProofError(f"k = {k}: U is below what the directions show")

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
        is_small = len(X) <= SMALL
        if not (
            is_positive_semidefinite(X)
            if is_small
            else is_nonnegative_in_integers(X, k)
        ):
            raise ProofError(f"k = {k}: U is not shown to bound the weighted matrix")

    def check_entry_tree(self, record: Record, upper: int) -> None:
        """Refuse: rule "entry-tree" is decided in floats."""
        raise ProofError(f"k = {record.k}: entry-tree is not done in integers")

    def check_tree(self, record: Record, uppers: dict[int, int]) -> None:
        """Read the tree of a record; U_j is `uppers[j]`, in units."""
        tau = uppers[record.k]
        chain = {k: tau - upper for k, upper in uppers.items() if upper <= tau}
        M = [[-self.entry(i, j) for j in record.features] for i in record.features]
        for i, row in enumerate(M):
            row[i] += tau
        tree = IntegerTree(iter(record.tree), record.k, chain)
        tree.node(M, 1, list(range(len(M))), record.k)
        self.nodes += len(record.tree)


class IntegerTree:
    """Reads the nodes of one tree, in order (section 5).

    `chain[j]` is τ − U_j, where U_j ≤ τ. A node is given as M, the pivot q, the
    positions F that M's rows belong to, and the number m of features still to be
    chosen.
    """

    def __init__(self, nodes: Iterator[Node], k: int, chain: dict[int, int]) -> None:
        self.nodes, self.k, self.chain = nodes, k, chain

    def node(self, M: list[list[int]], q: int, F: list[int], m: int) -> None:
        node = next(self.nodes)
        while node.letter == "D":
            M, F = self.drop(M, q, F, m)
            node = next(self.nodes)
        if node.letter == "S":
            self.split(node, M, q, F, m)
        elif node.letter == "L":
            self.last(M, m)
        elif not is_positive_semidefinite(M, q):
            raise ProofError(f"k = {self.k}: P, the matrix has a larger eigenvalue")

    def drop(
        self, M: list[list[int]], q: int, F: list[int], m: int
    ) -> tuple[list[list[int]], list[int]]:
        """Drop all i with M_ii ≥ 0 and Σ (m − 1 largest M_ij²) ≤ M_ii (τ − u) q."""
        if m < 2 or self.k - 1 not in self.chain:
            raise ProofError(f"k = {self.k}: D needs m ≥ 2 and U of k - 1, at most τ")
        short, q = shortened(M, q)
        room = self.chain[self.k - 1] * q
        ranked = [
            sorted(((x * x, j) for j, x in enumerate(row) if j != i), reverse=True)
            for i, row in enumerate(short)
        ]
        left = set(range(len(M)))
        while True:
            out = set()
            for i in left:
                squares = [square for square, j in ranked[i] if j in left][: m - 1]
                if short[i][i] >= 0 and sum(squares) <= short[i][i] * room:
                    out.add(i)
            if not out:
                break
            left -= out  # together: what is out for the larger F is out for the smaller
        keep = sorted(left)
        return [[M[i][j] for j in keep] for i in keep], [F[i] for i in keep]

    def last(self, M: list[list[int]], m: int) -> None:
        """Close by |F| < m, or by all sets of one or two features."""
        if len(M) < m:
            return
        if m > 2 or any(row[i] < 0 for i, row in enumerate(M)):
            raise ProofError(f"k = {self.k}: L with m = {m} does not hold")
        if m == 2 and any(
            M[i][j] ** 2 > M[i][i] * M[j][j] for i in range(len(M)) for j in range(i)
        ):
            raise ProofError(f"k = {self.k}: L, a pair has a larger eigenvalue")

    def split(
        self, node: Node, M: list[list[int]], q: int, F: list[int], m: int
    ) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 2:
            raise ProofError(f"k = {self.k}: S needs m ≥ 2")
        still_open = {F[t] for t in self.open_by_suffix(M, q, m)} - {*node.opened}
        if still_open:
            raise ProofError(f"k = {self.k}: S, position {min(still_open)} is not open")
        for position in node.opened:
            if position not in F:
                skip_node(self.nodes)
                continue
            t = F.index(position)
            if M[t][t] <= 0:
                raise ProofError(f"k = {self.k}: position {position} has B_pp ≥ τ")
            child = eliminate(M, q, t, range(t + 1, len(M)))
            self.node(child, M[t][t], F[t + 1 :], m - 1)

    def open_by_suffix(self, M: list[list[int]], q: int, m: int) -> list[int]:
        """Return the t whose suffix bound first[m][t] is not at most τ.

        `slacks` are q (τ − T[j][t]), rounded down, for the t with j features from t on.
        With α = τ − a and β = τ − b, τ − λmax [[a, r], [r, b]] is
        (α + β − √((α − β)² + 4r²))/2, and at least 0 if α, β ≥ 0 and r² ≤ αβ.
        """
        M, q = shortened(M, q)
        N = len(M)
        sums = []
        for t, row in enumerate(M):
            squares = sorted((x * x for x in row[t + 1 :]), reverse=True)
            sums.append(list(accumulate(squares[: m - 1])))
        slacks = first = [row[t] for t, row in enumerate(M)]
        for j in range(1, m):
            if j > 1:
                first = [
                    _slack(M[t][t], slacks[t + 1], sums[t][j - 2])
                    for t in range(N - j + 1)
                ]
            slacks = list(accumulate(reversed(first), min))[::-1]
            if self.k - m + j in self.chain:
                cap = self.chain[self.k - m + j] * q
                slacks = [max(slack, cap) for slack in slacks]
        return [
            t
            for t in range(N - m + 1)
            if min(M[t][t], slacks[t + 1]) < 0
            or sums[t][m - 2] > M[t][t] * slacks[t + 1]
        ]


def _slack(alpha: int, beta: int, square: int) -> int:
    """Return ⌊(α + β − √((α − β)² + 4r²))/2⌋, or less."""
    root = (alpha - beta) ** 2 + 4 * square
    return (alpha + beta - (isqrt(root - 1) + 1 if root else 0)) // 2


def shortened(M: list[list[int]], q: int) -> tuple[list[list[int]], int]:
    """Return a node with shorter integers whose drops and suffix bounds are no better.

    All is divided by a power of two: the diagonal, which is slack, and q, by which
    slacks are multiplied, are rounded down, and all |M_ij|, i ≠ j, up.
    """
    bits = max((max(map(abs, row)) for row in M), default=0).bit_length() - SHORT
    if bits <= 0:
        return M, q
    short = [[-(-abs(x) >> bits) for x in row] for row in M]
    for i, row in enumerate(short):
        row[i] = M[i][i] >> bits
    return short, q >> bits


def skip_node(nodes: Iterator[Node]) -> None:
    """Read one node, with its children, that need not hold."""
    waiting = 1
    while waiting:
        node = next(nodes)
        if node.letter != "D":
            waiting += len(node.opened) - 1


def is_positive_semidefinite(M: list[list[int]], q: int = 1) -> bool:
    """Decide by elimination without fractions: section 8."""
    while M:
        if any(row[i] < 0 for i, row in enumerate(M)):
            return False
        p = next((i for i, row in enumerate(M) if row[i] > 0), None)
        if p is None:
            return not any(map(any, M))
        others = [i for i in range(len(M)) if i != p]
        M, q = eliminate(M, q, p, others), M[p][p]
    return True


def eliminate(
    M: list[list[int]], q: int, p: int, others: Sequence[int]
) -> list[list[int]]:
    """Return (M_pp M_ij − M_ip M_jp)/q for i, j in `others`: a symmetric matrix."""
    pivot, row = M[p][p], M[p]
    found: list[list[int]] = []
    for place, i in enumerate(others):
        left = [above_it[place] for above_it in found]
        this, factor = M[i], row[i]
        right = [(pivot * this[j] - factor * row[j]) // q for j in others[place:]]
        found.append(left + right)
    return found


def _shift(value: int, bits: int) -> int:
    """Return ⌊value · 2^bits⌋."""
    return value << bits if bits >= 0 else value >> -bits


def _rounded_down(units: int) -> float:
    """Return what is at most units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, -np.inf))


def _rounded_up(units: int) -> float:
    """Return what is at least units/2⁶⁴."""
    return float(np.nextafter(units / 2**BITS, np.inf))
