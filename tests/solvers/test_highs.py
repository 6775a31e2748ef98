"""One call of HiGHS: its answers, its clock, and Ctrl-C while it runs."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import zoo
from blockspca.limits import Deadline
from blockspca.solvers import MixedIntegerQP, _highs
from blockspca.solvers.base import SolverError
from blockspca.status import Status


def program(weights, capacity, *, integer=True) -> dict:
    """max Σ x_j, weights · x ≤ capacity, 0 ≤ x ≤ 1, as `minimise` wants it."""
    from scipy.optimize import Bounds, LinearConstraint

    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    d = weights.shape[1]
    return {
        "objective": -np.ones(d),
        "integrality": np.full(d, float(integer)),
        "bounds": Bounds(np.zeros(d), np.ones(d)),
        "constraints": LinearConstraint(weights, -np.inf, capacity),
    }


@pytest.mark.parametrize(("integer", "optimum"), [(True, 2.0), (False, 2.5)])
def test_the_optimum_and_the_relaxation(integer, optimum):
    given = program([2.0, 2.0, 2.0], 5.0, integer=integer)
    answer = _highs.minimise(**given, deadline=Deadline(None))
    assert answer.finished
    assert answer.bound == pytest.approx(-optimum)
    assert answer.x.sum() == pytest.approx(optimum)
    assert answer.nodes >= 1


@pytest.mark.parametrize("integer", [True, False])
def test_without_a_point_the_bound_is_infinite(integer):
    given = program([1.0, 1.0], -1.0, integer=integer)
    answer = _highs.minimise(**given, deadline=Deadline(None))
    assert (answer.x, answer.bound, answer.finished) == (None, math.inf, True)


def hard() -> dict:
    weights = np.random.default_rng(0).integers(1, 10**6, size=(30, 90))
    return program(weights, weights.sum(axis=1) / 3)


def test_a_limit_leaves_a_bound_that_holds():
    answer = _highs.minimise(**hard(), deadline=Deadline(0.3))
    assert not answer.finished
    assert answer.bound >= -90
    assert answer.x is None or answer.bound <= -answer.x.round().sum() + 1e-6


def test_a_limit_on_nodes_leaves_a_bound_that_holds():
    free = _highs.minimise(**hard(), deadline=Deadline(1.0))
    answer = _highs.minimise(**hard(), deadline=Deadline(None), nodes=1)
    assert (answer.finished, answer.nodes) == (False, 1)
    assert answer.bound <= free.bound + 1e-6


def test_without_a_limit_slices_of_time_grow(monkeypatch):
    seconds = []
    run = _highs._in_a_thread

    def recorded(objective, **arguments):
        seconds.append(arguments["options"]["time_limit"])
        return run(objective, **arguments)

    monkeypatch.setattr(_highs, "_in_a_thread", recorded)
    monkeypatch.setattr(_highs, "FIRST_SLICE", 0.01)
    answer = _highs.minimise(**hard(), deadline=Deadline(0.5))
    assert seconds[:3] == [0.01, 0.02, 0.04]
    assert sum(seconds) <= 0.7
    assert not answer.finished


def test_other_answers_are_errors(monkeypatch):
    class Failed:
        status, message = 4, "numerical trouble"

    monkeypatch.setattr(_highs, "_in_a_thread", lambda *given, **named: Failed)
    with pytest.raises(SolverError, match="numerical trouble"):
        _highs.minimise(**program([1.0], 1.0), deadline=Deadline(None))


def test_what_presolve_spoils_is_solved_as_it_was_given(monkeypatch):
    """Such an end is no answer: neither a bound nor a point of it is used."""
    run, asked = _highs._in_a_thread, []

    def unknown(objective, **arguments):
        asked.append(arguments["options"]["presolve"])
        found = run(objective, **arguments)
        if asked[-1]:
            found.status, found.message = 4, "model_status is Unknown"
            found.x, found.fun, found.mip_dual_bound = np.zeros(3), -9.0, -9.0
        return found

    monkeypatch.setattr(_highs, "_in_a_thread", unknown)
    given = program([2.0, 2.0, 2.0], 5.0)
    answer = _highs.minimise(**given, deadline=Deadline(None))
    assert asked == [True, False]
    assert (answer.bound, answer.x.sum()) == (-2.0, 2.0)
    given = program([2.0, 2.0, 2.0], 5.0, integer=False)
    answer = _highs.minimise(**given, deadline=Deadline(None))
    assert (answer.x, answer.bound, answer.finished) == (None, -math.inf, True)


def test_a_relaxation_of_which_nothing_is_known_is_left_out(monkeypatch):
    run, A = _highs._in_a_thread, zoo.indefinite(7, np.random.default_rng(0))
    expected = MixedIntegerQP().solve(A, 3)

    def unknown(objective, **arguments):
        found = run(objective, **arguments)
        if not arguments["integrality"].any():
            found.status, found.message, found.fun = 4, "model_status is Unknown", 9.0
        return found

    monkeypatch.setattr(_highs, "_in_a_thread", unknown)
    found = MixedIntegerQP().solve(A, 3)
    assert found.status is expected.status is Status.OPTIMAL
    assert found.support.tolist() == expected.support.tolist()
    assert found.upper_bound == pytest.approx(expected.upper_bound, abs=1e-5)


def test_errors_of_the_thread_are_raised_here():
    given = program([1.0, 1.0], 1.0)
    given["integrality"] = np.zeros(3)
    with pytest.raises(ValueError, match="integrality"):
        _highs.minimise(**given, deadline=Deadline(None))


def test_an_interrupt_is_heard_while_highs_runs(monkeypatch):
    """The thread that waits gets it, and does not wait for HiGHS to end."""
    released = threading.Event()

    def endless(objective, **arguments):
        released.wait(30)
        ended.set()

    ended = threading.Event()
    monkeypatch.setattr("scipy.optimize.milp", endless)
    join = threading.Thread.join

    def interrupted(self, timeout=None):
        if self.name == "HiGHS":
            raise KeyboardInterrupt
        join(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _highs.minimise(**program([1.0], 1.0), deadline=Deadline(None))
    assert not ended.is_set()
    released.set()
