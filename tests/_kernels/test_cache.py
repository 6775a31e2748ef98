"""A kernel is compiled again after an edit to a helper in another file."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.registry import CPUDispatcher

from blockspca import _kernels
from blockspca._kernels import options

HELPER = """
from .options import INNER, njit

@njit(**INNER)
def helper(x):
    return x + {constant}
"""
ENTRY = """
from numba import types
from .options import ENTRY, njit
from .helper import helper

@njit((types.float64,), **ENTRY)
def entry(x):
    return helper(x)
"""
SCRIPT = """
from kernels.entry import entry
print(entry(0.0), sum(entry.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("own_directory", [False, True])
def test_edited_helper_in_another_file_is_noticed(
    own_directory: bool, tmp_path: Path
) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(inspect.getfile(options), package)
    (package / "entry.py").write_text(ENTRY)

    def run(constant: float) -> list[float]:
        (package / "helper.py").write_text(HELPER.format(constant=constant))
        # Python itself takes a file of the same size and second for the same.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PYTHONPATH"] = str(tmp_path)
        environment.pop("NUMBA_CACHE_DIR", None)
        if own_directory:
            environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return [float(word) for word in ran.stdout.split()]

    assert run(1.0) == [1.0, 0]
    assert run(1.0) == [1.0, 1]  # from the cache
    assert run(2.0) == [2.0, 0]
    if not own_directory:
        assert run(1.0) == [1.0, 1]  # the first version is still there


MODULES = sorted(module.name for module in pkgutil.iter_modules(_kernels.__path__))


@pytest.mark.parametrize(
    "name",
    MODULES,
)
def test_every_kernel_is_keyed_by_all_sources(name: str) -> None:
    module = importlib.import_module(f"{_kernels.__name__}.{name}")
    for kernel in vars(module).values():
        if isinstance(kernel, CPUDispatcher):
            assert kernel.py_func.__qualname__.endswith(options.SOURCES)


def test_there_are_kernels_to_look_at() -> None:
    assert {"averaging", "schur_tree", "screen", "selection"} <= set(MODULES)
