"""The printed tables are complete and consistent, and agreement means what it says."""

from __future__ import annotations

import statistics

import pytest

from blockspca.datasets import PAPER_SETS
from blockspca.reproduction.printed_values import (
    Verdict,
    compare,
    last_digit,
    match,
    printed_rows,
    search_point,
)


@pytest.mark.parametrize(
    ("table", "rows"),
    [("branch-and-bound", 32), ("chan", 16), ("d0", 12), ("delta", 12)],
)
def test_the_tables_are_complete(table, rows):
    printed = printed_rows(table)
    assert len(printed) == rows
    assert {row["dataset"] for row in printed} <= set(PAPER_SETS)


@pytest.mark.parametrize("table", ["branch-and-bound", "chan"])
def test_the_printed_rows_are_consistent(table):
    """Error and speed-up follow from the printed objectives and times."""
    for row in printed_rows(table):
        base, ours = float(row["base_objective"]), float(row["objective"])
        rounding = 150 * max(map(last_digit, (row["base_objective"], row["objective"])))
        assert 100 * (base - ours) / base == pytest.approx(
            float(row["error"]), abs=rounding / base + 0.01
        )
        ratio = float(row["base_seconds"]) / float(row["seconds"])
        assert ratio == pytest.approx(float(row["speedup"]), rel=0.01)


@pytest.mark.parametrize("by", ["dataset", "k"])
@pytest.mark.parametrize("table", ["branch-and-bound", "chan"])
def test_the_printed_summaries_follow_from_the_printed_rows(table, by):
    for summary in printed_rows(f"{table}-by-{by}"):
        rows = [
            row for row in printed_rows(table) if summary[by] in (row[by], "Overall")
        ]
        average = statistics.mean(float(row["speedup"]) for row in rows)
        assert average == pytest.approx(float(summary["speedup"]), abs=0.02)


@pytest.mark.parametrize(
    ("printed", "measured", "verdict"),
    [
        ("3496.6", 3496.5987, Verdict.EQUAL),
        ("3496.6", 3496.66, Verdict.CUT_OFF),
        ("3496.6", 3496.71, Verdict.BETTER),
        ("3496.6", 3496.5, Verdict.WORSE),
        ("86.20", 86.2049, Verdict.EQUAL),
        ("86.20", 86.19, Verdict.WORSE),
        ("8.19", 8.1968, Verdict.CUT_OFF),
        ("-2.77", -2.776, Verdict.CUT_OFF),
    ],
)
def test_agreement_is_to_the_printed_digits(printed, measured, verdict):
    assert compare(printed, measured) is verdict


def test_a_smaller_error_is_better():
    assert compare("7.77", 0.1, larger_is_better=False) is Verdict.BETTER
    assert compare("0.0", 0.3, larger_is_better=False) is Verdict.WORSE


def test_every_threshold_is_a_point_of_the_search():
    for row in printed_rows("branch-and-bound"):
        point = search_point(row["threshold"])
        assert (point * 128).is_integer()
        assert match(row["threshold"], point) is Verdict.EQUAL
