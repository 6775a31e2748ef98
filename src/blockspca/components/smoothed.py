"""The sum of the largest of some numbers, smoothed, with its derivative."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..numerics.rounding import EPS

NEWTON_STEPS = 60  # for the level t, which takes about six


def smoothed_sum(values: FloatArray, m: int, mu: float) -> tuple[float, FloatArray]:
    """Return the smoothed sum of the m largest values, and its weights.

    It is max Σ p_l v_l + μ H(p) over 0 ≤ p ≤ 1, Σ p_l = m, with the entropy H of p and
    1 − p; or min over t of m t + μ Σ log(1 + exp((v_l − t)/μ)). No less than the sum
    itself. The derivative are the weights p_l = 1/(1 + exp((t − v_l)/μ)).

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.components.smoothed import smoothed_sum
    >>> total, weights = smoothed_sum(np.array([3.0, 1.0, 0.9, 0.0]), 2, 0.05)
    >>> round(total, 3), weights.round(2)
    (4.031, array([1.  , 0.73, 0.27, 0.  ]))
    """
    if m >= len(values):
        return float(values.sum()), np.ones(len(values))
    ordered = np.sort(values)
    low = float(ordered[0]) - 40 * mu * len(values)
    high = float(ordered[-1]) + 40 * mu * len(values)
    t = float(ordered[-m] + ordered[-m - 1]) / 2
    for _ in range(NEWTON_STEPS):
        p = _weights(values, t, mu)
        excess = float(p.sum()) - m
        if abs(excess) <= 4 * EPS * m:
            break
        low, high = (t, high) if excess > 0 else (low, t)
        slope = float((p * (1 - p)).sum()) / mu
        after = t + excess / slope if slope > 0 else low
        t = after if low < after < high else (low + high) / 2
    value = m * t + mu * float(np.logaddexp(0.0, (values - t) / mu).sum())
    return value, _weights(values, t, mu)


def _weights(values: FloatArray, t: float, mu: float) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(np.clip((t - values) / mu, -500.0, 500.0))))
