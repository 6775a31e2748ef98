"""How kernels are compiled: cached, without the GIL, division by zero as in NumPy."""

from __future__ import annotations

from typing import Any

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
