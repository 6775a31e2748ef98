"""One thread of BLAS as long as a call runs, and the number of cores of a call.

BLAS has one number of threads for the whole process. The first call that begins sets
it to one, and the last call that ends restores it; a lock and a set of calls make that
safe if calls of several threads overlap. All code of the process, also code of others,
has one thread of BLAS meanwhile. (OpenBLAS on OpenMP has a number for each thread
instead: there each call sets and restores that of its own thread.)

After a fork only the forking thread lives on in the child, so the calls of other
threads are forgotten there. The child restores the number when its next call ends.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from functools import cache
from typing import Any

_lock = threading.Lock()
# A call that Ctrl-C cuts off between two lines disappears from a weak set by itself.
_calls: weakref.WeakSet[OneBlasThread] = weakref.WeakSet()
_before: dict[Any, int] = {}  # libraries and their numbers before the first call


@cache
def _libraries() -> list[Any]:
    """Return the controllers of all BLAS libraries."""
    import scipy.linalg  # noqa: F401  (SciPy has a BLAS of its own; load it first)
    from threadpoolctl import ThreadpoolController

    # The search for libraries takes milliseconds, so it happens once.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _is_per_thread(library: Any) -> bool:
    """Tell whether each thread has its own number."""
    layer = getattr(library, "threading_layer", "")
    return library.internal_api == "openblas" and layer == "openmp"


def _set(library: Any, number: int) -> None:
    """Set the number of threads of a library.

    threadpoolctl 3.8 obeys only the first thread that sets a number of OpenBLAS. The
    lock of this module takes its place, so control is taken and given back.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(number)
    release(force=True)


class OneBlasThread:
    """Context of one call, in which BLAS has one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.own: dict[Any, int] = {}

    def __enter__(self) -> OneBlasThread:
        with _lock:
            _calls.add(self)
            for library in _libraries():
                before = self.own if _is_per_thread(library) else _before
                number = library.num_threads
                before.setdefault(library, number)
                if number != 1:
                    _set(library, 1)
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:
            _calls.discard(self)
            _restore(self.own)
            if not _calls:
                _restore(_before)


def _restore(before: dict[Any, int]) -> None:
    """Restore numbers of threads, unless other code has changed them meanwhile."""
    for library, number in before.items():
        if library.num_threads == 1 != number:
            _set(library, number)
    before.clear()


def start_worker() -> None:
    """Give BLAS one thread in a worker, where each thread has its own number."""
    for library in _libraries():
        if _is_per_thread(library):
            _set(library, 1)


def _after_fork() -> None:
    """Forget the lock and the calls of threads that the child does not have."""
    global _lock
    _lock = threading.Lock()
    for call in list(_calls):
        if call.thread != threading.get_ident():
            _calls.discard(call)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def cores(n_jobs: int | None) -> int:
    """Return the number of cores for n_jobs, as joblib counts; None is all.

    A worker of joblib has as many as joblib allows.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    if "joblib" in sys.modules and n_jobs in (None, -1):
        count = min(count, sys.modules["joblib"].effective_n_jobs(-1))
    if n_jobs is None or n_jobs > 0:
        return n_jobs or count
    return max(1, count + 1 + n_jobs)
