"""Cells of the rows of comparisons: printed numbers, verdicts, times, notes."""

from __future__ import annotations

from typing import Any

from ..datasets.catalogue import PAPER_SETS
from .measurements import Measurements, Run
from .printed_values import Verdict, compare, printed_rows

TIE = 1e-9  # relative; objectives that differ by less are equal

COMPARED = ("objective", "base_objective", "error", "speedup")
STATISTICS = ("threshold", "zeros", "jaccard")


def printed_cells(printed: dict[str, str], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return a row with the paper's numbers alone."""
    return {
        "dataset": printed["dataset"],
        "k": int(printed["k"]),
        **{f"paper_{key}": printed[key] for key in keys},
        "verdict": Verdict.NO_DATA,
    }


def best_printed(printed: dict[str, str]) -> str:
    """Return the better of the two objectives of the paper."""
    return max(printed["objective"], printed["base_objective"], key=float)


def verdict_of(printed: str, run: Run, unit: float) -> Verdict:
    """Compare an objective; a limit that was reached excuses a worse one."""
    verdict = compare(printed, run.objective / unit)
    if verdict is Verdict.WORSE and not run.finished:
        return Verdict.NOT_FINISHED
    return verdict


def missing_notes(measurements: Measurements, table: str) -> list[str]:
    """Say where to get each data set of a printed table that is not there."""
    names = dict.fromkeys(row["dataset"] for row in printed_rows(table))
    chosen = [PAPER_SETS[name] for name in names if name in PAPER_SETS]
    return [
        f"No data for {one.name}: {one.file} is not in the folder. Source: {one.where}."
        for one in chosen
        if not measurements.is_present(one)
    ]


def speedup(base: Run, ours: Run) -> float:
    return base.seconds / ours.seconds


def error(optimum: float, found: float) -> float:
    """Return the paper's error in per cent, without rounding noise around zero."""
    relative = (optimum - found) / abs(optimum)
    return 0.0 if abs(relative) < TIE else 100 * relative


def in_seconds(run: Run) -> str:
    """Write a time, with > where the limit ended the run."""
    return f"{'' if run.finished else '> '}{run.seconds:.2f}"


def proof(run: Run) -> str:
    """Say "proved", or how far the objective can be from the optimum."""
    if run.proved:
        return "proved"
    return f"within {run.upper_bound / run.objective - 1:.2%}"


def times(certified: Run, alone: Run, framework: Run) -> dict[str, Any]:
    """The three times of a row, and their ratios."""
    return {
        "alone": in_seconds(alone),
        "framework": in_seconds(framework),
        "certified": in_seconds(certified),
        "certified_ratio_to_alone": certified.seconds / alone.seconds,
        "certified_ratio_to_framework": certified.seconds / framework.seconds,
    }
