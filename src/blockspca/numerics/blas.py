"""Limits BLAS to one thread for many small problems.

On a 50 × 50 matrix LAPACK gains nothing from threads and, on a busy machine, waits
milliseconds for them; a path has hundreds of such problems. What `n_jobs` limits is in
`threads.py`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import local

from .threads import blas_limited_to, most_blas_threads, thread_count

__all__ = ["all_threads", "keep_to_one_thread", "single_threaded", "thread_count"]

_thread = local()


def single_threaded() -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread."""
    return blas_limited_to(1)


def all_threads() -> AbstractContextManager[None]:
    """Context, inside `single_threaded`, in which BLAS uses all threads of the call.

    It does nothing in a thread that called `keep_to_one_thread`.
    """
    if getattr(_thread, "has_others", False):
        return nullcontext()
    return blas_limited_to(most_blas_threads())


def keep_to_one_thread() -> None:
    """Make `all_threads` do nothing in the calling thread, as others run beside it."""
    _thread.has_others = True
