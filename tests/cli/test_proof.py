"""`--proof`: the commands write what was recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blockspca as bs
from blockspca.certify import proof_log
from blockspca.certify.verification import VerificationError
from blockspca.cli.compile import compile_before
from blockspca.cli.display import Display
from blockspca.cli.main import app
from blockspca.cli.options import ShowOptions, SolveOptions
from blockspca.limits import Budget


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "data.csv"
    X = np.random.default_rng(1).normal(size=(12, 5)).round(3)
    np.savetxt(file, X, delimiter=",", header="a,b,c,d,e", comments="")
    return file


@pytest.mark.parametrize(
    ("command", "ks"),
    [(["fit", "-k", "2"], [2]), (["path", "--k-max", "3"], [1, 2, 3])],
)
def test_proof_is_written(table, tmp_path, command, ks):
    target = tmp_path / "out.proof"
    name, *options = command
    words = [name, str(table), *options, "--proof", str(target)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    header = json.loads(target.read_text().splitlines()[0])
    assert [claim["k"] for claim in header["claims"]] == ks
    again = CliRunner().invoke(app, words)
    assert again.exit_code != 0  # the file exists
    assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0


@pytest.mark.parametrize("command", ["fit -k 2 -n 2", "path --k-max 3"])
def test_a_time_limit_covers_the_writing(table, tmp_path, monkeypatch, command):
    """It came on top: a fifth, and for later components as much again."""
    given: list[float] = []
    record = proof_log.record_proof

    def recorded(cov, results, budget, *more):
        given.append(budget.limits.time)
        return record(cov, results, budget, *more)

    monkeypatch.setattr(proof_log, "record_proof", recorded)
    name, *options = command.split()
    words = [name, str(table), *options, "--time", "60", "--proof"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "out.proof")])
    assert done.exit_code == 0, done.output
    assert 10 <= given[0] < 50  # of 50 s that the solve had, it took a moment
    assert given[-1] < 50


def test_how_the_time_is_shared():
    whole = bs.Limits(time=6.0, nodes=7)
    mine = proof_log.time_to_solve(whole)
    assert (mine.time, mine.nodes) == (pytest.approx(5.0), 7)
    budget = Budget(mine)
    assert proof_log.recording_limits(budget).time == pytest.approx(5.0, abs=0.5)
    budget.end()  # all of it is used
    assert proof_log.recording_limits(budget).time == pytest.approx(1.0)
    assert proof_log.time_to_solve(bs.Limits(nodes=7)) == bs.Limits(nodes=7)
    assert proof_log.recording_limits(Budget(bs.Limits(nodes=7))).time is None


def test_what_writes_proofs_is_compiled_before_the_time_counts(table, monkeypatch):
    loaded: list[str] = []
    monkeypatch.setattr(
        "blockspca._kernels.loading.load", lambda *names: loaded.extend(names)
    )
    cov = bs.Covariance.from_matrix(np.eye(3))
    display = Display(ShowOptions(quiet=True))
    compile_before(SolveOptions(time=1.0), cov, display)
    assert "tree_log" not in loaded
    compile_before(SolveOptions(time=1.0), cov, display, proof=True)
    assert "tree_log" in loaded


def test_proof_of_what_cannot_be_recorded_is_an_error(table, tmp_path):
    """Covariances of the pairs that are there: the format has no word for them."""
    header, first, *rest = table.read_text().splitlines(keepends=True)
    holes = tmp_path / "holes.csv"
    holes.write_text(header + "," + first.split(",", 1)[1] + "".join(rest))
    words = ["fit", str(holes), "-k", "2", "--missing", "pairwise"]
    done = CliRunner().invoke(app, [*words, "--proof", str(tmp_path / "out.proof")])
    assert done.exit_code != 0
    assert "without missing values" in str(done.exception)
    assert not (tmp_path / "out.proof").exists()


def test_verify_replays_a_proof(table, tmp_path):
    target = tmp_path / "out.proof"
    words = ["path", str(table), "--k-max", "3", "--scale", "--proof", str(target)]
    assert CliRunner().invoke(app, words).exit_code == 0
    done = CliRunner().invoke(app, ["verify", str(target), str(table)])
    assert done.exit_code == 0, done.output
    assert "The proof holds." in done.output
    assert "k = 3    optimal" in done.output
    # a bound below the optimum is refused
    header, *rest = target.read_text().splitlines(keepends=True)
    claims = json.loads(header)
    claims["claims"][2]["upper_bound"] = claims["claims"][1]["upper_bound"]
    target.write_text(json.dumps(claims) + "\n" + "".join(rest))
    done = CliRunner().invoke(app, ["verify", str(target), str(table)])
    assert isinstance(done.exception, VerificationError)  # `main` makes 4 of it


def test_explain_shows_a_proof(table, tmp_path):
    target, page = tmp_path / "out.proof", tmp_path / "out.html"
    words = ["path", str(table), "--k-max", "3", "--proof", str(target)]
    assert CliRunner().invoke(app, words).exit_code == 0
    words = ["explain", str(target), str(table), "--html", str(page)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "k = 1: at most" in done.output
    text = page.read_text(encoding="utf-8")
    for name in "abcde":
        assert name in text
    assert "Screening with τ" in text
    assert "numbered from 0" not in done.output
    done = CliRunner().invoke(app, ["explain", str(target)])
    assert "features are numbered from 0; add the data" in done.output
    done = CliRunner().invoke(app, ["explain", str(table)])
    assert isinstance(done.exception, ValueError)


@pytest.fixture
def dated(table):
    """The table with a column of text before the numbers, and one of numbers after."""
    header, *rows = table.read_text().splitlines()
    lines = [f"day,{header},batch"]
    lines += [f"2026-01-{i + 1:02},{row},{i % 3}" for i, row in enumerate(rows)]
    file = table.with_name("dated.csv")
    file.write_text("\n".join(lines) + "\n")
    return file


def test_verify_reads_columns_of_text_as_the_checker_does(dated, tmp_path):
    target = tmp_path / "out.proof"
    words = ["fit", str(dated), "-k", "2", "--index", "day", "--proof", str(target)]
    assert CliRunner().invoke(app, words).exit_code == 0
    done = CliRunner().invoke(app, ["verify", str(target), str(dated)])
    assert done.exit_code == 0, done.output
    assert "The proof holds." in done.output
    done = CliRunner().invoke(app, ["explain", str(target), str(dated)])
    assert done.exit_code == 0, done.output


def test_verify_reads_the_data_of_a_proof_as_fit_did(dated, tmp_path):
    target, out = tmp_path / "out" / "fit.proof", tmp_path / "out"
    words = ["fit", str(dated), "-k", "2", "--index", "day", "--drop", "batch"]
    words += ["--output", str(out), "--proof", str(target)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, ["verify", str(target), str(dated)]).exit_code == 0
    alone = target.rename(tmp_path / "alone.proof")  # nothing tells how to read it
    done = CliRunner().invoke(app, ["verify", str(alone), str(dated)])
    assert isinstance(done.exception, VerificationError)
    assert "read the file with the options of fit" in str(done.exception)
    words = ["verify", str(alone), str(dated), "--drop", "batch"]
    assert CliRunner().invoke(app, words).exit_code == 0
