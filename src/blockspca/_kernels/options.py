"""How kernels are compiled: cached, without the GIL, division by zero as in NumPy.

Numba keys a cached kernel by its own file: an edit to a helper in another file goes
unnoticed, and the machine code of yesterday runs, in a proof for instance.  The name of
the cached file contains the name of the function, so `njit` adds a hash of the sources
of all kernels to it.  That needs nothing of Numba's insides and holds wherever the
cache is: beside the sources, under `NUMBA_CACHE_DIR` or in the user's cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any

import numba

#: For a kernel that Python calls. Nothing calls one from C.
ENTRY: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
#: For one that only kernels call: half the compile time. Called from Python, or from a
#: `.py_func`, the process would crash.
INNER: dict[str, Any] = {**ENTRY, "no_cpython_wrapper": True}


def _hash_of_sources() -> str:
    """Hash names and contents of the files of this package, zipped or not."""
    found = hashlib.sha256()
    files = [file for file in resources.files(__package__).iterdir() if file.is_file()]
    for file in sorted(files, key=lambda file: file.name):
        if file.name.endswith(".py"):
            content = file.read_bytes()
            found.update(f"{file.name} {len(content)} ".encode())
            found.update(content)
    return found.hexdigest()[:16]


SOURCES = _hash_of_sources()


def njit(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as `numba.njit` does, and again after an edit to any kernel."""

    def compiled(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{SOURCES}"
        return numba.njit(*signature, **options)(function)

    return compiled
