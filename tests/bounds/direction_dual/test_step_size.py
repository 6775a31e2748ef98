"""Step lengths, ρ and floor of the direction dual's ascent, by what is seen of it."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.bounds.direction_dual.step_size import Control


def test_steps_are_shorter_after_the_function_fell() -> None:
    control = Control()
    first = control.step_length(10.0, bound=12.0)
    assert control.step_length(10.0, bound=12.0) == first
    assert control.step_length(9.95, bound=12.0) * 9.95 == pytest.approx(10 * first)
    assert control.step_length(9.5, bound=12.0) * 9.5 == pytest.approx(5 * first)
    assert control.step_length(9.6, bound=12.0) * 9.6 == pytest.approx(5 * first)
    control.forget_height()
    assert control.step_length(2.0, bound=12.0) * 2.0 == pytest.approx(5 * first)


def test_what_a_change_of_the_penalty_lowers_is_no_fault_of_the_steps() -> None:
    control = Control()
    first = control.step_length(10.0, bound=12.0)
    control.follow(1.0, excess=0.5, share=1.0)
    assert control.step_length(8.0, bound=12.0) * 8.0 == pytest.approx(10 * first)


def test_steps_grow_while_they_help_and_up_to_a_length() -> None:
    control = Control()
    lengths = []
    for _ in range(30):
        lengths.append(control.step_length(1.0, bound=None))
        control.gained()
    assert lengths[1] == pytest.approx(1.2 * lengths[0])
    assert lengths[-1] == pytest.approx(3 * lengths[0])
    control.moves = 25
    assert control.step_length(1.0, bound=None) == pytest.approx(1.5 * lengths[0])


def test_the_penalty_settles_where_the_number_of_columns_jumps() -> None:
    """Below 1 there are too many by half, from 1 on too few: there is no balance."""
    control, penalty = Control(), 0.7
    seen = []
    for _ in range(60):
        penalty = control.follow(penalty, np.log(1.5 if penalty < 1 else 0.5), 1.0)
        seen.append(penalty)
    assert max(abs(np.array(seen[-5:]) - 1)) < 0.03
    assert max(np.array(seen[1:]) / seen[:-1]) <= 1.25


def test_the_floor_follows_the_gap_and_stays_where_less_led_too_far() -> None:
    control = Control()
    control.step_length(10.0, bound=None)
    floor = 0.03
    for _ in range(60):
        floor = control.lower_floor(floor, gap=0.01)
    assert floor == pytest.approx(1e-4)
    control.led_too_far(floor)
    for _ in range(60):
        floor = control.lower_floor(floor, gap=1e-6)
    assert floor == pytest.approx(5e-5)
    assert control.lower_floor(1e-6, gap=np.inf) == pytest.approx(5e-5)
