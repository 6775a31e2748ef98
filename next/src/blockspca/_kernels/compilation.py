"""Compile kernels before the clock of a call starts, or ahead of all calls.

`python -m blockspca compile` compiles all of them, each file in a process of its own:
threads would wait for one another in Numba.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from os import cpu_count
from typing import Any

NO_KERNELS = {"__init__", "compilation", "options"}


def kernel_files() -> list[str]:
    """Return the names of all files with kernels."""
    names = [file.name for file in files(__package__).iterdir()]
    modules = [name.removesuffix(".py") for name in names if name.endswith(".py")]
    return sorted(set(modules) - NO_KERNELS)


def prepare(*names: str) -> None:
    """Import files of kernels; say in one line if that means to compile them."""
    missing = [name for name in names if f"{__package__}.{name}" not in sys.modules]
    if not missing:
        return
    with announced(missing):
        for name in missing:
            import_module(f".{name}", __package__)


@contextmanager
def announced(names: list[str]) -> Iterator[None]:
    """Write a line when Numba begins to compile, once."""
    from numba.core import event

    class Announcement(event.Listener):
        told = False

        def on_start(self, started: Any) -> None:
            if not self.told and sys.stderr is not None:
                self.told = True
                print(
                    f"blockspca: compiling {', '.join(names)} for this machine, some "
                    "seconds, once; to do it ahead: python -m blockspca compile",
                    file=sys.stderr,
                )

        def on_end(self, ended: Any) -> None:
            pass

    with event.install_listener("numba:compile", Announcement()):
        yield


def compile_all() -> int:
    """Compile all kernels in processes; return how many files failed."""
    waiting, failed = kernel_files(), 0
    running: dict[str, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < (cpu_count() or 1):
            name = waiting.pop()
            code = f"import {__package__}.{name}"
            running[name] = subprocess.Popen([sys.executable, "-c", code])
        name, process = next(iter(running.items()))
        failed += process.wait() != 0
        print(f"compiled {name}" if process.returncode == 0 else f"{name} failed")
        del running[name]
    return failed
