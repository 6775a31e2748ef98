"""Constraints as options."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import blockspca as bs
from blockspca.cli.main import run

rng = np.random.default_rng(2)
X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 9)) + rng.normal(size=(50, 9))
NAMES = [f"f{j}" for j in range(9)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [",".join(map(repr, row)) for row in X.tolist()]
    Path("data.csv").write_text("\n".join([",".join(NAMES), *rows]))
    labels = "\n".join(f"f{j}\tgroup {j // 3}" for j in range(9))
    Path("groups.tsv").write_text(labels)
    return tmp_path


def test_fit_keeps_them_and_says_what_they_cost(here, capsys):
    command = (
        "fit data.csv -k 3 --include f2 --exclude f0 --groups groups.tsv "
        "--max-per-group 1 --output out"
    )
    assert run(command.split()) == 0
    assert "constraints cost" in capsys.readouterr().out
    expected = bs.solve(
        bs.Covariance.from_data(X, feature_names=NAMES),
        3,
        constraints=bs.Constraints(
            include=["f2"],
            exclude=["f0"],
            groups=np.arange(9) // 3,
            max_per_group=1,
        ),
    )
    summary = json.loads(Path("out/summary.json").read_text())
    (row,), (price,) = summary["components"], summary["prices"]
    assert row["objective"] == pytest.approx(expected.objective)
    assert set(row["loadings"]) == set(expected.features)
    assert price["free_objective"] >= row["objective"]
    assert run(["verify", "out", "data.csv"]) == 0
    assert "constraints: kept" in capsys.readouterr().out


def test_path_and_report(here, capsys):
    assert run(["path", "data.csv", "--k-max", "4", "--nonnegative"]) == 0
    assert "optimal" in capsys.readouterr().out
    pytest.importorskip("jinja2")
    command = "report data.csv -k 3 --exclude f1 --output page.html"
    assert run(command.split()) == 0
    assert "constraints cost" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--include nothing", "include has 'nothing', which is not the name"),
        ("--groups no.tsv --max-per-group 1", "--groups no.tsv is not a file"),
        ("--groups groups.tsv", "groups are given without a limit"),
        ("--max-per-group 1", "given without"),
        ("--include f1 --exclude f1", "both have 'f1'"),
    ],
)
def test_mistakes(here, capsys, options, said):
    assert run(["fit", "data.csv", "-k", "2", *options.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_var_column_of_an_h5ad_file(here, capsys):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    labels = pandas.Categorical([f"chr{j % 3}" for j in range(9)])
    var = pandas.DataFrame({"chromosome": labels}, index=NAMES)
    anndata.AnnData(X, var=var).write_h5ad("data.h5ad")
    command = "fit data.h5ad -k 3 --groups chromosome --max-per-group 1 --json"
    assert run(command.split()) == 0
    (row,) = json.loads(capsys.readouterr().out)["components"]
    assert {int(name[1:]) % 3 for name in row["loadings"]} == {0, 1, 2}
    assert (
        run(["fit", "data.h5ad", "-k", "3", "--groups", "nope", "--max-per-group", "1"])
        == 2
    )
    assert "no var column 'nope'" in capsys.readouterr().err


def test_a_background_is_subtracted(here, capsys):
    other = rng.normal(size=(40, 9)) * np.linspace(2, 0.5, 9)
    rows = [",".join(map(repr, row)) for row in other.tolist()]
    Path("other.csv").write_text("\n".join([",".join(NAMES), *rows]))
    command = "fit data.csv -k 3 --background other.csv --weight 0.5 --output out"
    assert run(command.split()) == 0
    make = bs.Covariance.from_data
    expected = bs.solve(bs.contrastive(make(X), make(other), 0.5), 3)
    (row,) = json.loads(Path("out/summary.json").read_text())["components"]
    assert row["objective"] == pytest.approx(expected.objective)
    assert {int(name[1:]) for name in row["loadings"]} == set(expected.support.tolist())
    assert run(["verify", "out", "data.csv"]) == 0
    assert run(["path", "data.csv", "--k-max", "3", "--background", "other.csv"]) == 0
    capsys.readouterr()
    assert run(["fit", "data.csv", "-k", "auto", "--background", "other.csv"]) == 2
    assert "give a k" in capsys.readouterr().err
