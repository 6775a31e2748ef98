"""Kernels that take long to compile do not hold up a run with a time limit."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import blockspca as bs
from blockspca._kernels import loading
from blockspca.solvers import Exhaustive


@pytest.fixture
def compilation(monkeypatch):
    """A compilation that lasts until the event is set."""
    done = threading.Event()
    monkeypatch.setattr(loading, "_begun", {})
    monkeypatch.setattr(loading, "_ready", set())
    monkeypatch.setattr(loading, "_load", lambda name: done.wait(60))
    yield done
    done.set()


def test_waits_no_longer_than_allowed(compilation):
    assert not loading.load("forest", "schur_tree", seconds=0.01)
    assert not loading.is_loaded("forest")
    compilation.set()
    assert loading.load("forest", "schur_tree", seconds=60)
    assert loading.is_loaded("forest", "schur_tree")


def test_what_nobody_waits_for_any_more_is_loaded(compilation):
    assert not loading.load("forest", "schur_tree", seconds=0.0)
    last = loading._begun["schur_tree"]
    compilation.set()
    assert last.wait(60)
    assert loading.is_loaded("forest", "schur_tree")


def test_a_module_is_imported_once(compilation):
    assert not loading.load("forest", seconds=0.0)
    begun = loading._begun["forest"]
    assert not loading.load("forest", "screen", seconds=0.0)
    assert loading._begun["forest"] is begun
    assert loading._begun["screen"] is not begun


def test_a_limit_that_ends_while_kernels_are_compiled_says_so(compilation):
    # Of noise the duals, which need no kernels, prove nothing in a second.
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(30, 60)))
    with pytest.warns(UserWarning, match="Call again, which finds them ready"):
        bs.solve(cov, 8, limits=bs.Limits(time=1.0))
    compilation.set()


def test_a_compilation_that_fails_is_raised_and_tried_again(monkeypatch):
    """It neither waits out the limit nor ends the others that are loaded with it."""
    fails = [True]

    def compile_or_fail(name):
        if name == "forest" and fails.pop():
            raise OSError("no space left in the cache")

    monkeypatch.setattr(loading, "_begun", {})
    monkeypatch.setattr(loading, "_ready", set())
    monkeypatch.setattr(loading, "_load", compile_or_fail)
    with pytest.raises(OSError, match="no space left"):
        loading.load("forest", "screen", seconds=60)
    assert loading.is_loaded("screen")
    assert not loading.is_loaded("forest")
    fails.append(False)
    assert loading.load("forest", seconds=60)
    assert loading.is_loaded("forest")


def test_the_kernels_that_are_compiled_ahead_are_those_of_a_solve(tmp_path):
    """In a process of its own, as tests before this one have loaded others."""
    script = tmp_path / "solve.py"
    script.write_text(
        "import sys\n"
        "import numpy as np, scipy.sparse as sp\n"
        "import blockspca as bs\n"
        "from blockspca._kernels import loading\n"
        "rng = np.random.default_rng(0)\n"
        "tall, wide = rng.normal(size=(200, 40)), rng.normal(size=(20, 300))\n"
        "sparse = sp.random_array((30, 80), density=0.2, random_state=rng, "
        "format='csr')\n"
        "for X in (tall, wide, sparse):\n"
        "    bs.solve_path(bs.Covariance.from_data(X), 6)\n"
        "bs.solve(bs.Covariance.from_matrix(np.cov(tall.T)), 5)\n"
        "package = 'blockspca._kernels.'\n"
        "used = {name.removeprefix(package) for name in sys.modules\n"
        "        if name.startswith(package)}\n"
        "print(*used & {*loading.OTHERS})\n"
        "print(*used)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )
    others, used = done.stdout.splitlines()
    assert others == ""
    assert {"forest", "schur_tree", "screen"} <= {*used.split()}


@pytest.mark.parametrize("given", ["matrix", "data"])
@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_the_result_of_a_run_that_did_not_get_to_its_kernels(compilation, given, limit):
    X = np.random.default_rng(0).normal(size=(30, 12))
    cov = bs.Covariance.from_data(X)
    if given == "matrix":
        cov = bs.Covariance.from_matrix(np.cov(X.T))
    limits = bs.Limits(time=limit)
    alone = bs.solve(cov, 3, limits=limits)
    path = bs.solve_path(cov, 3, limits=limits)
    compilation.set()
    A = np.cov(X.T)
    x = Exhaustive().solve(A, 3, limits=bs.Limits()).x
    optimum = x @ A @ x
    for result in (alone, path[3]):
        assert result.status is bs.Status.TIME_LIMIT
        assert result.certificate.status is bs.Status.TIME_LIMIT
        assert result.objective <= optimum * (1 + 1e-12)
        assert optimum < result.upper_bound < np.inf
        bs.verify(result, cov)  # raises what does not hold


def test_importing_a_kernel_compiles_it():
    """Only then is its compilation within the time limit."""
    seen: set[str] = set()
    for path in Path(loading.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"blockspca._kernels.{path.stem}")
        for name, kernel in vars(module).items():
            called_by_python = hasattr(kernel, "signatures") and name[0] != "_"
            if called_by_python and "no_cpython_wrapper" not in kernel.targetoptions:
                assert not kernel._can_compile, f"{path.stem}.{name} has no signature"
                seen.add(path.stem)
    assert seen == {*loading.PROVING, *loading.SCANNING, *loading.OTHERS}
