"""Fixtures of the tests of components."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[1000, 0], ids=["both searches", "without enumeration"])
def searches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The enumeration settles small problems before the branch and bound has a turn."""
    most = "blockspca.components.shared_support.TREE_UP_TO"
    monkeypatch.setattr(most, request.param)
