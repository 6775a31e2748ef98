"""The sweeps of one call: which goal they have, what they begin with, and their limits.

Residual deflation raises the product of adjusted variances first (`sweeps` says why).
Where their sum, which is reported, falls with that, or a score adds nothing so that
there is no product, sweeps raise the sum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._warnings import warn_caller
from ..certificate import restated
from ..limits import Deadline
from ..result import Result
from ..status import Status
from .generalised_variance import log_volume
from .in_turn import HALF, Call, SolveWithin, shared_out
from .joint import budget_of_sweeps
from .sweep_start import begun_together
from .sweeps import NotAmongTheOthers, SweepGoal, swept, total, unproved
from .variance import score_covariance

AS_MUCH = 1e-12  # of a sum: less is its rounding


def swept_again(
    call: Call, results: list[Result], sweeps: int
) -> tuple[list[Result], bool]:
    """Solve for each component again, given all others; the results as they are if not.

    The second says whether they are swept.
    """
    cov, scheme, budget = call.cov, call.scheme, call.budget
    # Half of what is left: sweeps have the rest.
    share = shared_out(budget, 1, HALF)
    solve_one = SolveWithin(share, Deadline(share.time), call.tell, call.options)
    together = begun_together(cov, results, scheme, solve_one)
    again = replace(call, budget=budget_of_sweeps(budget, scheme))
    try:
        found, together = _swept_by_product(again, results, together, sweeps)
        if found is None and again.interrupted:
            return _interrupted(results), False
        if found is None and again.budget.stop_reason() is not None:
            return results, False  # nothing is left for a proof of others
        if found is None:
            goal = SweepGoal(scheme, stop=again.budget.passed)
            found = list(swept(cov, together, goal, sweeps, again))
        return found, True
    except NotAmongTheOthers as error:
        warn_caller(
            f"sweeps = {sweeps}: given all others there is no such component, or they "
            "close features that it uses, so that the components are those found one "
            f"after the other; pass n_components below {len(results)}, or sweeps=0."
        )
        return (_interrupted(results) if error.interrupted else results), False
    finally:
        budget.nodes += again.budget.nodes


def _interrupted(results: list[Result]) -> list[Result]:
    return [restated(one, status=Status.INTERRUPTED) for one in results]


def _swept_by_product(
    again: Call, results: list[Result], together: list[Result], sweeps: int
) -> tuple[list[Result] | None, list[Result]]:
    """Raise the product of variances; None if that is not it, or their sum falls.

    The second is the set with the largest sum on the way, to begin with.
    """
    cov, scheme = again.cov, again.scheme
    best = together
    scores = score_covariance(cov, np.array([result.x for result in together]))
    multiplies = scheme.multiplies_variances
    if not (multiplies and np.isfinite(log_volume(scores))):
        return None, best

    def look(current: list[Result]) -> None:
        nonlocal best
        if total(cov, current, scheme) > total(cov, best, scheme):
            best = [unproved(result, result.x, cov) for result in current]

    rules = again.options.get("constraints")
    goal = SweepGoal(
        scheme,
        product=True,
        free_loadings=rules is None or not rules.nonnegative,
        stop=again.budget.passed,
    )
    try:
        found = swept(cov, together, goal, sweeps, again, look)
    except NotAmongTheOthers as error:
        if error.interrupted:
            raise
        return None, best
    before = total(cov, results, scheme)
    if total(cov, found, scheme) >= before - AS_MUCH * abs(before):
        return list(found), best
    return None, best
