"""The commands on good files: what they write, print and return."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blockspca as bs
from blockspca.cli.main import run
from blockspca.solvers.registry import SOLVERS

rng = np.random.default_rng(1)
FACTOR = rng.normal(size=(60, 1))
X = rng.normal(size=(60, 8))
X[:, :3] += 2 * FACTOR
NAMES = [f"feature {j}" for j in range(8)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [",".join(map(repr, row)) for row in X.tolist()]
    Path("data.csv").write_text("\n".join([",".join(NAMES), *rows]))
    return tmp_path


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_fit_finds_what_the_estimator_finds(here, capsys):
    command = "fit data.csv -k 3 --n-components 2 --output out"
    assert run(command.split()) == 0
    cov = bs.Covariance.from_data(X, feature_names=NAMES)
    model = bs.SparsePCA(2, k=3).fit(X)
    expected = bs.solve_components(cov, 3, 2, scheme="residual")
    np.testing.assert_array_equal(model.components_, expected.components)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["n_components"] == 2
    assert summary["shape"] == [60, 8]
    assert summary["r2"] == pytest.approx(expected.r2)
    for j, row in enumerate(summary["components"]):
        assert row["objective"] == expected[j].objective
        assert row["status"] == "optimal"
        assert row["loadings"] == pytest.approx(expected[j].loadings)
    loadings = rows_of("out/loadings.csv")
    assert len(loadings) == 6
    assert float(loadings[0]["loading"]) == next(iter(expected[0].loadings.values()))
    scores = rows_of("out/scores.csv")
    theirs = (X - X.mean(axis=0)) @ expected.components.T
    ours = np.array([[r["component_1"], r["component_2"]] for r in scores], float)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    said = capsys.readouterr().out
    assert (
        "data.csv: 60 samples × 8 features\n2 components, --scheme residual\n" in said
    )
    plain = expected.explained_variance[1]
    adds, share = model.explained_variance_[1], model.explained_variance_ratio_[1]
    shown = f"variance {plain:.6g}, adds {adds:.6g} ({100 * share:.1f} %), proved"
    assert f"component 2: 3 features, {shown} optimal" in said
    assert "Predicted from the scores: " in said
    summary["r2"] += 1e-6
    Path("out/summary.json").write_text(json.dumps(summary))
    assert run(["verify", "out", "data.csv"]) != 0


def test_scores_have_the_variance_that_is_reported(here):
    assert run(["fit", "data.csv", "-k", "3", "--scale", "-o", "out"]) == 0
    summary = json.loads(Path("out/summary.json").read_text())
    scores = np.array([float(r["component_1"]) for r in rows_of("out/scores.csv")])
    assert scores.var(ddof=1) == pytest.approx(summary["components"][0]["objective"])


def test_fit_uses_all_features_where_more_are_asked_for(here, capsys):
    assert run(["fit", "data.csv", "-k", "9", "-o", "out"]) == 0
    said = capsys.readouterr().err
    assert "warning: k = 9 is more than can be had, as there are 8 features" in said
    summary = json.loads(Path("out/summary.json").read_text())
    assert len(summary["components"][0]["loadings"]) == 8
    assert run(["verify", "out", "data.csv"]) == 0


def test_fit_prints_json_alone(here, capsys):
    assert run(["fit", "data.csv", "-k", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "blockspca-fit"


def test_nothing_is_replaced_without_force(here, capsys):
    assert run(["fit", "data.csv", "-k", "2", "-o", "out"]) == 0
    before = Path("out/summary.json").read_bytes()
    assert run(["fit", "data.csv", "-k", "3", "-o", "out"]) == 2
    assert Path("out/summary.json").read_bytes() == before
    assert run(["fit", "data.csv", "-k", "3", "-o", "out", "--force"]) == 0
    assert Path("out/summary.json").read_bytes() != before
    assert sorted(p.name for p in Path("out").iterdir()) == [
        "certificate-1.json",
        "certificate-2.json",
        "loadings.csv",
        "scores.csv",
        "summary.json",
    ]


def test_force_leaves_nothing_of_the_previous_result(here):
    fit = ["fit", "data.csv", "-k", "2", "-o", "out"]
    assert run([*fit, "-n", "3"]) == 0
    for mine in ("certificate-9.json", "certificate-two.json", "notes.txt"):
        Path("out", mine).write_text("mine")
    assert run([*fit, "-n", "1", "--force"]) == 0
    kept = ["certificate-1.json", "certificate-9.json", "certificate-two.json"]
    kept += ["loadings.csv", "notes.txt", "scores.csv", "summary.json"]
    assert sorted(p.name for p in Path("out").iterdir()) == kept
    np.savetxt("A.csv", np.cov(X.T), delimiter=",")
    matrix = ["fit", "A.csv", "--covariance", "-k", "2", "-o", "out", "--force"]
    assert run([*matrix, "-n", "1"]) == 0
    kept.remove("scores.csv")
    assert sorted(p.name for p in Path("out").iterdir()) == kept
    assert run(["verify", "out", "A.csv"]) == 0


def test_force_removes_nothing_from_a_folder_of_others(here):
    Path("out").mkdir()
    Path("out/summary.json").write_text('{"format": "other", "n_components": 3}')
    Path("out/certificate-3.json").write_text("theirs")
    assert run(["fit", "data.csv", "-k", "2", "-o", "out", "--force"]) == 0
    assert Path("out/certificate-3.json").read_text() == "theirs"


@pytest.mark.parametrize(
    "scheme",
    [
        "disjoint",
        "projection",
        "orthogonal",
        "hotelling",
        "residual",
        "residual-disjoint",
        "predictive",
        "uncorrelated",
    ],
)
def test_verify_accepts_every_component(here, capsys, scheme):
    assert run(f"fit data.csv -k 3 -n 2 --scheme {scheme} -o out".split()) in (0, 3)
    assert run(["verify", "out", "data.csv"]) == 0
    assert "Every claim holds." in capsys.readouterr().out
    commands = json.loads(Path("out/summary.json").read_text())["verify"]
    assert run(commands[1].split()[1:]) == 0
    assert run(["verify", "out/certificate-2.json", "data.csv"]) == 0
    capsys.readouterr()
    Path("out/certificate-2.json").rename("second.json")  # nothing beside it
    assert run(["verify", "second.json", "data.csv"]) == 2
    out, err = capsys.readouterr()
    assert "second.json is about component 2 of several, not component 1; give" in err
    assert "refuted" not in err
    assert out == ""
    after = ["--after", "out/certificate-1.json"]
    assert run(["verify", "second.json", "data.csv", *after]) == 0
    other = "hotelling" if scheme == "disjoint" else "disjoint"
    assert run(["verify", "second.json", "data.csv", *after, "--scheme", other]) == 2
    assert f"not that of the certificate, {scheme}" in capsys.readouterr().err


def test_a_scheme_with_parameters_of_its_own_is_not_taken_for_ours(here, capsys):
    """With a penalty of 1 the problem is another one, in which the claim is false."""
    X = np.loadtxt("data.csv", delimiter=",", skiprows=1)
    scheme = bs.Orthogonalised(penalty=1.0)
    found = bs.solve_components(bs.Covariance.from_data(X), 3, 2, scheme=scheme)
    for j, result in enumerate(found.results):
        Path(f"{j + 1}.json").write_text(result.certificate.to_json())
    assert run(["verify", "2.json", "data.csv", "--after", "1.json"]) == 2
    err = capsys.readouterr().err
    assert "scheme 'Orthogonalised(penalty=1)', which is not one of ours" in err
    assert "refuted" not in err


def test_verify_reads_the_file_as_fit_did(here, capsys):
    options = ["--scale", "--drop", "feature 7", "--drop", "feature 6"]
    options += ["--missing", "pairwise", "--constant", "ignore"]
    assert run(["fit", "data.csv", "-k", "3", *options, "-o", "out"]) == 0
    capsys.readouterr()
    assert run(["verify", "out", "data.csv"]) == 0
    assert "reading --scale" in capsys.readouterr().err
    assert run(["verify", "out/certificate-1.json", "data.csv"]) == 0
    assert run(["verify", "out", "data.csv", "--drop", "feature 7"]) == 4
    assert "fit has read the file with --scale" in capsys.readouterr().err


def test_an_option_of_reading_does_not_undo_the_others_of_fit(here, capsys):
    options = ["--scale", "--drop", "feature 7"]
    assert run(["fit", "data.csv", "-k", "3", *options, "-o", "out"]) == 0
    capsys.readouterr()
    assert run(["verify", "out", "data.csv", "--drop", "feature 7"]) == 0
    assert "reading --scale --drop feature 7, as fit did" in capsys.readouterr().err
    assert run(["verify", "out", "data.csv", "--no-center"]) == 4
    assert "note: reading --scale --no-center" in capsys.readouterr().err


def test_options_of_reading_are_words_and_back():
    from blockspca.cli.options import Constant, Missing, ReadOptions

    every = ReadOptions(
        covariance=True,
        scale=True,
        no_center=True,
        missing=Missing.PAIRWISE,
        constant=Constant.IGNORE,
        transpose=True,
        index="i",
        drop=["a b", "--scale"],
        header=True,
        names=Path("names.txt"),
        key="X",
    )
    for options in (every, ReadOptions(header=False), ReadOptions()):
        assert ReadOptions.from_arguments(options.as_arguments()) == options
    with pytest.raises(ValueError, match="No such option: --bogus"):
        ReadOptions.from_arguments(["--bogus"])


def test_a_script_of_the_explorer_reads_the_file_with_the_same_options():
    from blockspca.cli.options import ReadOptions

    options = ReadOptions(drop=["a"], na=["-9"], decimal=",", scale=True, header=False)
    found = {"drop": ["a"], "na": ["-9"], "decimal": ",", "header": False}
    assert options.as_keywords() == found
    assert ReadOptions().as_keywords() == {}


@pytest.mark.parametrize(
    "content", ["[]", '{"reading": [], "n_components": 0}', '{"reading": ["--x"]}']
)
def test_a_summary_from_elsewhere(here, capsys, content):
    Path("out").mkdir()
    Path("out/summary.json").write_text(content)
    assert run(["verify", "out", "data.csv"]) == 2
    assert "not a summary that fit has written" in capsys.readouterr().err


def test_verify_of_a_summary_asks_for_its_directory(here, capsys):
    assert run(["fit", "data.csv", "-k", "2", "-o", "out"]) == 0
    assert run(["verify", "out/summary.json", "data.csv"]) == 2
    said = capsys.readouterr().err
    assert "not a certificate; give its directory, out." in said


def test_verify_refutes_other_data(here, capsys):
    run(["fit", "data.csv", "-k", "3", "-o", "out"])
    assert run(["verify", "out", "data.csv", "--scale"]) == 4
    err = capsys.readouterr().err
    assert f"refuted: {Path('out/certificate-1.json')}: " in err
    assert "no options" in err


def test_verify_refutes_a_changed_bound(here, capsys):
    run(["fit", "data.csv", "-k", "3", "-o", "out"])
    path = Path("out/certificate-1.json")
    content = json.loads(path.read_text())
    content["upper_bound"] = content["objective"] = content["objective"] * 1.01
    path.write_text(json.dumps(content))
    assert run(["verify", str(path), "data.csv"]) == 4


def edit_summary(change) -> None:
    path = Path("out/summary.json")
    content = json.loads(path.read_text())
    change(content["components"][1], content)
    path.write_text(json.dumps(content))


def rename(row, content) -> None:
    row["loadings"] = {f"my {name}": v for name, v in row["loadings"].items()}


EDITS = {
    "components[1].upper_bound is 9.0, by": lambda row, _: row.update(upper_bound=9.0),
    "components[1].objective is 9.0": lambda row, _: row.update(objective=9.0),
    "components[1].status is 'feasible'": lambda row, _: row.update(status="feasible"),
    "components[1].ratio is 0.9": lambda row, _: row.update(ratio=0.9),
    "components[1].loadings name 'my feature": rename,
    "components[1].loadings are missing": lambda row, _: row.pop("loadings"),
    "components[1].loadings lack 'feature": lambda row, _: row["loadings"].popitem(),
    "components are 3, the": lambda row, content: content["components"].append(row),
    "components are fewer": lambda _, content: content["components"].pop(),
    "shape is [61, 8]": lambda _, content: content.update(shape=[61, 8]),
    "joint_upper_bound is 0": lambda _, content: content.update(joint_upper_bound=0),
    "joint_gap is 0.5": lambda _, content: content.update(joint_gap=0.5),
    "pca_variance[1] is 9.0": lambda _, content: content["pca_variance"].__setitem__(
        1, 9.0
    ),
    "pca_variance is [1.0]": lambda _, content: content.update(pca_variance=[1.0]),
    "prices is [{'most'": lambda _, content: content["prices"].__setitem__(
        0, {"most": 0.5}
    ),
    "in_turn is {'r2'": lambda _, content: content.update(in_turn={"r2": 0.1}),
    "k_requested is [3, 2], by": lambda _, content: content.update(k_requested=[3, 2]),
    "k_requested is '3', by": lambda _, content: content.update(k_requested="3"),
    "scheme is 'disjoint'": lambda _, content: content.update(scheme="disjoint"),
}


@pytest.mark.parametrize("said", EDITS)
def test_verify_refutes_an_edited_summary(here, capsys, said):
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "-o", "out"]) == 0
    edit_summary(EDITS[said])
    capsys.readouterr()
    assert run(["verify", "out", "data.csv"]) == 4
    out, err = capsys.readouterr()
    assert "Every claim" not in out
    assert err.startswith(f"blockspca: refuted: {Path('out/summary.json')}: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("1,feature 0", "1,feature 7", "of component 1 name 'feature 7'"),
        ("1,feature 0,0", "1,feature 0,1", "of component 1 of 'feature 0' is 1."),
        ("1,feature 1", "1,feature 0", "component 1 has 'feature 0' twice"),
        ("2,feature", "3,feature", "component 3 has no certificate"),
        ("component,", "part,", "the columns are not those of fit"),
    ],
)
def test_verify_refutes_edited_loadings(here, capsys, before, after, said):
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "-o", "out"]) == 0
    path = Path("out/loadings.csv")
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert run(["verify", "out", "data.csv"]) == 4
    err = capsys.readouterr().err
    assert f"refuted: {path}: " in err
    assert said in err


def test_verify_names_what_nothing_confirms(here, capsys, monkeypatch):
    from blockspca.components import joint

    orthogonal = ["--scheme", "orthogonal"]
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", *orthogonal, "-o", "out"]) == 0
    edit_summary(lambda _, content: content.update(seconds=0.0))
    capsys.readouterr()
    # The joint proof is not stored, and is not made again.
    monkeypatch.setattr(joint, "entries_proof", None)
    assert run(["verify", "out", "data.csv"]) == 0
    said = capsys.readouterr().out
    assert "nothing confirms " in said
    assert "joint_upper_bound" in said
    assert "n_components_requested" in said
    edit_summary(lambda _, content: content.update(joint_upper_bound=1e3, joint_gap=1))
    assert run(["verify", "out", "data.csv"]) == 4  # for the gap
    joint_gap = capsys.readouterr().err
    assert "joint_gap is 1" in joint_gap


def test_verify_looks_at_the_joint_bound_for_the_k_that_was_asked_for(here, capsys):
    """One of four features is left to the second; the bound was for three and one."""
    A = np.kron(np.eye(2), [[1.0, 0.9], [0.9, 1.0]])
    A[1, 2] = A[2, 1] = 0.05
    np.savetxt("A.csv", A, delimiter=",")
    reading = ["--covariance", "--no-header"]
    disjoint = ["--scheme", "disjoint", "--output", "out"]
    assert run(["fit", "A.csv", "-k", "3", "-n", "2", *reading, *disjoint]) == 0
    summary = json.loads(Path("out/summary.json").read_text())
    assert [row["k"] for row in summary["components"]] == [3, 1]
    assert summary["k_requested"] == [3, 3]
    assert summary["joint_upper_bound"] >= 3.8  # of two pairs
    capsys.readouterr()
    assert run(["verify", "out", "A.csv"]) == 0
    assert "joint_upper_bound" not in capsys.readouterr().out
    total = sum(row["explained_variance"] for row in summary["components"])
    lower = {"joint_upper_bound": total, "joint_gap": 0.0}
    edit_summary(lambda _, content: content.update(lower))
    assert run(["verify", "out", "A.csv"]) == 0
    said = capsys.readouterr().out.partition("nothing confirms")[2]
    assert "joint_upper_bound" in said


def test_verify_of_the_first_of_several(here, capsys):
    """What `fit` itself says: its summary has more components than this certificate."""
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "-o", "out"]) == 0
    assert run(["verify", "out/certificate-1.json", "data.csv"]) == 0
    assert "confirms all but component 1." in capsys.readouterr().out
    path = Path("out/summary.json")
    path.write_text(path.read_text().replace('"component": 1', '"component": 3'))
    assert run(["verify", "out/certificate-1.json", "data.csv"]) == 4


def test_verify_names_a_summary_that_is_broken(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "--scale", "-o", "out"]) == 0
    path = Path("out/summary.json")
    path.write_text(path.read_text()[:-20])
    capsys.readouterr()
    assert run(["verify", "out/certificate-1.json", "data.csv", "--scale"]) == 0
    out, err = capsys.readouterr()
    assert f"warning: {path} is not a summary that fit has written" in err
    assert "no summary beside it" not in out
    assert "Only the certificate was checked" in out


def test_verify_refutes_renamed_columns(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "-n", "2", "-o", "out"]) == 0
    data = Path("data.csv")
    data.write_text(data.read_text().replace("feature 1", "another"))
    assert run(["verify", "out", "data.csv"]) == 4
    assert "which has 'another' there" in capsys.readouterr().err
    assert run(["verify", "out/certificate-1.json", "data.csv"]) == 4
    assert run(["verify", "out/certificate-2.json", "data.csv"]) == 0


def test_verify_says_what_there_was_to_check(here, capsys):
    assert run(["fit", "data.csv", "-k", "3", "-o", "out"]) == 0
    capsys.readouterr()
    assert run(["verify", "out", "data.csv"]) == 0
    assert "nly" not in capsys.readouterr().out
    Path("out/loadings.csv").unlink()
    assert run(["verify", "out", "data.csv"]) == 0
    assert "only summary.json and certificates" in capsys.readouterr().out
    Path("out/summary.json").unlink()
    assert run(["verify", "out/certificate-1.json", "data.csv"]) == 0
    assert "Only the certificate was checked" in capsys.readouterr().out


def test_verify_says_when_it_stopped_early(here, capsys):
    rows = np.random.default_rng(0).normal(size=(40, 30))
    np.save("noise.npy", rows)
    run(["fit", "noise.npy", "-k", "6", "-o", "out"])
    assert run(["verify", "out", "noise.npy", "--max-nodes", "1"]) == 3
    assert "not checked" in capsys.readouterr().out


def test_a_limit_is_exit_code_3_and_the_files_are_written(here, capsys):
    np.save("noise.npy", np.random.default_rng(0).normal(size=(50, 200)))
    assert run(["fit", "noise.npy", "-k", "15", "--nodes", "10", "-o", "out"]) == 3
    out, err = capsys.readouterr()
    assert "no other choice is more than" in out
    assert err == (
        "blockspca: the limit, 10 nodes, was reached; raise --nodes, or ask for less "
        "with --gap.\n"
    )
    assert Path("out/summary.json").exists()


def test_one_default_limit():
    from blockspca.cli.options import SolveOptions
    from blockspca.limits import DEFAULT_LIMITS

    assert SolveOptions().limits() == DEFAULT_LIMITS
    assert SolveOptions(gap=0.1).limits() == replace(DEFAULT_LIMITS, gap=0.1)
    assert SolveOptions(time=3.0).limits() == bs.Limits(time=3.0)
    text = f"{DEFAULT_LIMITS.nodes:,}".replace(",", " ")
    for said in (bs.Limits.__doc__, bs.SparsePCA.__doc__):
        assert text in said


@pytest.mark.parametrize("words", ["path data.csv", "info", "fit data.csv -k 2 --json"])
def test_a_reader_that_leaves_is_no_error(here, words):
    code = "from blockspca.cli import main; main()"
    command = [sys.executable, "-c", code, *words.split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_k_for_each_component_and_auto(here, capsys):
    assert run(["fit", "data.csv", "-k", "3,2", "-n", "2", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [row["k"] for row in summary["components"]] == [3, 2]
    assert run(["fit", "data.csv", "-k", "auto", "-n", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["components"][0]["k"] == 3
    assert err.startswith("blockspca: k = 3")


def test_path(here, capsys):
    assert run(["path", "data.csv", "--k-max", "4", "-o", "path.csv"]) == 0
    assert run(["path", "data.csv", "--k-max", "4", "-o", "path.json"]) == 0
    rows = rows_of("path.csv")
    cov = bs.Covariance.from_data(X, feature_names=NAMES)
    expected = bs.solve_path(cov, 4)
    assert [float(r["objective"]) for r in rows] == expected.objectives.tolist()
    names = [json.loads(row["features"]) for row in rows]
    assert names == [result.features for result in expected.values()]
    assert len(json.loads(Path("path.json").read_text())) == 4
    assert "of PCA" in capsys.readouterr().out


def test_path_plot(here):
    pytest.importorskip("matplotlib")
    assert run(["path", "data.csv", "--k-max", "3", "--plot", "path.png"]) == 0
    assert Path("path.png").read_bytes().startswith(b"\x89PNG")


def test_blocks(here, capsys):
    assert run(["blocks", "data.csv"]) == 0
    assert "largest" in capsys.readouterr().out
    assert run(["blocks", "data.csv", "--max-block-size", "3", "-o", "blocks.csv"]) == 0
    rows = rows_of("blocks.csv")
    assert len(rows) == 8
    assert {r["feature"] for r in rows if r["block"] == "1"} == set(NAMES[:3])
    assert run(["blocks", "data.csv", "-e", "0"]) == 0
    assert "1 block of 8 features" in capsys.readouterr().out


def test_a_matrix_is_noticed(here, capsys):
    np.savetxt("A.csv", np.cov(X.T), delimiter=",")
    assert run(["fit", "A.csv", "-k", "2"]) == 0
    assert "--covariance" in capsys.readouterr().err
    assert run(["fit", "A.csv", "-k", "2", "--covariance", "-o", "out"]) == 0
    assert capsys.readouterr().err == ""
    assert not Path("out/scores.csv").exists()


def test_datasets_are_files_to_fit(here, capsys):
    assert run(["datasets"]) == 0
    assert "breast-cancer" in capsys.readouterr().out
    assert run(["datasets", "wine", "-o", "wine.csv"]) == 0
    assert run(["fit", "wine.csv", "-k", "3", "--scale"]) == 0
    assert "178 samples × 13 features" in capsys.readouterr().out


def test_info(capsys):
    assert run(["info"]) == 0
    out = capsys.readouterr().out
    assert "130" in out
    assert ".parquet" in out
    for name in SOLVERS:
        assert f"\n  {name} " in out
    assert re.search(r"exhaustive +the optimum\n", out)
    assert re.search(r"truncated-power +.*heuristic", out)
    assert run(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_codes"]["3"]


def test_no_progress_when_piped(here):
    code = "from blockspca.cli import main; main()"
    command = [sys.executable, "-c", code, "fit", "data.csv", "-k", "2"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stderr == ""
    assert "\x1b" not in outcome.stdout
    log = subprocess.run([*command, "-v"], capture_output=True, text=True, check=True)
    assert "upper bound" in log.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_shows_before_a_million_cells_are_read(tmp_path):
    import pty

    row = ",".join(["1.25"] * 500) + "\n"
    data = tmp_path / "million.csv"
    data.write_text(row * 2000)  # constant: it ends in an error after reading
    ours, theirs = pty.openpty()
    code = "from blockspca.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "fit", str(data), "-k", "2"],
        stderr=theirs,
        stdout=subprocess.DEVNULL,
    )
    os.close(theirs)
    first = os.read(ours, 64)
    reading = process.poll() is None
    shown = first
    with contextlib.suppress(OSError):  # the other end has closed
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 2
    assert b"Reading million.csv" in shown
    assert reading  # it says so before it has read


def test_a_report_with_everything(here, capsys):
    pytest.importorskip("jinja2")
    rng = np.random.default_rng(0)
    rows = ["kind,u,v,w,x"]
    for i in range(24):
        u, v, w, x = rng.normal(size=4) + 2 * rng.normal() * np.array([1, 1, 0, 0])
        rows.append(f"{'red' if i % 3 else 'blue'},{u},{v},{w},{x}")
    Path("labelled.csv").write_text("\n".join(rows))
    words = "report labelled.csv -k 2 -n 2 --scale --label kind --alternatives 0.2"
    words += " --stability 4 --importance -o page.html"
    assert run(words.split()) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    for text in (
        "Before, the features were centred, and divided by their standard deviations.",
        "Left out: kind.",
        "Selected in at least 80 % of the draws: u, v",
        "What the features of component 2 are worth",
        "--label kind",  # in the command that verifies it
    ):
        assert text in page
    assert page.count('class="sample g1"') == 8


@pytest.mark.parametrize("label", ["names", "scores", "sample"])
def test_a_label_may_be_called_as_it_likes(here, capsys, label):
    rows = np.random.default_rng(0).normal(size=(9, 3)).tolist()
    lines = [f"{label},u,v,w", *(f"red,{u},{v},{w}" for u, v, w in rows)]
    Path("labelled.csv").write_text("\n".join(lines))
    words = ["report", "labelled.csv", "-k", "2", "--label", label, "-o", "p.html"]
    assert run(words) == 0, capsys.readouterr().err


def test_stability_of_components_with_a_k_of_their_own(here):
    np.save("data.npy", np.random.default_rng(0).normal(size=(9, 4)))
    words = "report data.npy -n 2 -k 2,1 --stability 4 -o p.html"
    assert run(words.split()) == 0
    assert "drawn again 4 times" in Path("p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--stability 4 --covariance", "--stability needs complete samples"),
        ("--stability 4 --missing pairwise", "which --missing pairwise does not"),
        ("--alternatives 0.1 --exclude 0", "lists sets without constraints"),
        ("--alternatives 2", "is not a fraction below 1"),
    ],
)
def test_what_a_report_cannot_have_is_said(here, capsys, words, said):
    np.save("data.npy", np.random.default_rng(0).normal(size=(9, 4)))
    assert run(["report", "data.npy", "-k", "2", "-o", "p.html", *words.split()]) == 2
    assert said in capsys.readouterr().err
