"""`--proof`: the commands write what was recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from blockspca.cli.main import app


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


def test_proof_of_what_cannot_be_recorded_is_an_error(table, tmp_path):
    words = ["fit", str(table), "-k", "2", "-n", "2", "--scheme", "residual"]
    done = CliRunner().invoke(app, [*words, "--proof", str(tmp_path / "out.proof")])
    assert done.exit_code != 0
    assert not (tmp_path / "out.proof").exists()
