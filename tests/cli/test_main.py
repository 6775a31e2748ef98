"""The command line, as a user would call it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from blockspca import __version__
from blockspca.cli import app
from blockspca.cli.declaring import spread
from blockspca.cli.demonstration import breast_cancer, introduction, run
from blockspca.cli.options import SolveOptions
from blockspca.numerics.threads import proof_threads, scan_threads

runner = CliRunner()


def test_help_lists_the_commands():
    outcome = runner.invoke(app, ["--help"])
    assert outcome.exit_code == 0
    assert "demo" in outcome.output


def test_the_package_can_be_run():
    words = [sys.executable, "-m", "blockspca", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"blockspca {__version__}"


def test_version():
    outcome = runner.invoke(app, ["--version"])
    assert outcome.output.strip() == f"blockspca {__version__}"


def test_demo_prints_what_it_promises():
    outcome = runner.invoke(app, ["demo"])
    assert outcome.exit_code == 0
    for word in (
        "10 noisy blocks of 100",
        "breast cancer",
        "chosen features",
        "mean perimeter",
        "mean radius",
        "objective",
        "upper bound",
        "gap",
        "status",
        "time",
        "blocks",
        "Loading the solver took",
    ):
        assert word in outcome.output
    assert re.search(r"[+-]0\.\d+ block \d, feature \d+", outcome.output)


def test_the_demo_loads_the_solver_before_it_measures(monkeypatch):
    from blockspca.cli import demonstration

    order = []
    real = demonstration.solve
    monkeypatch.setattr(
        demonstration,
        "solve",
        lambda cov, k, **more: order.append(cov.n_features) or real(cov, k, **more),
    )
    run()
    assert order == [12, 30, 1000]


def test_compile_loads_every_kernel(monkeypatch):
    from blockspca._kernels import loading

    loaded = []
    monkeypatch.setattr(loading, "load", lambda *names: loaded.extend(names))
    assert "Everything is compiled" in runner.invoke(app, ["compile"]).output
    assert loaded == [*loading.PROVING, *loading.SCANNING, *loading.OTHERS]


@pytest.mark.parametrize("command", ["fit -k 3", "path --k-max 3"])
def test_a_limit_on_time_counts_from_when_kernels_are_ready(
    monkeypatch, tmp_path, command
):
    from blockspca import limits
    from blockspca._kernels import loading

    steps = []
    real, begin = loading.load, limits.Budget.__init__

    def load(*names, seconds=None):
        steps.append(names)
        return real(*names, seconds=seconds)

    def begun(self, *arguments):
        steps.append("clock")
        begin(self, *arguments)

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(limits.Budget, "__init__", begun)
    name, *options = command.split()
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(30, 8)))
    arguments = [name, str(tmp_path / "X.npy"), *options]
    assert runner.invoke(app, [*arguments, "--time", "60"]).exit_code == 0
    assert steps[0][: len(loading.PROVING)] == loading.PROVING
    steps.clear()
    assert runner.invoke(app, arguments).exit_code == 0
    assert not any(step[: len(loading.PROVING)] == loading.PROVING for step in steps)


def test_demo_is_deterministic():
    first, again = run(), run()
    for a, b in zip(first, again, strict=True):
        assert a.objective == b.objective
        assert a.features == b.features


def test_demo_examples_are_what_they_say():
    assert introduction().cov.n_features == 1000
    assert introduction().k == 4
    cancer = breast_cancer()
    assert cancer.cov.diagonal() == pytest.approx(1)
    assert len(cancer.cov.feature_names) == 30


def test_the_installed_script_runs():
    command = [sys.executable, "-c", "from blockspca.cli import main; main()", "--help"]
    assert subprocess.run(command, capture_output=True, check=True).stdout


def test_options_keep_their_short_names_and_help():
    """Up to Python 3.10, get_type_hints loses those of parameters that may be None."""
    for command in ("fit", "path", "blocks"):
        shown = runner.invoke(app, [command, "--help"]).output.split()
        assert "-o" in shown
        assert "--output" in shown


def test_jobs_are_the_threads_of_the_whole_command():
    """Of reading the file and of writing the results as well."""
    said = []

    def command(solving: SolveOptions) -> None:
        said.append((solving.jobs, scan_threads(), proof_threads()))

    free = scan_threads(), proof_threads()
    for jobs in (1, 3):
        spread(command)(time=None, gap=None, nodes=None, jobs=jobs)
    spread(command)(time=None, gap=None, nodes=None, jobs=None)
    assert said == [(1, 1, 1), (3, 3, 3), (None, *free)]
