"""Ã in float64, and trees decided with margins that are derived here.

u = 2⁻⁵³. Data are first multiplied by a power of two, so that all |Y_si| ≤ 1; what then
underflows changes an entry of A by less than n·2⁻¹⁰⁰⁰, which is in e.

Ã = H'H, the exact product of the columns of `float_columns`, which has what they are
off by. A matrix that is given is taken as it is; what is made of it is rounded from
exact fractions, to within u of each entry.

**Products** in float64, in any order, with or without fused operations:
|fl(H_i'H_j) − H_i'H_j| ≤ 1.01 n u ‖H_i‖ ‖H_j‖ for n u < 0.01.

**Trees.** With a margin δ, everything is compared with τ₁ ≤ τ − δ in place of τ, and
U_j + δ in place of U_j. Let B̂ be the computed matrix of a node, after s choices with
d_t = fl(τ₁ − B̂_pp), v_t = fl(w_t/fl(√d_t)), w_t the row of p, B̂ ← fl(B̂ + v_t v_t').
*B̂ is the exact Schur complement, at τ₁, of a matrix Ã + E*, as each step adds w_i
w_j/d_t plus at most 6u|w_i w_j|/d_t + u|B̂_ij|, and d_t is τ₁ − B̂_pp within u d_t;
these errors, moved back to the entries of the first matrix, are E. If all B̂_ii ≤ τ₁,
then Σ_t w_ti²/d_t = B̂_ii − (Ã + E)_ii ≤ τ₁ − min (Ã + E)_ii, and with Cauchy's
inequality all |B̂_ij| and all Σ_t |w_ti w_tj|/d_t are at most

    G = max |Ã_ij + E_ij| + τ₁ − min (Ã_ii + E_ii),  so  |E_ij| ≤ ε₀ + (s + 8)uG = ε,

ε₀ being the error of the first B̂, from products. So ‖E_SS‖ ≤ kε for the k features S =
P ∪ T; the margin is δ ≥ kε. Then: no better set at τ₁ for Ã + E is none at τ for Ã; and
U_j bounds sets of Ã, hence U_j + δ those of Ã + E, which is what the chain needs. A
node with a B̂_ii > τ₁ and |F| ≥ m cannot hold, and fails. (`P` adds one row after the
other; its margin is measured.)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

import numpy as np

from .direction import FloatDirections
from .entries import ExactEntries
from .entry import float_point_holds, rest_of_rows, weights_in
from .entry_tree import FloatEntryTree
from .fields import ProofError
from .float_columns import FloatColumns, rounded_down
from .integer_tree import skip_node
from .positive import eliminate_all
from .problem import Groups, Problem
from .proof_file import Direction, Entry, Node, Record
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


class FloatMatrix:
    """Ã in float64; `factor` · A is what it is about."""

    name = "float64 with derived margins"

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
        self.low, self.high = below(squares, n), above(squares, n)
        self.product_error = float(above(1.01 * n * UNIT * self.high.max()))
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
        roots = above(np.sqrt(above(self.high + self.error)))
        return UpperBounds(self.high, roots, self.error, self._data_entries)

    def _matrix_entries(self, columns: np.ndarray) -> Entries:
        return lambda rows, width: np.abs(
            self.A[np.ix_(columns[rows], columns[:width])]
        )

    def _data_entries(self, columns: np.ndarray) -> Entries:
        H = np.ascontiguousarray(self.A[:, columns])
        n = self.n
        norms = np.sqrt(self.high[columns])

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            found = H[:, rows].T @ H[:, :width]
            self.raised.apply(found, columns[rows], columns[:width])
            found = np.abs(found)
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
        self, alive: np.ndarray, rows: np.ndarray, k: int, tau: Fraction, u: Fraction
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

    def _block(self, features: list[int]) -> np.ndarray:
        """Return Ã between features, within `product_error`."""
        if self.is_given:
            return self.A[np.ix_(features, features)]
        H = np.ascontiguousarray(self.A[:, features])
        B = H.T @ H
        B = np.tril(B) + np.tril(B, -1).T  # one value for both of a pair
        place = np.array(features, dtype=np.int64)
        self.raised.apply(B, place, place)
        return B

    def check_tree(self, record: Record, uppers: dict[int, Fraction]) -> None:
        """Read the tree of a record; U_j is `uppers[j]`, a float64."""
        features = list(record.features)
        B = self._block(features)
        tree = FloatTree(iter(record.tree), record, B, self.product_error)
        tree.begin({k: float(upper) for k, upper in uppers.items()})
        groups = self.problem.rest
        if groups is not None:
            groups = groups.at(self.problem.kept[i] for i in features)
        tree.node(B, np.arange(len(features)), record.k, groups)
        self.nodes += len(record.tree)


class FloatTree:
    """Reads the nodes of one tree, in order (section 5), at τ₁."""

    def __init__(
        self, nodes: Iterator[Node], record: Record, B: np.ndarray, error: float
    ) -> None:
        self.nodes, self.k, self.error = nodes, record.k, error
        self.depth, self.size = record.depth, len(B)
        self.largest = float(np.abs(B).max(initial=0.0))
        self.least = float(np.diagonal(B).min(initial=0.0))
        self.has_p = any(node.letter == "P" for node in record.tree)

    def begin(self, uppers: dict[int, float]) -> None:
        """Choose the margin, τ₁ and the bounds of the chain."""
        tau = uppers[self.k]
        self.growth = 1.01 * (self.largest + abs(tau) + abs(self.least) + self.error)
        entry = self.error + (self.depth + 8) * UNIT * self.growth + TINY
        margin = 1.01 * self.k * entry if self.depth or self.error else 0.0
        if self.has_p:
            # Whatever is chosen is checked; a quarter of the room writers leave.
            margin = max(margin, 2.0**-38 * abs(tau))
        self.margin = margin
        # Two roundings, of numbers of at most `growth`.
        extra = 2 * UNIT * self.growth if margin else 0.0
        self.tau = tau - margin - extra
        self.chain = {
            k: upper + margin + extra
            for k, upper in uppers.items()
            if upper + margin + extra <= self.tau and k < self.k
        }

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what} is not shown to hold")

    def node(
        self, B: np.ndarray, F: np.ndarray, m: int, groups: Groups | None = None
    ) -> None:
        node = next(self.nodes)
        if len(F) >= m and B.diagonal().max() > self.tau:
            raise self.fail("B_ii ≤ τ")
        while node.letter == "D":
            keep = self.drop(B, m)
            B, F = B[keep][:, keep], F[keep]
            node = next(self.nodes)
        if node.letter == "S":
            self.split(node, B, F, m, groups)
        elif node.letter == "L":
            self.last(B, F, m, groups)
        else:
            self.check_positive(B, self.k - m)

    def drop(self, B: np.ndarray, m: int) -> np.ndarray:
        """Drop all i with r² ≤ (τ₁ − B_ii)(τ₁ − u); return what is left.

        If fewer than m features are left, no set has any of them: all go.
        """
        if m < 2 or self.k - 1 not in self.chain:
            raise self.fail("D, with m ≥ 2 and U of k - 1 at most τ,")
        level = Level(m, self.tau, self.chain[self.k - 1])
        inside, diagonal = B * B, B.diagonal()
        inside.flat[:: len(B) + 1] = 0.0
        keep = np.arange(len(B))
        while len(keep) >= m:
            beyond = len(keep) - m + 1
            largest = np.partition(inside, beyond, axis=1)[:, beyond:]
            stays = ~level.excludes(diagonal[keep], above(largest.sum(axis=1), m))
            if stays.all():
                return keep
            keep, inside = keep[stays], inside[stays][:, stays]
        return keep[:0]

    def last(self, B: np.ndarray, F: np.ndarray, m: int, groups: Groups | None) -> None:
        """Close by too few features, or by all sets of one or two."""
        together = len(F) if groups is None else groups.capacity(F.tolist())
        if together < m or m == 1:  # `node` has compared the diagonal with τ₁
            return
        room = self.tau - np.diagonal(B)
        fits = above(B**2) <= below(np.outer(room, room))
        np.fill_diagonal(fits, True)
        if groups is not None and not fits.all():
            for a, b in np.argwhere(~fits).tolist():
                fits[a, b] = not groups.after([int(F[a])]).has_room(int(F[b]))
        if m > 2 or not fits.all():
            raise self.fail(f"L with m = {m}")

    def split(
        self, node: Node, B: np.ndarray, F: np.ndarray, m: int, groups: Groups | None
    ) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 2:
            raise self.fail("S with m = 1")
        left = {*F[self.open_by_suffix(B, m)].tolist()} - {*node.opened}
        if left:
            raise self.fail(f"S without position {min(left)}")
        place = {position: t for t, position in enumerate(F.tolist())}
        for position in node.opened:
            if position not in place:
                skip_node(self.nodes)
                continue
            t = place[position]
            child, after = self.choose(B, F, t)
            room = groups and groups.after([position])
            if room is not None:
                keep = [p for p, i in enumerate(after.tolist()) if room.has_room(i)]
                child, after = child[np.ix_(keep, keep)], after[keep]
            self.node(child, after, m - 1, room)

    def choose(
        self, B: np.ndarray, F: np.ndarray, t: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return B and F of the child of the t-th feature."""
        v = B[t, t + 1 :] / sqrt(self.pivot(B, t))
        return B[t + 1 :, t + 1 :] + v[:, None] * v, F[t + 1 :]

    def pivot(self, B: np.ndarray, t: int) -> float:
        """Return τ₁ − B_tt, which must be positive."""
        found = float(self.tau - B[t, t])
        if found <= 0:
            raise self.fail("B_pp < τ")
        return found

    def open_by_suffix(self, B: np.ndarray, m: int) -> np.ndarray:
        """Return the t whose suffix bound first[m][t] is not shown to be at most τ₁.

        T[q] is there for the N − q + 1 places t that have q features from t on. It is
        rounded up: (a + b + √((a − b)² + 4r²))/2 in float64 is within 8u(|a| + |b| + r)
        of the exact number. With |a| ≤ A and r ≤ R for all t, a ≤ T where the chain
        does not lower it, to a number of at most `growth`, and each q adds at most R
        and what is added here: |b| ≤ A + mR + growth, and a little.
        """
        N, chosen = len(B), self.k - m
        if m > N:
            return np.zeros(0, dtype=np.int64)
        a = B.diagonal()
        squares = np.sort(np.triu(B, 1) ** 2, axis=1)[:, ::-1][:, : m - 1]
        sums = above(np.cumsum(squares, axis=1), m)
        most, longest = max(a.max(), -a.min()), sqrt(sums.max(initial=0.0))
        size = 2 * most + (m + 1) * longest + self.growth
        rounding = 8.1 * UNIT * size + TINY
        T = first = a
        for q in range(1, m):
            if q > 1:
                a, b, r2 = a[: N - q + 1], T[1:], sums[: N - q + 1, q - 2]
                apart = a - b
                first = (a + b + np.sqrt(apart * apart + 4 * r2)) / 2 + rounding
            T = np.maximum.accumulate(first[::-1])[::-1]
            if chosen + q in self.chain:
                T = np.minimum(T, self.chain[chosen + q])
        a, b, r2 = a[: N - m + 1], T[1:], sums[: N - m + 1, m - 2]
        fits = (a <= self.tau) & (b <= self.tau)
        fits &= r2 <= below((self.tau - a) * (self.tau - b))
        return np.flatnonzero(~fits)

    def check_positive(self, B: np.ndarray, chosen: int) -> None:
        """Eliminate all of F: then all pivots are positive, and P ∪ F has less than τ.

        The errors of the choices so far are (s + 8)uG + ε₀ an entry, of |P| + |F|
        features.
        """
        size = chosen + len(B)
        entry = self.error + (self.depth + 8) * UNIT * self.growth + TINY
        total = 1.01 * size * entry if self.depth or self.error else 0.0
        total += eliminate_all(B, self.tau)
        if total + 2 * UNIT * self.growth > self.margin:
            raise self.fail("P")
