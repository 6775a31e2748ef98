"""How kernels are compiled, and the types of arrays in their signatures.

Each kernel has one signature and arrays in C order. Helpers stand in the same file,
because Numba's cache notices edits of that file only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def njit(*signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile for a signature, or with none when another kernel calls the function.

    Compiled code is cached if a cache can be written; if not, it is compiled again in
    each process.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        njit: Any = numba.njit
        try:
            return njit(*signature, cache=True, **_OPTIONS)(function)
        except (RuntimeError, OSError):  # no folder for the cache, or a full disk
            return njit(*signature, **_OPTIONS)(function)

    return compiled


def inputs(kind: types.Type, dimensions: int) -> types.Array:
    """Return the type of an array that a kernel reads; read-only ones will do."""
    return types.Array(kind, dimensions, "C", readonly=True)


def outputs(kind: types.Type, dimensions: int) -> types.Array:
    """Return the type of an array that a kernel writes."""
    return types.Array(kind, dimensions, "C")
