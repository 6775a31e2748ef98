"""Step 3, `level`: the Schur complement of features that every set has.

    B = A + A_·I K⁻¹ A_I·,   K = τI − A_II,   must be positive definite.

K is known exactly, or within ε an entry. Less |I|ε on its diagonal it is at most the
exact one, and is what is eliminated here, exactly: K⁻¹ = Σ W_l W_l'/s_l. With
κ = its trace ≥ ‖K⁻¹‖, what was taken off K changes an a'K⁻¹b by at most
‖a‖‖b‖κ²·2|I|ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from .columns import dot
from .exact_entries import ExactEntries, quotient
from .factor import factor, over_root, trace_of_inverse
from .fields import ProofError
from .screening import UNIT, above

FINE = 200  # bits of the entries that B is made of


class Chosen:
    """The features I with their level; `entries` are fine enough, and have them."""

    def __init__(
        self, entries: ExactEntries, names: Sequence[int], level: float
    ) -> None:
        self.entries, self.names = entries, names
        entries.refine(FINE - entries.exponent)
        tau = Fraction(level) * Fraction(2) ** entries.F
        if abs(tau) > 2**1400:
            raise ProofError(f"the level {level} is out of all proportion to the data")
        self.error = entries.error + (tau.denominator > 1)
        K = [[-entries.value(i, j) for j in names] for i in names]
        for i, row in enumerate(K):
            row[i] += tau // 1 - len(names) * self.error
        found = factor(K)
        if found is None:
            raise ProofError("the level is not above the chosen features")
        self.W, self.squares = found
        self.kappa = trace_of_inverse(self.W, self.squares)

    def shares(self, i: int) -> tuple[list[int], int]:
        """Return W a_i for the column a_i = A_Ii of a feature, and ‖a_i‖², in units."""
        a = [self.entries.value(name, i) for name in self.names]
        return [dot(row, a) for row in self.W], dot(a, a)

    def gain(self, left: list[int], right: list[int]) -> int:
        """Return a'K⁻¹b of two features in units, less by at most |I|."""
        return sum(
            quotient(x * y, square, 0)
            for x, y, square in zip(left, right, self.squares, strict=True)
        )

    def error_of_gain(self, square: int) -> int:
        """Bound the error of all gains, in units; `square` is the largest ‖a_i‖².

        â = a + α with ‖α‖ ≤ √|I| ε: 2‖â‖‖α‖κ + ‖α‖²κ, beside what is said above.
        """
        size, error, kappa = len(self.names), self.error, self.kappa
        norm, root = isqrt(square) + 1, isqrt(size) + 1
        lost = (2 * norm + root * error) * root * error * kappa
        lost += norm**2 * kappa**2 * 2 * size * error
        return size + int(lost) + 1

    def float_rows(
        self, a: np.ndarray, alpha: float, factor_of_unit: Fraction
    ) -> tuple[np.ndarray, float]:
        """Return w_i = D^(−½)W a_i in float64, and what w_i'w_j may err by.

        `a` are the columns a_i, times `factor_of_unit`, each entry within `alpha`. M =
        D^(−½)W is rounded once, and w = fl(Ma) is within ω of the exact one,

            ω ≤ 1.05 ‖M‖ ((|I| + 3)u ‖a‖ + √|I| α),

        so that products err by (2‖w‖ + ω)ω.
        """
        scale = factor_of_unit / Fraction(2) ** self.entries.F
        top, bottom = scale.numerator, scale.denominator
        M = np.array(
            [
                [over_root(w * bottom, square * top * bottom) for w in row]
                for row, square in zip(self.W, self.squares, strict=True)
            ]
        )
        size = len(M)
        w = M @ a
        norm_m = above(np.sqrt(np.sum(M**2)), size * size)
        norm_a, norm_w = (
            float(above(np.sqrt(np.sum(x**2, axis=0).max(initial=0.0)), size))
            for x in (a, w)
        )
        norm_a = norm_a + np.sqrt(size) * alpha * 1.01
        omega = 1.05 * norm_m * ((size + 3) * UNIT * norm_a + np.sqrt(size) * alpha)
        changed = float(self.kappa / scale) ** 2 * 2 * size * float(self.error * scale)
        error = (2 * norm_w + omega) * omega + norm_a**2 * changed
        return w, float(above(1.01 * error))
