"""`blockspca reproduce`: tables listed, measured, written; wrong calls in one line."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from blockspca.cli.main import run
from blockspca.cli.reproduce import ReproduceOptions
from blockspca.reproduction import TABLES
from blockspca.reproduction.measurements import QUICK_SECONDS, SECONDS


def test_the_help_has_the_time_limits_without_loading_what_has_them():
    (limit,) = (f for f in fields(ReproduceOptions) if f.name == "time_limit")
    words = f"{SECONDS:g} by default, {QUICK_SECONDS:g} with --quick"
    assert words in limit.metadata["settings"]["help"]


def test_without_a_table_they_are_listed(capsys):
    assert run(["reproduce"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name}\n" in said for name in TABLES)


def test_factors_need_no_data(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "factors", "--data", str(tmp_path), "--output", str(out)]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert "factors  20 equal" in said
    written = json.loads((out / "factors.json").read_text(encoding="utf-8"))
    assert written["format"] == "blockspca-table"
    assert len(written["rows"]) == 20
    assert "min(√k, d^(1/3))" in (out / "factors.md").read_text(encoding="utf-8")
    assert run(words) == 2
    assert "exists; add --force" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0


def test_the_figure_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert run(["reproduce", "figure-1", "--data", str(tmp_path), "-o", str(out)]) == 0
    assert (out / "figure-1.png").read_bytes()[:4] == b"\x89PNG"


def test_absent_data_are_named_and_not_waited_for(tmp_path, capsys):
    assert run(["reproduce", "branch-and-bound", "--data", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "branch-and-bound  32 no data" in said
    assert "No data for ProstateCov: Prostate.npz is not in the folder" in said


def test_a_default_folder_that_is_not_there_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BLOCKSPCA_DATA", str(tmp_path / "none"))
    assert run(["reproduce", "dimensions"]) == 0
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "table-9"], "is not a table"),
        (["reproduce", "factors", "--data", "nowhere"], "is not a directory"),
        (["reproduce", "factors", "--time-limit", "0"], "time-limit"),
    ],
)
def test_wrong_calls(words, said, capsys):
    assert run(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.data
def test_a_table_with_data(data_dir, capsys):
    assert run(["reproduce", "dimensions", "--data", str(data_dir), "--quick"]) == 0
    assert "rows swapped" in capsys.readouterr().out
