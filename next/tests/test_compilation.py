"""Kernels: compiled ahead, announced in one line, and also without a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from blockspca._kernels.compilation import compile_all, kernel_files, prepare

PACKAGE = Path(import_module("blockspca").__file__).parent
SOLVE = """
import numpy as np
import blockspca as bs
result = bs.solve(np.array([[2.0, 1, 0], [1, 2, 0.5], [0, 0.5, 1]]), 2)
print(result.status.value)
"""


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def test_the_command_covers_all_kernels():
    with_kernels = {
        path.stem
        for path in (PACKAGE / "_kernels").glob("*.py")
        if "from .options import" in path.read_text(encoding="utf-8")
    }
    assert set(kernel_files()) == with_kernels


def test_prepare_names_what_it_compiles_once(tmp_path):
    code = "from blockspca._kernels.compilation import prepare; prepare('screen')"
    first, second = (
        python("-c", code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)
    )
    assert "compiling screen" in first.stderr
    assert first.stderr.count("\n") == 1
    assert "python -m blockspca compile" in first.stderr
    assert second.stderr == ""
    prepare("screen")


@pytest.mark.slow
def test_all_kernels_compile_in_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compile_all() == 0
    done = python("-c", SOLVE, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("optimal\n", "")


def test_without_a_writable_cache_a_call_goes_on(tmp_path):
    # Files in the place of the folders of caches: nobody writes there, root included.
    package = tmp_path / "blockspca"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "_kernels" / "__pycache__").touch()
    blocked = tmp_path / "file"
    blocked.touch()
    done = python(
        "-c",
        SOLVE,
        PYTHONPATH=str(tmp_path),
        HOME=str(blocked),
        XDG_CACHE_HOME=str(blocked),
        NUMBA_CACHE_DIR="",
    )
    assert done.stdout == "optimal\n", done.stderr
    assert "compiling" in done.stderr
