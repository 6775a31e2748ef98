"""Algorithm 3 of the paper: solve every block, lift the best solution back to A."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound, largest_eigenvalue_bound
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..numerics import cost as _cost
from ..numerics.linalg import leading_eigenvector, on_support, rayleigh
from ..numerics.rounding import EPS, power_of_two, sum_above
from ..numerics.threads import blas_limited_to, parallel_map
from ..progress import Event, Listener
from ..result import Blocks, BlockStatus
from ..solvers.base import Solution, Solver, SolverError
from ..status import STOPPED, Status, relative_gap, status_of_gap
from .threshold_path import ThresholdPath, split_by_label

TOLERANCE = 1e-9  # relative: by how much a bound of a solver may be below its objective
_CLEARLY = 1e-6  # relative: more than what a converged iteration can still gain
COPIES_IN_USE = 5  # arrays of the size of a block that a solver may hold at once
ONE_THREAD_UP_TO = 500  # features of the largest block: LAPACK gains nothing by more
FEW_NODES = 20_000  # a limit below is spent on one block at a time
START_SECONDS = 3.0  # that worker processes may take to start
EXTREME = 1e100  # beyond this, or below its inverse, squares overflow or vanish


@dataclass(frozen=True, eq=False)
class BlockSolve:
    """The best solution over the blocks at one threshold ε, and their bounds.

    `upper_bound` holds for the original matrix: the largest block bound plus (k − 1)
    times the largest entry between blocks. (The entries left out have a zero diagonal,
    and Σ_{i≠j} |x_i x_j| = ‖x‖₁² − 1 ≤ k − 1.)
    """

    epsilon: float
    x: FloatArray
    support: NDArray[np.intp]
    objective: float
    upper_bound: float
    status: Status
    blocks: Blocks
    stopped: Status | None = None  #: the limit that ended the run, if one did
    given: tuple[int, ...] = ()  #: the blocks that the solver was given
    replaced: int = 0  #: vectors of a plug-in that are not the best on their features

    @property
    def nodes(self) -> int:
        return int(self.blocks.nodes.sum())

    @property
    def failed(self) -> list[int]:
        """The blocks on which the solver failed."""
        return [b for b in self.given if self.blocks.statuses[b] is BlockStatus.FAILED]

    @property
    def complete(self) -> bool:
        """True if the solver finished every block that could matter."""
        finished = (BlockStatus.OPTIMAL, BlockStatus.FEASIBLE, BlockStatus.SKIPPED)
        return all(status in finished for status in self.blocks.statuses)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The result for one block, in the block's own indices."""

    status: BlockStatus
    support: NDArray[np.intp] | None = None
    objective: float = -math.inf
    upper_bound: float = math.inf
    nodes: int = 0
    message: str = ""
    replaced: bool = False


class _BlockTable:
    """The columns of `Blocks` while they are being filled, and the incumbent."""

    def __init__(
        self, cov: Covariance, k: int, path: ThresholdPath, epsilon: float
    ) -> None:
        self.cov, self.k, self.epsilon = cov, k, epsilon
        self.labels = labels = path.labels(epsilon)
        self.members = split_by_label(labels)
        p = len(self.members)
        self.sizes = np.bincount(labels)
        self.objectives = np.full(p, -math.inf)
        self.upper_bounds = np.full(p, math.inf)
        self.statuses = [BlockStatus.SKIPPED] * p
        self.nodes = np.zeros(p, dtype=np.int64)
        self.messages: dict[int, str] = {}
        self.replaced = 0
        variances = cov.diagonal()
        best = int(np.argmax(variances))
        # What entries between blocks and errors of entries may add, rounded up.
        outside = (k - 1) * path.largest_ignored(epsilon) + k * cov.entry_error
        self.outside = outside * (1 + 4 * EPS)
        self.support = np.array([best], dtype=np.intp)
        # The best single feature is the first incumbent.
        self.objective = float(variances[best])
        for b in np.flatnonzero(self.sizes == 1):
            self.objectives[b] = self.upper_bounds[b] = variances[self.members[b][0]]
            self.statuses[b] = BlockStatus.OPTIMAL

    def upper_bound(self) -> float:
        """Return the bound for A that follows from those of the blocks, rounded up."""
        within = float(self.upper_bounds.max())
        return sum_above([within, self.outside]) if self.outside else within

    def matrix(self, b: int) -> FloatArray:
        return np.ascontiguousarray(self.cov.submatrix(self.members[b]))

    def enter(self, b: int, outcome: _Outcome) -> None:
        self.statuses[b] = outcome.status
        self.nodes[b] = outcome.nodes
        self.replaced += outcome.replaced
        if outcome.message:
            self.messages[b] = outcome.message
        if outcome.support is None:
            return
        self.objectives[b] = outcome.objective
        # The cheap bound holds whatever a solver says; rounding may put either bound
        # below the objective.
        self.upper_bounds[b] = max(
            outcome.objective, min(self.upper_bounds[b], outcome.upper_bound)
        )
        if outcome.objective > self.objective:
            self.objective = outcome.objective
            self.support = self.members[b][outcome.support]

    def blocks(self) -> Blocks:
        found = self.objectives, self.upper_bounds, tuple(self.statuses)
        return Blocks(self.labels, self.sizes, *found, self.nodes, self.messages)


def block_solve(
    cov: Covariance,
    k: int,
    epsilon: float,
    solver: Solver,
    *,
    path: ThresholdPath,
    limits: Limits,
    n_jobs: int | None,
    seed: int,
    callback: Listener,
) -> BlockSolve:
    """Solve max x'Ax over the blocks of A at threshold ε (Algorithm 3).

    Limits are for all blocks together, of which `n_jobs` are solved at a time; each
    draws from its own stream, derived from the seed and its number. The callback gets
    an `Event` after each.

    Blocks are taken by descending upper bound, and those that cannot beat the incumbent
    are skipped. They go in batches of fixed sizes 2, 4, 8, …, and the incumbent changes
    between batches only: that is why parallel and serial runs agree. The blocks of a
    batch share the nodes that are left. With few nodes or a limit on memory they go one
    at a time, so that none is spent twice. Where k is at least the size of a block, its
    leading eigenvector is the answer (the PCA case).
    """
    budget = Budget(limits)
    table = _BlockTable(cov, k, path, epsilon)
    stopped: Status | None = None
    done: list[int] = []
    # On small blocks LAPACK is slower with several BLAS threads.
    small = int(table.sizes.max()) <= ONE_THREAD_UP_TO
    try:
        with blas_limited_to(1) if small else nullcontext():
            queue = _queue(table, solver, budget)
            for batch in _batches(queue, budget.limits):
                stopped = budget.stop_reason()
                if stopped or _gap_reached(table, budget.limits):
                    break
                batch = [b for b in batch if table.upper_bounds[b] > table.objective]
                tasks = _tasks(batch, table, solver, budget, seed)
                # With little time left, worker processes would not start in time.
                jobs = n_jobs if budget.affords(START_SECONDS) else 1
                for b, outcome in zip(batch, _run(tasks, jobs), strict=False):
                    done.append(b)
                    table.enter(b, outcome)
                    budget.nodes += outcome.nodes
                    event = Event("blocks", len(done), len(queue), k, table.objective)
                    callback(event)
                    if outcome.status is BlockStatus.INTERRUPTED:
                        raise KeyboardInterrupt
        # A limit may also have ended a solver within its block.
        within = (s for s in STOPPED if BlockStatus(s) in table.statuses)
        stopped = stopped or next(within, None)
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    ended = stopped or Status.GAP_LIMIT
    for b in np.flatnonzero(table.upper_bounds > table.objective).tolist():
        if table.statuses[b] is BlockStatus.SKIPPED:
            table.statuses[b] = BlockStatus(ended.value)
    # Smaller blocks are PCA, and no solver was asked.
    given = tuple(b for b in done if table.sizes[b] > k)
    # From A itself: solvers had the block in units of their own.
    x, objective = on_support(cov, table.support)
    bound = max(objective, table.upper_bound())
    return BlockSolve(
        epsilon=epsilon,
        x=x,
        support=np.flatnonzero(x),
        objective=objective,
        upper_bound=bound,
        status=status_of_gap(objective, bound, budget.limits.gap, stopped),
        blocks=table.blocks(),
        stopped=stopped,
        given=given,
        replaced=table.replaced,
    )


def _queue(table: _BlockTable, solver: Solver, budget: Budget) -> list[int]:
    """Bound every block of two features or more; the most promising comes first."""
    memory = budget.limits.memory
    larger = np.flatnonzero(table.sizes > 1)
    queue = []
    for b in larger.tolist():
        if budget.passed():
            break
        size = int(table.sizes[b])
        # Checked before the block is formed, which takes the memory.
        if memory is not None and 8 * COPIES_IN_USE * size**2 > memory:
            table.statuses[b] = BlockStatus.MEMORY_LIMIT
            table.messages[b] = f"{size} features need more than limits.memory"
            continue
        A = table.matrix(b)
        if size > table.k and solver.requires_psd and not table.cov.known_psd:
            if not budget.affords(_cost.eigenvalues(size)):
                table.statuses[b] = BlockStatus.TIME_LIMIT
                continue
            _refuse_indefinite(A, b, solver)
        table.upper_bounds[b] = cheap_bound(A, min(table.k, size), budget)
        queue.append(b)
    # Blocks with large bounds tend to have good components, which let others be
    # skipped; ties by number, so that the order is always the same.
    return sorted(queue, key=lambda b: (-table.upper_bounds[b], b))


def _refuse_indefinite(A: FloatArray, b: int, solver: Solver) -> None:
    eigenvalues = np.linalg.eigvalsh(A)
    if eigenvalues[0] < -TOLERANCE * max(abs(eigenvalues[-1]), abs(eigenvalues[0])):
        raise ValueError(
            f"solver {solver.name!r} requires a positive semidefinite matrix, but "
            f"block {b} ({len(A)} features) has the eigenvalue {eigenvalues[0]:.4g}; "
            "use a solver with requires_psd = False, or add a multiple of the identity "
            "to A, which moves every objective by that multiple."
        )


def _batches(queue: Sequence[int], limits: Limits) -> Iterator[list[int]]:
    few = limits.nodes is not None and limits.nodes < FEW_NODES
    one_at_a_time = few or limits.memory is not None
    start, size = 0, 1 if one_at_a_time else 2
    while start < len(queue):
        yield list(queue[start : start + size])
        start, size = start + size, 1 if one_at_a_time else 2 * size


def _gap_reached(table: _BlockTable, limits: Limits) -> bool:
    if limits.gap is None:
        return False
    return relative_gap(table.objective, table.upper_bound()) <= limits.gap


_Task = tuple[FloatArray, int, Solver, Limits, float | None, float, list[int]]


def _tasks(
    batch: list[int],
    table: _BlockTable,
    solver: Solver,
    budget: Budget,
    seed: int,
) -> list[_Task]:
    left = budget.left()
    if left.nodes is not None and batch:
        left = replace(left, nodes=max(1, left.nodes // len(batch)))
    # Wall-clock time, so that a worker process can tell how much of it is left.
    seconds = budget.ends_in()
    until = None if seconds is None else time.time() + seconds
    return [
        (table.matrix(b), table.k, solver, left, until, table.objective, [seed, b])
        for b in batch
    ]


def _run(tasks: list[_Task], n_jobs: int | None) -> Iterable[_Outcome]:
    """Run the tasks, in order."""
    try:
        return parallel_map(_solve_block, tasks, n_jobs)
    except Exception as error:  # a worker died, or the solver cannot be sent to one
        failure = _Outcome(
            BlockStatus.FAILED,
            message=f"could not be run with n_jobs = {n_jobs} "
            f"({type(error).__name__}: {error})",
        )
        return [failure for _ in tasks]


def _solve_block(task: _Task) -> _Outcome:
    """Solve one block; a failure of the solver becomes an outcome, not an error."""
    A, k, solver, limits, until, incumbent, entropy = task
    size = len(A)
    largest = float(np.abs(A).max())
    if until is not None:
        limits = replace(limits, time=max(0.0, until - time.time()))
        # With no time left the solver is not even started.
        if limits.time == 0:
            return _Outcome(BlockStatus.TIME_LIMIT)
    if k >= size:
        value = rayleigh(A, leading_eigenvector(A))
        if limits.time is not None and _cost.eigenvalues(size) > limits.time:
            return _Outcome(BlockStatus.TIME_LIMIT, np.arange(size), value)
        bound = max(value, largest_eigenvalue_bound(A))
        return _Outcome(BlockStatus.OPTIMAL, np.arange(size), value, bound)
    unit = 1.0
    if largest > EXTREME or 0 < largest < 1 / EXTREME:
        unit = power_of_two(largest)  # exact to divide by
    try:
        solution = solver.solve(
            A / unit,  # a copy: what the solver writes to it does not matter
            k,
            limits=limits,
            incumbent=incumbent / unit,
            rng=np.random.default_rng(entropy),
        )
        outcome = _checked_outcome(solution, A, k, unit)
        if is_plug_in(solver):
            worse = _is_worse(solution.x, A, outcome.objective)
            outcome = replace(outcome, replaced=worse)
        return outcome
    except (Exception, SystemExit) as error:
        said = str(error).rstrip(".")
        if not isinstance(error, SolverError):
            said = f"raised {type(error).__name__}: {said}"
        return _Outcome(BlockStatus.FAILED, message=said)


def _checked_outcome(solution: Any, A: FloatArray, k: int, unit: float) -> _Outcome:
    """Recompute the objective of a solver's result, or raise if the result is wrong."""
    if not isinstance(solution, Solution):
        raise SolverError(
            f"returned {type(solution).__name__} from solve; a Solution is needed"
        )
    support = checked_support(solution.x, len(A), k)
    _, objective = on_support(A, support)
    claimed = float(solution.upper_bound) * unit
    if not claimed >= objective - TOLERANCE * abs(objective):
        raise SolverError(
            f"claims the upper bound {claimed:.6g}, below its objective {objective:.6g}"
        )
    return _Outcome(
        BlockStatus(Status(solution.status).value),
        support,
        objective,
        claimed,
        int(solution.nodes),
    )


def is_plug_in(solver: Solver) -> bool:
    """Tell whether a solver is a user's, and not one of this library."""
    ours = type(solver).__module__.split(".")[0] == __name__.split(".")[0]
    return not ours or hasattr(solver, "function")


def _is_worse(x: Any, A: FloatArray, best: float) -> bool:
    """Tell whether x is clearly not the best vector on its features."""
    x = np.asarray(x, dtype=np.float64)
    return best - rayleigh(A, x) > _CLEARLY * abs(best)


def checked_support(x: Any, size: int, k: int) -> NDArray[np.intp]:
    """Return the nonzeros of a solver's vector, or say what is wrong with it."""
    x = np.asarray(x)
    if x.dtype.kind not in "fiub":
        raise SolverError(
            f"returned values of dtype {x.dtype}, not a vector of {size} real numbers"
        )
    if x.shape != (size,):
        raise SolverError(f"returned shape {x.shape} instead of ({size},)")
    if not np.isfinite(x).all():
        raise SolverError("returned a vector with NaN or infinite entries")
    support = np.flatnonzero(x)
    if len(support) == 0:
        raise SolverError("returned the zero vector; a unit vector is needed")
    if len(support) > k:
        raise SolverError(f"returned {len(support)} nonzeros, more than k = {k}")
    return support
