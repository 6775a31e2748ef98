"""The smoothed sum of the largest of some numbers: no less, close, and its slope."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.components.smoothed import smoothed_sum


@pytest.mark.parametrize("count", [1, 3, 9, 10])
def test_it_is_no_less_than_the_sum_in_any_order(count: int) -> None:
    values = np.random.default_rng(1).normal(size=10)
    exact = float(np.sort(values)[-count:].sum())
    for theta in (1.0, 0.1, 1e-3):
        total, weights = smoothed_sum(values, count, theta)
        assert exact - 1e-12 <= total <= exact + 10 * theta * np.log(2) + 1e-12
        assert weights.sum() == pytest.approx(count)
        turned, reversed_weights = smoothed_sum(values[::-1], count, theta)
        assert turned == pytest.approx(total)
        np.testing.assert_allclose(reversed_weights[::-1], weights)


def test_the_smoothed_sum_is_above_and_close():
    values = np.sort(np.random.default_rng(0).normal(size=20))
    for m in (1, 3, 20):
        exact = values[-m:].sum()
        value, weights = smoothed_sum(values, m, 1e-3)
        assert exact - 1e-12 <= value <= exact + 20 * np.log(2) * 1e-3
        assert weights.sum() == pytest.approx(m)
    wide = smoothed_sum(values, 3, 0.5)[0]
    step = 1e-6 * np.eye(20)[7]
    slope = (smoothed_sum(values + step, 3, 0.5)[0] - wide) / 1e-6
    assert slope == pytest.approx(smoothed_sum(values, 3, 0.5)[1][7], abs=1e-5)
