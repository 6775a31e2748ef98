"""Files out: whole or not at all, never over another without force."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from blockspca.io.writing import (
    WriteError,
    check_free,
    scores_csv,
    to_csv,
    to_json,
    write_file,
)


def test_text_and_bytes(tmp_path):
    write_file(tmp_path / "new" / "a.txt", "ε\r\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "ε\r\n".encode()
    write_file(tmp_path / "b", b"\x00")
    assert (tmp_path / "b").read_bytes() == b"\x00"
    assert sorted(os.listdir(tmp_path / "new")) == ["a.txt"]


def test_an_existing_file_stays(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(WriteError, match="force=True"):
        write_file(path, "new")
    assert path.read_text() == "old"
    write_file(path, "new", force=True)
    assert path.read_text() == "new"


def test_a_file_that_appears_meanwhile_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    link = os.link

    def late(source, target):
        path.write_text("theirs")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(WriteError, match="exists"):
        write_file(path, "ours")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, force):
    path = tmp_path / "a.txt"
    if force:
        path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(path, "new", force=force)
    assert os.listdir(tmp_path) == (["a.txt"] if force else [])
    assert not force or path.read_text() == "old"


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    write_file(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_directories_are_refused(tmp_path):
    with pytest.raises(WriteError, match="directory"):
        check_free([tmp_path])
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="is a file"):
        check_free([tmp_path / "file" / "below.txt"])


def test_json_is_strict():
    content = {"a": np.float64(1.5), "b": [np.inf, np.nan], "c": np.arange(2), "d": "ε"}
    assert json.loads(to_json(content)) == {
        "a": 1.5,
        "b": [None, None],
        "c": [0, 1],
        "d": "ε",
    }


def test_csv_keeps_every_digit():
    text = to_csv(["name", "x"], [("a,b", np.float64(0.1) + 0.2)])
    assert text == 'name,x\n"a,b",0.30000000000000004\n'


def test_a_place_that_takes_no_files_is_named(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(WriteError, match=r"x.txt cannot be written: No space left on"):
        write_file(tmp_path / "x.txt", "text")


def test_further_columns_of_scores_may_have_any_name():
    """A label column called `names` was an argument, and `sample` replaced ours."""
    columns = {name: ["x"] for name in ("names", "scores", "sample", "component_1")}
    text = scores_csv(np.ones((1, 1)), ["a"], columns)
    header = "sample,names,scores,sample (label),component_1 (label),component_1"
    assert text == f"{header}\na,x,x,x,x,1.0\n"
