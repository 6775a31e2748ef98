"""What "optimal" means, and that nothing can be called so that is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import restated
from blockspca.checker import check as checker
from blockspca.status import OPTIMAL_GAP, is_optimal_gap


@pytest.mark.parametrize("objective", [1.0, -1.0, 3.7e-200, 2.0**600, -5e100])
def test_the_scale_is_the_objective(objective):
    size = abs(objective)
    assert is_optimal_gap(objective, objective)
    assert is_optimal_gap(objective, objective + 0.999e-6 * size)
    assert not is_optimal_gap(objective, objective + 1.001e-6 * size)
    assert not is_optimal_gap(objective, math.nextafter(objective, -math.inf))


def test_the_checker_calls_the_same_optimal():
    """It shares nothing with the library, the constant neither."""
    assert float(checker.OPTIMAL) == OPTIMAL_GAP


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


def test_a_bound_by_another_name_or_a_loading_elsewhere_is_a_contradiction() -> None:
    result = bs.solve(np.diag([3.0, 2.0, 1.0]) + 0.5, 2)
    elsewhere = result.x.copy()
    (outside,) = np.setdiff1d(np.arange(3), result.support)
    elsewhere[outside] = 1e-3
    for change in ({"bound_name": "a name of my own"}, {"x": elsewhere}):
        with pytest.raises(ValueError, match=next(iter(change))):
            replace(result, **change)


def test_a_claim_that_is_misspelt_is_refused() -> None:
    for certify in (True, False):
        result = bs.solve(np.diag([3.0, 2.0, 1.0]) + 0.5, 2, certify=certify)
        with pytest.raises(TypeError, match="uper_bound"):
            restated(result, uper_bound=9.0)
