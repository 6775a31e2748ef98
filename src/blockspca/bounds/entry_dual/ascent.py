"""Lower λmax of the entry dual's matrix over weights and shares, by projected L-BFGS.

The function is smooth for μ > 0 and convex in (U, w²); the variables are w and V with
U = V w w', which keep |U_ij| ≤ w_i w_j as simple bounds.  Any point gives a bound, so
that nothing here has to be exact.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from ..._validation import FloatArray
from ...limits import Deadline
from .matrix import DualMatrix, Slope

# Measured on correlations of 100 × 60 random numbers with a common factor, k = 8, which
# end 0.126 % above the objective after 616 evaluations, and on normIonosphere, k = 10,
# which end at it after 232.
#
# Pairs of steps that curvature is taken from: with 4 or 16, 0.119 % after 730 and 770,
# and normIonosphere takes 420 and 290.
_MEMORY = 8
_FIRST_STEP = 0.05  # of a weight, relative: half or twice as much leaves 0.13 %
# Of a step that is refused, and how often. With 0.7, or with 4 trials, ascents end
# before they have got anywhere: 0.19 %, and 0.01 % for normIonosphere.
_SHRINK = 0.4
_TRIALS = 8
_SUFFICIENT = 1e-4  # of the decrease that the slope promises
# μ, relative to the target, and beside the gap; and what it is lowered by once steps
# gain no more. The smoothing costs μ times the entropy of the density, which is small;
# with less the function is too sharp for long steps.
_MU = 1.5e-3
_SHARE_OF_GAP = 0.5
_SHARPER = 0.15
_LEVELS = 3  # with one, 0.133 %; more take longer and leave as much
_LEAST_GAP = 1e-7  # relative to the target, below which nothing is to be gained
_LEAST_MU = 1e-8
# Steps over which progress is looked at: twice as many take half as long again, and
# leave 0.121 %.
_STALE = 8
_PROGRESS = 0.01  # of the gap, that such steps have to gain
_GAIN = 0.05  # of the gap, that all steps with one μ have to gain


@dataclass(frozen=True)
class Point:
    """Weights of all features, shares of the core, and λmax as far as it is known."""

    weights: FloatArray
    shares: FloatArray
    value: float = np.inf
    presence: FloatArray | None = None


class Ascent:
    """From a start to wherever time, the target or progress end it.

    For few features, all of which are in the core: more take proximal steps. With less
    than 1 as `patience`, steps go on that gain as much less.
    """

    def __init__(
        self,
        matrix: DualMatrix,
        start: Point,
        target: float,
        enough: float = -np.inf,
        patience: float = 1.0,
    ) -> None:
        self.matrix, self.target, self.patience = matrix, target, patience
        self.enough = max(enough, target)  # a value that ends it
        self.kind = matrix.kind
        self.best = replace(start, shares=start.shares.astype(self.kind))
        self.evaluations = 0

    def run(self, steps: int, deadline: Deadline) -> Point:
        """Take steps with falling μ; return the best point."""
        point, level = self.best, 0
        while steps > 0 and deadline.affords_step():
            before = self.best.value
            gap = before - self.target  # infinite before anything is known
            if before <= self.enough or gap <= _LEAST_GAP * abs(self.target):
                break
            mu = min(_MU * abs(self.target), _SHARE_OF_GAP * gap) * _SHARPER**level
            mu = max(mu, _LEAST_MU * abs(self.target))
            taken, point = self._smoothed(point, mu, steps, deadline)
            steps -= taken
            least = self.patience * _GAIN * gap
            if np.isfinite(before) and before - self.best.value < least:
                level += 1
                if level == _LEVELS:
                    break
                point = self.best
        return self.best

    def _evaluated(self, w: FloatArray, V: FloatArray, mu: float) -> Slope:
        slope = self.matrix.slope(w, V, mu)
        self.evaluations += 1
        if slope.largest < self.best.value:
            self.best = Point(w, V, slope.largest, slope.presence)
        return slope

    def _joined(self, of_weights: FloatArray, of_shares: FloatArray) -> FloatArray:
        return np.concatenate([of_weights.astype(self.kind), of_shares.ravel()])

    def _smoothed(
        self, point: Point, mu: float, steps: int, deadline: Deadline
    ) -> tuple[int, Point]:
        """Take steps with one μ until they gain little; return how many, and where."""
        w, V = point.weights, point.shares
        scale = float(np.median(w)) or 1.0
        history: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
        slope = self._evaluated(w, V, mu)
        values = [slope.value]
        taken = 0
        while taken < steps and deadline.affords_step():
            began = time.perf_counter()
            at_bound = ((V >= 1) & (slope.of_shares < 0)) | (
                (V <= -1) & (slope.of_shares > 0)
            )
            free = ~at_bound
            loose = ~((w <= self.matrix.levels) & (slope.of_weights > 0))
            gradient = self._joined(
                slope.of_weights * loose * scale, slope.of_shares * free
            )
            direction = two_loops(gradient, history)
            along_w = direction[: len(w)] * scale * loose
            along_V = direction[len(w) :].reshape(V.shape) * free
            length, found = 1.0, None
            for _ in range(_TRIALS):
                new_w = np.maximum(w - length * along_w, self.matrix.levels)
                new_V = np.clip(V - length * along_V, -1.0, 1.0)
                trial = self._evaluated(new_w, new_V, mu)
                promised = slope.of_weights @ (new_w - w)
                promised += np.vdot(slope.of_shares, new_V - V)
                if trial.value <= slope.value + _SUFFICIENT * promised:
                    found = trial
                    break
                length *= _SHRINK
                if deadline.passed():
                    break
            taken += 1
            deadline.step_took(time.perf_counter() - began)
            if found is None:
                if not history:
                    break
                history.clear()
                continue
            step = self._joined((new_w - w) / scale, new_V - V)
            change = self._joined(
                (found.of_weights - slope.of_weights) * scale,
                found.of_shares - slope.of_shares,
            )
            curvature = float(step @ change)
            sizes = float(step @ step), float(change @ change)  # 0 if they underflow
            least = 1e-12 * np.sqrt(sizes[0]) * np.sqrt(sizes[1])
            if sizes[1] > 0 and curvature > least:
                history.append((step, change, curvature))
            w, V, slope = new_w, new_V, found
            values.append(slope.value)
            if self.best.value <= self.enough:
                break
            if len(values) > _STALE:
                least = self.patience * _PROGRESS * (self.best.value - self.target)
                if values[-_STALE - 1] - values[-1] < least:
                    break
        return taken, replace(self.best, weights=w, shares=V)


def two_loops(
    gradient: FloatArray, history: deque[tuple[FloatArray, FloatArray, float]]
) -> FloatArray:
    """The direction of L-BFGS; a short step along the slope while nothing is known."""
    if not history:
        largest = float(np.abs(gradient).max(initial=0.0)) or 1.0
        if largest < np.finfo(gradient.dtype).tiny:  # the quotient may overflow
            return gradient / largest * _FIRST_STEP
        return gradient * (_FIRST_STEP / largest)
    direction = gradient.copy()
    factors = []
    for step, change, curvature in reversed(history):
        factor = float(step @ direction) / curvature
        direction -= factor * change
        factors.append(factor)
    step, change, curvature = history[-1]
    direction *= curvature / float(change @ change)
    for (step, change, curvature), factor in zip(
        history, reversed(factors), strict=True
    ):
        direction += (factor - float(change @ direction) / curvature) * step
    if not np.isfinite(direction).all():  # steps or slopes near the least number
        return two_loops(gradient, deque())
    return direction
