"""The framework as a whole: a strategy's thresholds, solved, as one result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..covariance import Covariance
from ..progress import Event, Listener
from ..result import Result, Status
from ..solvers.base import Deadline, Limits, Solver
from .framework import BlockSolve, block_solve, claim
from .path import threshold_path
from .strategies import ThresholdStrategy

BOUND_NAME = "blocks + (k − 1) · largest entry between them"


def solve_blocks(
    cov: Covariance,
    k: int,
    solver: Solver,
    strategy: ThresholdStrategy,
    limits: Limits,
    *,
    n_jobs: int | None = None,
    seed: int = 0,
    tell: Listener | None = None,
) -> Result:
    """Solve at the thresholds that the strategy chooses; return the best.

    Every threshold gives an upper bound on the original matrix, so the least of them
    is one. Limits hold for all thresholds together.
    """
    deadline = Deadline(limits.time)
    solves: list[BlockSolve] = []

    def solve_at(epsilon: float) -> BlockSolve:
        def report(done: int, total: int, objective: float) -> None:
            if tell is not None:
                tell(
                    Event(
                        "blocks", done, total, k, objective, elapsed=deadline.elapsed()
                    )
                )

        spent = sum(solved.nodes for solved in solves)
        left = limits.nodes and max(1, limits.nodes - spent)
        solved = block_solve(
            cov,
            k,
            epsilon,
            solver,
            path=path,
            limits=replace(limits, time=deadline.remaining(), nodes=left),
            n_jobs=n_jobs,
            seed=seed,
            progress=report,
        )
        solves.append(solved)
        return solved

    try:
        path = threshold_path(cov, deadline=deadline)
        path_time = deadline.elapsed()
        best, visits = strategy.search(cov, k, path, solve_at)
    except TimeoutError:
        return _single_feature(cov, k, Status.TIME_LIMIT, deadline, solver)
    except KeyboardInterrupt:
        if not solves:
            return _single_feature(cov, k, Status.INTERRUPTED, deadline, solver)
        best, visits = max(solves, key=lambda solved: solved.objective), ()
    upper_bound = max(best.objective, min(solved.upper_bound for solved in solves))
    return Result(
        x=best.x,
        support=best.support,
        objective=best.objective,
        upper_bound=upper_bound,
        status=claim(best.objective, upper_bound, limits, solves[-1].stopped),
        k=k,
        n_features=cov.n_features,
        message=best.message,
        bound_name=BOUND_NAME,
        threshold=best.epsilon,
        blocks=best.blocks,
        visits=visits,
        guarantee=solver.guarantee.after_blocks(k, best.blocks.largest, best.epsilon),
        nodes=sum(solved.nodes for solved in solves),
        time=deadline.elapsed(),
        timings={
            "threshold path": path_time,
            "blocks": deadline.elapsed() - path_time,
        },
        solver=solver.name,
        feature_names=cov.feature_names,
    )


def _single_feature(
    cov: Covariance, k: int, status: Status, deadline: Deadline, solver: Solver
) -> Result:
    """All that is known when a run is stopped before its first block."""
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
        time=deadline.elapsed(),
        solver=solver.name,
        feature_names=cov.feature_names,
    )
