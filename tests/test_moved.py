"""Modules are found by the names that earlier versions had for them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from blockspca._moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_warns_and_gives_the_new_module(old):
    sys.modules.pop(f"blockspca.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"blockspca.{old} is now"):
        module = importlib.import_module(f"blockspca.{old}")
    new = importlib.import_module(f"blockspca.{MOVED[old]}")
    public = [name for name in vars(new) if not name.startswith("_")]
    assert public
    for name in public:
        assert getattr(module, name) is getattr(new, name)
    assert module.__doc__ == new.__doc__
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


def test_no_old_name_is_in_use():
    """The library itself never takes the old way."""
    code = (
        "import blockspca, blockspca.cli.main, blockspca.estimator, blockspca.report\n"
        "import blockspca.plotting, blockspca.reproduction, sys\n"
        "from blockspca._moved import MOVED\n"
        "taken = [old for old in MOVED if f'blockspca.{old}' in sys.modules]\n"
        "assert not taken, taken"
    )
    subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:blockspca", "-c", code],
        check=True,
    )


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("blockspca.no_such_module")
