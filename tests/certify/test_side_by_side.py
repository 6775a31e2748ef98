"""Provers at a time: the first proof ends all, and nothing is lost by it."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify import results
from blockspca.certify.side_by_side import side_by_side
from blockspca.limits import Budget, Deadline, LimitReached, Limits, until_called_off
from blockspca.numerics.threads import allowed_threads, proof_threads
from blockspca.search.portfolio import Portfolio
from blockspca.search.schur_tree import TreeStatistics


def waits() -> str:
    """As long as its deadline lets it."""
    deadline = Deadline(60.0)
    while not deadline.passed():
        time.sleep(0.001)
    return "called off" if deadline.elapsed() < 50 else "late"


def is_proof(found: str) -> bool:
    return found == "proof"


def test_the_first_proof_calls_the_others_off() -> None:
    for provers in ([waits, lambda: "proof"], [lambda: "proof", waits]):
        found, interrupted = side_by_side(provers, is_proof, 0.0)
        assert sorted(found)[-1] == "proof"
        assert "late" not in found
        assert not interrupted


def test_a_proof_within_the_head_start_is_alone() -> None:
    begun: list[str] = []

    def second() -> str:
        begun.append("second")
        return "proof"

    assert side_by_side([lambda: "proof", second], is_proof, 60.0) == (["proof"], False)
    assert not begun
    # an answer that is no proof is not waited for any longer
    found, _ = side_by_side([lambda: "nothing", second], is_proof, 60.0)
    assert found == ["nothing", "proof"]


def test_each_has_one_thread_and_what_failed_is_raised() -> None:
    with allowed_threads(2):
        found, _ = side_by_side([proof_threads, proof_threads], lambda n: False, 0.0)
        assert found == [1, 1]
        assert proof_threads() == 2

    def fails() -> str:
        raise RuntimeError("of the second")

    with pytest.raises(RuntimeError, match="of the second"):
        side_by_side([waits, fails], is_proof, 0.0)


@pytest.fixture
def sigint() -> Iterator[None]:
    """SIGINT interrupts, also where tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("sigint")
def test_an_interrupt_calls_all_of_them_off() -> None:
    def interrupts() -> str:
        _thread.interrupt_main()
        return waits()

    found, interrupted = side_by_side([waits, interrupts], is_proof, 0.0)
    assert set(found) == {"called off"}
    assert interrupted


def test_work_that_is_called_off_has_no_time_left() -> None:
    event = threading.Event()
    outside = Deadline(100.0)
    with until_called_off(event):
        inside, endless, budget = Deadline(100.0), Deadline(None), Budget(Limits())
    assert not inside.passed()
    assert endless.affords(1e9)
    event.set()
    for deadline in (inside, endless, budget):
        assert deadline.passed()
        assert deadline.remaining() == 0.0
        assert not deadline.affords(1e-9)
    assert budget.stop_reason() is bs.Status.TIME_LIMIT
    assert not outside.passed()


@pytest.mark.parametrize("seconds", [60.0, None])
def test_growth_ends_when_it_is_called_off(seconds: float | None) -> None:
    """It would take half a minute, and looks at the clock between slices."""
    E = np.random.default_rng(0).normal(scale=0.1, size=(200, 200))
    A = np.eye(200) + E + E.T
    statistics = TreeStatistics()
    grew = threading.Event()

    def grows() -> str:
        budget = Budget(Limits(time=seconds))
        upper = [np.inf] * 13
        search = Portfolio(12, upper, statistics, budget, 1, lambda features: None)
        search._average(A[:20, :20], 3.0, 1.0)  # its kernel is loaded
        grew.set()
        with suppress(LimitReached):
            search._average(A, 3.0, 1000.0)
        return "called off"

    def proves() -> str:
        grew.wait(60.0)
        time.sleep(0.3)
        return "proof"

    clock = Deadline(None)
    found, _ = side_by_side([grows, proves], is_proof, 0.0)
    assert found == ["called off", "proof"]
    assert statistics.grown > 0
    assert clock.elapsed() < 10


def blocks() -> bs.Covariance:
    X = np.random.default_rng(0).normal(size=(60, 80))
    X[:, :32] += 3 * np.random.default_rng(1).normal(size=(60, 1))
    return bs.Covariance.from_data(X, scale=True)


@pytest.mark.parametrize("who", ["chain", "duals"])
def test_whoever_proves_it_the_result_is_the_same(who: str, monkeypatch: Any) -> None:
    """One of the two is made to wait until it is called off."""
    cov, k = blocks(), 32
    told: list[Any] = []
    if who == "duals":
        walk = results.certified_path

        def late_walk(*args: Any, limits: bs.Limits, **options: Any) -> Any:
            waits()
            return walk(*args, limits=bs.Limits(time=0.0), **options)

        monkeypatch.setattr(results, "certified_path", late_walk)
    else:
        alone = results.prove_single_k

        def late_proof(cov: Any, k: int, limits: bs.Limits, *rest: Any) -> Any:
            waits()
            return alone(cov, k, bs.Limits(time=0.0), *rest)

        monkeypatch.setattr(results, "prove_single_k", late_proof)
    found = bs.solve(cov, k, limits=3000, n_jobs=2, progress=told.append)
    assert found.status is bs.Status.OPTIMAL
    assert found.support.tolist() == list(range(32))
    assert bs.verify(found, cov).complete
    ended = [event.status for event in told if event.k == k and event.status]
    assert ended == [bs.Status.OPTIMAL]


def test_one_thread_and_other_limits_are_one_after_the_other(monkeypatch: Any) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("at once")

    monkeypatch.setattr(results, "side_by_side", refuse)
    cov = blocks()
    for limits, n_jobs in (
        (bs.Limits(time=600), 1),
        (bs.Limits(time=600, nodes=10**6), 2),
        (bs.Limits(time=600, memory=2**30), 2),
        (bs.Limits(), 2),
    ):
        found = bs.solve(cov, 32, limits=limits, n_jobs=n_jobs)
        assert found.status is bs.Status.OPTIMAL
    with pytest.raises(AssertionError, match="at once"):
        bs.solve(cov, 32, limits=600, n_jobs=2)


def test_an_interrupt_leaves_what_was_found() -> None:
    """By a listener, in a thread of either prover."""
    X = np.random.default_rng(2).normal(size=(40, 60))
    cov = bs.Covariance.from_data(X)

    def listen(event: Any) -> None:
        raise KeyboardInterrupt

    found = bs.solve(cov, 31, limits=60, n_jobs=2, progress=listen)
    assert found.status is bs.Status.INTERRUPTED
    assert found.objective <= found.upper_bound < np.inf
