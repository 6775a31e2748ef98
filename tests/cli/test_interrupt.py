"""Ctrl-C and time limits: what is known is written, and nothing else is begun."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blockspca import SparsityPath, solve_components, solve_path
from blockspca.certificate import restated
from blockspca.cli.main import run
from blockspca.status import Status


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", np.random.default_rng(0).normal(size=(50, 40)))
    return tmp_path


@pytest.fixture
def stopped(monkeypatch):
    """Stop the first of several components, as Ctrl-C does."""

    def solve(cov, k, _n_components, **options):
        found = solve_components(cov, k, 1, **options)
        result = restated(found.results[0], status=Status.INTERRUPTED)
        return replace(found, results=(result,))

    monkeypatch.setattr("blockspca.components.solve_components", solve)


def never(*_arguments, **_options):
    raise AssertionError("begun after Ctrl-C")


SAID = "blockspca: interrupted; writing what is known\n"


def test_fit_writes_what_is_known(here, stopped, monkeypatch, capsys):
    monkeypatch.setattr("blockspca.covariance.pca.pca_variances", never)
    assert run(["fit", "noise.npy", "-k", "2", "-n", "3", "-o", "out"]) == 130
    out, err = capsys.readouterr()
    assert err == SAID + "blockspca: 1 of 3 components\n"
    assert "% of the variance.\n" in out
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["n_components"] == 1
    assert summary["n_components_requested"] == 3
    assert summary["pca_variance"] is None


def test_report_skips_the_path(here, stopped, monkeypatch, capsys):
    pytest.importorskip("jinja2")
    monkeypatch.setattr("blockspca.pipeline.solve_path", never)
    assert run(["report", "noise.npy", "-k", "2", "-n", "3", "-o", "page.html"]) == 130
    assert capsys.readouterr().err == SAID + "blockspca: 1 of 3 components\n"
    page = Path("page.html").read_text(encoding="utf-8")
    assert 'id="path"' not in page
    assert "These are 1 of 3 components asked for, as the run was interrupted." in page


def test_ctrl_c_after_the_components(here, monkeypatch, capsys):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.covariance.pca.pca_variances", interrupt)
    assert run(["fit", "noise.npy", "-k", "2", "-o", "out"]) == 130
    assert capsys.readouterr().err == SAID
    assert Path("out/certificate-1.json").exists()


def test_an_interrupted_path_is_written(here, monkeypatch, capsys):
    pytest.importorskip("jinja2")

    def solve(cov, k_max, **_options):
        results = solve_path(cov, k_max)
        last = restated(results[k_max], status=Status.INTERRUPTED)
        return SparsityPath({**results, k_max: last}, cov)

    monkeypatch.setattr("blockspca.pipeline.solve_path", solve)
    for command in ("path noise.npy --k-max 2", "report noise.npy -k 1 -o page.html"):
        assert run(command.split()) == 130
        assert capsys.readouterr().err == SAID
    assert 'id="path"' in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("limit", "used", "components", "path"),
    [
        (8.0, 2.0, 6.0, 6.0),
        (8.0, 7.0, 6.0, 1.0),
        (8.0, 9.0, 6.0, 0.0),
        (200, 1, 180, 20),
    ],
)
def test_components_and_path_share_the_time(limit, used, components, path, monkeypatch):
    from types import SimpleNamespace

    from blockspca.cli import report
    from blockspca.cli.display import Display
    from blockspca.cli.options import ShowOptions, SolveOptions

    solving = SolveOptions(time=limit)
    assert report._without_path(solving).time == components
    assert report._without_path(SolveOptions()).time is None
    given = []
    monkeypatch.setattr(
        "blockspca.pipeline.solve_path", lambda *_, limits, **__: given.append(limits)
    )
    found = SimpleNamespace(
        loaded=SimpleNamespace(cov=SimpleNamespace(n_features=5)),
        components=SimpleNamespace(results=[SimpleNamespace(k=2)]),
        seconds=used,
    )
    report._path(found, solving, Display(ShowOptions()))
    assert given[0].time == path


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_ctrl_c_ends_a_report_soon(tmp_path):
    pytest.importorskip("jinja2")
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).normal(size=(60, 200)))
    # It says when the proof has begun; the interrupt follows.
    words = "report noise.npy -k 20 -n 3 --nodes 1000000000 -v -o page.html"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            # In the background SIGINT is ignored, and children ignore it as well.
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
            "from blockspca.cli import main; main()",
            *words.split(),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    for line in process.stderr:
        if "upper bound" in line:
            break
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    assert process.wait(timeout=60) == 130, err
    assert "interrupted; writing what is known" in err
    assert "1 of 3 components" in err
    assert (tmp_path / "page.html").exists()


STOPPED = {
    "alternatives": lambda found: replace(found, message="interrupted"),
    "stability": lambda found: replace(found, interrupted=True),
    "importance": lambda found: replace(
        found, results=(restated(found.results[0], status=Status.INTERRUPTED),) * 2
    ),
}


@pytest.mark.parametrize("stopped", STOPPED)
def test_nothing_is_inspected_after_the_one_that_is_stopped(
    here, stopped, monkeypatch, capsys
):
    """What alternatives had so far was taken for all of it, and the next one began."""
    pytest.importorskip("jinja2")
    begun = []
    for name in STOPPED:
        function = "feature_importance" if name == "importance" else name
        module = importlib.import_module(f"blockspca.inspection.{name}")
        whole = getattr(module, function)

        def inspected(*given, whole=whole, name=name, **options):
            begun.append(name)
            found = whole(*given, **options)
            assert not found.interrupted
            return STOPPED[name](found) if name == stopped else found

        monkeypatch.setattr(module, function, inspected)
    words = "report noise.npy -k 2 -n 2 -o page.html --alternatives 0.1"
    assert run([*words.split(), "--stability", "3", "--importance"]) == 130
    assert capsys.readouterr().err == SAID
    assert begun == list(STOPPED)[: len(begun)]
    assert begun[-1] == stopped
    page = Path("page.html").read_text(encoding="utf-8")
    assert ("The samples were drawn again" in page) == (stopped != "alternatives")
