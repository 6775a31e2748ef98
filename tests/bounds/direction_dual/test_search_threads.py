"""The direction dual's search by threads, interrupted, and out of time."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.direction_dual import ascent as dual_ascent
from blockspca.bounds.direction_dual import search as dual_bound_module
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.bounds.direction_dual.relaxation import relax
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.blas import (
    all_threads,
    keep_to_one_thread,
    single_threaded,
    thread_count,
)
from dual_problems import Optimum


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let small problems be worked on by as many threads as asked for."""
    monkeypatch.setattr(DualSettings, "batch_size", lambda self, n: 2)

    def use(count: int) -> None:
        monkeypatch.setattr(dual_bound_module, "thread_count", lambda: count)

    return use


def test_threads_change_nothing_but_the_time(
    threads: Callable[[int], None], brute_force: Optimum
) -> None:
    split = 0
    for seed in range(3):
        X = np.random.default_rng(seed).standard_normal((8, 14))
        cov = Covariance.from_data(X)
        optimum = brute_force(cov.submatrix(slice(None)), 4)
        for target in (0.97 * optimum, optimum * (1 + 1e-8)):
            found = []
            for count in (1, 3):
                threads(count)
                bound = dual_bound(cov, 4, target=target, nodes=20, time_limit=300.0)
                assert bound.value >= optimum * (1 - 1e-12)
                better = None if bound.better is None else bound.better.tolist()
                found.append((bound.value, bound.nodes, bound.iterations, better))
            assert found[0] == found[1]
            split += bound.nodes > 12
    assert split > 1


@pytest.fixture
def heard() -> Iterator[None]:
    """SIGINT interrupts, also where tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("raised_in", ["worker", "main"])
def test_an_interrupt_stops_all_threads(
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[int], None],
    brute_force: Optimum,
    raised_in: str,
) -> None:
    cov = Covariance.from_data(np.random.default_rng(9).standard_normal((8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    threads(2)
    after, alive = 0, threading.active_count()
    for stop in (60, 100):
        calls = itertools.count(1)

        def interrupted(*arguments, stop=stop, calls=calls, **named):
            if next(calls) == stop:
                if raised_in == "worker":
                    raise KeyboardInterrupt
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return relax(*arguments, **named)

        monkeypatch.setattr(dual_ascent, "relax", interrupted)
        bound = dual_bound(cov, 4, target=0.9 * optimum, nodes=300, time_limit=300.0)
        assert bound.interrupted
        assert bound.value >= optimum
        after += next(calls) - stop
    assert after < 400  # of some thousands
    # A signal that comes while threads are joined leaves them to end by themselves.
    ends = time.monotonic() + 10.0
    while threading.active_count() > alive and time.monotonic() < ends:
        time.sleep(0.01)
    assert threading.active_count() == alive


def test_an_interrupt_keeps_the_bound(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    X = np.random.default_rng(5).standard_normal((8, 12))
    cov = Covariance.from_data(X)
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    for stop in (1, 2, 5, 40):
        calls = [0]

        def interrupted(*arguments, stop=stop, calls=calls, **named):
            calls[0] += 1
            if calls[0] == stop:
                raise KeyboardInterrupt
            return relax(*arguments, **named)

        monkeypatch.setattr(dual_ascent, "relax", interrupted)
        bound = dual_bound(cov, 4, target=optimum, nodes=1000)
        assert bound.interrupted == (calls[0] == stop)
        assert bound.value >= optimum
        assert np.isfinite(bound.value) == (stop > 1)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_node_is_lost_between_two_lines(
    count: int, request: pytest.FixtureRequest, brute_force: Optimum
) -> None:
    """Wherever Ctrl-C strikes in the search itself, the bound stays one.

    One node at a time, two, or two with threads.
    """
    if count:
        request.getfixturevalue("threads")(count)
    cov = Covariance.from_data(np.random.default_rng(9).standard_normal((8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if not frame.f_code.co_filename.endswith(
            ("bounds/direction_dual/search.py", "bounds/direction_dual/ascent.py")
        ):
            return None
        lines -= event == "line"
        if lines == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    told: list[tuple[float, int, int]] = []
    early = returned = 0
    for stop in [*range(1, 100, 2), *range(100, 3000, 83)]:
        lines = stop
        sys.settrace(trace)
        try:
            bound = dual_bound(
                cov,
                4,
                target=0.9 * optimum,
                nodes=12,
                report=lambda *news: told.append(news),
            )
        except KeyboardInterrupt:  # before there was anything to interrupt
            early += 1
            continue
        finally:
            sys.settrace(None)
        assert bound.value >= optimum
        returned += 1
        if not bound.interrupted:
            break
    assert returned > early
    assert all(value >= optimum for value, _, _ in told)


def test_a_direct_solve_that_is_interrupted_has_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(6).standard_normal((20, 150))
    calls = [0]

    def interrupted(*arguments, **named):
        calls[0] += 1
        if calls[0] == 30:
            raise KeyboardInterrupt
        return relax(*arguments, **named)

    monkeypatch.setattr(dual_ascent, "relax", interrupted)
    result = bs.solve(bs.Covariance.from_data(X), 120)
    assert result.status == "interrupted"
    assert result.objective <= result.upper_bound < 2 * result.objective
    assert result.bound_name == "direction dual"


def test_time_is_kept_and_the_bound_holds(brute_force: Optimum) -> None:
    X = np.random.default_rng(7).standard_normal((9, 12))
    cov = Covariance.from_data(X)
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    assert dual_bound(cov, 4, time_limit=-1.0, nodes=9).value == np.inf
    assert dual_bound(cov, 4, iterations=0, nodes=9).value == np.inf
    assert dual_bound(cov, 4, target=np.inf).value >= optimum
    some = dual_bound(cov, 4, target=optimum, nodes=2)
    more = dual_bound(cov, 4, target=optimum * (1 + 1e-8), nodes=500)
    assert optimum <= more.value <= some.value
    assert more.nodes > 1


def test_nodes_that_cannot_be_split_are_not(threads: Callable[[int], None]) -> None:
    """As where only features without a column are left, or none is above the target."""
    threads(1)
    X = np.random.default_rng(5).standard_normal((8, 14))
    problem = make_problem(Covariance.from_data(X), 3, None, short=True)
    assert problem is not None
    search = dual_bound_module._Search(problem, 4.0, Deadline(None), None)
    node = replace(search.open[0][2], bound=5.0, relaxed_z=np.full(14, 0.5))
    assert search.nodes_per_batch == 2
    assert search._can_be_split(node)
    assert not search._can_be_split(replace(node, relaxed_z=np.empty(0)))
    assert not search._can_be_split(replace(node, bound=4.0))


def test_a_deadline_can_be_ended_for_all_who_look_at_it() -> None:
    for seconds in (None, 100.0):
        deadline = Deadline(seconds)
        assert not deadline.passed()
        deadline.end()
        assert deadline.passed()
        assert deadline.remaining() == 0


def test_blas_keeps_to_one_thread_beside_others() -> None:
    before, seen = thread_count(), []

    def work() -> None:
        keep_to_one_thread()
        with all_threads() as changed:
            seen.append((changed, isinstance(all_threads(), nullcontext)))
        seen.append(thread_count())

    with single_threaded():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not isinstance(all_threads(), nullcontext)
        with all_threads():
            seen.append(thread_count())
    assert seen == [(None, True), 1, before]
    assert thread_count() == before
