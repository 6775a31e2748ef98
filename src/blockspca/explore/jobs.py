"""One thread that works, one job at a time; a job that nobody wants any more ends.

A job ends the way a run ends on Ctrl-C: a listener of progress raises KeyboardInterrupt
at the next event, and where no event comes for a while the same exception is raised in
the thread (`PyThreadState_SetAsyncExc`). The library returns what it has found by then,
with the status `interrupted`.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ..numerics.threads import allowed_threads
from ..progress import Event

#: Seconds after which a job that has told nothing is interrupted from outside. Events
#: of a proof come every few milliseconds; a scan or an eigenvalue problem has none.
PATIENCE = 0.2


class Priority(IntEnum):
    """The order of jobs that wait."""

    ANSWER = 0  # what somebody waits for
    ASKED = 1  # alternatives, stability, blocks: asked for, known to take a while
    AHEAD = 2  # what may be wanted next; gives way to answers


@dataclass(eq=False)
class Job:
    """Some work for one tab."""

    work: Callable[[Job], None]  #: called with the job, in the thread of the worker
    owner: Any  #: the tab, whose older jobs a newer one replaces
    priority: Priority
    #: Told the exception, if the work raises one that is not an interruption.
    failed: Callable[[Exception], None]
    interrupted: bool = False
    #: Holds one entry while the work may be interrupted from outside. Whoever pops it,
    #: which is atomic, may go on: the thread of the worker, or who interrupts that.
    _open: list[None] = field(default_factory=list)
    _sent: bool = False
    discarded: bool = False
    finished: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if the job is to end; call it now and then."""
        if self.interrupted:
            raise KeyboardInterrupt

    def run(self) -> None:
        """Do the work; an interruption from outside arrives in here or not at all.

        At most one is sent, so that whoever has caught it is not interrupted again. No
        lock is taken on the way: an exception between its being taken and the begin of
        the block that gives it back would leave it taken.
        """
        try:
            try:
                self._open.append(None)
                self.work(self)
            finally:
                self._close()
        except KeyboardInterrupt:
            pass  # whoever interrupted it knows

    def _close(self) -> None:
        try:
            self._open.pop()
        except IndexError:  # one is sent: have it raised, or call it back
            while not self._sent:
                time.sleep(0.001)
            _raise_in(threading.get_ident(), None)

    def insist(self, thread: int) -> bool:
        """Raise KeyboardInterrupt in the thread of the work; tell if it was open."""
        try:
            self._open.pop()
        except IndexError:
            return False
        _raise_in(thread, Interruption)
        self._sent = True
        return True

    def listen(self, tell: Callable[[Event], None]) -> Callable[[Event], None]:
        """A listener of progress that ends the run once the job is interrupted."""

        def heard(event: Event) -> None:
            self.check()
            tell(event)

        return heard


class Worker:
    """Runs jobs in the order of their priority, then of their arrival.

    Examples
    --------
    >>> from blockspca.explore.jobs import Job, Priority, Worker
    >>> worker, said = Worker(), []
    >>> worker.submit(Job(lambda job: said.append(1), None, Priority.ANSWER, print))
    >>> worker.close()
    >>> said
    [1]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self._n_jobs = n_jobs
        self._changed = threading.Condition()
        self._waiting: list[tuple[Priority, int, Job]] = []
        self._numbers = itertools.count()
        self._current: Job | None = None
        self._closed = False
        self._thread = threading.Thread(
            target=self._run, name="blockspca explore", daemon=True
        )
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job; one that works ahead gives way to an answer, and waits again."""
        with self._changed:
            self._push(job)
            now = self._current
            if (
                now is not None
                and now.priority is Priority.AHEAD
                and job.priority is Priority.ANSWER
                and not now.interrupted
            ):
                again = Job(now.work, now.owner, now.priority, now.failed)
                self._discard(now)
                self._push(again)
            self._changed.notify_all()

    def discard(self, owner: Any, only: Priority | None = None) -> None:
        """End the jobs of an owner, all or those of one priority."""

        def ends(job: Job) -> bool:
            return job.owner is owner and only in (None, job.priority)

        with self._changed:
            for entry in list(self._waiting):
                if ends(entry[2]):
                    self._waiting.remove(entry)
                    entry[2].discarded = True
            now = self._current
            if now is not None and ends(now):
                self._discard(now)

    def stop(self, owner: Any) -> None:
        """End the owner's running job, which reports what it has found."""
        with self._changed:
            now = self._current
            if now is not None and now.owner is owner:
                self._interrupt(now)

    def close(self) -> None:
        """Finish the jobs that are queued, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def abandon(self) -> None:
        """End without finishing anything; does not wait."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            if self._current is not None:
                self._discard(self._current)
            self._changed.notify_all()

    # -- inside, with the lock held ------------------------------------------------

    def _push(self, job: Job) -> None:
        self._waiting.append((job.priority, next(self._numbers), job))
        self._waiting.sort(key=lambda entry: entry[:2])

    def _discard(self, job: Job) -> None:
        job.discarded = True
        self._interrupt(job)

    def _interrupt(self, job: Job) -> None:
        if job.interrupted:
            return
        job.interrupted = True
        threading.Timer(PATIENCE, self._insist, (job,)).start()

    def _insist(self, job: Job) -> None:
        """Raise KeyboardInterrupt in the thread, unless the job has ended by then."""
        sent = self._thread.ident is not None and job.insist(self._thread.ident)
        if not sent and not job.finished:  # not begun
            threading.Timer(PATIENCE, self._insist, (job,)).start()

    # -- the thread ----------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                job = self._waiting.pop(0)[2]
                self._current = job
            try:
                with allowed_threads(self._n_jobs):  # between jobs BLAS is as it was
                    job.run()
            except Exception as error:
                if not job.discarded:
                    job.failed(error)
            with self._changed:
                job.finished = True
                self._current = None


class Interruption(KeyboardInterrupt):
    """Ctrl-C for one thread."""


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Raise an exception in a thread soon; None calls back one that is to come."""
    kind = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
