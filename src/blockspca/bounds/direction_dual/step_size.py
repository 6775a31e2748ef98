"""How long mirror steps are, how fast ρ changes, and how low the least weight sinks.

An ascent stalls in three ways, each of which shows while it goes on:

- a step that is too long lowers the concave function that it should raise,
- ρ, which follows the number of columns that the relaxation takes, swings,
- where few directions are told apart, a weight that is too low for all the others makes
  the sum large in one of them.

`docs/design-notes.md` has the numbers.
"""

from __future__ import annotations

import numpy as np

from .settings import DEFAULT, DualSettings

# Of the uniform density; it costs less than the tolerance of a proof.
_LEAST_WEIGHT = 1e-10


class StepSize:
    """Of the mirror steps of one ascent."""

    def __init__(self, settings: DualSettings = DEFAULT) -> None:
        self.settings = settings
        self.moves = 0
        self._scale = 1.0  # of the steps
        self._value = -np.inf  # the concave function at the last density
        self._excess = 0.0  # of columns in the last step: log(Σ z / k)
        self._boldness = 1.0  # in changing ρ
        self._least_weight = _LEAST_WEIGHT

    def on_success(self) -> None:
        """Take longer steps after one that lowered the bound."""
        self._scale = min(self.settings.max_growth, self.settings.growth * self._scale)

    def on_failure(self, min_weight: float | None) -> None:
        """Take smaller steps; a least weight that is given is held from now on."""
        self._scale /= 2
        self._boldness *= self.settings.calmer
        if min_weight is not None:
            self._least_weight = min_weight

    def forget_value(self) -> None:
        """Compare the next density with none before it."""
        self._value = -np.inf

    def length(self, value: float, bound: float | None) -> float:
        """Return the length of a step where the concave function has this value.

        `bound` is the least one so far.
        """
        settings = self.settings
        # With an excess of a tenth, or more, it may be ρ that lowers the function; and
        # a fall by a small part of the distance from the bound is no reason to slow.
        if bound is not None and abs(self._excess) < 0.1:
            distance = max(bound - self._value, 0.0)
            if value < self._value - 0.05 * distance:
                self._scale /= 2
        self._value = value
        length = self._scale * settings.step / (1 + self.moves / settings.half_life)
        return length / max(abs(value), 1e-300)

    def lower_weight(self, min_weight: float, gap: float) -> float:
        """Return the next least weight, for a gap that may be infinite."""
        least = 3e-5  # without a target, or at the first step
        if gap < np.inf:  # the uniform part of the density may cost a tenth of it
            least = 0.1 * gap / max(abs(self._value), 1e-300)
        sinking = self.settings.weight_decay * min_weight
        return max(sinking, self._least_weight, min(least, min_weight))

    def update_multiplier(
        self, multiplier: float, excess: float, open_share: float
    ) -> float:
        """Return the next ρ, for an excess of columns; a share of k is still open."""
        settings, before = self.settings, self._excess
        # About k, and no smaller than the last time
        swings = excess * before < 0 and abs(excess) > 0.9 * abs(before)
        self._boldness *= settings.calmer if swings else settings.bolder
        self._boldness = min(1.0, self._boldness)
        self._excess = excess
        # With few places left one column more is a large excess: a smaller power.
        power = settings.response * self._boldness * min(1.0, 5 * open_share + 0.05)
        factor = float(np.exp(power * excess))
        return multiplier * min(max(factor, 0.8), 1.25)
