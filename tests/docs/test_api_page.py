"""The page of the API lists every solver of the registry, as generated from it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from blockspca.solvers import SOLVERS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(DOCS / "generate_api.py"))


def test_the_page_is_up_to_date(script):
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert script["page"](text) == text, "run python docs/generate_api.py"


def test_every_solver_is_listed_once(script):
    text = script["solvers"]()
    for solver in SOLVERS.values():
        assert text.count(f"::: {solver.__module__}.{solver.__name__}\n") == 1


def test_the_rest_of_the_page_stays(script):
    start, end = script["START"], script["END"]
    written = script["page"](f"before\n{start}obsolete{end}after\n")
    assert written.startswith(f"before\n{start}")
    assert written.endswith(f"{end}after\n")
    assert "obsolete" not in written
    with pytest.raises(ValueError, match="marks"):
        script["page"]("no marks")
