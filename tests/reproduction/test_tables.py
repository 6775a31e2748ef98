"""The tables: what they say without data, and the rows that must come out."""

from __future__ import annotations

import json

import pytest

from blockspca.datasets import PAPER_SETS
from blockspca.io.writing import to_json
from blockspca.reproduction import (
    TABLES,
    Measurements,
    Settings,
    Verdict,
    comparison,
    parameters,
    reproduce,
    synthetic,
)
from blockspca.reproduction.comparison import BranchAndBoundRows, ChanRows
from blockspca.reproduction.printed_values import printed_rows

WITHOUT_DATA = [name for name in TABLES if name != "synthetic"]


@pytest.fixture
def empty(tmp_path):
    return Measurements(Settings(tmp_path, time_limit=1.0, quick=True))


@pytest.fixture(scope="module")
def measured(data_dir):
    return Measurements(Settings(data_dir, time_limit=8.0, quick=True))


@pytest.fixture(scope="module")
def hurried(data_dir):
    """Where the matrix without blocks takes longer than a test may."""
    return Measurements(Settings(data_dir, time_limit=2.0, quick=True))


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_without_data_nothing_is_made_up(name, empty):
    table = reproduce(name, empty)
    assert table.name == name
    assert table.source in ("fig:motivating_example",) or table.source[:4] == "tab:"
    if name not in ("figure-1", "factors"):
        assert set(table.verdicts) == {Verdict.NO_DATA}
        for row in table.rows:
            assert not {"objective", "optimum", "error", "threshold"} & set(row)
    assert not table.disagrees
    assert json.loads(to_json(table.to_dict()))["rows"]
    assert table.to_markdown().startswith(f"## {table.title}\n")


def test_absent_sets_are_named_with_their_source(empty):
    text = BranchAndBoundRows(empty).comparison().to_markdown()
    for row in printed_rows("branch-and-bound"):
        assert PAPER_SETS[row["dataset"]].where in text


def test_unknown_table(empty):
    with pytest.raises(ValueError, match="there are figure-1, factors"):
        reproduce("table-9", empty)


def test_factors_agree(empty):
    assert set(reproduce("factors", empty).verdicts) == {Verdict.EQUAL}


def test_one_matrix_of_model_1():
    found = synthetic._one(2, 42, longest=5.0, proof=5.0)
    assert found["proved"]
    assert found["alone_gap"] == found["noisy_gap"] == 0
    assert 0.1 < found["gap"] < 0.6
    assert found["threshold_literal"] == pytest.approx(0.60, abs=0.01)
    assert found["threshold"] == pytest.approx(1.02, abs=0.02)
    assert found["threshold_all"] == pytest.approx(0.95, abs=0.01)


def test_gaps_of_model_1_in_words():
    assert synthetic._proved([0.0, 0.0]) == "2 of 2"
    assert synthetic._proved([0.0, 0.25, 0.1]) == "1 of 3, the others within 25%"


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "k", "objective", "threshold"),
    [
        ("LymphomaCov2", 10, "69.27", "0.42"),
        pytest.param("LymphomaCov2", 15, "86.20", "0.44", marks=pytest.mark.slow),
        pytest.param("Reddit2000", 15, "1601.32", "0.09", marks=pytest.mark.slow),
        ("CovColonCov", 10, "2641.23", "0.58"),
    ],
)
def test_rows_of_the_comparison(name, k, objective, threshold, request):
    """The paper's own numbers where they are below the optimum, then the optimum."""
    measured = request.getfixturevalue("hurried" if k == 15 else "measured")
    rows = printed_rows("branch-and-bound")
    printed = next(r for r in rows if r["dataset"] == name and r["k"] == str(k))
    row = BranchAndBoundRows(measured).row(printed)
    assert row["paper_objective"] == objective
    assert row["verdict"] is Verdict.EQUAL
    assert row["proof"] == "proved"
    assert row["optimum_verdict"].agrees
    assert row["optimum"] >= row["objective"] * (1 - 1e-12)
    statistics = BranchAndBoundRows(measured).statistics_row(printed)
    assert statistics["paper_threshold"] == threshold
    expected = Verdict.TIE if name == "CovColonCov" else Verdict.EQUAL
    assert statistics["verdict"] is expected
    assert statistics["zeros_verdict"].agrees
    assert statistics["jaccard_verdict"] is Verdict.EQUAL


@pytest.mark.slow
@pytest.mark.data
def test_a_row_of_each_parameter(measured):
    for table, which in (("d0", 6), ("delta", 11)):
        row = parameters._row(measured, table, printed_rows(table)[which])
        assert row["verdict"].agrees, row


@pytest.mark.slow
@pytest.mark.data
def test_other_data_are_not_compared(hurried):
    if PAPER_SETS["ArceneCov"].file in {
        p.name for p in hurried.settings.folder.iterdir()
    }:
        pytest.skip("the data of ArceneCov are there")
    row = ChanRows(hurried).row(printed_rows("chan")[0])
    assert row["verdict"] in (Verdict.NOT_COMPARABLE, Verdict.NOT_FINISHED)


@pytest.mark.slow
@pytest.mark.data
def test_dorothea_with_chan_s_algorithm(data_dir):
    """Blocks of 400 among 100,000 features: threshold, objective and zeros printed."""
    from blockspca.reproduction.printed_values import compare, match
    from blockspca.solvers import Chan

    rows = printed_rows("chan")
    printed = next(r for r in rows if r["dataset"] == "DorotheaCov" and r["k"] == "200")
    measurements = Measurements(Settings(data_dir, time_limit=120.0))
    chosen = PAPER_SETS["DorotheaCov"]
    run = measurements.framework(chosen, 200, Chan(), 400)
    assert run.finished
    assert compare(printed["objective"], run.objective).agrees
    assert match(printed["threshold"], run.threshold) is Verdict.EQUAL
    assert match(printed["zeros"], measurements.zeros(chosen, run.threshold)).agrees


def test_no_run_profits_from_the_scan_of_another(empty, monkeypatch):
    """Else the order of the runs would decide which of them is fast."""
    import numpy as np

    from blockspca.covariance.covariance import Covariance
    from blockspca.reproduction import measurements as module
    from blockspca.scan import lists as scans
    from blockspca.solvers import Chan

    cov = Covariance.from_data(np.random.default_rng(0).normal(size=(9, 40)))
    monkeypatch.setattr(module, "load_paper_set", lambda chosen, folder: cov)
    run = empty.framework(PAPER_SETS["ArceneCov"], 3, Chan(), 8)
    assert run.finished
    assert scans.known_scan(cov, 3) is None


def test_a_row_with_chan_s_algorithm_has_a_bound(empty, monkeypatch):
    import numpy as np

    from blockspca.covariance.covariance import Covariance
    from blockspca.reproduction import measurements as module

    X = np.random.default_rng(0).normal(size=(30, 300)) * np.linspace(1, 3, 300)
    cov = Covariance.from_data(X)
    monkeypatch.setattr(module, "load_paper_set", lambda chosen, folder: cov)
    monkeypatch.setattr(module, "is_present", lambda chosen, folder: True)
    printed = {"k": "40", "unit": "1", "base_objective": "50.00"}
    row = ChanRows(empty).row(printed_rows("chan")[0] | printed)
    assert row["error_printed"] == pytest.approx(100 * (1 - row["objective"] / 50))
    assert row["optimum"] <= row["upper_bound"] * (1 + 1e-9)
    assert max(row["objective"], row["base_objective"]) <= row["upper_bound"]
    assert row["gap"] >= -1e-9
    assert row["proof"] == "proved" or row["proof"].startswith("within")
    assert row["certified_ratio_to_alone"] > 0


def test_other_data_do_not_fail_by_being_slow(empty, monkeypatch):
    from dataclasses import replace

    from blockspca.reproduction.measurements import Run
    from blockspca.status import Status

    run = Run(1.0, [0], 9.0, finished=False, status=Status.TIME_LIMIT)
    part = comparison.ARCENE_PART
    monkeypatch.setattr(ChanRows, "chosen", lambda self, name: part)
    monkeypatch.setattr(ChanRows, "runs", lambda *_: (run, replace(run)))
    row = ChanRows(empty).statistics_row(printed_rows("chan")[0])
    assert row["verdict"] is Verdict.NOT_COMPARABLE
    monkeypatch.setattr(comparison, "ARCENE_PART", None)
    row = ChanRows(empty).statistics_row(printed_rows("chan")[0])
    assert row["verdict"] is Verdict.NOT_FINISHED


def test_summaries_take_the_error_against_the_printed_baseline():
    """A stronger baseline of ours must not make the framework look worse."""
    from blockspca.reproduction.summaries import summary
    from blockspca.reproduction.table import ReproducedTable

    rows = [
        {"dataset": r["dataset"], "k": int(r["k"]), "verdict": Verdict.EQUAL}
        for r in printed_rows("chan")
    ]
    for row in rows[-4:]:
        row |= {"error": -0.5, "error_printed": -2.4, "speedup": 2.0}
    compared = ReproducedTable("chan", "", "", (), tuple(rows))
    last = summary(compared, "dataset", "", "").rows[3]
    assert last["dataset"] == "DorotheaCov"
    assert last["error"] == pytest.approx(-2.4)
    assert last["verdict"] is Verdict.BETTER


@pytest.mark.parametrize("d", [60, 300])
def test_zeros_are_counted_the_same_by_tiles_and_by_a_scan(d, monkeypatch):
    import numpy as np

    from blockspca.covariance.covariance import Covariance
    from blockspca.reproduction import measurements as module

    cov = Covariance.from_data(np.random.default_rng(0).normal(size=(20, d)))
    epsilon = 0.2 * cov.max_abs()
    by_tiles = module.zero_share(cov, epsilon)
    monkeypatch.setattr(module, "COUNTED_BY_TILES", 10)
    assert module.zero_share(cov, epsilon) == by_tiles


@pytest.mark.data
def test_dimensions(measured):
    verdicts = reproduce("dimensions", measured).verdicts
    assert Verdict.OTHER not in verdicts
    assert verdicts.count(Verdict.SWAPPED) == 1


def test_ctrl_c_is_no_measurement():
    """A solver returns what it has on Ctrl-C; a table must not take it for a result."""
    from types import SimpleNamespace

    from blockspca.reproduction.measurements import timed
    from blockspca.status import Status

    results = iter([Status.OPTIMAL, Status.INTERRUPTED, Status.OPTIMAL])
    with pytest.raises(KeyboardInterrupt):
        timed(lambda: SimpleNamespace(status=next(results)))
    assert timed(lambda: 7)[1] == 7


def test_a_forest_that_took_too_long_is_not_tried_again(empty, monkeypatch):
    """It does not depend on k, and on large data it costs the whole time limit."""
    import numpy as np

    from blockspca.covariance.covariance import Covariance
    from blockspca.reproduction import measurements as module
    from blockspca.solvers import Chan

    cov = Covariance.from_data(np.random.default_rng(0).normal(size=(9, 40)))
    monkeypatch.setattr(module, "load_paper_set", lambda chosen, folder: cov)
    calls = []

    def late(*arguments, **options):
        calls.append(arguments)
        return module_solve(*arguments, **options | {"limits": module.Limits(time=0)})

    module_solve = module.solve
    monkeypatch.setattr(module, "solve", late)
    runs = [empty.framework(PAPER_SETS["ArceneCov"], k, Chan(), 8) for k in (2, 3, 4)]
    assert {run.finished for run in runs} == {False}
    assert {k for _, k in calls} == {2}  # the first one
