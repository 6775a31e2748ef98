"""Averages and standard deviations of errors and speed-ups, by data set and by k."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from .printed_values import Verdict, printed_rows
from .table import Column, ReproducedTable, described

ROUNDING = 0.01  # per cent; the printed errors have two digits


def summary(
    compared: ReproducedTable, by: str, source: str, titles: str
) -> ReproducedTable:
    """Summarise a comparison by "dataset" or by "k", beside the printed summary.

    Averages are over the rows with data. The printed ones are taken again over the same
    rows, from the printed table, so that absent data sets do not blur the comparison.
    """
    printed_table = printed_rows(compared.name)
    suffix = f"{compared.name}-by-{by}"
    rows = []
    for printed in printed_rows(suffix):
        group = [
            (row, line)
            for row, line in zip(compared.rows, printed_table, strict=False)
            if printed[by] in (str(row[by]), "Overall") and row.get("error") is not None
        ]
        rows.append(_row(printed, by, group))
    about = described("summary")
    first = Column(by, "data" if by == "dataset" else "k")
    return ReproducedTable(
        suffix,
        f"{titles}, by {'data set' if by == 'dataset' else 'k'}",
        source,
        (first, *(Column(*column) for column in about["columns"])),
        tuple(rows),
        (
            *about["notes"],
            *(note for note in compared.notes if note.startswith("Speed-ups")),
        ),
    )


def _row(
    printed: dict[str, str], by: str, group: Sequence[tuple[dict[str, Any], Any]]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        by: printed[by],
        "rows": len(group),
        "paper_error": f"{printed['error']} ({printed['error_deviation']})",
        "paper_speedup": f"{printed['speedup']} ({printed['speedup_deviation']})",
        "verdict": Verdict.NO_DATA,
    }
    if not group:
        return row
    # The printed errors are against the printed baseline; where ours is stronger, a row
    # has the error against that one too.
    errors = [measured.get("error_printed", measured["error"]) for measured, _ in group]
    speedups = [measured["speedup"] for measured, _ in group]
    paper_error = statistics.mean(float(line["error"]) for _, line in group)
    average = statistics.mean(errors)
    verdict = Verdict.EQUAL
    if abs(average - paper_error) > ROUNDING:
        verdict = Verdict.BETTER if average < paper_error else Verdict.WORSE
    if any(measured["verdict"] is Verdict.NOT_COMPARABLE for measured, _ in group):
        verdict = Verdict.NOT_COMPARABLE
    return row | {
        "paper_error_here": paper_error,
        "error": average,
        "error_deviation": _deviation(errors),
        "verdict": verdict,
        "paper_speedup_here": statistics.mean(float(p["speedup"]) for _, p in group),
        "speedup": statistics.mean(speedups),
        "speedup_deviation": _deviation(speedups),
    }


def _deviation(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
