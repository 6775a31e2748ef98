"""The framework: solves the blocks at the thresholds that a strategy chooses."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from .._kernels.loading import load
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..progress import Event, Listener
from ..result import Result, Visit
from ..scan.lists import scan, scan_kernels
from ..solvers.base import Solver, SolverError
from ..status import Status, status_of_gap
from .block_solve import BlockSolve, block_solve, is_plug_in
from .forest import path_to_size
from .strategies import ThresholdStrategy
from .threshold_path import IncompletePathError, ThresholdPath, threshold_path

LONGEST_LISTS = 64  # the time of a scan grows with them; see forest.py


def solve_blocks(
    cov: Covariance,
    k: int,
    solver: Solver,
    strategy: ThresholdStrategy,
    limits: Limits,
    *,
    n_jobs: int | None,
    seed: int,
    callback: Listener,
) -> Result:
    """Solve at the thresholds that the strategy chooses; return the best.

    Every threshold gives an upper bound on the original matrix; the least is returned.
    Limits are for all thresholds together.
    """
    budget = Budget(limits)
    solves: list[BlockSolve] = []

    def solve_at(epsilon: float) -> BlockSolve:
        def report(event: Event) -> None:
            callback(replace(event, elapsed=budget.elapsed()))  # of all thresholds

        solved = block_solve(
            cov,
            k,
            epsilon,
            solver,
            path=path,
            limits=budget.left(),
            n_jobs=n_jobs,
            seed=seed,
            callback=report,
        )
        solves.append(solved)
        budget.nodes += solved.nodes
        return solved

    stopped: Status | None = None
    visits: tuple[Visit, ...]
    try:
        path = _path(cov, k, strategy, budget, callback)
        path_time = budget.elapsed()
        try:
            best, visits = strategy.search(cov, k, path, solve_at)
        except IncompletePathError:  # a threshold below what the scan covers
            path = threshold_path(cov, deadline=budget, memory=budget.limits.memory)
            path_time = budget.elapsed()
            best, visits = strategy.search(cov, k, path, solve_at)
    except TimeoutError:
        return _single_feature(cov, k, Status.TIME_LIMIT, budget, solver)
    except KeyboardInterrupt:
        if not solves:
            return _single_feature(cov, k, Status.INTERRUPTED, budget, solver)
        stopped = Status.INTERRUPTED
        best = max(solves, key=lambda solved: solved.objective)
        visits = tuple(
            Visit(s.epsilon, s.blocks.largest, "solved", s.objective) for s in solves
        )
    upper_bound = max(best.objective, min(solved.upper_bound for solved in solves))
    guarantee = None
    if best.complete:
        guarantee = solver.guarantee.after_blocks(k, best.blocks.largest, best.epsilon)
    failures = _failures(cov, solves, solver)
    if failures:
        if all(len(solved.failed) == len(solved.given) for solved in solves):
            raise SolverError(f"{failures} It solved no block.")
        warnings.warn(f"{failures} The others count.", stacklevel=3)
    ended = stopped or solves[-1].stopped
    return Result(
        x=best.x,
        support=best.support,
        objective=best.objective,
        upper_bound=upper_bound,
        status=status_of_gap(best.objective, upper_bound, limits.gap, ended),
        k=k,
        n_features=cov.n_features,
        message=" ".join(filter(None, (failures, _replaced(solves, best, solver)))),
        bound_name=BoundName.BLOCKS,
        threshold=best.epsilon,
        blocks=best.blocks,
        visits=visits,
        guarantee=guarantee,
        nodes=budget.nodes,
        time=budget.elapsed(),
        timings={
            "threshold path": path_time,
            "blocks": budget.elapsed() - path_time,
        },
        solver=solver.name,
        feature_names=cov.feature_names,
    )


def _replaced(solves: list[BlockSolve], best: BlockSolve, solver: Solver) -> str:
    """The message that the loadings of a plug-in were not kept, if they were not."""
    if not is_plug_in(solver):
        return ""
    if best.blocks.labels[best.support[0]] not in best.given:
        return (
            f"Solver {solver.name!r} was not asked: the best block has at most k "
            "features, and loadings are the best for them. What it asks of loadings, "
            "such as signs, is not kept: pass it as constraints=."
        )
    if not any(solved.replaced for solved in solves):
        return ""
    return (
        f"The vectors of solver {solver.name!r} are not the best on their features; "
        "only its features count, and loadings are the best for them. What it asks of "
        "loadings, such as signs, is not kept: pass it as constraints=."
    )


def _failures(cov: Covariance, solves: list[BlockSolve], solver: Solver) -> str:
    """The message about blocks on which the solver failed, if it did."""
    failed = [(solved, b) for solved in solves for b in solved.failed]
    if not failed:
        return ""
    solved, b = failed[0]
    report = solved.blocks[b]
    first = cov.names_of(report.features[:1])[0]
    given = sum(len(solved.given) for solved in solves)
    return (
        f"solver {solver.name!r} failed on block {b} at ε = {solved.epsilon:.4g} "
        f"({report.size} features, first {first!r}): it {report.message}. "
        f"{len(failed)} of {given} blocks failed."
    )


def _path(
    cov: Covariance,
    k: int,
    strategy: ThresholdStrategy,
    budget: Budget,
    callback: Listener,
) -> ThresholdPath:
    """The whole threshold path, or, for data, down to the largest block to be solved.

    For data it is made from a scan, which the proof uses too.
    """
    if cov.in_memory:
        return threshold_path(cov, deadline=budget, memory=budget.limits.memory)

    def check() -> None:
        if budget.passed():
            raise TimeoutError("the time was up before the scan was complete")

    def report(done: int, total: int) -> None:
        objective = float(cov.diagonal().max())
        callback(Event("scan", done, total, k, objective, elapsed=budget.elapsed()))

    if not budget.loads(load, *scan_kernels(cov)):
        raise TimeoutError("the time was up before the scan was compiled")
    wanted = getattr(strategy, "largest_useful_block", lambda k: k)(k)
    width = min(max(wanted, k - 1, 1), LONGEST_LISTS)
    found = scan(cov, width, check, memory=budget.limits.memory, progress=report)
    return path_to_size(cov, found, wanted, check, budget.limits.memory)


def _single_feature(
    cov: Covariance, k: int, status: Status, budget: Budget, solver: Solver
) -> Result:
    """The result when a run is stopped before its first block."""
    best = int(np.argmax(cov.diagonal()))
    x = np.zeros(cov.n_features)
    x[best] = 1.0
    return Result(
        x=x,
        support=np.array([best], dtype=np.intp),
        objective=float(cov.diagonal()[best]),
        upper_bound=float("inf"),
        status=status,
        k=k,
        n_features=cov.n_features,
        message="stopped before the first block was solved",
        time=budget.elapsed(),
        solver=solver.name,
        feature_names=cov.feature_names,
    )
