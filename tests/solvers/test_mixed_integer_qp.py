"""The mixed-integer quadratic program: the optimum, limits, Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca import Status
from blockspca.solvers import Limits, MixedIntegerQP, _highs
from blockspca.solvers._eigenbasis_program import EigenbasisProgram
from conftest import brute_force
from zoo import KINDS, symmetric_matrix


@pytest.mark.parametrize("kind", KINDS)
def test_against_brute_force(kind):
    A = symmetric_matrix(kind, 7, np.random.default_rng(8))
    slack = 1e-9 * max(1.0, np.abs(A).max())
    for k in (1, 3, 6):
        solution = MixedIntegerQP().solve(A, k)
        optimum = brute_force(A, k)
        assert solution.status is Status.OPTIMAL
        assert solution.x @ A @ solution.x == pytest.approx(optimum, abs=slack)
        assert optimum <= solution.upper_bound + slack
        size = max(np.abs(A).max(), abs(optimum))
        assert solution.upper_bound <= optimum + 2e-6 * size + slack


def test_a_start_that_is_not_the_best_is_overtaken(monkeypatch):
    """Without local search the program itself has to find the optimum."""
    A = symmetric_matrix("psd", 8, np.random.default_rng(2))
    optimum = brute_force(A, 3)

    def worst(A, k, run):
        run.offer(np.argsort(np.diagonal(A))[:k])

    monkeypatch.setattr(_highs, "start_locally", worst)
    solution = MixedIntegerQP().solve(A, 3)
    assert solution.x @ A @ solution.x == pytest.approx(optimum)
    assert solution.upper_bound == pytest.approx(optimum, rel=1e-5)


def test_stopped_early_the_bound_still_holds():
    A = symmetric_matrix("psd", 12, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    for nodes in (1, 3):
        solution = MixedIntegerQP().solve(A, 4, limits=Limits(nodes=nodes))
        assert solution.status is Status.NODE_LIMIT
        assert solution.upper_bound >= optimum
    solution = MixedIntegerQP().solve(A, 4, limits=Limits(time=0.0))
    assert solution.status is Status.TIME_LIMIT
    assert solution.upper_bound >= optimum
    solution = MixedIntegerQP().solve(A, 4, limits=Limits(memory=1000))
    assert solution.status is Status.MEMORY_LIMIT
    assert solution.upper_bound >= optimum


def test_gap_limit_and_incumbent():
    A = symmetric_matrix("psd", 9, np.random.default_rng(1))
    optimum = brute_force(A, 3)
    loose = MixedIntegerQP().solve(A, 3, limits=Limits(gap=0.2))
    assert loose.status is Status.GAP_LIMIT
    assert optimum <= loose.upper_bound <= 1.2 * (loose.x @ A @ loose.x) + 1e-5
    beaten = MixedIntegerQP().solve(A, 3, incumbent=1.2 * optimum)
    assert beaten.status is Status.FEASIBLE
    assert optimum <= beaten.upper_bound <= 1.2 * optimum * (1 + 1e-5)


def test_an_interrupt_keeps_support_and_bound(monkeypatch):
    A = symmetric_matrix("psd", 9, np.random.default_rng(1))
    maximise, calls = EigenbasisProgram.maximise, []

    def interrupted(self, *given, **named):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return maximise(self, *given, **named)

    monkeypatch.setattr(EigenbasisProgram, "maximise", interrupted)
    solution = MixedIntegerQP().solve(A, 3)
    assert solution.status is Status.INTERRUPTED
    assert brute_force(A, 3) <= solution.upper_bound < np.inf
    assert np.count_nonzero(solution.x) == 3


@pytest.mark.data
@pytest.mark.parametrize("k", [5, 10])
def test_pitprops(load, k):
    A = load("pitprops")
    solution = MixedIntegerQP().solve(A, k)
    assert solution.status is Status.OPTIMAL
    assert solution.x @ A @ solution.x == pytest.approx(brute_force(A, k), rel=1e-9)
    assert solution.upper_bound == pytest.approx(brute_force(A, k), rel=2e-6)
