"""The two comparisons: Algorithm 5 with a solver in its blocks, and the solver alone.

Of each there is a table of objectives and times, and one of statistics: ε*, the zeros
of A^ε* and the Jaccard index of the supports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ..blocks.strategies import FixedThreshold
from ..datasets.catalogue import ARCENE_PART, PAPER_SETS, PaperSet
from ..limits import Limits
from ..pipeline import solve
from ..solvers import BranchAndBound, Chan
from .measurements import (
    LONGEST_BOUND,
    Measurements,
    Run,
    jaccard,
    raise_if_interrupted,
)
from .printed_values import Verdict, compare, match, printed_rows, search_point
from .rows import (
    COMPARED,
    STATISTICS,
    TIE,
    best_printed,
    error,
    missing_notes,
    printed_cells,
    proof,
    speedup,
    times,
    verdict_of,
)
from .table import ReproducedTable, make_table

BLOCK_SIZE = 30  # d0 of the paper for branch and bound; for Chan's algorithm 2k
LARGEST_QUICK = 25_000  # features

Row = dict[str, Any]


class Comparison(ABC):
    """The rows of both tables of a comparison; subclasses measure."""

    name: ClassVar[str]
    solver: ClassVar[Any]

    def __init__(self, measurements: Measurements) -> None:
        self.measurements = measurements

    def comparison(self) -> ReproducedTable:
        """Return objectives, errors, speed-ups and proofs."""
        limit = self.measurements.settings.time_limit
        return make_table(
            self.name,
            map(self.row, printed_rows(self.name)),
            notes=self.notes(),
            limit=limit,
            longest=min(LONGEST_BOUND, limit),
        )

    def statistics(self) -> ReproducedTable:
        """Return ε*/‖A‖∞, zeros of A^ε* and Jaccard indices."""
        rows = map(self.statistics_row, printed_rows(self.name))
        return make_table(f"{self.name}-statistics", rows, notes=self.notes())

    def row(self, printed: dict[str, str]) -> Row:
        """Measure one row of the comparison."""
        return self._filled(printed, COMPARED, self.compared)

    def statistics_row(self, printed: dict[str, str]) -> Row:
        """Measure one row of the statistics."""
        return self._filled(printed, STATISTICS, self.counted)

    def _filled(self, printed: dict[str, str], keys: Any, measure: Any) -> Row:
        row = printed_cells(printed, keys)
        chosen = self.chosen(printed["dataset"])
        if chosen is None:
            return row
        if self.left_out(chosen):
            return row | {"verdict": Verdict.LEFT_OUT}
        measured: Row = measure(chosen, printed)
        return row | measured

    def chosen(self, name: str) -> PaperSet | None:
        """Return the data for a row, None where there are none."""
        chosen = PAPER_SETS[name]
        return chosen if self.measurements.is_present(chosen) else None

    def left_out(self, chosen: PaperSet) -> bool:
        return self.measurements.settings.quick and chosen.n_features > LARGEST_QUICK

    def notes(self) -> list[str]:
        return missing_notes(self.measurements, self.name)

    def runs(self, chosen: PaperSet, k: int) -> tuple[Run, Run]:
        """Return the run of the framework and that of the solver alone."""
        solver = self.solver()
        ours = self.measurements.framework(chosen, k, solver, self.block_size(k))
        return ours, self.measurements.alone(chosen, k, solver)

    @abstractmethod
    def block_size(self, k: int) -> int:
        """Return d0, the size of blocks that Algorithm 5 goes down to."""

    @abstractmethod
    def compared(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        """Measure objectives and times."""

    @abstractmethod
    def counted(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        """Measure what the threshold does."""


class BranchAndBoundRows(Comparison):
    """Branch and bound in blocks of 30, and the optimum by the certified path."""

    name = "branch-and-bound"
    solver = BranchAndBound

    def block_size(self, k: int) -> int:
        return BLOCK_SIZE

    def left_out(self, chosen: PaperSet) -> bool:
        return False

    def compared(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        k, unit = int(printed["k"]), float(printed["unit"])
        ours, base = self.runs(chosen, k)
        best = self.measurements.certified(chosen, k)
        return {
            "objective": ours.objective / unit,
            "verdict": verdict_of(printed["objective"], ours, unit),
            "optimum": best.objective / unit,
            "proof": proof(best),
            "optimum_verdict": compare(best_printed(printed), best.objective / unit),
            "error": error(best.objective, ours.objective),
            "speedup": speedup(base, ours),
            "alone_objective": base.objective / unit,
            **times(best, base, ours),
        }

    def counted(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        k = int(printed["k"])
        solver = self.solver()
        ours = self.measurements.framework(chosen, k, solver, self.block_size(k))
        best = self.measurements.certified(chosen, k)
        if ours.threshold is None:
            return {"verdict": Verdict.NOT_FINISHED}
        verdict, reason = match(printed["threshold"], ours.threshold), ""
        if verdict is Verdict.OTHER:
            verdict, reason = self.explain(chosen, printed, ours)
        there = self.measurements.zeros(chosen, search_point(printed["threshold"]))
        overlap = jaccard(ours.support, best.support)
        return {
            "threshold": ours.threshold,
            "verdict": verdict,
            "reason": reason,
            "zeros": self.measurements.zeros(chosen, ours.threshold),
            "zeros_there": there,
            "zeros_verdict": match(printed["zeros"], there),
            "jaccard": overlap,
            "jaccard_verdict": match(printed["jaccard"], overlap),
        }

    def explain(
        self, chosen: PaperSet, printed: dict[str, str], ours: Run
    ) -> tuple[Verdict, str]:
        """Solve at the ε* that the paper prints: is its component the same?"""
        cov = self.measurements.covariance(chosen)
        point = search_point(printed["threshold"])
        found = solve(
            cov,
            int(printed["k"]),
            solver=self.solver(),
            threshold=FixedThreshold(point * cov.max_abs()),
            certify=False,
            limits=Limits(time=self.measurements.settings.time_limit),
        )
        raise_if_interrupted(found.status)
        size = found.blocks.largest if found.blocks else 0
        same = found.objective >= ours.objective * (1 - TIE)
        value = "the same objective" if same else f"{found.objective:.6g}"
        text = f"{point:g} gives {value}, largest block {size}"
        return (Verdict.TIE if same else Verdict.OTHER), text


class ChanRows(Comparison):
    """Chan's algorithm in blocks of 2k; power steps and a bound, as k is large."""

    name = "chan"
    solver = Chan

    def block_size(self, k: int) -> int:
        return 2 * k

    def chosen(self, name: str) -> PaperSet | None:
        """For ArceneCov a part of the data is used if need be, and marked."""
        found = super().chosen(name)
        part = name == "ArceneCov" and self.measurements.is_present(ARCENE_PART)
        return ARCENE_PART if found is None and part else found

    def notes(self) -> list[str]:
        notes = super().notes()
        if self.measurements.is_present(ARCENE_PART):
            notes.append(
                "Without the data of ArceneCov its rows are measured on the 200 "
                "samples that were at hand: another matrix, so its numbers are not "
                "compared."
            )
        if self.left_out(PAPER_SETS["DorotheaCov"]):
            notes.append("DorotheaCov (100,000 features) is left out by --quick.")
        return notes

    def compared(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        k, unit = int(printed["k"]), float(printed["unit"])
        ours, base = self.runs(chosen, k)
        power = self.measurements.power_steps(chosen, k)
        bounded = self.measurements.bounded(chosen, k)
        best = max(power.objective, bounded.objective)
        row: Row = {
            "measured_on": chosen.name,
            "verdict": verdict_of(printed["objective"], ours, unit),
            "base_objective": base.objective / unit,
            "base_verdict": verdict_of(printed["base_objective"], base, unit),
            "optimum": power.objective / unit,
            "optimum_verdict": compare(best_printed(printed), power.objective / unit),
            "upper_bound": bounded.upper_bound / unit,
            "gap": bounded.upper_bound / best - 1,
            "proof": proof(bounded),
            "bound_seconds": f"{bounded.seconds:.2f}",
            **times(power, base, ours),
        }
        if ours.threshold is not None:  # at least one threshold was solved
            row["objective"] = ours.objective / unit
        if ours.finished and base.finished:
            row["error"] = error(base.objective, ours.objective)
            row["speedup"] = speedup(base, ours)
            base_printed = float(printed["base_objective"])
            row["error_printed"] = error(base_printed, ours.objective / unit)
        return _without_verdicts(row) if chosen is ARCENE_PART else row

    def counted(self, chosen: PaperSet, printed: dict[str, str]) -> Row:
        ours, base = self.runs(chosen, int(printed["k"]))
        row: Row = {"verdict": Verdict.NOT_FINISHED}
        if ours.finished and ours.threshold is not None:
            zeros = self.measurements.zeros(chosen, ours.threshold)
            overlap = jaccard(ours.support, base.support) if base.finished else None
            row = {
                "threshold": ours.threshold,
                "verdict": match(printed["threshold"], ours.threshold),
                "largest_block": ours.largest_block,
                "zeros": zeros,
                "zeros_verdict": match(printed["zeros"], zeros),
                "jaccard": overlap,
            }
        return _without_verdicts(row) if chosen is ARCENE_PART else row


def _without_verdicts(row: Row) -> Row:
    """Results for other data than the paper's are not compared."""
    verdicts = [key for key in row if key.endswith("verdict")]
    row.pop("error_printed", None)
    return row | dict.fromkeys(verdicts, Verdict.NOT_COMPARABLE)
