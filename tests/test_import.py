"""Importing the package is instant: nothing heavy comes with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import blockspca

HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "pandas", "joblib", "rich", "typer")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return set(output.stdout.split())


def test_import_loads_nothing_heavy():
    assert loaded_by("import blockspca").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "name",
    ["Certificate", "Covariance", "Limits", "Result", "ThresholdPath", "plotting"],
)
def test_a_name_brings_only_what_it_needs(name):
    assert loaded_by(f"from blockspca import {name}").isdisjoint(HEAVY)


def test_solving_compiles_nothing_before_it_is_called():
    assert loaded_by("from blockspca import solve, solvers").isdisjoint(HEAVY)


def test_the_command_line_loads_nothing_heavy_for_its_help():
    assert loaded_by("import blockspca.cli").isdisjoint(HEAVY[:6])


def test_every_public_name_exists():
    for name in blockspca.__all__:
        assert getattr(blockspca, name) is not None
    assert dir(blockspca) == sorted(blockspca.__all__)


def test_public_names_survive_the_import_of_submodules():
    code = (
        "import blockspca.pipeline, blockspca.blocks.threshold_path, blockspca as bs; "
        "assert callable(bs.solve) and callable(bs.threshold_path)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        blockspca.solv  # noqa: B018
