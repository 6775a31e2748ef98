"""Gradient projection ends where no step of the method leads any further."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.solvers import Limits, Projection
from blockspca.solvers._heuristic import keep_largest
from strategies import symmetric_matrix


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("memory", [1, 5])
def test_ends_in_a_stationary_point(seed, memory):
    rng = np.random.default_rng(seed)
    A = symmetric_matrix("psd", 40, rng)
    start = keep_largest(rng.normal(size=40), 6)
    *_, x = Projection(memory)._ascend(A, 6, start)
    assert x @ A @ x > start @ A @ start
    np.testing.assert_allclose(keep_largest(A @ x, 6), x, atol=1e-5)


def test_longer_steps_than_the_power_method():
    """Fewer steps to the same accuracy, in the median."""
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = symmetric_matrix("psd", 40, rng)
        start = keep_largest(rng.normal(size=40), 20)
        steps = sum(1 for _ in Projection()._ascend(A, 20, start))
        x, power = start, 0
        while power < 500:
            y = keep_largest(A @ x, 20)
            power += 1
            if np.linalg.norm(y - x) <= 1e-9:
                break
            x = y
        ratios.append(steps / power)
    assert np.median(ratios) < 0.85


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="memory"):
        Projection(memory=0).solve(np.eye(3), 1, limits=Limits())
