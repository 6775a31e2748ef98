"""What components that predict are chosen for: adjusted variance and R² together.

With a the sum of the adjusted variances of a set, and p what it predicts of the
variance of all features, the goal is

    J(a, p) = log a + w log p.

Logarithms, because the one may be 2 % of the total and the other 60 %: one percent of
R² is worth w percent of the adjusted variance.

No w is right for all data: what has to be given of the one to have more of the other
differs by factors. So a set may be named whose a₀ and p₀ are to be had in any case, and
what is below them costs more,

    J − c₁ δ₁ log(1 + exp(−log(a / a₀) / δ₁)) − c₂ δ₂ log(1 + exp(−y / δ₂)),

with y = (p − p₀) / (P − p₀), P being what PCA predicts: what is lost of R² is measured
by what is left to gain, because that may be a thousandth of it. Above by a few δ the
two terms are nothing, and below they have slopes c₁ and c₂. What is gained by being
below grows with w, and so do they.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._kernels.prediction_constants import ROUNDED
from .._validation import FloatArray

# Five components of ten features have more of both numbers than the lasso's on 19 of 19
# data sets with these, and with half of the widths; with twice the second, one is lost,
# where the bound is felt from too far. Costs have to exceed what is gained by being
# below.
WIDTHS = (2e-3, 1e-2)
COSTS = (10.0, 3.0)
USUAL = 2.5  # the w of these costs; with more, they are as many times as much
STRICTER = (1e-2, 10.0)  # times the widths and the costs, of a bound that must hold
LEAST_LEFT = 1e-6  # of P, if the named set predicts as much as PCA


@dataclass(frozen=True)
class Goal:
    """J, with a set to stay above or without.

    Parameters
    ----------
    weight : float
        w ≥ 0.
    above : pair of float, optional
        a₀ and p₀.
    ceiling : float
        P; of no use without `above`.
    strict : bool
        Whether next to nothing below the bound is made up for by anything.
    hard : bool
        Whether a set that is below has no value at all. To be raised from one that is
        not: from below there is no way up.
    """

    weight: float
    above: tuple[float, float] | None = None
    ceiling: float = 0.0
    strict: bool = False
    hard: bool = False

    def numbers(self) -> FloatArray:
        """Return the goal as `_kernels.prediction_sets` has it."""
        if self.above is None:
            return np.array([self.weight, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        left = max(self.ceiling - self.above[1], LEAST_LEFT * self.above[1])
        finer, dearer = STRICTER if self.strict else (1.0, 1.0)
        dearer *= max(1.0, self.weight / USUAL)
        widths, costs = finer * np.array(WIDTHS), dearer * np.array(COSTS)
        return np.array([self.weight, *self.above, left, *widths, *costs, self.hard])

    def holds(self, adjusted: float, predicted: float) -> bool:
        """Tell whether a set has what it is to have, up to rounding."""
        least = (1 - ROUNDED) * np.array(self.above or (0.0, 0.0))
        return bool(adjusted >= least[0] and predicted >= least[1])

    def value(self, adjusted: float, predicted: float) -> float:
        """Return the goal of a set; −∞ of one that has nothing."""
        from .._kernels.prediction_sets import goal_value

        return float(goal_value(self.numbers(), adjusted, predicted))

    def slopes(self, adjusted: float, predicted: float) -> tuple[float, float]:
        """Return the derivatives by a and by p."""
        from .._kernels.prediction_sets import goal_slopes

        on_adjusted, on_predicted = goal_slopes(self.numbers(), adjusted, predicted)
        return float(on_adjusted), float(on_predicted)
