"""The page of results: worst rows first, and nothing without measurements."""

from __future__ import annotations

import importlib.util
import json
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


def row(k: int, ratio: float, proof: str = "proved", **more) -> dict:
    return {
        "dataset": "Some",
        "k": k,
        "paper_objective": "1.00",
        "paper_base_objective": "1.00",
        "objective": 1.0,
        "optimum": 1.0,
        "verdict": "equal",
        "optimum_verdict": "equal",
        "proof": proof,
        "speedup": 2.0,
        "certified": "0.50",
        "alone": "1.00",
        "framework": "> 0.60",
        "certified_ratio_to_alone": ratio / 2,
        "certified_ratio_to_framework": ratio,
        **more,
    }


def large(k: int, ratio: float, **more) -> dict:
    return row(k, ratio, "within 40.00%", upper_bound=1.4, bound_seconds="45", **more)


def tables(rows: list[dict], chan: list[dict]) -> dict:
    return {
        "branch-and-bound": {"rows": rows, "machine": "a machine"},
        "chan": {"rows": chan},
    }


def test_the_worst_come_first(generator):
    rows = [
        row(1, 0.1),
        row(2, 0.5),
        row(3, 0.01, "within 2.00%"),
        row(4, 2.0),
        row(5, 0.01, optimum_verdict="worse", optimum=0.9),
        {"dataset": "Absent", "verdict": "no data"},
    ]
    left_out = {"dataset": "Dorothea", "k": 9, "verdict": "left out"}
    chan = [left_out, large(7, 0.2), row(8, 9.0, verdict="other data")]
    worst = generator.worst_rows(tables(rows, chan))
    order = [name.split(" = ")[1] for name, _, _ in worst]
    assert order == ["9", "5", "4", "7", "3", "2", "1"]
    said = {name.split(" = ")[1]: text for name, _, text in worst}
    assert "0.9000 is below the best printed" in said["5"]
    assert "certified path slower than the framework" in said["4"]
    assert "upper bound in 45 s is 1.4000" in said["7"]
    assert "power steps only 5.0 times faster" in said["7"]
    assert "the proof did not finish" in said["3"]


def test_proofs_are_compared_apart(generator):
    chan = [
        row(200, 0.2, bound_seconds="0.70"),
        row(500, 0.2, bound_seconds="0.55"),
        large(900, 0.2),
    ]
    said = generator.introduction(tables([row(3, 0.5)], chan))
    assert "On Some that is the time of the component alone." in said
    assert "1 of 2 rows are faster than both (k = 500).\n- **The framework" in said
    said = generator.introduction(tables([row(3, 0.5)], []))
    assert "of the component alone" not in said


def test_no_more_than_eight(generator):
    rows = [row(k, 0.1 * k) for k in range(1, 20)]
    assert len(generator.worst_rows(tables(rows, []))) == 8


def test_the_introduction_counts(generator):
    rows = [row(1, 0.1), row(2, 2.0), row(3, 0.5, verdict="worse")]
    text = generator.introduction(tables(rows, [large(7, 0.2)]))
    assert "3 of the 4 rows with" in text
    assert "4 of the 4 rows equal\n  or beat" in text
    assert "3 are proved optimal" in text
    assert "(Some, k = 7) bounded to 40.00% or better" in text
    both = [large(7, 0.2), large(9, 0.2)]
    text = generator.introduction(tables(rows, both))
    assert "(Some, k from 7 to 9) bounded to 40.00% or better" in text
    text = generator.introduction(tables(rows, [large(7, 0.2)]))
    assert "on\n  3 of the 4 rows: 0.5 to 10 times as fast" in text


def test_a_run_that_was_stopped_gives_a_lower_bound(generator):
    lines = generator.proved_table([{**row(1, 0.5), "ours_name": "certified path"}])
    assert lines[2].endswith("| certified path | 4.0 | > 2.0 |")


def test_without_measurements_there_is_no_page(generator, tmp_path):
    out = tmp_path / "out"
    assert run(["reproduce", "factors", "--data", str(tmp_path), "-o", str(out)]) == 0
    with pytest.raises(SystemExit, match="is missing"):
        generator.page(out)


def test_a_page_with_pictures_is_made_from_a_folder(generator, tmp_path):
    pytest.importorskip("matplotlib")
    from blockspca.reproduction import TABLES

    made = tables([row(1, 0.1), row(2, 0.5)], [large(7, 0.2)])
    peer = {"method": "abess", "times_certified": 3.0, "below_optimum": 0.02}
    growth = {
        "name": "Growth in d",
        "rows": [{"d": d, "seconds": d / 9, "blas": d / 7} for d in (1, 2)],
        "exponent": {"seconds": 1.0, "blas": 1.0},
    }
    parts = [growth, {**growth, "name": "Growth in d"}]
    for name in TABLES:
        content = made.get(name, {"rows": []})
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        (tmp_path / f"{name}.md").write_text(f"## Table {name}\n")
    for name, found in (("peers", [{"rows": [peer]}]), ("growth", parts)):
        content = {"title": name, "notes": [f"about {name}"], "tables": found}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        (tmp_path / f"{name}.md").write_text("# All\n\nabout\n\n| a |\n| --- |\n")
    text = generator.page(tmp_path)
    assert text.index("worst for this library") < text.index("The 3 rows with data")
    assert text.index("about peers") < text.index("## Table figure-1")
    assert "## All\n\n| a |" in text
    pictures = tmp_path / "pictures"
    generator.draw(tmp_path, pictures)
    drawn = {path.name for path in pictures.iterdir()}
    assert drawn == {f"results-{n}.png" for n in ("times", "peers", "growth")}
    for name in drawn:
        assert f"({generator.PICTURES}/{name})" in text


def test_the_page_has_every_table():
    from blockspca.reproduction import TABLES

    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert text.count("\n## ") >= len(TABLES)
    assert text.index("worst for this library") < text.index("## Figure 1")
    for expected in ("| 69.27 | 69.2693 | equal |", "| 86.20 | 86.2000 | equal |"):
        assert expected in text
    assert "| 1601.32 | 1601.3239 | equal |" in text
