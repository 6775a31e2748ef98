"""How long mirror steps are, how fast ρ follows, and how low the floor sinks.

An ascent stalls in three ways, each of which shows while it goes on:

- a step that is too long lowers the concave function that it should raise,
- ρ, which follows the number of columns that the relaxation takes, swings,
- where few directions are told apart, a floor that is too low for all the others makes
  the sum large in one of them.

`docs/design-notes.md` has the numbers.
"""

from __future__ import annotations

import numpy as np

_STEP = 4.0  # of a mirror step, in units of 1/bound
_LONGER, _LONGEST = 1.2, 3.0  # times that, after each step that lowers the bound
_SLOWER = 25  # steps after which a step is half as long
_OVERSHOT = 0.05  # of its distance from the bound, what the function may fall by
_SETTLED = 0.1  # the excess below which it is not ρ that lowers the function
_FLOOR_OF_GAP = 0.1  # of the gap that the uniform share may cost
_SINKING = 0.85  # of the floor, from step to step, at the least
_OF_BEST_FLOOR = 0.5  # that is left where less of it led too far
_LEAST_FLOOR = 3e-5  # while there is no gap: without a target, or at the first step
_LOWEST_FLOOR = 1e-10  # costs less than the tolerance of a proof
_FOLLOWING = 0.3  # the power of Σ shares / k that ρ changes by
_CALMER, _BOLDER = 0.5, 1.2  # times that, if the sum swings about k or does not
_SWING = 0.9  # of the last excess, on the other side
_LARGEST_CHANGE = 1.25  # of ρ in a step


class Control:
    """Of the mirror steps of one ascent."""

    def __init__(self) -> None:
        self.moves = 0
        self._scale = 1.0  # of the steps
        self._height = -np.inf  # the concave function at the last density
        self._excess = 0.0  # of columns in the last step: log(Σ shares / k)
        self._boldness = 1.0  # in changing ρ
        self._lowest_floor = _LOWEST_FLOOR

    def gained(self) -> None:
        """Take longer steps after one that lowered the bound."""
        self._scale = min(_LONGEST, _LONGER * self._scale)

    def led_too_far(self, floor: float) -> None:
        """Take smaller steps from where the bound was best, with that floor."""
        self._scale /= 2
        self._boldness *= _CALMER
        self._lowest_floor = _OF_BEST_FLOOR * floor

    def forget_height(self) -> None:
        """Compare the next density with none before it."""
        self._height = -np.inf

    def step_length(self, height: float, bound: float | None) -> float:
        """Return the length of a step where the concave function has this height.

        `bound` is the least one so far.
        """
        if bound is not None and abs(self._excess) < _SETTLED:
            distance = max(bound - self._height, 0.0)
            if height < self._height - _OVERSHOT * distance:
                self._scale /= 2
        self._height = height
        length = self._scale * _STEP / (1 + self.moves / _SLOWER)
        return length / max(abs(height), 1e-300)

    def lower_floor(self, floor: float, gap: float) -> float:
        """Return the next floor, for a gap that may be infinite."""
        least = _LEAST_FLOOR
        if gap < np.inf:
            least = _FLOOR_OF_GAP * gap / max(abs(self._height), 1e-300)
        return max(_SINKING * floor, self._lowest_floor, min(least, floor))

    def follow(self, penalty: float, excess: float, share: float) -> float:
        """Return the next ρ, for an excess of columns; `share` of k is still open."""
        swings = excess * self._excess < 0 and abs(excess) > _SWING * abs(self._excess)
        self._boldness = min(1.0, self._boldness * (_CALMER if swings else _BOLDER))
        self._excess = excess
        power = _FOLLOWING * self._boldness * min(1.0, 5 * share + 0.05)
        factor = float(np.exp(power * excess))
        return penalty * min(max(factor, 1 / _LARGEST_CHANGE), _LARGEST_CHANGE)
