"""One BLAS thread for many small problems.

LAPACK on a 50 × 50 matrix gains nothing from threads and, on a busy machine, waits
milliseconds for them; the path solves hundreds of such problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import local
from typing import Any

from threadpoolctl import ThreadpoolController

_thread = local()


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[Any], int]:
    # Finding the loaded libraries takes milliseconds, so it is done once.
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    threads = [library.num_threads for library in libraries]
    return libraries, max(threads, default=1)


def single_threaded() -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread."""
    return _limited(1)


def all_threads() -> AbstractContextManager[None]:
    """Context, inside `single_threaded`, in which BLAS has its threads back.

    Not in a thread that has others beside it: they have the cores.
    """
    if getattr(_thread, "has_others", False):
        return nullcontext()
    return _limited(_libraries()[1])


def thread_count() -> int:
    """How many threads BLAS may use now."""
    return max((library.num_threads for library in _libraries()[0]), default=1)


def keep_to_one_thread() -> None:
    """Make `all_threads` do nothing in the calling thread, as others run beside it."""
    _thread.has_others = True


@contextmanager
def _limited(threads: int) -> Iterator[None]:
    # What `ThreadpoolController.limit` does, without collecting what it could report.
    libraries, _ = _libraries()
    before = [library.num_threads for library in libraries]
    try:
        for library in libraries:
            library.set_num_threads(threads)
        yield
    finally:
        for library, count in zip(libraries, before, strict=True):
            library.set_num_threads(count)
