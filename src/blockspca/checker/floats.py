"""Ã in float64, of which e is derived: docs/proof-format.md, sections 3 and 8.

u = 2⁻⁵³. For data, Ã is the exact product of columns H (`float_columns`), longer by
those of `level`; less Σ (p_l q_l' + q_l p_l'), the exact value of vectors in float64;
with entries below 0 raised. For a matrix, Ã is what was computed. So e is what H, p and
q are away from what they stand for, and raising entries does not increase it.

**Products** in float64, in any order, with or without fused operations:
|fl(H_i'H_j) − H_i'H_j| ≤ 1.01 n u ‖H_i‖ ‖H_j‖ for n u < 0.01. The sum over r pairs,
with t = Σ 2 max |p_l| max |q_l|, is within 1.02(2r + 2)u t, and p, q themselves, each
rounded once, make an error of at most 2.1u t.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .chosen import Chosen
from .exact_entries import ExactEntries
from .fields import ProofError
from .float_columns import FloatColumns
from .float_tree import FloatTree
from .problem import Problem
from .raising import Raised
from .screening import UNIT, Entries, UpperBounds, above, below, rows_above
from .taken import Deflated, Pair
from .tree_text import WrittenTree

LEAST_NORM = 2.0**-450


class FloatMatrix:
    """Ã in float64; `factor` · A is what it is about.

    `A` are the columns H for data, and the matrix itself else; `block` has entries,
    each within `product_error`, and within `product_unit` √(squares_i squares_j).
    """

    name = "float64 with derived margins"

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.problem, self.nodes = problem, 0
        self.divisor = problem.n - problem.ddof
        self.raised = Raised.of(problem)
        names = [*problem.kept, *problem.chosen]
        if len(names) < problem.d or problem.chosen:
            Y_here = Y[:, names] if problem.kind == "data" else Y[np.ix_(names, names)]
        else:
            Y_here = Y
        self.is_matrix = problem.kind == "matrix"
        taken = Deflated(Y, problem, names if self.is_matrix else problem.chosen)
        self.P = self.Q = np.zeros((0, len(names)))
        self.taken_size = 0.0
        if self.is_matrix:
            self._begin_matrix(Y_here, names, taken)
        else:
            columns = FloatColumns(Y_here, problem, names, taken)
            self.A, self.factor = columns.H, columns.factor
            self.shift, self.error = columns.shift, columns.error
            self._take_pairs(taken.pairs, names)
            self.error += 2.1 * UNIT * self.taken_size
        if problem.level is not None:
            self._choose(Y, problem.level)
        self._finish()

    def _begin_matrix(
        self, Y: np.ndarray, names: Sequence[int], taken: Deflated
    ) -> None:
        """A = (Y + Y')/2, less the pairs: it is computed, and its error derived."""
        self.shift = shift = int(np.frexp(np.abs(Y).max())[1])
        scaled = np.ldexp(Y, -shift)
        self.factor = Fraction(2) ** -shift
        self.A = (scaled + scaled.T) / 2
        same = np.array_equal(Y, Y.T) and np.array_equal(np.ldexp(scaled, shift), Y)
        self.error = 0.0 if same else 2 * UNIT
        self._take_pairs(taken.pairs, names)
        if len(self.P):
            product = self.P.T @ self.Q
            self.A = self.A - (product + product.T)
            r = len(self.P)
            lost = (1.02 * (2 * r + 2) + 2.1) * UNIT * self.taken_size
            self.error += float(above(lost + 1.01 * UNIT * np.abs(self.A).max()))

    def _take_pairs(self, pairs: Sequence[Pair], names: Sequence[int]) -> None:
        """Round the vectors p and q, so that `factor` T = Σ (pq' + qp')."""
        rows_p, rows_q = [], []
        for pair in pairs:
            c = pair.c * self.factor
            p, q = ([v.get(i, 0) for i in names] for v in (pair.p, pair.q))
            unit = 1 << max(max(map(abs, p)).bit_length(), 1)
            top, bottom = c.numerator * unit, c.denominator
            try:
                rows_p.append([x / unit for x in p])
                rows_q.append([x * top / bottom for x in q])
            except OverflowError:
                rows_q.append([np.inf])
            if max(map(abs, rows_q[-1])) > 2.0**400:
                raise ProofError(
                    "what is taken off A is out of all proportion to the data"
                )
        if pairs:
            self.P, self.Q = np.array(rows_p), np.array(rows_q)
            sizes = np.abs(self.P).max(axis=1) * np.abs(self.Q).max(axis=1)
            self.taken_size = float(above(2 * np.sum(sizes), len(pairs)))

    def _choose(self, Y: np.ndarray, level: float) -> None:
        """Step 3: take the features of `include` out."""
        names, size = self.problem.chosen, len(self.problem.kept)
        chosen = Chosen(ExactEntries(Y, self.problem, names), names, level)
        if self.is_matrix:
            a, alpha = self.A[size:, :size], self.error
        else:
            inside, outside = self.A[:, size:], self.A[:, :size]
            a = inside.T @ outside
            squares = np.einsum("si,si->i", self.A, self.A).max()
            n = len(self.A)
            alpha = float(above(1.02 * n * UNIT * squares, n)) + self.error
        w, error = chosen.float_rows(a, alpha, self.factor)
        self.error += error
        if self.is_matrix:
            product = w.T @ w
            product = np.tril(product) + np.tril(product, -1).T
            self.A = self.A[:size, :size] + product
            squares = np.diagonal(product).max(initial=0.0)
            lost = 1.02 * (len(w) + 2) * UNIT * squares
            self.error += float(above(lost + 1.01 * UNIT * np.abs(self.A).max()))
        else:
            self.A = np.vstack([outside, w])
        self.P = self.Q = np.zeros((0, size))

    def _finish(self) -> None:
        """Bound the diagonal, and say what a computed entry may err by."""
        if self.is_matrix:
            self.low = self.high = np.diagonal(self.A).copy()
            self.product_error = self.product_unit = 0.0
            self.squares = np.zeros(len(self.A))
        else:
            n, r = len(self.A), len(self.P)
            squares = np.einsum("si,si->i", self.A, self.A)
            self.norms2 = above(squares, n)
            self.taken_error = 1.02 * (2 * r + 4) * UNIT * self.taken_size
            self.low, self.high = below(squares, n), self.norms2
            if r:
                own = 2 * np.sum(self.P * self.Q, axis=0)
                lost = above(self.taken_error + 2 * UNIT * squares)
                self.low, self.high = self.low - own - lost, self.high - own + lost
            products = 1.01 * (n + 2) * UNIT * self.norms2.max()
            self.product_error = float(above(products + self.taken_error))
            # Entry by entry: H_i'H_j by norms, |T_ij| ≤ √(t_i t_j) by t_i.
            taken = 2 * np.sum(np.abs(self.P * self.Q), axis=0)
            self.squares = above(self.norms2 + taken, r)
            self.product_unit = 1.02 * (n + 2 * r + 6) * UNIT
        if not np.isfinite(self.error) or self.error > 2.0**400:
            raise ProofError("float64 cannot hold these data")
        self.e = Fraction(self.error)  # records and claims are compared exactly

    # -- entries --------------------------------------------------------------------

    def block(self, features: Sequence[int], is_raised: bool = True) -> np.ndarray:
        """Return Ã on some features, each entry within `product_error`.

        Without `is_raised` it is the Ā before entries are raised.
        """
        places = np.array(features, dtype=np.int64)
        if self.is_matrix:
            found = self.A[np.ix_(places, places)]
        else:
            H = np.ascontiguousarray(self.A[:, places])
            found = H.T @ H
            if len(self.P):
                product = self.P[:, places].T @ self.Q[:, places]
                found -= product + product.T
            # one value for both of a pair
            found = np.tril(found) + np.tril(found, -1).T
        if self.raised is not None and is_raised:
            found = self.raised.lifted(places, places, found)
        return found

    # -- numbers: exact fractions of float64 ----------------------------------------

    def number(self, value: float) -> Fraction:
        """Return `factor` times a real number, rounded down to a float64."""
        exact = Fraction(value) * self.factor
        if abs(exact) > 2**400:
            raise ProofError(f"{value} is out of all proportion to the data")
        found = float(exact)
        if found > exact:
            found = float(np.nextafter(found, -np.inf))
        return Fraction(found)

    def number_below(self, number: Fraction) -> float:
        """Return a number of Ã in the unit of `UpperBounds`, which is the same."""
        return float(number)  # is a float64

    number_above = number_below

    def largest_diagonal(self, k: int) -> Fraction:
        """Return a bound on the sum of the k largest Ã_ii."""
        return sum(map(Fraction, np.sort(self.high)[-k:].tolist()), Fraction(0))

    def smallest_diagonal(self) -> Fraction:
        """Return what is at most the smallest Ã_ii."""
        return Fraction(float(self.low.min()))

    # -- float64, from above --------------------------------------------------------

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs."""
        if self.is_matrix:
            return UpperBounds(self.high, None, self.error, self._entries)
        roots = above(np.sqrt(above(self.squares + self.error)))
        return UpperBounds(self.high, roots, self.error, self._entries)

    def _entries(self, columns: np.ndarray) -> Entries:
        """Bound the |Ã_ij| of some columns."""
        if not self.is_matrix:
            H = np.ascontiguousarray(self.A[:, columns])
            # A product is no more than that of two norms: so 40u of that is enough
            # for what is rounded after it. `LEAST_NORM` squared covers all underflow.
            norms = np.sqrt(self.norms2[columns]) + LEAST_NORM
            lost = 1.02 * (len(H) + 42) * UNIT * norms + LEAST_NORM

        def entries(rows: np.ndarray, width: int) -> np.ndarray:
            if self.is_matrix:
                found = self.A[np.ix_(columns[rows], columns[:width])]
            else:
                found = H[:, rows].T @ H[:, :width]
                if len(self.P):
                    for p, q in ((self.P, self.Q), (self.Q, self.P)):
                        found -= p[:, columns[rows]].T @ q[:, columns[:width]]
            if self.raised is not None:
                found = self.raised.lifted(columns[rows], columns[:width], found)
            if self.is_matrix:
                return np.abs(found)
            np.abs(found, out=found)
            found += np.outer(norms[rows], lost[:width])
            return above(found + self.taken_error) if len(self.P) else found

        return entries

    # -- rules that need rows -------------------------------------------------------

    def check_rows(self, bounds: UpperBounds, k: int, upper: Fraction) -> None:
        """Rule "rows"."""
        left = rows_above(bounds, k, float(upper))
        if len(left):
            what = self.problem.feature(left[0])
            raise ProofError(f"k = {k}: row sum of {what} not shown below U")

    def diagonal_at_most(self, i: int, tau: Fraction) -> bool:
        """Say whether Ã_ii is shown to be at most τ."""
        return bool(self.high[i] <= float(tau))

    def tree(self, written: WrittenTree) -> tuple[FloatTree, np.ndarray]:
        """Return a tree, ready to be read, and its first B; each U_j is a float64."""
        nodes, choices, k, features, uppers = written
        chain = {j: float(upper) for j, upper in uppers.items()}
        products = (self.product_unit, self.squares[list(features)])
        B = self.block(features)
        tree = FloatTree(nodes, (k, chain), B, products, choices)
        return tree, tree.first
