"""Peers against the proved optimum: value and time on the same matrices, in one run.

BLOCKSPCA_DATA=.../data python benchmarks/peers.py [--output DIR] [--seeds N]

scikit-learn's SparsePCA and MiniBatchSparsePCA, tuned to k nonzeros by bisection on
alpha, abess where it is installed, our branch and bound, and the certified path. Each
value is x'Ax on the original matrix for the support that was found, with loadings
optimised there, so that a peer is not blamed for its shrinkage. The time of a tuned
peer includes the search for alpha, at most twelve fits: without it there is no k.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import blockspca as bs
from blockspca.solvers import (
    Abess,
    BranchAndBound,
    Limits,
    ScikitLearnMiniBatchSparsePCA,
    ScikitLearnSparsePCA,
)
from blockspca.vectors import on_support
from common import load, machine, markdown, seconds

SETS = ("pitprops", "Eisen2Cov", "normCommunities", "CovColon", "LymphomaCov1")
SPARSITIES = (5, 10)
SEEDS = 3


def peers() -> dict[str, Any]:
    """Return the solvers that draw random numbers or are not ours."""
    found: dict[str, Any] = {
        "scikit-learn SparsePCA": ScikitLearnSparsePCA(),
        "scikit-learn MiniBatchSparsePCA": ScikitLearnMiniBatchSparsePCA(),
    }
    if find_spec("abess") is not None:
        found["abess"] = Abess()
    return found


def certified_row(A: np.ndarray, k: int) -> dict[str, Any]:
    cov = bs.Covariance.from_matrix(A)
    taken, path = seconds(lambda: bs.solve_path(cov, k))
    return {
        "method": "certified path",
        "objective": path[k].objective,
        "seconds": taken,
        "status": str(path[k].status),
    }


def branch_and_bound_row(A: np.ndarray, k: int, limit: float) -> dict[str, Any]:
    start = time.perf_counter()
    found = BranchAndBound().solve(A, k, limits=Limits(time=limit))
    taken = time.perf_counter() - start
    return {
        "method": "branch and bound",
        "objective": on_support(A, np.flatnonzero(found.x))[1],
        "seconds": taken,
        "status": str(found.status),
    }


def peer_row(
    name: str, solver: Any, A: np.ndarray, k: int, n_seeds: int, limit: float
) -> dict[str, Any]:
    """Return the median value and time over several seeds."""
    values, times = [], []
    for seed in range(n_seeds):
        start = time.perf_counter()
        found = solver.solve(
            A, k, limits=Limits(time=limit), rng=np.random.default_rng(seed)
        )
        times.append(time.perf_counter() - start)
        values.append(on_support(A, np.flatnonzero(found.x))[1])
    return {
        "method": name,
        "objective": statistics.median(values),
        "worst": min(values),
        "best": max(values),
        "seconds": statistics.median(times),
        "status": "heuristic",
        "seeds": n_seeds,
    }


def case(name: str, k: int, n_seeds: int, limit: float) -> list[dict[str, Any]]:
    """Run every method on one matrix; the certified path first, as the yardstick."""
    A = np.ascontiguousarray(load(name))
    yardstick = certified_row(A, k)
    rows = [yardstick, branch_and_bound_row(A, k, limit)]
    rows += [
        peer_row(method, solver, A, k, n_seeds, limit)
        for method, solver in peers().items()
    ]
    for row in rows:
        row |= {
            "data": name,
            "d": len(A),
            "k": k,
            "below_optimum": 1 - row["objective"] / yardstick["objective"],
            "times_certified": row["seconds"] / yardstick["seconds"],
        }
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    header = ["data", "d", "k", "method", "objective", "below the optimum"]
    header += ["time, certified path = 1", "status"]
    cells = [
        [
            row["data"],
            row["d"],
            row["k"],
            row["method"],
            f"{row['objective']:.6g}",
            f"{max(0.0, row['below_optimum']):.2%}",
            f"{row['times_certified']:.1f}",
            row["status"],
        ]
        for row in rows
    ]
    return markdown(header, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a folder for peers.json and .md")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    small = np.cov(np.random.default_rng(0).normal(size=(20, 9)).T)
    certified_row(small, 3)  # compile and import before anything is timed
    branch_and_bound_row(small, 3, 1.0)
    for name, solver in peers().items():
        peer_row(name, solver, small, 3, 1, 1.0)
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        for k in SPARSITIES:
            found = case(name, k, options.seeds, options.time_limit)
            rows += found
            print(table(found).split("\n", 2)[2], flush=True)
    text = [
        "# Peers against the proved optimum",
        "",
        f"On {machine()}; medians over {options.seeds} seeds, loadings optimised on "
        "the support that was found.",
        "",
        table(rows),
        "",
    ]
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        content = {"machine": machine(), "seeds": options.seeds, "rows": rows}
        path = options.output / "peers.json"
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        (options.output / "peers.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
