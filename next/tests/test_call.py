"""One call: limits are kept, work is counted, threads, fork, Ctrl-C, progress."""

from __future__ import annotations

import io
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blockspca import progress
from blockspca.call import Stop, one_call
from blockspca.components import solve_components
from blockspca.limits import DEFAULT, Limits, Status, as_limits, relative_gap
from blockspca.linalg import threads
from blockspca.progress import Event, Line, Log, listening


def blas_counts():
    return [library.num_threads for library in threads._libraries()]


# -- limits and work ------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"time": -1},
        {"time": math.inf},
        {"work": math.nan},
        {"work": "3"},
        {"gap": 1.0},
        {"gap": -0.1},
        {"memory": 0},
        {"memory": 1.5},
        {"time": True},
    ],
)
def test_impossible_limits_are_refused_by_name(fields):
    with pytest.raises((TypeError, ValueError), match=f"limits.{next(iter(fields))} ="):
        Limits(**fields)


def test_limits_of_a_call():
    assert as_limits(None) is DEFAULT == Limits(work=30)
    assert as_limits(np.float64(2)) == Limits(time=2.0)
    for wrong in (True, "10", {"time": 1}):
        with pytest.raises(TypeError, match="limits = "):
            as_limits(wrong)


def test_limits_suggest_what_is_accepted():
    for wrong, words in [
        ({"gap": -1}, "use 0.01 for 1 %"),
        ({"gap": 1}, "use 0.01 for 1 %"),
        ({"memory": 1.5e9}, r"use for example limits.memory=2\*\*30"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            Limits(**wrong)
    with pytest.raises(ValueError, match=r"use Limits\(\) for no limit"):
        as_limits(math.inf)


def test_relative_gap():
    assert relative_gap(-2.0, -1.0) == 0.5
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(3.0, 2.9) == 0.0


def test_work_is_counted_whatever_the_order_of_workers():
    parts = [0.1, 1e-7, 0.3, 0.7] * 50
    totals = set()
    for jobs in (1, 2, 8):
        with one_call(Limits(), n_jobs=jobs) as run:
            run.map(run.spend, parts)
            totals.add(run.work)
    assert len(totals) == 1
    assert totals.pop() == pytest.approx(sum(parts), abs=1e-6)


def test_work_limit_stops_and_stays():
    with one_call(Limits(work=1, time=100)) as run:
        run.spend(0.75)
        assert run.work_left == pytest.approx(0.25)
        assert not run.over()
        run.spend(0.3)
        assert run.stopped is Status.WORK_LIMIT
        assert run.work_left == 0
        with pytest.raises(Stop) as stop:
            run.check()
        assert stop.value.status is Status.WORK_LIMIT


def test_parts_share_the_work_and_leave_the_rest():
    with one_call(Limits(work=9)) as run:
        run.share(3)
        assert run.work_left == pytest.approx(3)
        run.spend(4)
        assert run.stopped is Status.WORK_LIMIT
        run.share(2)
        assert run.stopped is None
        assert run.work_left == pytest.approx(2.5)
        run.spend(0.5)
        run.share(1)
        assert run.work_left == pytest.approx(4.5)
        run.stop(Status.INTERRUPTED)
        run.share(1)
        assert run.stopped is Status.INTERRUPTED


def test_a_hard_component_leaves_work_to_the_next():
    X = np.random.default_rng(0).normal(size=(60, 150))
    components = solve_components(X, 3, 12, limits=Limits(work=0.6))
    works = [result.work for result in components.results]
    assert components.results[0].status is Status.WORK_LIMIT
    assert min(works[1:]) > 0.05


def test_time_limit():
    with one_call(0.05) as run:
        assert 0 < run.time_left <= 0.05
        run.check()
        time.sleep(0.06)
        assert run.stopped is Status.TIME_LIMIT
    with one_call(Limits()) as run:
        run.spend(1e9)
        assert run.time_left == run.work_left == math.inf
        assert run.stopped is None


def test_memory():
    with one_call(Limits(memory=1000)) as run:
        assert run.memory == 1000
    with one_call() as run:
        assert run.memory == 2**30


# -- workers --------------------------------------------------------------------------


def test_map_keeps_the_order_and_uses_the_cores():
    with one_call(n_jobs=3) as run:
        barrier = threading.Barrier(3, timeout=10)

        def square(number):
            barrier.wait()  # passes only if three items run at once
            return number**2

        assert run.map(square, range(6)) == [0, 1, 4, 9, 16, 25]


def test_map_within_a_worker_is_a_loop():
    with one_call(n_jobs=2) as run:
        rows = run.map(lambda i: run.map(lambda j: (i, j), range(3)), range(8))
    assert rows == [[(i, j) for j in range(3)] for i in range(8)]


def test_an_error_of_a_worker_arrives_and_later_items_do_not_begin():
    begun = []

    def fail(number):
        begun.append(number)
        if number == 0:
            raise ZeroDivisionError(str(number))
        time.sleep(0.02)

    with one_call(n_jobs=2) as run, pytest.raises(ZeroDivisionError, match="0"):
        run.map(fail, range(100))
    assert len(begun) < 50


def test_cores():
    every = threads.cores(None)
    assert threads.cores(-1) == every
    assert threads.cores(-every - 5) == 1
    assert threads.cores(3) == 3
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises((TypeError, ValueError), match="n_jobs = "):
            one_call(n_jobs=wrong)


def work(seed):
    """Return numbers that depend on everything that a call does."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(120, 120))
    with one_call(Limits(work=5), n_jobs=2) as run:
        inner = run.map(lambda i: np.linalg.svd(A + i)[1][0], range(6))
        run.spend(seed + 1.0)
        counts = blas_counts()
        return inner, run.work, run.stopped, counts


def test_eight_calls_at_once_are_like_eight_calls_in_turn():
    before = blas_counts()
    in_turn = [work(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(work, range(8)))
    assert at_once == in_turn
    assert all(set(counts) == {1} for *_, counts in at_once)
    assert blas_counts() == before


@pytest.fixture
def two_blas_threads():
    """Give all BLAS libraries two threads, which any machine can have."""
    before = blas_counts()
    for library in threads._libraries():
        threads._set(library, 2)
    yield
    for library, number in zip(threads._libraries(), before, strict=True):
        threads._set(library, number)


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_call_out_restores_the_threads_of_blas():
    first, second = one_call(), one_call()
    for step in (first.__enter__, second.__enter__):
        step()
        assert set(blas_counts()) == {1}
    first.__exit__()
    assert set(blas_counts()) == {1}
    second.__exit__()
    assert set(blas_counts()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_a_call_in_another_thread_than_the_first_sets_blas():
    # threadpoolctl obeys the first thread that sets a number; it lives on here.
    with one_call(), ThreadPoolExecutor(1) as pool:
        assert set(pool.submit(lambda: work(1)[3]).result()) == {1}
        assert set(blas_counts()) == {1}
    assert set(blas_counts()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_a_number_that_other_code_sets_meanwhile_stays():
    with one_call():
        for library in threads._libraries():
            threads._set(library, 3)
    assert set(blas_counts()) == {3}


@pytest.mark.usefixtures("two_blas_threads")
def test_a_call_that_was_cut_off_does_not_hold_blas_for_ever():
    threads.OneBlasThread().__enter__()  # nobody holds it, and nobody leaves it
    with one_call():
        assert set(blas_counts()) == {1}
    assert set(blas_counts()) == {2}


class OwnNumbers:
    """A library whose number of threads belongs to each thread."""

    internal_api, threading_layer = "openblas", "openmp"

    def __init__(self):
        self.numbers = threading.local()

    @property
    def num_threads(self):
        return getattr(self.numbers, "number", 4)

    def set_num_threads(self, number):
        self.numbers.number = number


def test_blas_with_numbers_for_each_thread(monkeypatch):
    library = OwnNumbers()
    monkeypatch.setattr(threads, "_libraries", lambda: [library])
    with one_call(n_jobs=2) as run:
        barrier = threading.Barrier(2, timeout=10)
        workers = run.map(lambda _: (barrier.wait(), library.num_threads)[1], range(2))
        with ThreadPoolExecutor(1) as pool:
            another = pool.submit(lambda: (work(0), library.num_threads)[1]).result()
        assert (workers, library.num_threads, another) == ([1, 1], 1, 4)
    assert library.num_threads == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("two_blas_threads")
def test_calls_after_a_fork_within_a_call():
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def child():
        inside = work(3)
        answers.put((inside[0] == expected[0], set(inside[3]), set(blas_counts())))

    expected = work(3)
    with one_call(n_jobs=2) as run:  # a call of another thread, as the child sees it
        run.map(abs, range(2))
        process = context.Process(target=child)
        forking = threading.Thread(target=process.start)
        forking.start()
        forking.join()
        process.join(60)
    assert answers.get() == (True, {1}, {2})


# -- Ctrl-C and listeners -------------------------------------------------------------


def slices(run, log):
    """Work in slices until the run is over."""
    for _ in range(500):
        if run.over():
            log.append(run.stopped)
            return
        time.sleep(0.01)
    raise AssertionError("the worker was not stopped")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_stops_workers_between_slices():
    log = []
    with one_call(Limits(), n_jobs=2) as run:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            run.map(lambda _: slices(run, log), range(4))
        assert time.perf_counter() - start < 3
        assert run.stopped is Status.INTERRUPTED
    assert log == [Status.INTERRUPTED] * 2  # the other two never began


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_listener_that_raises_ends_the_call(jobs):
    heard = []

    def listener(event):
        heard.append((event, threading.current_thread()))
        raise LookupError("enough")

    def step(number):
        run.tell(Event(stage="scan", done=number, total=20))
        for _ in range(50 * (jobs > 1)):
            if run.over():
                return
            time.sleep(0.01)

    with one_call(n_jobs=jobs, progress=listener) as run:
        with pytest.raises(LookupError):
            run.map(step, range(20))
        assert (run.stopped is Status.INTERRUPTED) == (jobs > 1)
    assert len(heard) == 1
    assert heard[0][1] is threading.main_thread()


def test_events_are_throttled_but_for_the_ends_of_stages():
    heard = []
    with one_call(n_jobs=1, progress=heard.append) as run:
        run.spend(2)
        for done in range(1, 1001):
            run.tell(Event(stage="scan", done=done, total=1000))
        for k in (1, 2, 3):
            run.tell(Event(stage="proof", k=k, done=1, total=1))
    assert [event.k for event in heard if event.stage == "proof"] == [1, 2, 3]
    assert len(heard) < 20
    assert heard[-4].done == 1000
    assert {event.work for event in heard} == {2.0}


# -- the line and the log -------------------------------------------------------------

EVENT = Event(
    stage="proof", k=7, done=2, total=4, objective=2.0, bound=2.5, nodes=12, work=1.5
)


def test_line_appears_late_and_is_erased():
    stream = io.StringIO()
    line = Line(stream, patience=60)
    line(EVENT)
    line.close()
    assert stream.getvalue() == ""
    line = Line(stream, patience=0)
    line(EVENT)
    text = stream.getvalue()
    assert "proof, k = 7, 50%, objective 2, gap 25.00 %" in text
    line.close()
    assert stream.getvalue().endswith("\r" + " " * (len(text) - 1) + "\r")


def test_line_is_shown_to_a_person_only(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with listening(None) as listener:
        assert listener is None
    stream.isatty = lambda: True
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with listening(None) as listener:
        assert isinstance(listener, Line)
    with ThreadPoolExecutor(1) as pool:  # a thread writes nothing
        assert pool.submit(lambda: listening(None).__enter__()).result() is None


def test_log_has_a_header_and_aligned_lines():
    stream = io.StringIO()
    log = Log(stream)
    log(EVENT)
    log(EVENT)  # too soon after the one before
    log(Event(stage="proof", k=7, done=4, total=4, objective=2.0, bound=2.0))
    log(Event(stage="scan", done=1, total=1, message="lists"))
    header, *lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert " ".join(lines[0].split()) == "0.0s 1.50 proof 7 50% 2 2.5 25.00 % 12"
    assert lines[1].split()[-2:] == ["0", "0"]
    assert lines[2].endswith("lists")
    for name in ("time", "work", "objective", "bound", "gap", "nodes"):
        end = header.index(name) + len(name)
        assert lines[0][end - 1] != " ", name


def test_progress_true_is_a_log_and_false_is_silence(capsys):
    for wanted in (True, False):
        with one_call(progress=wanted) as run:
            run.tell(EVENT)
    assert len(capsys.readouterr().err.splitlines()) == 2
    with pytest.raises(TypeError, match="progress = 'yes'"), one_call(progress="yes"):
        pass
