"""The notebooks of the site: their code runs, and prints what is stored in them."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
MAX_BYTES = 100_000  # a notebook with its pictures

pytest.importorskip("matplotlib").use("Agg")


def code_cells(name: str) -> list[dict[str, Any]]:
    content = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def executed(source: str, names: dict[str, Any]) -> tuple[str, str]:
    """Run a cell as a notebook does: what it prints, and its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return said.getvalue(), "" if value is None else repr(value)


def stored(cell: dict[str, Any]) -> tuple[str, str]:
    """What a notebook says a cell prints and returns."""
    streams = [o["text"] for o in cell["outputs"] if o["output_type"] == "stream"]
    values = [o for o in cell["outputs"] if o["output_type"] == "execute_result"]
    return "".join(streams), "".join(
        text for value in values for text in value["data"]["text/plain"]
    )


def assert_reproduced(name: str, n_cells: int | None = None) -> None:
    from matplotlib import pyplot as plt

    names: dict[str, Any] = {}
    for cell in code_cells(name)[:n_cells]:
        source = "".join(cell["source"])
        assert executed(source, names) == stored(cell), source
        has_picture = any("image/png" in o.get("data", {}) for o in cell["outputs"])
        assert has_picture == bool(plt.get_fignums()), source
        plt.close("all")


@pytest.fixture(autouse=True)
def _no_windows(monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")


def test_wine():
    assert_reproduced("wine")


def test_pbmc68k():
    pytest.importorskip("scanpy")
    assert_reproduced("pbmc68k")


@pytest.mark.slow
def test_gene_panel():
    pytest.importorskip("scanpy")
    assert_reproduced("gene_panel", 3)  # the last one takes a minute


@pytest.mark.slow
@pytest.mark.data
def test_sp500(data_dir, monkeypatch):
    monkeypatch.setenv("BLOCKSPCA_DATA", str(data_dir))
    assert_reproduced("sp500")


@pytest.mark.parametrize(
    "path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem
)
def test_as_a_page(path):
    pytest.importorskip("mkdocs")
    as_page = runpy.run_path(str(ROOT / "docs" / "notebook_pages.py"))["as_page"]
    text, pictures = as_page(path)
    assert text.startswith("# ")
    assert f"[Download this notebook]({path.name})" in text
    assert pictures
    assert all(name in text for name in pictures)
    assert "<style" not in text
    assert path.stat().st_size < MAX_BYTES
    for cell in code_cells(path.stem):
        compile("".join(cell["source"]), path.name, "exec")
