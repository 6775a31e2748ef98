"""Describes the machine that numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version


def machine() -> str:
    """Describe the machine and the versions that times depend on."""
    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "scipy", "numba"))
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, {packages}"
    )
