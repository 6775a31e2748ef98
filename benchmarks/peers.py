"""Peers against the proved optimum: value and time on the same matrices, in one run.

BLOCKSPCA_DATA=.../data python benchmarks/run.py peers

scikit-learn's SparsePCA and MiniBatchSparsePCA, tuned to k nonzeros by bisection on
alpha, abess and skscope where they are installed, our branch and bound, and the
certified path. Each value is x'Ax on the original matrix for the support that was
found, with loadings optimised there, so that a peer is not blamed for its shrinkage.
The time of a tuned peer includes the search for alpha, at most twelve fits: without it
there is no k.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import blockspca as bs
from blockspca.numerics.linalg import on_support
from blockspca.solvers import (
    Abess,
    BranchAndBound,
    Limits,
    ScikitLearnMiniBatchSparsePCA,
    ScikitLearnSparsePCA,
)
from common import Options, Report, load, seconds, short

SETS = (
    "pitprops",
    "Eisen1Cov",
    "Eisen2Cov",
    "normCommunities",
    "CovColon",
    "LymphomaCov1",
)
SPARSITIES = (5, 10)
LIMIT = 20.0  # seconds for one fit

#: f(A, k, seed) -> support
Peer = Callable[[np.ndarray, int, int], np.ndarray]

COLUMNS = {
    "data": ("data", ""),
    "d": ("d", ""),
    "k": ("k", ""),
    "method": ("method", ""),
    "objective": ("objective", ".6g"),
    "below_optimum": ("below the optimum", ".2%"),
    "worst_below": ("its worst seed", ".2%"),
    "times_certified": ("time, certified path = 1", ".1f"),
    "status": ("status", ""),
}


def from_solver(solver: Any) -> Peer:
    def find(A: np.ndarray, k: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        found = solver.solve(A, k, limits=Limits(time=LIMIT), rng=rng)
        return np.flatnonzero(found.x)

    return find


def scope(A: np.ndarray, k: int, seed: int) -> np.ndarray:
    """skscope on −x'Ax + ‖x‖⁴/2, whose minimisers are those of sparse PCA.

    Not the Rayleigh quotient: at x = 0, where it starts supports, that is 0/0.
    """
    import jax
    import jax.numpy as jnp
    from skscope import ScopeSolver

    jax.config.update("jax_enable_x64", True)
    scaled = jnp.asarray(A / np.abs(A).max())

    def loss(x: Any) -> Any:
        return -(x @ scaled @ x) + (x @ x) ** 2 / 2

    d = len(A)
    start = np.random.default_rng(seed).normal(size=d) / np.sqrt(d)
    solver = ScopeSolver(d, sparsity=k, random_state=seed)
    solver.solve(loss, init_params=start, jit=True)
    return np.flatnonzero(solver.get_estimated_params())


def peers() -> dict[str, Peer]:
    """Return what is installed of the packages that users pick today."""
    found = {
        "scikit-learn SparsePCA": from_solver(ScikitLearnSparsePCA()),
        "scikit-learn MiniBatchSparsePCA": from_solver(ScikitLearnMiniBatchSparsePCA()),
    }
    if find_spec("abess") is not None:
        found["abess"] = from_solver(Abess())
    if find_spec("skscope") is not None:
        found["skscope"] = scope
    return found


def certified_row(A: np.ndarray, k: int) -> dict[str, Any]:
    taken, path = seconds(lambda: bs.solve_path(bs.Covariance.from_matrix(A), k))
    return {
        "method": "certified path",
        "objective": path[k].objective,
        "seconds": taken,
        "status": str(path[k].status),
    }


def branch_and_bound_row(A: np.ndarray, k: int) -> dict[str, Any]:
    limits = Limits(time=LIMIT)
    taken, found = seconds(lambda: BranchAndBound().solve(A, k, limits=limits))
    return {
        "method": "branch and bound",
        "objective": on_support(A, np.flatnonzero(found.x))[1],
        "seconds": taken,
        "status": str(found.status),
    }


def peer_row(
    name: str, peer: Peer, A: np.ndarray, k: int, seeds: list[int]
) -> dict[str, Any]:
    """Return the median value and time over several seeds."""
    values, times = [], []
    for seed in seeds:
        start = time.perf_counter()
        support = peer(A, k, seed)
        times.append(time.perf_counter() - start)
        values.append(on_support(A, support)[1])
    return {
        "method": name,
        "objective": statistics.median(values),
        "worst": min(values),
        "best": max(values),
        "seconds": statistics.median(times),
        "status": "heuristic",
    }


def one_problem(name: str, A: np.ndarray, k: int, seeds: list[int]) -> list[dict]:
    """Run every method on one matrix; the certified path first, as the yardstick."""
    yardstick = certified_row(A, k)
    rows = [yardstick, branch_and_bound_row(A, k)]
    rows += [peer_row(method, peer, A, k, seeds) for method, peer in peers().items()]
    optimum = yardstick["objective"]
    for row in rows:
        row |= {
            "data": name,
            "d": len(A),
            "k": k,
            "below_optimum": max(0.0, 1 - row["objective"] / optimum),
            "times_certified": row["seconds"] / yardstick["seconds"],
        }
        if "worst" in row:
            row["worst_below"] = max(0.0, 1 - row["worst"] / optimum)
    return rows


def summary(rows: list[dict]) -> list[str]:
    """Say in ratios what the table says."""
    problems = sum(row["method"] == "certified path" for row in rows)
    text = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        if method == "certified path":
            continue
        missed = [row for row in own if row["below_optimum"] > 1e-9]
        ratios = [row["times_certified"] for row in own]
        most = max(row["below_optimum"] for row in own)
        text.append(
            f"{method}: below the optimum on {len(missed)} of {problems} problems, by "
            f"up to {most:.1%}; {short(min(ratios))} to {short(max(ratios))} times the "
            f"time of the certified path, {short(statistics.median(ratios))} in the "
            "median."
        )
    return text


def report(options: Options) -> Report:
    seeds = options.seeds[:1] if options.quick else options.seeds
    small = np.cov(np.random.default_rng(0).normal(size=(20, 9)).T)
    one_problem("warm-up", small, 3, [0])
    rows = [
        row
        for name in (SETS[:1] if options.quick else SETS)
        for k in SPARSITIES
        for row in one_problem(name, np.ascontiguousarray(load(name)), k, seeds)
    ]
    found = Report(
        "Peers against the proved optimum",
        [
            f"Values and times are medians over {len(seeds)} seeds, loadings optimised "
            "on the support that was found.",
            *summary(rows),
        ],
        seeds=seeds,
    )
    found.add("Peers", COLUMNS, rows)
    return found
