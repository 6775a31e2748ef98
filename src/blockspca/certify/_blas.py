"""One BLAS thread for many small problems.

LAPACK on a 50 × 50 matrix gains nothing from threads and, on a busy machine, waits
milliseconds for them; the path solves hundreds of such problems.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> tuple[Any, int]:
    # Finding the loaded libraries takes milliseconds, so it is done once.
    controller = ThreadpoolController().select(user_api="blas")
    threads = [library["num_threads"] for library in controller.info()]
    return controller, max(threads, default=1)


def single_threaded() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    context: AbstractContextManager[Any] = _controller()[0].limit(limits=1)
    return context


def all_threads() -> AbstractContextManager[Any]:
    """Context, inside `single_threaded`, in which BLAS has its threads back."""
    controller, threads = _controller()
    context: AbstractContextManager[Any] = controller.limit(limits=threads)
    return context
