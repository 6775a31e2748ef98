"""Calls HiGHS through SciPy, with limits and Ctrl-C.

**What is trusted.** HiGHS works in floating point with a feasibility and integrality
tolerance of 1e-6, and gives no proof that could be checked. Solvers that use it scale
their program to numbers of about 1, add `TOLERANCE` to its bound in these units, and
document it.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound
from ..limits import Budget
from ..status import Status, relative_gap
from .base import Deadline, Limits, SolverError
from .local_search import LocalSearch
from .template import BaseSolver, SolverRun

TOLERANCE = 1e-6  # HiGHS's own
FIRST_SLICE = (
    20.0  # seconds; without a limit on time each slice is twice the one before
)
#: Twice what was measured: 0.1 s for 100 features, 2.7 s for 300.
PRESOLVE = 2e-7
OPTIMAL, LIMIT_REACHED, INFEASIBLE = 0, 1, 2  # the status of scipy.optimize.milp


@dataclass(frozen=True)
class Answer:
    """The result of HiGHS for a program to be minimised."""

    x: FloatArray | None  #: the best point found
    #: A lower bound, if HiGHS is right: inf if there is no point, −inf if unknown.
    bound: float
    finished: bool  #: false if a limit ended it
    nodes: int  #: at least one


def minimise(
    objective: FloatArray,
    *,
    deadline: Deadline,
    nodes: int | None = None,
    gap: float = 0.0,
    **program: Any,
) -> Answer:
    """Minimise objective · x by `scipy.optimize.milp`, up to the deadline.

    `program` has integrality, bounds and constraints as in SciPy; `gap` is relative.

    HiGHS ignores Ctrl-C, so it runs in a thread, which is abandoned on Ctrl-C and ends
    with its slice of time. Without a limit on time, slices of 20, 40, 80, … seconds are
    tried; all but the last together take no longer than the last.

    Where few points are feasible, and these within its tolerance only, HiGHS may end
    with the status "Unknown" (in SciPy 1.15 and 1.16 with ten features). Then an
    integer program is solved once more without presolve, and a relaxation has neither
    point nor bound.
    """
    seconds, integer = FIRST_SLICE, bool(np.any(program["integrality"]))
    options: dict[str, Any] = {"mip_rel_gap": gap, "presolve": True}
    if nodes is not None:
        options["node_limit"] = nodes
    while True:
        left = deadline.remaining()
        last = left is not None and left <= seconds
        options["time_limit"] = left if last else seconds
        found = _in_a_thread(objective, **program, options=options)
        # SciPy has no status for HiGHS's limit on nodes, "Solution limit reached".
        out_of_nodes = nodes is not None and "limit reached" in found.message
        limited = found.status == LIMIT_REACHED or out_of_nodes
        if found.status not in (OPTIMAL, INFEASIBLE) and not limited:
            if not integer:
                return Answer(None, -math.inf, True, 1)
            if not options["presolve"]:
                raise SolverError(f"got no answer from HiGHS: {found.message}")
            options["presolve"] = False
            continue
        if not limited or last or int(found.mip_node_count or 0) >= (nodes or math.inf):
            return _answer(found, integer, limited)
        seconds *= 2


def _answer(found: Any, integer: bool, limited: bool) -> Answer:
    bound = -math.inf
    if found.status == INFEASIBLE:
        bound = math.inf
    elif integer and found.mip_dual_bound is not None:
        bound = float(found.mip_dual_bound)
    elif not integer and found.status == OPTIMAL:
        bound = float(found.fun)
    return Answer(found.x, bound, not limited, max(1, int(found.mip_node_count or 0)))


def _in_a_thread(objective: FloatArray, **arguments: Any) -> Any:
    from scipy.optimize import milp

    results: list[Any] = []

    def work() -> None:
        try:
            results.append(milp(objective, **arguments))
        except BaseException as error:  # raised again in the caller's thread
            results.append(error)

    thread = threading.Thread(target=work, name="HiGHS", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def start_locally(A: FloatArray, k: int, run: SolverRun) -> None:
    """Offer the support that local search finds in the time left."""
    start = SolverRun(A, k, Limits(time=run.deadline.remaining()))
    LocalSearch()._solve(A, k, start)
    run.offer(start.support)


def affords_program(run: SolverRun) -> bool:
    """Tell whether time and memory suffice for a program with the eigenvectors of A.

    If not, `run` is stopped. Presolve takes PRESOLVE · d³ seconds and ignores limits on
    time; the d² coefficients are held about eight times.
    """
    d = run.n_features
    if 8 * d * d > Budget(run.limits).max_entries:
        run.stopped = Status.MEMORY_LIMIT
    elif not run.deadline.affords(PRESOLVE * d**3):
        run.stopped = Status.TIME_LIMIT
    return run.stopped is None


def value_to_beat(A: FloatArray, k: int, run: SolverRun, scale: float) -> float | None:
    """Offer the result of local search and a cheap bound; return the value reached.

    In units of `scale`. None if the gap is small enough or no program is affordable.
    """
    start_locally(A / scale, k, run)
    run.tighten(cheap_bound(A, k, run.deadline))
    reached = max(run.objective, run.incumbent) / scale
    met = run.upper_bound <= scale * (reached + gap_wanted(reached, run.limits))
    return None if met or not affords_program(run) else reached


def gap_wanted(reached: float, limits: Limits) -> float:
    """The gap that ends a search, for A with largest entry 1; at least TOLERANCE."""
    return max((limits.gap or 0.0) * abs(reached), TOLERANCE * max(abs(reached), 1.0))


class ExactProgram(BaseSolver):
    """A solver that is exact within HiGHS's tolerance."""

    def _status(self, run: SolverRun) -> Status:
        """Optimal within HiGHS's tolerance, wider than that of other solvers."""
        if run.stopped is not None or run.k == run.n_features:
            return super()._status(run)
        gap = relative_gap(run.objective, max(run.upper_bound, run.objective))
        if run.objective < run.incumbent or gap > (run.limits.gap or math.inf):
            return Status.FEASIBLE
        return Status.GAP_LIMIT if run.limits.gap else Status.OPTIMAL
