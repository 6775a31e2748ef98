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
        "fit data.csv -k 3 -n 1 --include f2 --exclude f0 --groups groups.tsv "
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


def fitted(capsys: pytest.CaptureFixture[str], *options: str) -> set[str]:
    assert run(["fit", "data.csv", "-k", "3", "-n", "1", "--json", *options]) == 0
    (row,) = json.loads(capsys.readouterr().out)["components"]
    return set(row["loadings"])


def test_features_with_commas_between_them(here, capsys):
    """As -k 5,4 and --start a,b are; one by one they may be repeated."""
    both = fitted(capsys, "--include", "f2,f7")
    assert {"f2", "f7"} <= both
    assert fitted(capsys, "--include", "f2", "--include", "f7") == both
    assert fitted(capsys, "--include", "f2, f7,") == both
    free = sorted(fitted(capsys))
    others = fitted(capsys, "--exclude", ",".join(free[:2]))
    assert not others & set(free[:2])


def test_a_name_may_have_a_comma(here, capsys):
    content = Path("data.csv").read_text()
    names = 'f0,f1,f2,"f7,8",' + ",".join(NAMES[4:])
    Path("data.csv").write_text("\n".join([names, *content.split("\n")[1:]]))
    assert "f7,8" in fitted(capsys, "--include", "f7,8")
    assert {"f7,8", "f2"} <= fitted(capsys, "--include", "f7,8", "--include", "f2")
    assert {"f7", "f8"} <= fitted(capsys, "--include", "f7, f8")
    assert "f7,8" not in fitted(capsys, "--exclude", "f7,8")
    fitted(capsys, "--start", "f7,8")
    assert "f7,8" in fitted(capsys, "--start", "f7,8", "--min-overlap", "1")


def test_numbers_with_commas_where_there_are_no_names(here, capsys):
    content = Path("data.csv").read_text()
    Path("data.csv").write_text(content.split("\n", 1)[1])
    assert {"2", "7"} <= fitted(capsys, "--include", "2,7")


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
        ("--include nothing", "--include has 'nothing', which is not the name"),
        ("--groups no.tsv --max-per-group 1", "--groups no.tsv is not a file"),
        ("--groups groups.tsv", "groups are given without a limit"),
        ("--max-per-group 1", "--max-per-group needs --groups"),
        ("--whole-groups", "--whole-groups needs --groups"),
        ("--include nothing", "the names begin with 'f0'"),
        ("--include ff1", "did you mean 'f1'"),
        ("--include f1 --exclude f1", "both have 'f1'"),
        ("--include f1,ff2", "did you mean 'f2'"),
        ("--drop f1,f2", "'f1' and 'f2' are names; give each by itself"),
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
    command = "fit data.h5ad -k 3 -n 1 --groups chromosome --max-per-group 1 --json"
    assert run(command.split()) == 0
    (row,) = json.loads(capsys.readouterr().out)["components"]
    assert {int(name[1:]) % 3 for name in row["loadings"]} == {0, 1, 2}
    assert (
        run(["fit", "data.h5ad", "-k", "3", "--groups", "nope", "--max-per-group", "1"])
        == 2
    )
    assert "no var column 'nope'" in capsys.readouterr().err
    var = pandas.DataFrame({"family": [None, *"aabbccdd"]}, index=NAMES)
    anndata.AnnData(X, var=var).write_h5ad("gaps.h5ad")
    command = "fit gaps.h5ad -k 3 -n 1 --groups family --max-per-group 1"
    assert run(command.split()) == 2
    assert "var column 'family' has 1 missing value(s)" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["f{j} g{g}", "f{j}  group {g}", "f{j}, g{g}"])
def test_groups_with_spaces(here, capsys, line):
    """A feature and its group, not a label for each line that is one of a kind."""
    rows = [line.format(j=j, g=j // 3) for j in range(9)]
    Path("groups.txt").write_text("\n".join(rows))
    command = "fit data.csv -k 3 -n 1 --groups groups.txt --max-per-group 1 --json"
    assert run(command.split()) == 0
    (found,) = json.loads(capsys.readouterr().out)["components"]
    groups = [int(name[1:]) // 3 for name in found["loadings"]]
    assert sorted(groups) == [0, 1, 2]


def test_labels_may_have_spaces(here, capsys):
    rows = [f"group {j // 3}" for j in range(9)]
    Path("groups.txt").write_text("\n".join(rows))
    command = "fit data.csv -k 3 -n 1 --groups groups.txt --max-per-group 1 --json"
    assert run(command.split()) == 0
    (found,) = json.loads(capsys.readouterr().out)["components"]
    assert sorted(int(name[1:]) // 3 for name in found["loadings"]) == [0, 1, 2]


def test_a_background_is_subtracted(here, capsys):
    other = rng.normal(size=(40, 9)) * np.linspace(2, 0.5, 9)
    rows = [",".join(map(repr, row)) for row in other.tolist()]
    Path("other.csv").write_text("\n".join([",".join(NAMES), *rows]))
    command = "fit data.csv -k 3 -n 1 --background other.csv --weight 0.5 --output out"
    assert run(command.split()) == 0
    assert "of the variance" not in capsys.readouterr().out  # there is no total
    make = bs.Covariance.from_data
    expected = bs.solve(bs.contrastive(make(X), make(other), 0.5), 3)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["explained_variance_ratio"] is summary["r2"] is None
    (row,) = summary["components"]
    assert row["ratio"] is None
    assert row["objective"] == pytest.approx(expected.objective)
    assert {int(name[1:]) for name in row["loadings"]} == set(expected.support.tolist())
    assert run(["verify", "out", "data.csv"]) == 0
    assert run(["path", "data.csv", "--k-max", "3", "--background", "other.csv"]) == 0
    command = "report data.csv -k 3 --background other.csv --output page.html"
    assert run(command.split()) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "less a background" in page
    assert "explains" not in page
    assert "adds to the explained variance" not in page
    capsys.readouterr()
    assert run(["fit", "data.csv", "-k", "auto", "--background", "other.csv"]) == 2
    assert "give a k" in capsys.readouterr().err


def test_a_start_from_before(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "-o", "before"]) == 0
    Path("names.txt").write_text("f1\nf5\nf8\n")
    capsys.readouterr()
    for start in ("before", "before/summary.json", "before/loadings.csv"):
        assert run(["fit", "data.csv", "-k", "3", "-n", "2", "--start", start]) == 0
        assert "Traceback" not in capsys.readouterr().err
    for start in ("names.txt", "f1,f5,f8"):
        assert run(["fit", "data.csv", "-k", "3", "--start", start]) == 0
        assert run(["path", "data.csv", "--k-max", "4", "--start", start]) == 0


def test_an_overlap_with_a_start(here, capsys):
    cov = bs.Covariance.from_data(X, feature_names=NAMES)
    free = bs.solve(cov, 3)
    others = [name for name in NAMES if name not in free.features][:3]
    start = ",".join(others)
    command = ["fit", "data.csv", "-k", "3", "--start", start, "--min-overlap", "2"]
    assert run([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = shown["components"][0]["loadings"]
    assert len(set(found) & set(others)) >= 2
    rules = bs.Constraints(overlap_with=others, min_overlap=2)
    expected = bs.solve(cov, 3, constraints=rules)
    assert shown["components"][0]["objective"] == pytest.approx(expected.objective)
    assert shown["prices"][0]["free_objective"] == pytest.approx(free.objective)


def test_an_overlap_with_several_components_names_the_fix(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "--output", "before"]) == 0
    command = "fit data.csv -k 3 -n 2 --start before --min-overlap 2"
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert "needs one set of features, and --start has 2; give one" in said
    assert "one component after the other" in said


def test_features_that_are_gone_are_left_out_of_a_start(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "--start", "f1,delisted"]) == 0
    said = capsys.readouterr().err
    assert "1 feature(s) that the data do not have, such as 'delisted'" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--start before.json", "there is no such file"),
        ("--start data.csv", "is not what fit writes"),
        ("--start gone", "has no feature of the data"),
        ("--min-overlap 2", "--min-overlap needs --start"),
        ("--start f1,f2 --min-overlap 3", "min_overlap = 3 for overlap_with of 2"),
        ("--start f1 --min-overlap 0", "0 is less than 1"),
    ],
)
def test_starts_that_are_none(here, capsys, options, words):
    assert run(["fit", "data.csv", "-k", "3", *options.split()]) == 2
    assert words in capsys.readouterr().err
