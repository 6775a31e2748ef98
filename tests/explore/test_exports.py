"""Scripts and commands that find the same components again."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.cli.display import Display
from blockspca.cli.explore import as_dataset
from blockspca.cli.loading import load
from blockspca.cli.main import run
from blockspca.cli.options import ReadOptions, ShowOptions
from blockspca.components.scheme_names import SCHEMES
from blockspca.explore import explore_table, messages
from blockspca.explore.dataset import Dataset, Source
from blockspca.explore.engine import Engine
from blockspca.explore.exports import _proof, commands
from blockspca.explore.scripts import script
from blockspca.explore.state import State
from blockspca.io import Table

from .conftest import make_dataset

STATES = [
    State(k=3, seconds=600),
    State(
        k=3, n_components=2, scale=True, exclude=(1,), scheme="residual", seconds=600
    ),
    State(k=3, max_per_group=1, nonnegative=True, include=(4,), seconds=600),
    State(k=2, weight=0.5, seconds=600),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files with data, a background and groups."""
    place = tmp_path_factory.mktemp("explore")
    dataset = make_dataset()
    header = ",".join([f"g{j}" for j in range(12)])
    for name, table in (("data", dataset.table), ("other", dataset.background)):
        rows = [",".join(map(repr, row)) for row in table.values.tolist()]
        kinds = [f",{kind}" for kind in dataset.labels["kind"]]
        text = [header + ",kind", *(a + b for a, b in zip(rows, kinds, strict=True))]
        (place / f"{name}.csv").write_text("\n".join(text))
    groups = [f"g{j}\tgroup {j // 2}" for j in range(12)]
    (place / "groups.txt").write_text("\n".join(groups))
    return place


@pytest.fixture(scope="module")
def engine(folder):
    reading = ReadOptions(label="kind", background=folder / "other.csv")
    loaded = load(folder / "data.csv", reading, Display(ShowOptions(quiet=True)))
    return Engine(as_dataset(loaded, str(folder / "groups.txt")))


def test_the_page_offers_the_proofs_that_can_be_recorded(engine):
    """Of several components; what it is told agrees with what the export does."""
    offered = messages.hello(engine.dataset, State(k=2))["recordable"]
    assert offered == [*SCHEMES]
    for name in SCHEMES:
        answer = engine.solve(State(k=2, n_components=2, scheme=name, seconds=600))
        assert _proof(engine, answer).count(b'"claims"') == 2


def test_the_file_brings_labels_and_a_background(engine):
    assert list(engine.dataset.labels) == ["kind"]
    assert engine.dataset.n_features == 12
    assert engine.dataset.background.shape == (60, 12)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(STATES[0], marks=pytest.mark.slow),
        STATES[1],
        STATES[2],
        pytest.param(STATES[3], marks=pytest.mark.slow),
    ],
    ids=["plain", "two", "constrained", "less"],
)
def test_script_and_command_find_the_same(engine, state, tmp_path, monkeypatch, capsys):
    answer = engine.solve(state)
    expected = [result.objective for result in answer.results]
    made: dict = {}
    exec(script(engine.dataset, state), made)
    found = [result.objective for result in made["found"].results]
    assert found == pytest.approx(expected, rel=1e-8)
    monkeypatch.chdir(tmp_path)
    fit, *checks = commands(engine, state)
    assert run(shlex.split(fit)[1:]) == 0
    table = (tmp_path / "components" / "loadings.csv").read_text()
    assert all(name in table for result in answer.results for name in result.features)
    for j, result in enumerate(answer.results):
        name = f"certificate-{j + 1}.json"
        (tmp_path / name).write_text(result.certificate.to_json())
    assert len(checks) == state.n_components
    for check in checks:
        assert run(shlex.split(check)[1:]) == 0
    assert "Every claim holds." in capsys.readouterr().out


@pytest.mark.parametrize("state", [STATES[1], replace(STATES[1], weight=0.5)])
def test_a_script_of_data_in_memory_names_them(state):
    dataset = make_dataset(source=Source())
    made = {"X": dataset.table.values, "B": dataset.background.values}
    exec(script(dataset, state), made)
    expected = Engine(dataset).solve(state)
    assert made["found"].results[0].objective == pytest.approx(
        expected.results[0].objective
    )


def test_a_script_of_matrices_in_memory():
    data = make_dataset()
    tables = [np.cov(table.values.T) for table in (data.table, data.background)]
    dataset = Dataset(Table(tables[0], is_matrix=True))
    dataset = replace(dataset, background=Table(tables[1], is_matrix=True))
    state = State(k=2, weight=0.5, exclude=(1,), seconds=600)
    made = {"A": tables[0], "B": tables[1]}
    exec(script(dataset, state), made)
    expected = Engine(dataset).solve(state).results[0].objective
    assert made["found"].results[0].objective == pytest.approx(expected)


@pytest.mark.parametrize("missing", ["tornado", "plotly", "jinja2"])
def test_a_package_that_is_missing_is_named(missing, monkeypatch):
    find = lambda name: None if name == missing else object()  # noqa: E731
    monkeypatch.setattr(sys.modules["blockspca.explore.run"], "find_spec", find)
    with pytest.raises(ImportError, match=rf"needs {missing}; pip install .*explore"):
        explore_table(make_dataset())


def test_the_command_serves_until_it_is_interrupted(folder):
    """A real process: it says where the page is, and ends on Ctrl-C."""
    code = (
        # In the background SIGINT is ignored, and children ignore it as well.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from blockspca.cli import main; main()"
    )
    words = [sys.executable, "-c", code, "explore", str(folder / "data.csv")]
    words += ["--label", "kind", "--no-browser"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        process.send_signal(2)
        _, said = process.communicate(timeout=300)
    assert line.startswith("Explore: http://127.0.0.1:")
    assert process.returncode in (0, 130)
    assert "Traceback" not in said


def test_a_matrix_is_explored_too(tmp_path):
    A = np.cov(make_dataset().table.values.T)
    np.savez(tmp_path / "a.npz", A=A)
    loaded = load(tmp_path / "a.npz", ReadOptions(), Display(ShowOptions(quiet=True)))
    engine = Engine(as_dataset(loaded, None))
    answer = engine.solve(State(k=3, seconds=600))
    assert answer.results[0].objective == pytest.approx(bs.solve(A, 3).objective)
    with pytest.raises(ValueError, match="cannot be scaled"):
        engine.solve(State(k=3, scale=True))
