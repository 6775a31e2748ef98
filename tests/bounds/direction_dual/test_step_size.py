"""Step lengths, ρ and least weight of an ascent, by what is seen of it."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.bounds.direction_dual.step_size import StepSize


def test_steps_are_shorter_after_the_function_fell() -> None:
    control = StepSize()
    first = control.length(10.0, bound=12.0)
    assert control.length(10.0, bound=12.0) == first
    assert control.length(9.95, bound=12.0) * 9.95 == pytest.approx(10 * first)
    assert control.length(9.5, bound=12.0) * 9.5 == pytest.approx(5 * first)
    assert control.length(9.6, bound=12.0) * 9.6 == pytest.approx(5 * first)
    control.forget_value()
    assert control.length(2.0, bound=12.0) * 2.0 == pytest.approx(5 * first)


def test_what_a_change_of_the_multiplier_lowers_is_no_fault_of_the_steps() -> None:
    control = StepSize()
    first = control.length(10.0, bound=12.0)
    control.update_multiplier(1.0, excess=0.5, open_share=1.0)
    assert control.length(8.0, bound=12.0) * 8.0 == pytest.approx(10 * first)


def test_steps_grow_while_they_help_and_up_to_a_length() -> None:
    control = StepSize()
    lengths = []
    for _ in range(30):
        lengths.append(control.length(1.0, bound=None))
        control.on_success()
    assert lengths[1] == pytest.approx(1.2 * lengths[0])
    assert lengths[-1] == pytest.approx(3 * lengths[0])
    control.moves = 25
    assert control.length(1.0, bound=None) == pytest.approx(1.5 * lengths[0])


def test_the_multiplier_settles_where_the_number_of_columns_jumps() -> None:
    """Below 1 there are too many by half, from 1 on too few: there is no balance."""
    control, multiplier = StepSize(), 0.7
    seen = []
    for _ in range(60):
        multiplier = control.update_multiplier(
            multiplier, np.log(1.5 if multiplier < 1 else 0.5), 1.0
        )
        seen.append(multiplier)
    assert max(abs(np.array(seen[-5:]) - 1)) < 0.03
    assert max(np.array(seen[1:]) / seen[:-1]) <= 1.25


def test_the_least_weight_follows_the_gap_and_stays_where_less_led_too_far() -> None:
    control = StepSize()
    control.length(10.0, bound=None)
    weight = 0.03
    for _ in range(60):
        weight = control.lower_weight(weight, gap=0.01)
    assert weight == pytest.approx(1e-4)
    control.on_failure(weight)
    for _ in range(60):
        weight = control.lower_weight(weight, gap=1e-6)
    assert weight == pytest.approx(1e-4)
    assert control.lower_weight(1e-6, gap=np.inf) == pytest.approx(1e-4)


def test_the_least_weight_goes_on_sinking_where_the_step_was_too_long() -> None:
    control = StepSize()
    control.length(10.0, bound=None)
    control.on_failure(None)
    assert control.lower_weight(0.03, gap=0.01) == pytest.approx(0.85 * 0.03)
