"""Jobs: in order, one at a time, ended when nobody wants them."""

from __future__ import annotations

import random
import threading
import time

import pytest

from blockspca.explore import jobs
from blockspca.explore.jobs import Job, Priority, Worker
from blockspca.numerics.threads import proof_threads, scan_threads

SOON = 300.0  # seconds within which any machine gets there


@pytest.fixture
def worker():
    running = Worker()
    yield running
    running.abandon()


def job(work, owner="tab", priority=Priority.ANSWER, failed=None) -> Job:
    return Job(work, owner, priority, failed or (lambda error: None))


def test_the_order_is_that_of_priorities(worker):
    begun, go, said = threading.Event(), threading.Event(), []
    worker.submit(job(lambda _: (begun.set(), go.wait(SOON))))
    assert begun.wait(SOON)
    for priority in (Priority.ASKED, Priority.ANSWER, Priority.ASKED):
        worker.submit(job(lambda j: said.append(j.priority), priority=priority))
    go.set()
    worker.close()
    assert said == [Priority.ANSWER, Priority.ASKED, Priority.ASKED]


def test_an_error_is_told_and_the_next_job_runs(worker):
    told, done = [], threading.Event()
    worker.submit(job(lambda _: 1 / 0, failed=told.append))
    worker.submit(job(lambda _: done.set()))
    assert done.wait(SOON)
    assert [type(error) for error in told] == [ZeroDivisionError]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_job_has_the_threads_that_were_asked_for(jobs):
    said = []
    worker = Worker(jobs)
    worker.submit(job(lambda _: said.extend([scan_threads(), proof_threads()])))
    worker.close()
    assert said == [jobs, jobs]


def endless(begun: threading.Event, ended: threading.Event):
    """Work that tells nothing and never ends by itself."""

    def work(_: Job) -> None:
        try:
            begun.set()
            while True:
                time.sleep(0.005)
        finally:
            ended.set()

    return work


def test_what_tells_nothing_is_interrupted_from_outside(worker):
    begun, ended, after = (threading.Event() for _ in range(3))
    worker.submit(job(endless(begun, ended), owner="a"))
    assert begun.wait(SOON)
    worker.discard("b")
    assert not ended.is_set()
    worker.discard("a")
    worker.submit(job(lambda _: after.set()))
    assert ended.wait(SOON)
    assert after.wait(SOON)


def test_an_interruption_that_comes_late_harms_no_other_job(worker):
    for _ in range(20):
        done, after = threading.Event(), threading.Event()
        first = job(lambda _, done=done: done.set())
        worker.submit(first)
        assert done.wait(SOON)
        with worker._changed:
            worker._interrupt(first)
        worker._insist(first)
        worker.submit(job(lambda _, after=after: after.set()))
        assert after.wait(SOON)


def test_an_interruption_harms_nobody_while_an_error_is_told(worker):
    """It ended the thread: the page was never answered again."""
    begun, told, after = (threading.Event() for _ in range(3))

    def failed(error: Exception) -> None:
        begun.set()
        for _ in range(200):
            time.sleep(0.005)
        told.set()

    worker.submit(job(lambda _: 1 / 0, failed=failed))
    assert begun.wait(SOON)
    worker.stop("tab")
    worker.submit(job(lambda _: after.set(), owner="other"))
    assert after.wait(SOON)
    assert told.is_set()


def test_an_interruption_at_any_moment_ends_one_job_at_most(worker):
    """Also one that is sent when the work has just ended."""
    rng, done = random.Random(0), []

    def work(this: Job) -> None:
        for _ in range(rng.randrange(300)):
            pass

    for number in range(300):
        this = job(work, owner=number)
        worker.submit(this)
        for _ in range(rng.randrange(300)):
            pass
        worker._insist(this)
        worker.submit(job(lambda _, number=number: done.append(number), owner="last"))
    worker.close()
    assert done == list(range(300))


def test_an_interruption_that_is_sent_late_is_called_back(worker, monkeypatch):
    """The worker went on once 1000 rounds of a loop had passed."""
    sent, raised = threading.Event(), jobs._raise_in

    def slow(thread: int, exception: type[BaseException] | None) -> None:
        if exception is not None:
            sent.set()
            time.sleep(0.1)
        raised(thread, exception)

    monkeypatch.setattr(jobs, "_raise_in", slow)
    begun, after = threading.Event(), threading.Event()
    this = job(lambda _: (begun.set(), sent.wait(SOON)))
    worker.submit(this)
    assert begun.wait(SOON)
    worker._insist(this)
    worker.submit(job(lambda _: after.set(), owner="other"))
    assert after.wait(SOON)
    assert this.finished


def test_work_ahead_gives_way_to_an_answer_and_is_done_later(worker):
    begun, answered, times = threading.Event(), threading.Event(), []
    finished = threading.Event()

    def ahead(this: Job) -> None:
        times.append(answered.is_set())
        begun.set()
        while not answered.is_set():
            this.check()
            time.sleep(0.005)
        finished.set()

    worker.submit(job(ahead, priority=Priority.AHEAD))
    assert begun.wait(SOON)
    worker.submit(job(lambda _: answered.set()))
    assert finished.wait(SOON)
    assert times == [False, True]


def test_jobs_that_wait_are_forgotten_with_their_owner(worker):
    begun, go, said = threading.Event(), threading.Event(), []
    worker.submit(job(lambda _: (begun.set(), go.wait(SOON)), owner="other"))
    assert begun.wait(SOON)
    worker.submit(job(lambda _: said.append("a"), owner="a"))
    worker.submit(job(lambda _: said.append("b"), owner="b"))
    worker.submit(job(lambda _: said.append("c"), owner="a", priority=Priority.ASKED))
    worker.discard("a", Priority.ASKED)
    worker.discard("b")
    go.set()
    worker.close()
    assert said == ["a"]
