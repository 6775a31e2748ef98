"""The runner of the benchmarks: what it lists, runs, writes and refuses."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def runner(monkeypatch):
    """The runner as a module; its cases are imported by name from its folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("benchmark_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_case_is_a_file(runner):
    other = {
        "run",
        "common",
        "joint",
        "soundness",
        "constrained_soundness",
        "proof_mutants",
        "mutation",
        "mutants",
    }  # scripts of their own
    files = {path.stem for path in FOLDER.glob("*.py")} - other
    assert files == set(runner.CASES)
    for name in runner.CASES:
        assert "def report(options: Options) -> Report:" in (
            FOLDER / f"{name}.py"
        ).read_text(encoding="utf-8")


def test_without_a_case_they_are_listed(runner, capsys):
    runner.main([])
    said = capsys.readouterr().out
    assert all(name in said for name in runner.CASES)


def test_an_unknown_case_is_refused(runner, capsys):
    with pytest.raises(SystemExit):
        runner.main(["nonsense"])
    assert "no case nonsense" in capsys.readouterr().err


def test_two_quick_cases_are_measured_and_written(runner, tmp_path, capsys):
    words = ["growth", "spanning_forest", "--quick", "--output", str(tmp_path)]
    runner.main(words)
    assert "## Growth in d" in capsys.readouterr().out
    written = json.loads((tmp_path / "growth.json").read_text(encoding="utf-8"))
    assert written["case"] == "growth"
    assert written["quick"]
    assert written["seeds"] == [0]
    assert {"blockspca", "numpy", "numba"} <= set(written["versions"])
    assert "cores" in written["machine"]
    tables = {table["name"]: table for table in written["tables"]}
    assert list(tables) == ["Growth in d", "Growth in n", "Growth in k"]
    for table in tables.values():
        assert all(row["proved"] == row["k"] for row in table["rows"])
        assert all(row["seconds"] > 0 for row in table["rows"])
        assert set(table["exponent"]) == {"seconds", "blas"}
    text = (tmp_path / "spanning_forest.md").read_text(encoding="utf-8")
    assert text.startswith("# The spanning forest against one pass")
    assert "| spanning forest |" in text


def test_the_exponent_is_that_of_the_power(runner):
    import growth

    sizes = [10, 20, 40, 80]
    assert growth.exponent(sizes, [3 * s**1.5 for s in sizes]) == pytest.approx(1.5)


@pytest.mark.data
def test_peers_are_measured_against_the_optimum(runner, data_dir, tmp_path):
    runner.main(["peers", "--quick", "--output", str(tmp_path)])
    written = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    rows = written["tables"][0]["rows"]
    methods = {row["method"] for row in rows}
    assert {"certified path", "branch and bound", "scikit-learn SparsePCA"} <= methods
    for row in rows:
        assert row["below_optimum"] >= 0
        if row["method"] in ("certified path", "branch and bound"):
            assert row["status"] == "optimal"
            assert row["below_optimum"] < 1e-9


@pytest.mark.data
@pytest.mark.slow
def test_components_together_beat_the_peers(runner, data_dir, tmp_path):
    rows = ["--rows", "orthogonal", "shared"]
    runner.main(["components", "--quick", "--output", str(tmp_path), *rows])
    written = json.loads((tmp_path / "components.json").read_text(encoding="utf-8"))
    shares, shared = (table["rows"] for table in written["tables"])
    assert [(row["scheme"], row["k"]) for row in shares] == [
        ("orthogonal", 5),
        ("orthogonal", 10),
        ("uncorrelated", 5),
        ("uncorrelated", 10),
    ]
    for row in shares:
        assert row["share"] >= max(row["mspca"], row["nsprcomp"] or 0.0)
        assert row["violation"] < 1e-10
    assert [row["k"] for row in shared] == [50, 200]
    assert all(0 <= row["gap"] <= 0.02 for row in shared)


def test_parts_that_do_not_exist_are_refused(runner):
    with pytest.raises(ValueError, match="no rows nonsense; there are schemes"):
        runner.main(["components", "--rows", "nonsense"])
