"""Ã in integers: docs/proof-format.md, sections 3 and 8.

The unit is a power of two, 2⁻⁶⁴ of what bounds all |A_ij|, and Ã_ij is A_ij in units,
rounded down. So |Ã_ij − A_ij| < e = 1 unit; e = 0 if nothing had to be rounded. Where
columns have been rounded before (with `scale`, or deflated), or several parts of an
entry each by itself, e counts that too; a unit is never less than what columns err by.
With `level` entries are computed in a finer unit first, as K⁻¹ may enlarge errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .chosen import Chosen
from .exact_entries import ExactEntries, exponent_above, shifted
from .fields import ProofError
from .groups import Groups
from .integer_bounds import BITS, IntegerBounds, rounded_down, rounded_up
from .integer_tree import IntegerTree
from .problem import Problem
from .raising import Raised
from .screening import UpperBounds, rows_above
from .tree_text import WrittenTree

LARGEST = 500  # bits of a bound in units: floats must hold its square


class IntegerMatrix:
    """Ã in units of 2^`exponent`, from exact arithmetic on the data."""

    name = "integers (rows bounded in float64)"

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.Y, self.problem, self.nodes = Y, problem, 0
        self.names = list(problem.kept)
        self.known: dict[tuple[int, int], int] = {}  # entries i < j computed so far
        self.raised = Raised.of(problem)
        entries = ExactEntries(Y, problem, [*self.names, *problem.chosen])
        self.entries = entries
        self.chosen: Chosen | None = None
        if problem.level is None:
            self.exponent = entries.exponent - BITS
            if entries.own_error:
                least = exponent_above(entries.own_error)
                self.exponent = max(self.exponent, least)
            entries.refine(-self.exponent)
            self.e = entries.error
        else:
            self._choose(problem.level)
        self.diagonal = [self._compute(i, i) for i in range(len(self.names))]

    def _choose(self, level: float) -> None:
        """Step 3: take the features of `include` out."""
        entries = self.entries
        self.chosen = chosen = Chosen(entries, self.problem.chosen, level)
        found = {name: chosen.shares(name) for name in self.names}
        self.shares = {name: shares for name, (shares, _) in found.items()}
        square = max(square for _, square in found.values())
        gain = max(chosen.gain(shares, shares) for shares in self.shares.values())
        largest = entries.largest + Fraction(gain + 1) / Fraction(2) ** entries.F
        self.exponent = max(exponent_above(largest), entries.exponent) - BITS
        error = entries.error + chosen.error_of_gain(square)
        self.e = 1 + -(-error >> entries.F + self.exponent)

    # -- entries --------------------------------------------------------------------

    def _compute(self, i: int, j: int) -> int:
        """Return an entry before it is raised."""
        a, b = self.names[i], self.names[j]
        found = self.entries.value(a, b)
        if self.chosen is not None:
            found += self.chosen.gain(self.shares[a], self.shares[b])
            found = shifted(found, -self.entries.F - self.exponent)
        return found

    def entry(self, i: int, j: int, is_raised: bool = True) -> int:
        """Return Ã_ij in units; without `is_raised` that of Ā, before step 2."""
        if i == j:
            return self.diagonal[i]
        place = (i, j) if i < j else (j, i)
        if place not in self.known:
            self.known[place] = self._compute(*place)
        found = self.known[place]
        if is_raised and self.raised is not None:
            return self.raised.entry(i, j, found)
        return found

    def block(self, features: Sequence[int]) -> np.ndarray:
        """Return Ã on features, in units: an array of Python's integers."""
        found = np.zeros((len(features), len(features)), dtype=object)
        for a, i in enumerate(features):
            for b, j in enumerate(features[: a + 1]):
                found[a, b] = found[b, a] = self.entry(i, j)
        return found

    def column(self, i: int) -> list[int]:
        """Return the column of a feature, for data without `level`."""
        return self.entries.column(self.names[i])

    # -- numbers --------------------------------------------------------------------

    def number(self, value: float) -> int:
        """Return a real number in units, rounded down."""
        found = Fraction(value) * Fraction(2) ** -self.exponent // 1
        if abs(found) > 2**LARGEST:
            raise ProofError(f"the bound {value} is out of all proportion to the data")
        return found

    def number_below(self, number: int) -> float:
        """Return a number of Ã in the unit of `UpperBounds`, rounded down."""
        return rounded_down(number)

    def number_above(self, number: int) -> float:
        """Return a number of Ã in the unit of `UpperBounds`, rounded up."""
        return rounded_up(number)

    def largest_diagonal(self, k: int) -> int:
        """Return the sum of the k largest Ã_ii."""
        return sum(sorted(self.diagonal)[-k:])

    def smallest_diagonal(self) -> int:
        """Return the smallest Ã_ii."""
        return min(self.diagonal)

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs, in units of 2^(exponent + 64)."""
        return IntegerBounds(self).upper_bounds()

    # -- rules that need rows -------------------------------------------------------

    def check_rows(self, bounds: UpperBounds, k: int, upper: int) -> None:
        """Rule "rows": rows that floats do not decide are summed in integers."""
        for i in rows_above(bounds, k, rounded_down(upper)).tolist():
            row = [
                (abs(self.entry(i, j)), j) for j in range(len(self.diagonal)) if j != i
            ]
            most = _largest(row, k - 1, i, bounds.groups)
            if self.diagonal[i] + sum(most) > upper:
                what = self.problem.feature(i)
                raise ProofError(f"k = {k}: the row sum of {what} is above U")

    def diagonal_at_most(self, i: int, tau: int) -> bool:
        """Say whether Ã_ii ≤ τ."""
        return self.diagonal[i] <= tau

    def check_screening(
        self,
        bounds: UpperBounds,
        alive: np.ndarray,
        rows: np.ndarray,
        question: tuple[int, int, int],
    ) -> None:
        """Drop the features `rows` from those alive, in integers; given k, τ and u."""
        k, tau, u = question
        left = set(np.flatnonzero(alive).tolist())
        waiting = rows.tolist()
        while waiting:
            again = []
            for i in waiting:
                squares = [(self.entry(i, j) ** 2, j) for j in left if j != i]
                most = _largest(squares, k - 1, i, bounds.groups)
                rest = tau - self.diagonal[i]
                if rest < 0 or sum(most) > rest * (tau - u):
                    again.append(i)
                else:
                    left.discard(i)
            if len(again) == len(waiting):
                what = self.problem.feature(again[0])
                raise ProofError(f"k = {k}: {what} cannot be dropped")
            waiting = again

    def tree(
        self, written: WrittenTree
    ) -> tuple[IntegerTree, tuple[list[list[int]], int]]:
        """Return a tree, ready to be read, and its first B.

        U_j is in units; exact arithmetic needs no margin for the number of choices.
        """
        nodes, _, k, features, uppers = written
        tau = uppers[k]
        chain = {j: tau - upper for j, upper in uppers.items() if upper <= tau}
        return IntegerTree(nodes, k, chain), self.slack(features, tau)

    def slack(
        self, features: Sequence[int], tau: int, is_raised: bool = True
    ) -> tuple[list[list[int]], int]:
        """Return τI − Ã on some features, and the pivot 1."""
        M = [[-self.entry(i, j, is_raised) for j in features] for i in features]
        for i, row in enumerate(M):
            row[i] += tau
        return M, 1


def _largest(
    values: list[tuple[int, int]], count: int, own: int, groups: Groups | None
) -> list[int]:
    """Return the largest numbers that a set with `own` can have."""
    if groups is not None:
        return groups.largest(values, count, own)
    return sorted((value for value, _ in values), reverse=True)[:count]
