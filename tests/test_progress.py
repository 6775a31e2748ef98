"""Events, the log and its closing report."""

from __future__ import annotations

import io
import sys
import threading
import time

import numpy as np
import pytest
from rich.console import Console

import blockspca as bs
from blockspca.progress import LateLine, ProgressLog, as_listener
from blockspca.proof_settings import ProofSettings
from blockspca.status import Status

A = np.cov(np.random.default_rng(6).normal(size=(25, 12)).T)


def test_events_of_a_path():
    events: list[bs.Event] = []
    path = bs.solve_path(A, 6, progress=events.append)
    settled = [event for event in events if event.status is not None]
    assert [event.k for event in settled] == [1, 2, 3, 4, 5, 6]
    for event in settled:
        assert event.stage == "proof"
        assert event.objective == pytest.approx(path[event.k].objective)
        assert event.upper_bound == pytest.approx(path[event.k].upper_bound)
        assert event.total == 6
        assert event.source
    assert settled[-1].done == 6


def test_events_of_a_solve_start_with_the_blocks():
    stages = []
    bs.solve(A, 3, progress=lambda event: stages.append(event.stage))
    assert stages[0] == "blocks"
    assert stages[-1] == "proof"


def test_a_long_scan_is_reported(monkeypatch):
    rng = np.random.default_rng(0)
    cov = bs.Covariance.from_data(rng.normal(size=(20, 3000)))
    settings = ProofSettings(scan_all_up_to=10**6)
    monkeypatch.setattr("blockspca.pipeline.SETTINGS", settings)
    events = []
    bs.solve_path(cov, 2, progress=events.append, limits=bs.Limits(nodes=10))
    scans = [event for event in events if event.stage == "scan"]
    assert scans
    assert scans[-1].done <= scans[-1].total


def test_the_log_has_a_line_for_each_k_and_a_report():
    out = io.StringIO()
    with ProgressLog(Console(file=out, width=120)) as log:
        bs.solve_path(A, 4, progress=log)
    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert lines[0].split()[:4] == ["k", "survivors", "nodes", "objective"]
    assert [int(line.split()[0]) for line in lines[1:5]] == [1, 2, 3, 4]
    assert lines[-1].startswith("4 of 4 proved optimal, widest gap 0,")


def test_the_log_names_the_components():
    """Also one that is solved for again; one component alone has no name."""
    out = io.StringIO()
    events: list[bs.Event] = []
    with ProgressLog(Console(file=out, width=120)) as log:
        bs.solve_components(A, 3, 2, scheme="residual", sweeps=1, progress=log)
        bs.solve_components(A, 3, 2, progress=events.append)
    lines = out.getvalue().splitlines()
    assert lines.index("component 1") == 1  # after the header
    assert lines.index("component 2") > 1
    assert {line for line in lines if "again" in line} <= {
        "component 1, again",
        "component 2, again",
    }
    assert [event.component for event in events if event.status] == [1] * 3 + [2] * 3
    alone: list[bs.Event] = []
    bs.solve_components(A, 3, 1, progress=alone.append)
    assert {event.component for event in alone} == {0}


def test_the_report_speaks_of_one_node():
    out = io.StringIO()
    with ProgressLog(Console(file=out, width=120)) as log:
        log(bs.Event("proof", 1, 1, 1, 2.0, 2.0, nodes=1, status=Status.OPTIMAL))
    assert ", 1 node, " in out.getvalue()


def test_progress_true_writes_to_standard_error(capfd):
    bs.solve_path(A, 3, progress=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "3 of 3 proved optimal" in captured.err


def test_a_log_without_a_bar_gives_a_sign_of_life(monkeypatch):
    monkeypatch.setattr("blockspca.progress.SILENCE", 0.0)
    out = io.StringIO()
    with ProgressLog(Console(file=out, width=120)) as log:
        log(bs.Event("proof", 0, 9, 9, 2.0, 2.5, nodes=3))
        log(bs.Event("proof", 9, 9, 9, 2.0, 2.4, status=Status.TIME_LIMIT))
    said, _, line = out.getvalue().splitlines()[:3]
    assert said.startswith("  … k = 9: objective 2, gap 25.00%, 3 nodes, ")
    assert line.split()[:2] == ["9", "-"]


def test_a_log_is_silent_for_ten_seconds():
    out = io.StringIO()
    with ProgressLog(Console(file=out, width=120)) as log:
        log(bs.Event("proof", 0, 9, 9, 2.0, 2.5, nodes=3))
    assert out.getvalue().strip() == ""


def test_a_line_comes_late_and_goes():
    out = io.StringIO()
    with LateLine(out, patience=0.0) as line:
        line(bs.Event("proof", 0, 9, 9, 2.0, 2.5, nodes=3))
        while not out.getvalue():
            time.sleep(0.01)
        text = line.line()
    assert text.startswith("blockspca: k = 9, objective 2, gap 25.00%, 3 nodes, 0 s")
    assert "Ctrl-C keeps what is known" in text
    assert "\n" not in out.getvalue()
    assert out.getvalue().endswith(" \r")
    quick = io.StringIO()
    with LateLine(quick) as line:
        line(bs.Event("scan", 1, 4, 9, 2.0))
        assert "reading the matrix, 25%" in line.line()
    assert quick.getvalue() == ""


@pytest.mark.parametrize(
    ("terminal", "notebook", "shown"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_a_solve_is_watched_in_terminals_and_notebooks(
    monkeypatch, terminal, notebook, shown
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with as_listener(None) as listener:
        assert isinstance(listener, LateLine) is shown
        with as_listener(None) as inner:  # a call within that call
            assert not isinstance(inner, LateLine)
    with as_listener(False) as listener:
        assert not isinstance(listener, LateLine)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(as_listener(None).__enter__())
    )
    thread.start()
    thread.join()
    assert not isinstance(found[0], LateLine)


def test_the_bar_has_a_label_and_one_clock_that_goes_on():
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    with ProgressLog(console) as log:
        assert log.bar.tasks[0].description == "starting"
        log(bs.Event("scan", 4, 4, 9, 2.0))
        assert log.bar.tasks[0].description == "reading the matrix"
        clocks = [c for c in log.bar.columns if type(c).__name__ != "TextColumn"]
        assert [type(column).__name__ for column in clocks] == ["BarColumn", "Clock"]
        log.started -= 100  # the bar is full; its work may go on
        assert clocks[1].render(log.bar.tasks[0]).plain == (
            "100 s, Ctrl-C keeps what is known"
        )
