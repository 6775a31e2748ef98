"""The page of results: worst rows first, and nothing without measurements."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from blockspca.cli.main import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator():
    path = ROOT / "docs" / "generate_results.py"
    spec = importlib.util.spec_from_file_location("generate_results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(k: int, ratio: float, proof: str = "proved") -> dict:
    return {
        "dataset": "Some",
        "k": k,
        "objective": 1.0,
        "verdict": "equal",
        "proof": proof,
        "speedup": 2.0,
        "certified": "0.50",
        "alone": "1.00",
        "framework": "0.60",
        "certified_ratio_to_alone": ratio / 2,
        "certified_ratio_to_framework": ratio,
    }


def test_the_worst_come_first(generator):
    rows = [row(1, 0.1), row(2, 0.5), row(3, 0.01, "within 2.00%"), row(4, 2.0)]
    left_out = {"dataset": "Dorothea", "k": 9, "verdict": "left out"}
    tables = {
        "branch-and-bound": {"rows": [*rows, {"dataset": "Absent"}]},
        "chan": {"rows": [left_out, {"verdict": "no data"}]},
    }
    worst = generator.worst_rows(tables)
    assert [name.split(" = ")[1] for name, _, _ in worst] == ["9 (Chan)", *"3421"]
    assert "within 2.00%" in worst[1][2]
    assert "0.5 times faster than framework" in worst[2][2]


def test_without_measurements_there_is_no_page(generator, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["reproduce", "factors", "--data", str(tmp_path), "-o", str(out)]) == 0
    with pytest.raises(SystemExit, match="is missing"):
        generator.page(out)


def test_the_page_has_every_table():
    from blockspca.reproduction import TABLES

    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert text.count("\n## ") >= len(TABLES)
    assert text.index("worst for this library") < text.index("## Figure 1")
    for expected in ("| 69.27 | 69.2693 | equal |", "| 86.20 | 86.2000 | equal |"):
        assert expected in text
    assert "| 1601.32 | 1601.3239 | equal |" in text
