"""Kernels that take long to compile do not hold up a run with a time limit."""

from __future__ import annotations

import importlib
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
    monkeypatch.setattr(loading, "_imports", {})
    monkeypatch.setattr(loading, "_ready", set())
    monkeypatch.setattr(loading, "_load", lambda name: done.wait(60))
    yield done
    done.set()


def test_waits_no_longer_than_allowed(compilation):
    assert not loading.load("forest", "schur_tree", seconds=0.01)
    assert list(loading._imports) == ["forest"]
    compilation.set()
    assert loading.load("forest", "schur_tree", seconds=60)


def test_a_module_is_imported_once(compilation):
    assert not loading.load("forest", seconds=0.0)
    thread = loading._imports["forest"]
    assert not loading.load("forest", seconds=0.0)
    assert loading._imports["forest"] is thread


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
    seen = set()
    for path in Path(loading.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"blockspca._kernels.{path.stem}")
        for name, kernel in vars(module).items():
            called_by_python = hasattr(kernel, "signatures") and name[0] != "_"
            if called_by_python and "no_cpython_wrapper" not in kernel.targetoptions:
                assert not kernel._can_compile, f"{path.stem}.{name} has no signature"
                seen.add(path.stem)
    assert {"forest", "schur_tree", "screen", "averaging", "rowtops"} <= seen
