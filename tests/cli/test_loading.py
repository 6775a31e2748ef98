"""Files as people have them, from the command line: options, and what is said."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from blockspca.cli.main import run

X = np.round(np.random.default_rng(0).normal(size=(20, 4)) * [3, 1, 2, 1], 3)
COMPONENTS = "component 1: 2 features"


def as_text(
    separator: str = ",", header: str = "a,b,c,d", start: str = "", end: str = ""
) -> str:
    """The data, with something before or after the numbers of each row."""
    names = header.replace(",", separator)
    rows = [start + separator.join(map(str, row)) + end for row in X.tolist()]
    return "\n".join([names, *rows]) + "\n"


@pytest.fixture
def fitted(tmp_path, monkeypatch, capsys):
    """Fit a text with some options; return the loadings and what was said."""
    monkeypatch.chdir(tmp_path)

    def fit(text: str | bytes, *options: str, name: str = "t.csv"):
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        code = run(["fit", name, "-k", "2", "--json", *options])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out)["components"][0]["loadings"], err

    return fit


def test_a_comma_at_the_end_keeps_the_names(fitted):
    expected, said = fitted(as_text())
    assert said == ""
    found, said = fitted(as_text(end=","))
    assert found == expected
    assert "every row ends with a separator" in said
    named = as_text(header="who,a,b,c,d", start="x,", end=",")
    for option in ("--drop", "--index"):  # what the error about 'who' proposes
        assert fitted(named, option, "who")[0] == expected


def test_options_of_text_files(fitted):
    expected, _ = fitted(as_text())
    for separator in ("|", " ", ";", "\t"):
        assert fitted(as_text(separator))[0] == expected
    german = as_text(";").replace(".", ",")
    assert fitted(german, "--decimal", ",")[0] == expected
    latin = as_text(header="fée,b,c,d").encode("latin-1")
    assert "fée" in fitted(latin, "--encoding", "latin-1")[0]
    assert fitted("# a comment\n" + as_text())[0] == expected
    marked = as_text(header="a,b,c,d,e", end=",-99").replace(",-99", ",0", 2)
    found, _ = fitted(marked, "--na", "-99", "--missing", "pairwise")
    assert found == pytest.approx(expected)
    text = as_text(header="a,b,c,d,kind", end=",red")
    found, said = fitted(text, "--numeric-only")
    assert found == expected
    assert "left out: 'kind' ('red')" in said


def test_notes_speak_of_options(fitted):
    rows = "\n".join(f"{j},{a},{b}" for j, (a, b) in enumerate(X[:, :2].tolist()))
    _, said = fitted("nr,a,b\n" + rows)
    assert "leave it out with --drop nr, or use --index nr" in said
    _, said = fitted(",a,b\n" + rows)
    assert "it was taken for the names of the samples" in said
    assert "warning" not in said


def test_constants_are_said_once(fitted):
    found, said = fitted(as_text(header="a,b,c,d,e", end=",7"), "--scale")
    assert "e" not in found
    assert said.count("blockspca: warning: ") == 1
    assert "1 feature(s) are constant: 'e'; they get no loading" in said
    assert "--constant ignore" in said


def test_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    raw = io.BufferedReader(io.BytesIO(as_text().encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert run(["fit", "-", "-k", "2"]) == 0
    assert COMPONENTS in capsys.readouterr().out


def test_a_share_of_the_features(fitted, capsys):
    Path("t.csv").write_text(as_text())
    assert run(["fit", "t.csv", "-k", "0.5", "-n", "2"]) == 0
    assert COMPONENTS in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gene,a,b\na,2,1\nb,1,3\n", "add --index gene if it names the rows"),
        ("gene,a,b\n1,2,1\n2,1,3\n", "add --index gene if its first column names"),
    ],
)
def test_a_matrix_with_names_in_its_first_column(
    tmp_path, monkeypatch, capsys, text, said
):
    monkeypatch.chdir(tmp_path)
    Path("A.csv").write_text(text)
    assert run(["fit", "A.csv", "--covariance", "-k", "1"]) == 2
    assert said in capsys.readouterr().err
    assert run(["fit", "A.csv", "--covariance", "-k", "1", "--index", "gene"]) == 0


def test_text_among_numbers_is_offered_as_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("a,b\n1,2\n2,?\n3,4\n4,1\n")
    assert run(["fit", "data.csv", "-k", "1"]) == 2
    assert "use --na '?' if it stands for missing values" in capsys.readouterr().err
    words = ["fit", "data.csv", "-k", "1", "--na", "?", "--missing", "pairwise"]
    assert run(words) == 0
