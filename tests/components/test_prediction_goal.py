"""The goal of components that predict: its formula, its slopes, its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blockspca.components.prediction_goal import COSTS, USUAL, WIDTHS, Goal

FREE, BOUND = Goal(2.0), Goal(2.0, (0.3, 0.6), 0.8)
HEAVY = Goal(250.0, (0.3, 0.6), 0.8)


def formula(goal: Goal, a: float, p: float) -> float:
    value = np.log(a) + goal.weight * np.log(p)
    if goal.above is not None:
        x = np.log(a / goal.above[0])
        y = (p - goal.above[1]) / (goal.ceiling - goal.above[1])
        for cost, width, above in zip(COSTS, WIDTHS, (x, y), strict=True):
            cost *= max(1, goal.weight / USUAL)
            value -= cost * width * np.logaddexp(0, -above / width)
    return float(value)


@pytest.mark.parametrize("goal", [FREE, BOUND, HEAVY])
@pytest.mark.parametrize(
    "point", [(0.3, 0.6), (0.2999, 0.61), (0.31, 0.5995), (0.1, 0.7), (1e-9, 1e-9)]
)
def test_value_and_slopes(goal, point):
    a, p = point
    assert goal.value(a, p) == pytest.approx(formula(goal, a, p), rel=1e-12)
    by_a, by_p = goal.slopes(a, p)
    step = 1e-6
    rise = formula(goal, a * (1 + step), p) - formula(goal, a * (1 - step), p)
    assert by_a == pytest.approx(rise / (2 * step * a), rel=1e-4)
    rise = formula(goal, a, p * (1 + step)) - formula(goal, a, p * (1 - step))
    assert by_p == pytest.approx(rise / (2 * step * p), rel=1e-4)


@pytest.mark.parametrize("a", [0.2, 0.3, 0.4])
@pytest.mark.parametrize("p", [0.5, 0.6, 0.7])
def test_a_bound_takes_away_only(a, p):
    lost = FREE.value(a, p) - BOUND.value(a, p)
    assert lost > 0 or (a > 0.3 and p > 0.6)
    assert lost < 1e-6 or a <= 0.3 or p <= 0.6


def test_nothing_is_worth_nothing():
    assert BOUND.value(0.0, 0.5) == FREE.value(0.5, 0.0) == -np.inf


def test_a_bound_that_predicts_as_much_as_pca():
    goal = Goal(2.0, (0.3, 0.6), 0.6)
    assert np.isfinite(goal.value(0.3, 0.6))
    assert np.isfinite(goal.slopes(0.3, 0.5)).all()


def test_below_a_hard_bound_is_nothing():
    goal = replace(HEAVY, strict=True, hard=True)
    assert goal.value(0.3 * (1 - 1e-9), 0.9) == goal.value(0.9, 0.59999) == -np.inf
    # what the order of sums takes away is not below
    assert np.isfinite(goal.value(0.3 * (1 - 1e-14), 0.6 * (1 - 1e-14)))
    assert goal.holds(0.3 * (1 - 1e-14), 0.6)
    assert not goal.holds(0.3 * (1 - 1e-9), 0.9)


def test_costs_exceed_what_is_gained_by_being_below():
    """With any weight: 3 % of adjusted variance for 1 % of R² is no way."""
    for weight in (2.5, 30.0, 3000.0):
        goal = Goal(weight, (0.3, 0.6), 0.8)
        assert goal.value(0.97 * 0.3, 1.01 * 0.6) < goal.value(0.3, 0.6)
