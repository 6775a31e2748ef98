"""Kernels import nothing, so that their constants are those of others by a test."""

from __future__ import annotations

from blockspca._kernels import constants
from blockspca.numerics import rounding


def test_epsilon_is_that_of_the_rest_of_the_library():
    assert constants.EPS == rounding.EPS
