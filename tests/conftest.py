"""Where the tests find the real data sets, and what they are compared with."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from zoo import brute_force

# A check of a change must not fail for a case that the change has nothing to do with:
# there the examples are always the same. Everywhere else new ones are tried each time.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the kernels once, before several workers would each compile them all."""
    is_worker = hasattr(config, "workerinput")
    if config.getoption("numprocesses", None) and not is_worker:
        from blockspca import _kernels

        for module in pkgutil.iter_modules(_kernels.__path__):
            importlib.import_module(f"{_kernels.__name__}.{module.name}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data: BLOCKSPCA_DATA, or shared/data beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BLOCKSPCA_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; set BLOCKSPCA_DATA to run this test")
    return folder


@pytest.fixture(scope="session")
def oracle_dir(data_dir: Path) -> Path:
    """The folder of values that the library must reproduce, beside the data."""
    folder = data_dir.parent / "oracles"
    if not folder.is_dir():
        pytest.skip(f"no oracles folder at {folder}")
    return folder


@pytest.fixture(scope="session")
def load(data_dir: Path) -> Callable[[str], np.ndarray]:
    """Load a dense data set by name: its matrix A, or its data X, as float64."""

    def load_dense(name: str) -> np.ndarray:
        with np.load(data_dir / f"{name}.npz") as file:
            return file["A" if "A" in file else "X"].astype(float)

    return load_dense


@pytest.fixture(scope="session", name="brute_force")
def brute_force_fixture() -> Callable[[np.ndarray, int], float]:
    return brute_force
