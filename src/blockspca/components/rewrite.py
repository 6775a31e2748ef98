"""A result said again: for other loadings, or with the features numbered otherwise.

What was proved stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..certificate import StepClaim, restated
from ..certify.alarms import alarm
from ..covariance.covariance import Covariance
from ..numerics.rounding import rounding_of_forms
from ..result import NEGLIGIBLE, Result
from ..status import OPTIMAL_GAP, Status, is_optimal_gap, is_within_gap


def with_component(
    result: Result, x: FloatArray, problem: Covariance, *, reconsider: bool = False
) -> Result:
    """Return the result with component x, whose objective is computed on `problem`.

    The upper bound holds for every component and is kept. With `reconsider` the status
    is found again: optimal only if x reaches the bound. Without it, a status is kept
    that the bound still proves. A bound that x exceeds by more than rounding is a
    defect, and not used.
    """
    x = np.where(np.abs(x) > NEGLIGIBLE, x, 0.0)
    x = x / np.linalg.norm(x)
    support = np.flatnonzero(x)
    loadings = x[support]
    within = problem.submatrix(support)
    objective = float(loadings @ within @ loadings)
    rounding = rounding_of_forms(loadings[None], within, problem.entry_error)[0, 0]
    if not result.upper_bound >= objective - rounding:
        result = _without_bound(result, objective)
    upper_bound = max(result.upper_bound, objective)
    status = result.status
    wanted = None if result.certificate is None else result.certificate.gap
    optimal = is_optimal_gap(objective, upper_bound)
    if reconsider and optimal:
        status = Status.OPTIMAL
    elif status is Status.GAP_LIMIT or (status is Status.OPTIMAL and not optimal):
        reached = wanted is not None and is_within_gap(objective, upper_bound, wanted)
        status = Status.GAP_LIMIT if reached else Status.FEASIBLE
    return restated(
        result,
        support=tuple(support.tolist()),
        loadings=tuple(loadings.tolist()),
        objective=objective,
        upper_bound=upper_bound,
        status=status,
        tolerance=OPTIMAL_GAP * abs(objective),
    )


def _without_bound(result: Result, objective: float) -> Result:
    """The result with no bound and a message that says why.

    A limit or Ctrl-C that ended the search is still what ended it.
    """
    k, bound, name = result.k, result.upper_bound, result.bound_name
    message = alarm(k, bound, name, objective, "another component", "it is not used")
    none = StepClaim(k, np.inf, BoundName.NONE)
    claims = (Status.OPTIMAL, Status.GAP_LIMIT)
    status = Status.FEASIBLE if result.status in claims else result.status
    result = with_bound(result, status, none)
    return replace(result, message=" ".join(filter(None, (result.message, message))))


def with_bound(result: Result, status: Status, *steps: StepClaim) -> Result:
    """Return the result with the bound of the last of the steps, which prove it."""
    return restated(
        result,
        upper_bound=steps[-1].upper_bound,
        status=status,
        steps=steps,
        tolerance=OPTIMAL_GAP * abs(result.objective),
    )


def tidied(result: Result, problem: Callable[[], Covariance]) -> Result:
    """Return the result without loadings that are zero up to rounding.

    The problem is made only if there are any: of data it may be a copy of them.
    """
    if (np.abs(result.x[result.support]) > NEGLIGIBLE).all():
        return result
    return with_component(result, result.x, problem())


def renumbered(
    result: Result,
    keep: NDArray[np.intp],
    feature_names: tuple[str, ...] | None,
    d: int,
) -> Result:
    """Return the result of a problem on features `keep` as one on all d features.

    Features outside `keep` are in no block: their label is −1.
    """
    claims: dict[str, Any] = {}
    if result.certificate is not None:
        steps = result.certificate.steps
        claims["steps"] = tuple(step.renumbered(keep) for step in steps)
    blocks = result.blocks
    if blocks is not None:
        labels = np.full(d, -1, dtype=np.intp)
        labels[keep] = blocks.labels
        blocks = replace(blocks, labels=labels)
    support = tuple(keep[result.support].tolist())
    lifted = restated(result, n_features=d, support=support, **claims)
    return replace(lifted, blocks=blocks, feature_names=feature_names)
