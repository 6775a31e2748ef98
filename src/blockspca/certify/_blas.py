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
def _controller() -> Any:
    # Finding the loaded libraries takes milliseconds, so it is done once.
    return ThreadpoolController().select(user_api="blas")


def single_threaded() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1)
    return context
