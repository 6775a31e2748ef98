"""The number of threads that a call may use: `n_jobs`, down to BLAS.

`allowed_threads(n_jobs)` is the outermost context of a public function. Inside it BLAS,
the scan and the dual's search ask here how many threads they may use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

# (threads that were asked for or None, threads that BLAS may use) of the call under way
_allowed: ContextVar[tuple[int | None, int] | None] = ContextVar("_allowed")


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
    """Context in which BLAS uses that many threads."""
    # As `ThreadpoolController.limit`, without its report, and only where counts differ.
    found = [(library, library.num_threads) for library in _found()[0]]
    others = [(library, count) for library, count in found if count != threads]
    try:
        for library, _ in others:
            library.set_num_threads(threads)
        yield
    finally:
        for library, count in others:
            library.set_num_threads(count)


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
        import joblib

        threads = int(joblib.effective_n_jobs(n_jobs))
        most = min(threads, around[1] if around else blas_threads())
    is_free = n_jobs is None and around is None
    token = _allowed.set((threads, most))
    try:
        with nullcontext() if is_free else blas_limited_to(most):
            yield
    finally:
        _allowed.reset(token)


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


def scan_threads() -> int:
    """Return how many threads a scan may use: all cores, unless fewer are allowed."""
    asked = _asked_for()
    if asked is not None:
        return asked
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
