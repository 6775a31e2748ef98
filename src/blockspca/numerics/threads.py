"""The number of threads that a call may use: `n_jobs`, down to BLAS.

`allowed_threads(n_jobs)` is the outermost context of a public function. Inside it BLAS,
the scan and the dual's search ask here how many threads they may use. `parallel_map`
works on several items at a time, each with one of these threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Found = TypeVar("Found")

# (threads that were asked for or None, threads that BLAS may use) of the call under way
_allowed: ContextVar[tuple[int | None, int] | None] = ContextVar("_allowed")

# What each thread asks of BLAS, by its identity: of every context that it is in, the
# outermost first, a token and a number. And for each library that was changed for it,
# by its place: what it had, and to what it was set since.
_asked: dict[int, list[tuple[object, int]]] = {}
_changed: dict[int, tuple[int, set[int]]] = {}
_lock = Lock()


@lru_cache(maxsize=1)
def _found() -> tuple[list[Any], int]:
    """The BLAS libraries, and how many threads they had when they were first asked."""
    import scipy.linalg  # noqa: F401  SciPy has a BLAS of its own, to be loaded first

    # Finding the loaded libraries takes milliseconds, so it is done once.
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries, max((one.num_threads for one in libraries), default=1)


def blas_threads() -> int:
    """Return how many threads BLAS uses now."""
    return max((library.num_threads for library in _found()[0]), default=1)


@contextmanager
def blas_limited_to(threads: int) -> Iterator[None]:
    """Context in which BLAS uses that many threads, or fewer for another thread's sake.

    The number is that of the process: of several threads that are in such a context,
    the one that asks for least has its way, and the last one out restores what was,
    unless somebody else has set another number meanwhile.
    """
    # Not the thread that leaves: after Ctrl-C this may end when it is collected.
    me, token = get_ident(), object()
    try:
        try:
            with _lock:
                _asked.setdefault(me, []).append((token, threads))
                _give()
            yield
        finally:
            _leave(me, token)
    except KeyboardInterrupt:  # it may have cut short that step, for good
        _leave(me, token)
        raise


def _leave(me: int, token: object) -> None:
    """Forget what a context asked for, and all within it, whose ends Ctrl-C has cut."""
    with _lock:
        around = _asked.get(me, [])
        places = [place for place, entry in enumerate(around) if entry[0] is token]
        if places:
            del around[places[0] :]
        if not around:
            _asked.pop(me, None)
        _give()


def _give() -> None:
    """Give BLAS what all threads allow, or what it had."""
    # As `ThreadpoolController.limit`, without its report, and only where counts differ.
    least = min((inside[-1][1] for inside in _asked.values()), default=None)
    for place, library in enumerate(_found()[0]):
        now = library.num_threads
        had, ours = _changed.get(place, (now, {now}))
        if now not in ours:  # it is somebody else's, who has the last word
            had = now
        count = had if least is None else least
        if least is not None:
            _changed[place] = had, {*ours, least}
        if now != count:
            _set_threads(library, count)
        if least is None:  # only now that it has what it had
            _changed.pop(place, None)


def _forget() -> None:
    """Begin anew in a child after a fork: the other threads are not here.

    What BLAS had comes back at the end of the next call.
    """
    global _lock
    _lock = Lock()
    _asked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _set_threads(library: Any, count: int) -> None:
    """Set how many threads a BLAS has, from any thread that holds the lock.

    threadpoolctl (3.8) leaves that to the first thread that did it, and ignores all
    others without a word, so that they do not fight; here the least of what they ask
    for is found before. Nothing is kept from other libraries.
    """
    give_up = getattr(library, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
    library.set_num_threads(count)
    if give_up is not None:
        give_up()


@contextmanager
def allowed_threads(n_jobs: int | None) -> Iterator[None]:
    """Context of a call with this `n_jobs`.

    None leaves everything as it is: what an outer call allows, or else all cores and
    all BLAS threads. A number is the most that may be used; negative ones count from
    the number of cores, as in joblib.
    """
    around = _allowed.get(None)
    if n_jobs is None:
        threads, most = around or (None, blas_threads())
    else:
        threads = jobs_at_once(n_jobs)
        most = min(threads, around[1] if around else blas_threads())
    is_free = n_jobs is None and around is None
    ours = threads, most
    try:
        _allowed.set(ours)
        with nullcontext() if is_free else blas_limited_to(most):
            yield
    finally:
        if _allowed.get(None) is ours:  # after Ctrl-C this may end in another context
            _allowed.set(around)


def most_blas_threads() -> int:
    """Return how many threads BLAS may use in the call under way."""
    around = _allowed.get(None)
    return around[1] if around else _found()[1]


def _asked_for() -> int | None:
    """How many threads the call under way was told to use, if it was."""
    around = _allowed.get(None)
    return None if around is None else around[0]


def thread_count() -> int:
    """Return how many nodes of the dual's search may be worked on at once."""
    return _asked_for() or blas_threads()


def proof_threads() -> int:
    """Return how many threads a proof may use, whatever BLAS has at the moment."""
    return _asked_for() or most_blas_threads()


def jobs_at_once(n_jobs: int | None) -> int:
    """Return how many jobs of joblib n_jobs stands for: one, if it is None."""
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))


def scan_threads() -> int:
    """Return how many threads a scan may use: all cores, unless fewer are allowed."""
    asked = _asked_for()
    if asked is not None:
        return asked
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(
    function: Callable[[Item], Found],
    items: Iterable[Item],
    n_jobs: int | None,
    *,
    in_threads: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Iterable[Found]:
    """Apply a function to all items, `n_jobs` at a time, by joblib.

    Parameters
    ----------
    in_threads : bool
        Threads suffice, unless the caller's `joblib.parallel_config` says otherwise.
    tell : callable, optional
        Called with how many are done, in the thread of the caller.

    Returns
    -------
    iterable
        In the order of the items. One at a time, each is computed when it is asked for,
        with all threads of the call. Several at a time, they have one thread each, in
        this process or another, and all are done before this returns.

    Examples
    --------
    >>> list(parallel_map(abs, [-2, 1, -3], n_jobs=None))
    [2, 1, 3]
    """
    import joblib

    items = list(items)
    if len(items) < 2 or jobs_at_once(n_jobs) == 1:
        return _in_turn(function, items, tell)
    how: dict[str, Any] = {"prefer": "threads"} if in_threads else {}
    if tell is not None:
        how["return_as"] = "generator"
    # Here too, as BLAS in this process is shared by its threads.
    with blas_limited_to(1):
        work = joblib.Parallel(n_jobs=n_jobs, **how)(
            joblib.delayed(_with_one_thread)(function, item) for item in items
        )
        done = []
        for found in work:
            done.append(found)
            if tell is not None:
                tell(len(done))
        return done


def _in_turn(
    function: Callable[[Item], Found],
    items: list[Item],
    tell: Callable[[int], None] | None,
) -> Iterator[Found]:
    for number, item in enumerate(items, 1):
        yield function(item)
        if tell is not None:
            tell(number)


def _with_one_thread(function: Callable[[Item], Found], item: Item) -> Found:
    """Apply it in a worker, to which what the caller is allowed does not travel."""
    with allowed_threads(1):
        return function(item)
