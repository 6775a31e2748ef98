"""The paper's table of factors and errors against what the solvers promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .guarantee_table import guarantee_table
from .measurements import Measurements
from .printed_values import Verdict
from .table import ReproducedTable, make_table

NAME = "factors"
DELTA = 0.3  # additive error of the low-rank algorithm, for the check
EPSILON = 0.1

# k, d and the largest block d*: each branch of min(√k, d^{1/3}) and min(k, d/k)
POINTS = ((3, 500, 30), (10, 6033, 55), (100, 900, 200), (2000, 100_000, 4000))


@dataclass(frozen=True)
class PrintedRow:
    """A row of the paper's table: formulas as text and as functions of (k, d)."""

    algorithm: str
    solver: str  #: its name in `guarantee_table`
    factor: str
    error: str
    block_factor: str
    block_error: str
    m: Callable[[int, int], float]
    a: float = 0.0


def _one(k: int, d: int) -> float:
    return 1.0


PRINTED = (
    PrintedRow(
        "Chan et al.",
        "chan",
        "min(√k, d^(1/3))",
        "0",
        "min(√k, d*^(1/3))",
        "kε / factor",
        lambda k, d: min(math.sqrt(k), d ** (1 / 3)),
    ),
    PrintedRow(
        "MISDP",
        "convex-relaxation",
        "min(k, d/k)",
        "0",
        "min(k, d*/k)",
        "kε / factor",
        lambda k, d: min(k, d / k),
    ),
    PrintedRow("Greedy", "greedy", "k", "0", "k", "ε", lambda k, d: k),
    PrintedRow("Exact", "branch-and-bound", "1", "0", "1", "kε", _one),
    PrintedRow(
        "Asteris et al.", "low-rank, with δ", "1", "δ", "1", "kε + δ", _one, DELTA
    ),
)


def factors(measurements: Measurements) -> ReproducedTable:
    """Evaluate the printed formulas and the solvers' guarantees at several sizes."""
    rows = (
        _row(printed, *point)
        for printed in PRINTED
        for point in POINTS
        if printed.m(point[0], point[2]) >= 1
    )
    return make_table(NAME, rows, epsilon=EPSILON, delta=DELTA)


def _row(printed: PrintedRow, k: int, d: int, block: int) -> dict[str, Any]:
    promised = guarantee_table(k, d, EPSILON, block, delta=DELTA)
    found = next(row for row in promised if row.algorithm == printed.solver)
    m = printed.m(k, block)
    expected = (printed.m(k, d), printed.a, m, printed.a + k * EPSILON / m)
    measured = (found.factor, found.error, found.block_factor, found.block_error)
    verdict = Verdict.WORSE
    if all(math.isclose(a, b) for a, b in zip(expected, measured, strict=True)):
        verdict = Verdict.EQUAL
    elif found.factor <= expected[0] and found.block_factor <= expected[2]:
        verdict = Verdict.BETTER
    names = ("factor", "error", "block_factor", "block_error")
    return {
        "algorithm": printed.algorithm,
        "k": k,
        "d": d,
        "block": block,
        "verdict": verdict,
        **{
            f"paper_{name}": _with_value(getattr(printed, name), value)
            for name, value in zip(names, expected, strict=True)
        },
        **dict(zip(names, measured, strict=True)),
    }


def _with_value(formula: str, value: float) -> str:
    return formula if formula in ("0", "1") else f"{formula} = {value:.4g}"
