"""The whole pipeline on one screen: covariance → blocks → solver → result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ._validation import check_real, check_sparsity
from .blocks.framework import BlockSolve, block_solve, claim
from .blocks.path import threshold_path
from .blocks.strategies import BlockSearch, FixedThreshold, ThresholdStrategy
from .covariance import Covariance, as_covariance
from .progress import Progress, as_progress
from .result import Result, Status
from .solvers.adapters import as_solver
from .solvers.base import Deadline, Limits, Solver
from .solvers.local_search import LocalSearch


def solve(
    cov: Covariance | Any,
    k: int,
    *,
    solver: Solver | Callable[..., Any] | None = None,
    threshold: ThresholdStrategy | float | None = None,
    limits: Limits | None = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
    progress: Progress | bool | None = None,
) -> Result:
    """Solve max x'Ax over unit vectors x with at most k nonzeros.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k : int
        How many features the component may use.
    solver : Solver or callable f(A, k) -> x, optional
        The algorithm for a block; `LocalSearch()` by default.
    threshold : strategy or float, optional
        How the blocks are chosen: `BlockSearch()` by default; `FixedThreshold(eps)`,
        for which a number is short; `NoiseThreshold()`.
    limits : Limits, optional
        Time, nodes, gap and memory for the whole call. When one is reached, or on
        Ctrl-C, the result holds the best solution so far.
    n_jobs : int, optional
        Blocks solved at a time (joblib); the answer is the same for every value.
    rng : int or Generator, optional
        For solvers that draw random numbers; 0 by default.
    progress : bool or callable, optional
        True shows a progress bar; a callable gets (done, total, objective).

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> result = bs.solve(A, k=2)
    >>> result.support, round(result.objective, 6)
    (array([0, 1]), 3.0)
    """
    cov = as_covariance(cov)
    k = check_sparsity(k, cov.n_features)
    chosen = as_solver(LocalSearch() if solver is None else solver)
    strategy = _as_strategy(threshold)
    limits = Limits() if limits is None else limits
    deadline = Deadline(limits.time)
    seed = _as_seed(rng)
    solves: list[BlockSolve] = []
    try:
        with as_progress(progress) as report:
            path = threshold_path(cov, deadline=deadline)
            timings = {"threshold path": deadline.elapsed()}

            def solve_at(epsilon: float) -> BlockSolve:
                spent = sum(s.nodes for s in solves)
                left = limits.nodes and max(1, limits.nodes - spent)
                solved = block_solve(
                    cov,
                    k,
                    epsilon,
                    chosen,
                    path=path,
                    limits=replace(limits, time=deadline.remaining(), nodes=left),
                    n_jobs=n_jobs,
                    seed=seed,
                    progress=report,
                )
                solves.append(solved)
                return solved

            best, visits = strategy.search(cov, k, path, solve_at)
    except TimeoutError:
        return _single_feature(cov, k, Status.TIME_LIMIT, deadline, chosen.name)
    except KeyboardInterrupt:
        if not solves:
            return _single_feature(cov, k, Status.INTERRUPTED, deadline, chosen.name)
        best, visits = max(solves, key=lambda s: s.objective), ()
    timings["blocks"] = deadline.elapsed() - timings["threshold path"]
    status, upper_bound = _strongest_claim(best, solves, limits)
    guarantee = chosen.guarantee.after_blocks(k, best.blocks.largest, best.epsilon)
    return Result(
        x=best.x,
        support=best.support,
        objective=best.objective,
        upper_bound=upper_bound,
        status=status,
        k=k,
        n_features=cov.n_features,
        message=best.message,
        bound_name="blocks + (k − 1) · largest entry between them",
        threshold=best.epsilon,
        blocks=best.blocks,
        visits=visits,
        guarantee=guarantee,
        nodes=sum(s.nodes for s in solves),
        time=deadline.elapsed(),
        timings=timings,
        solver=chosen.name,
        feature_names=cov.feature_names,
    )


def _strongest_claim(
    best: BlockSolve, solves: list[BlockSolve], limits: Limits
) -> tuple[Status, float]:
    """Each threshold's bound holds for A, so the least one does, with its status."""
    upper_bound = max(best.objective, min(s.upper_bound for s in solves))
    return claim(best.objective, upper_bound, limits, solves[-1].stopped), upper_bound


def _as_strategy(threshold: ThresholdStrategy | float | None) -> ThresholdStrategy:
    if threshold is None:
        return BlockSearch()
    if hasattr(threshold, "search") and not isinstance(threshold, type):
        return threshold
    return FixedThreshold(check_real(threshold, "threshold", minimum=0))


def _as_seed(rng: int | np.random.Generator | None) -> int:
    if rng is None:
        return 0
    return int(np.random.default_rng(rng).integers(2**32))


def _single_feature(
    cov: Covariance, k: int, status: Status, deadline: Deadline, solver: str
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
        solver=solver,
        feature_names=cov.feature_names,
    )
