"""What "optimal" means, and that nothing can be called so that is not."""

from __future__ import annotations

import math

import pytest

from blockspca.result import OPTIMAL_GAP, is_optimal_gap


@pytest.mark.parametrize("objective", [1.0, -1.0, 3.7e-200, 2.0**600, -5e100])
def test_the_scale_is_the_objective(objective):
    size = abs(objective)
    assert is_optimal_gap(objective, objective)
    assert is_optimal_gap(objective, objective + 0.999e-9 * size)
    assert not is_optimal_gap(objective, objective + 1.001e-9 * size)
    assert not is_optimal_gap(objective, math.nextafter(objective, -math.inf))


def test_the_limit_itself_is_optimal_and_the_next_number_is_not():
    objective = 2.0**30
    limit = objective + 2.0**30 * OPTIMAL_GAP
    while limit - objective > OPTIMAL_GAP * objective:
        limit = math.nextafter(limit, 0.0)
    assert is_optimal_gap(objective, limit)
    assert not is_optimal_gap(objective, math.nextafter(limit, math.inf))


def test_zero_needs_an_equal_bound():
    assert is_optimal_gap(0.0, 0.0)
    assert is_optimal_gap(-0.0, 0.0)
    assert not is_optimal_gap(0.0, 5e-324)


@pytest.mark.parametrize(
    ("objective", "upper_bound"),
    [
        (1.0, math.inf),
        (1.0, math.nan),
        (math.nan, 1.0),
        (math.inf, math.inf),
        (math.inf, 1.0),
        (-math.inf, 1.0),
        (-1.7e308, 1.7e308),
    ],
)
def test_what_is_not_finite_is_not_optimal(objective, upper_bound):
    assert not is_optimal_gap(objective, upper_bound)
