"""One BLAS thread for many small problems.

LAPACK on a 50 × 50 matrix gains nothing from threads and, on a busy machine, waits
milliseconds for them; the path solves hundreds of such problems.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import local

from .threads import blas_limited_to, dual_threads, most_blas_threads

__all__ = ["all_threads", "keep_to_one_thread", "single_threaded", "thread_count"]

_thread = local()


def single_threaded() -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread."""
    return blas_limited_to(1)


def all_threads() -> AbstractContextManager[None]:
    """Context, inside `single_threaded`, in which BLAS has its threads back.

    As many as the call may use. Not in a thread that has others beside it: they have
    the cores.
    """
    if getattr(_thread, "has_others", False):
        return nullcontext()
    return blas_limited_to(most_blas_threads())


def thread_count() -> int:
    """How many nodes of the dual's search may be worked on at once."""
    return dual_threads()


def keep_to_one_thread() -> None:
    """Make `all_threads` do nothing in the calling thread, as others run beside it."""
    _thread.has_others = True
