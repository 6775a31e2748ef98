"""Standardised data and given matrices: what ten seconds prove for k from 30 to 300.

    python benchmarks/run.py standardised --output DIR
    python benchmarks/run.py standardised --rows gordon srbct_khan:50 --output DIR

The second measures sets, or some k of a set, again. DIR/standardised.md has the tables
of the page docs/benchmark-standardised.md. Twelve minutes at most, on two cores.

Every set as correlations, k = 30, 50, 100 and 300; given matrices also as they are,
k = 30, 100 and 200. Each set has a process of its own, in which kernels are compiled
before the clock starts; its rows are kept in build/standardised/SET.json, and a set
that is there is not measured again, unless it is named.

On a machine that has others to serve, BLOCKSPCA_CLOCK=processor counts the seconds of
the limit on the processor's clock, of all threads together; with one thread that is
what a quiet core would take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import blockspca as bs
from blockspca._kernels.loading import PROVING, SCANNING, load
from common import DATA, ROOT, Options, Report, contents, correlations

Row = dict[str, Any]

SECONDS = 10.0
OF_CORRELATIONS = (30, 50, 100, 300)
OF_MATRICES = (30, 100, 200)
QUICK_SETS = ("pitprops", "Eisen1Cov", "CovColon")
KEPT = ROOT / "build" / "standardised"
ON_PROCESSOR = os.environ.get("BLOCKSPCA_CLOCK") == "processor"


def problems(name: str) -> list[tuple[str, bs.Covariance, tuple[int, ...]]]:
    """Return the matrices of a set, with the k that each is solved for."""
    key, array = contents(name)
    if key == "X":
        cov = bs.Covariance.from_data(array, scale=True, constant="ignore")
        return [("correlation", cov, OF_CORRELATIONS)]
    correlation = bs.Covariance.from_matrix(correlations(array))
    ks = tuple(sorted({*OF_CORRELATIONS, *OF_MATRICES}))
    given = bs.Covariance.from_matrix(array)
    return [("correlation", correlation, ks), ("as given", given, OF_MATRICES)]


def measured(name: str, cov: bs.Covariance, matrix: str, k: int) -> Row:
    start, busy = time.perf_counter(), time.process_time()
    result = bs.solve(cov, k, limits=bs.Limits(time=SECONDS))
    return {
        "set": name,
        "matrix": matrix,
        "d": cov.n_features,
        "k": k,
        "objective": result.objective,
        "gap": 100 * result.gap,
        "status": result.status.value,
        "bound": str(result.bound_name),
        "nodes": result.nodes,
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - busy,
    }


def rows_of(name: str, wanted: set[int]) -> list[Row]:
    """Measure one set, for some k, or for all if none is named."""
    load(*PROVING, *SCANNING)
    warm = np.random.default_rng(0).normal(size=(40, 60))
    warm[:, :31] += 3 * warm[:, :1]  # easy: all that is compiled is used, and it ends
    for cov in (bs.Covariance.from_data(warm, scale=True), np.cov(warm.T)):
        for k in (5, 31):
            bs.solve(cov, k, limits=bs.Limits(time=5))
    if ON_PROCESSOR:
        for name_of_clock in ("perf_counter", "monotonic", "time"):
            setattr(time, name_of_clock, time.process_time)
    return [
        measured(name, cov, matrix, k)
        for matrix, cov, ks in problems(name)
        for k in ks
        if k < cov.n_features and (not wanted or k in wanted)
    ]


def kept_rows(name: str, again: set[int] | None) -> list[Row]:
    """Measure a set in a process of its own, unless that was done before.

    `again` are the k to measure whatever is known of them, all if it is empty.
    """
    file = KEPT / f"{name}.json"
    rows: list[Row] = []
    if file.exists():
        rows = json.loads(file.read_text(encoding="utf-8"))
    if rows and again is None:
        return rows
    command = [sys.executable, __file__, name, *map(str, sorted(again or ()))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {(row["matrix"], row["k"]): row for row in rows}
    found |= {(row["matrix"], row["k"]): row for row in json.loads(done.stdout)}
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = [
        found[key]
        for key in sorted(found, key=lambda key: (key[0] != "correlation", key[1]))
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")
    return rows


def named(rows: Sequence[str], names: Sequence[str]) -> dict[str, set[int]]:
    """The k of each set that are to be measured again, from SET and SET:K."""
    found: dict[str, set[int]] = {}
    for row in rows:
        name, _, k = row.partition(":")
        if name not in names or (k and not k.isdigit()):
            raise SystemExit(
                f"standardised has no row {row}; name a set, or a set and k, such as "
                f"gordon:100. Sets are {', '.join(names)}"
            )
        found.setdefault(name, set()).update({int(k)} if k else set())
    return found


def summary(rows: list[Row]) -> list[Row]:
    """How many rows are proved, and how wide the gaps of the others are, for each k."""
    found = []
    for matrix in ("correlation", "as given"):
        for k in sorted({row["k"] for row in rows if row["matrix"] == matrix}):
            gaps = [
                row["gap"] if row["status"] != "optimal" else 0.0
                for row in rows
                if row["matrix"] == matrix and row["k"] == k
            ]
            found.append(
                {
                    "matrix": matrix,
                    "k": k,
                    "sets": len(gaps),
                    "proved": sum(gap == 0 for gap in gaps),
                    "within_1": sum(gap <= 1 for gap in gaps),
                    "within_3": sum(gap <= 3 for gap in gaps),
                    "widest": max(gaps),
                }
            )
    return found


def report(options: Options) -> Report:
    names = sorted(path.stem for path in Path(DATA).glob("*.npz"))
    if options.quick:
        names = [name for name in names if name in QUICK_SETS]
    again = named(options.rows, names)
    rows = [row for name in names for row in kept_rows(name, again.get(name))]
    found = Report("Benchmark: standardised data and given matrices")
    clock = "of processor time" if ON_PROCESSOR else "by the clock"
    found.notes.append(
        f"`solve(cov, k, limits=Limits(time={SECONDS:g}))`, seconds {clock}; gap = "
        "(upper bound − objective) / objective, in per cent."
    )
    found.add(
        "Summary",
        {
            "matrix": ("matrix", ""),
            "k": ("k", "d"),
            "sets": ("sets", "d"),
            "proved": ("proved", "d"),
            "within_1": ("≤ 1 %", "d"),
            "within_3": ("≤ 3 %", "d"),
            "widest": ("widest gap %", ".2f"),
        },
        summary(rows),
    )
    found.add(
        "Every row",
        {
            "set": ("set", ""),
            "matrix": ("matrix", ""),
            "d": ("d", "d"),
            "k": ("k", "d"),
            "objective": ("objective", ".6g"),
            "gap": ("gap %", ".3f"),
            "status": ("status", ""),
            "bound": ("bound", ""),
            "nodes": ("nodes", "d"),
            "seconds": ("s", ".1f"),
        },
        rows,
    )
    return found


if __name__ == "__main__":
    print(json.dumps(rows_of(sys.argv[1], set(map(int, sys.argv[2:])))))
