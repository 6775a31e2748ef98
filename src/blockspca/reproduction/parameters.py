"""The effect of d0 and of δ on Algorithm 5 with branch and bound."""

from __future__ import annotations

from typing import Any

from ..datasets.catalogue import PAPER_SETS
from ..solvers import BranchAndBound
from .comparison import BLOCK_SIZE
from .measurements import DELTA, Measurements
from .printed_values import Verdict, compare, printed_rows
from .rows import error, in_seconds, missing_notes, printed_cells, speedup
from .table import ReproducedTable, make_table


def effect_of(name: str, measurements: Measurements) -> ReproducedTable:
    """LymphomaCov2 with larger blocks (d0), or ProstateCov searched less (delta)."""
    rows = (_row(measurements, name, printed) for printed in printed_rows(name))
    missing = missing_notes(measurements, name)
    limit = measurements.settings.time_limit
    return make_table(name, rows, notes=missing, limit=limit)


def _row(
    measurements: Measurements, name: str, printed: dict[str, str]
) -> dict[str, Any]:
    chosen, k = PAPER_SETS[printed["dataset"]], int(printed["k"])
    row = printed_cells(printed, ("error", "speedup")) | {name: printed[name]}
    if not measurements.is_present(chosen):
        return row
    size = int(printed["d0"]) if name == "d0" else BLOCK_SIZE
    delta = float(printed["delta"]) if name == "delta" else DELTA
    ours = measurements.framework(chosen, k, BranchAndBound(), size, delta)
    base = measurements.alone(chosen, k, BranchAndBound())
    best = measurements.certified(chosen, k)
    measured = error(best.objective, ours.objective)
    verdict = compare(printed["error"], measured, larger_is_better=False)
    # A method that ran out of time is not called worse.
    if verdict is Verdict.WORSE and not ours.finished:
        verdict = Verdict.NOT_FINISHED
    return row | {
        "error": measured,
        "verdict": verdict,
        "largest_block": ours.largest_block,
        "speedup": speedup(base, ours),
        "alone": in_seconds(base),
        "framework": in_seconds(ours),
    }
