"""One call of a public function: its limits, work, cores and listener."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from .limits import Limits, Status, as_limits
from .linalg import threads
from .progress import Event, Listener, listening
from .validation import check_n_jobs

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PAUSE = 0.1  # seconds between two looks at workers, and between two events
MEMORY = 2**30  # bytes for working arrays if there is no limit
_UNIT = 1e9  # work is a sum of integers, so the order of workers does not matter


class Stop(Exception):
    """Raised by `Run.check` if the call is over; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


def one_call(limits: Any = None, n_jobs: Any = None, progress: Any = None) -> Run:
    """Return the context of one public call; see `Run`.

    Parameters
    ----------
    limits : Limits, float or None
        None is `limits.DEFAULT`, a number is seconds.
    n_jobs : int or None
        Number of cores; None is all, negative numbers count as in joblib.
    progress : callable, bool or None
        A listener for `Event`; True for a log, None for a line in terminals.

    Examples
    --------
    >>> from blockspca.call import one_call
    >>> with one_call(n_jobs=2) as run:
    ...     run.spend(0.5)
    ...     run.map(abs, [-2, 1, -3]), run.work_left
    ([2, 1, 3], 29.5)
    """
    return Run(as_limits(limits), threads.cores(check_n_jobs(n_jobs)), progress)


class Run:
    """The context of a call that is under way.

    Public functions make it by `one_call`; internal functions take it as `run`. BLAS
    has one thread from beginning to end, see `linalg.threads`.

    Attributes
    ----------
    limits : Limits
    cores : int
        Threads of `map`.
    memory : int
        Bytes for working arrays.
    """

    def __init__(self, limits: Limits, cores: int, progress: Any = None) -> None:
        self.limits, self.cores = limits, cores
        self.memory = MEMORY if limits.memory is None else limits.memory
        self._progress = progress
        self._listener: Listener | None = None
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._units = 0
        self._status: Status | None = None
        self._last_work, self._last_time = limits.work, limits.time  # see `share`
        self._last_event = -math.inf  # its time
        self._events: deque[Event] = deque()  # from workers; the listener gets them
        self._place = (threading.get_ident(), os.getpid())
        self._pool: ThreadPoolExecutor | None = None
        self._contexts = ExitStack()

    def __enter__(self) -> Run:
        with ExitStack() as contexts:
            self._listener = contexts.enter_context(listening(self._progress))
            contexts.enter_context(threads.OneBlasThread())
            self._contexts = contexts.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        try:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        finally:
            self._contexts.close()

    # -- limits --------------------------------------------------------------------

    @property
    def work(self) -> float:
        """Work done so far."""
        return self._units / _UNIT

    def spend(self, work: float) -> None:
        """Count work, from any thread."""
        with self._lock:
            self._units += round(work * _UNIT)

    @property
    def work_left(self) -> float:
        """Work up to the limit; infinite if there is none."""
        limit = self._last_work
        return math.inf if limit is None else max(0.0, limit - self.work)

    @property
    def time_left(self) -> float:
        """Seconds up to the limit; infinite if there is none."""
        if self._last_time is None:
            return math.inf
        return max(0.0, self._last_time - (time.perf_counter() - self._start))

    @property
    def stopped(self) -> Status | None:
        """Why the call is over, or None; a call that is over stays over."""
        if self._status is None:
            if self.time_left == 0:
                self._status = Status.TIME_LIMIT
            elif self.work_left == 0:
                self._status = Status.WORK_LIMIT
        return self._status

    def share(self, parts: int) -> None:
        """Begin one of so many parts: it gets an equal share of the work and time left.

        What it does not use is left for the others. Other reasons to stop stay.
        """
        self._last_work, self._last_time = self.limits.work, self.limits.time
        if self._status in (Status.TIME_LIMIT, Status.WORK_LIMIT):
            self._status = None
        if self._last_work is not None:
            self._last_work -= self.work_left * (1 - 1 / parts)
        if self._last_time is not None:
            self._last_time -= self.time_left * (1 - 1 / parts)

    def over(self) -> bool:
        """Tell whether to stop; searches ask between two slices, in any thread."""
        return self.stopped is not None

    def check(self) -> None:
        """Raise `Stop` if the call is over."""
        if (status := self.stopped) is not None:
            raise Stop(status)

    def stop(self, status: Status) -> None:
        """End the call for another reason, such as memory."""
        self._status = status

    # -- progress ------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Pass an event to the listener: all ends of stages, others ten times a second.

        Only the thread of the call runs the listener; events of workers wait for it. A
        listener may raise an exception to end the call.
        """
        now = time.perf_counter()
        if self._listener is None:
            return
        if not event.ends_stage and now - self._last_event < PAUSE:
            return
        self._last_event = now
        self._events.append(replace(event, work=self.work))
        if threading.get_ident() == self._place[0]:
            self._call_listener()

    def _call_listener(self) -> None:
        """Pass the waiting events to the listener."""
        while self._events and self._listener is not None:
            self._listener(self._events.popleft())

    # -- workers -------------------------------------------------------------------

    def map(
        self, function: Callable[[Item], Outcome], items: Iterable[Item]
    ) -> list[Outcome]:
        """Return function(item) for all items, in their order.

        The items are shared by `cores` threads. With one core, or in a worker, this is
        a loop. If an item raises, Ctrl-C is pressed or the listener raises, no further
        item begins; `over` tells the workers to end between two slices.
        """
        todo = list(items)
        here = (threading.get_ident(), os.getpid())
        if self.cores == 1 or len(todo) < 2 or here != self._place:
            return [function(item) for item in todo]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self.cores, initializer=threads.start_worker
            )
        futures: list[Future[Outcome]] = []
        try:
            futures += [self._pool.submit(function, item) for item in todo]
            pending = set(futures)
            while pending:
                ended, pending = wait(pending, PAUSE, return_when=FIRST_EXCEPTION)
                self._call_listener()
                if any(future.exception() for future in ended):
                    break
        except BaseException:
            self.stop(Status.INTERRUPTED)
            raise
        finally:
            for future in futures:
                future.cancel()
            wait(futures)
        for future in futures:
            if not future.cancelled() and (error := future.exception()) is not None:
                raise error
        return [future.result() for future in futures]
