"""Checks of arguments: what passes, and errors that name argument, value and fix."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca import validation as v


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (lambda x: v.check_real(x, "it", minimum=0), -1),
        (lambda x: v.check_real(x, "it"), float("nan")),
        (lambda x: v.check_real(x, "it"), True),
        (lambda x: v.check_real(x, "it"), "1"),
        (lambda x: v.check_real(x, "it", maximum=2), 3),
        (lambda x: v.check_integer(x, "it", minimum=1), 0),
        (lambda x: v.check_integer(x, "it"), 2.0),
        (lambda x: v.check_integer(x, "it"), np.True_),
        (lambda x: v.check_flag(x, "it"), 1),
        (lambda x: v.check_sparsity(x, 9, "it"), 0),
        (lambda x: v.check_sparsity(x, 9, "it"), 10),
        (lambda x: v.check_sparsity(x, 9, "it"), 1.0),
        (lambda x: v.check_sparsity(x, 9, "it"), True),
        (lambda x: v.check_sparsity(x, 9, "it"), None),
        (lambda x: v.check_names(x, 2, "it"), "ab"),
        (lambda x: v.check_names(x, 2, "it"), 3),
    ],
)
def test_errors_name_argument_value_and_fix(check, value):
    with pytest.raises((TypeError, ValueError)) as error:
        check(value)
    text = str(error.value)
    assert text.startswith(f"it = {value!r}".removesuffix("0"))
    assert " must " in text
    assert "; use " in text
    assert "it=" in text or "one for each feature" in text


def test_suggested_values_pass():
    for check in (v.check_real, v.check_integer):
        for limits in ({"minimum": 5}, {"maximum": -5}, {"minimum": 0, "maximum": 0}):
            with pytest.raises(ValueError, match="it = ") as error:
                check(1000 if "maximum" in limits else -1000, "it", **limits)
            value = str(error.value).rstrip(".").split("it=")[-1]
            assert check(type(check(0, "it"))(float(value)), "it", **limits) is not None


def test_suggestions_are_near_the_value():
    with pytest.raises(ValueError, match="it=13"):
        v.check_integer(100, "it", minimum=1, maximum=13)
    with pytest.raises(TypeError, match="it=2"):
        v.check_sparsity(2.0, 9, "it")


def test_values_that_pass():
    assert v.check_real(np.float32(0.5), "it") == 0.5
    assert type(v.check_integer(np.int8(3), "it", minimum=3, maximum=3)) is int
    assert v.check_flag(np.True_, "it") is True
    assert v.check_n_jobs(None) is None
    assert v.check_n_jobs(-2) == -2


def test_shares_of_features():
    assert v.check_sparsity(np.float64(0.5), 9) == 4
    assert v.check_sparsity(0.999, 9) == 9
    assert v.check_sparsity(np.int64(9), 9) == 9


def test_names():
    assert v.check_names(["a", 2], 2) == ("a", "2")
    assert v.check_names(None, 2) is None
    with pytest.raises(ValueError, match="has 1 names and must have 2"):
        v.check_names(["a"], 2)
    with pytest.raises(ValueError, match="cannot repeat '1'"):
        v.check_names([1, "1", "b"], 3)
