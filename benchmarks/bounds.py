"""Upper bounds of opt(k) by every method that has one: gap and time, side by side.

BLOCKSPCA_DATA=.../data OPENBLAS_NUM_THREADS=1 python benchmarks/run.py bounds

Each method gets SECONDS for each set and k. The gap is bound / best objective − 1, the
best objective being that of any method. `solve` is the library as it is by default;
the others are solvers that know nothing of it, on the whole matrix. Times are those of
the processor, which others on the machine do not take; the limit is on the clock.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import blockspca as bs
from blockspca import solvers
from common import Options, Report, load

SECONDS = 60.0
SETS = {"pitprops": (5, 10), "normIonosphere": (5, 10), "normMiniBooNE": (5, 10)}
QUICK = {"pitprops": (5,)}

METHODS = {
    "solve": None,
    "branch and bound": solvers.BranchAndBound(),
    "mixed-integer SDP": solvers.MixedIntegerSDP(),
    "mixed-integer QP": solvers.MixedIntegerQP(),
    "ℓ1 integer program": solvers.L1IntegerProgram(),
    "subexponential search, ℓ = 3": solvers.SubexponentialSearch(3),
    "convex relaxation": solvers.ConvexRelaxation(),
    "semidefinite relaxation": solvers.SemidefiniteRelaxation(),
}


def measure(name: str, A: np.ndarray, k: int) -> dict[str, Any]:
    """Objective, bound, seconds and status of one method."""
    limits = bs.Limits(time=SECONDS)
    solver = METHODS[name]
    start = time.process_time()
    found: Any = (
        bs.solve(A, k, limits=limits)
        if solver is None
        else solver.solve(A, k, limits=limits)
    )
    elapsed = time.process_time() - start
    return {
        "method": name,
        "objective": float(found.x @ A @ found.x),
        "bound": float(found.upper_bound),
        "seconds": elapsed,
        "status": str(found.status),
    }


def report(options: Options) -> Report:
    sets = QUICK if options.quick else SETS
    small = np.cov(np.random.default_rng(0).normal(size=(20, 6)).T)
    for name in METHODS:  # compile what needs it
        measure(name, small, 2)
    rows = []
    for data, ks in sets.items():
        A = load(data)
        for k in ks:
            found = [measure(name, A, k) for name in METHODS]
            best = max(row["objective"] for row in found)
            for row in found:
                gap = 100 * (row["bound"] / best - 1)
                short = 100 * (1 - row["objective"] / best)
                case = f"{data} (d = {len(A)}), k = {k}"
                rows.append({"case": case, "gap": gap, "short": short, **row})
    result = Report(
        "Upper bounds, method by method",
        [
            f"At most {SECONDS:g} s on the clock each; seconds of the processor. Gaps "
            "and shortfalls in percent of the best objective of all."
        ],
    )
    columns = {
        "case": ("case", ""),
        "method": ("method", ""),
        "bound": ("bound", ".4f"),
        "gap": ("gap, %", ".3f"),
        "short": ("objective short of the best, %", ".2f"),
        "seconds": ("seconds", ".2f"),
        "status": ("status", ""),
    }
    result.add("bounds", columns, rows)
    return result
