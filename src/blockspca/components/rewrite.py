"""A result said again: for other loadings, or with the features numbered otherwise.

The certificate is rewritten together with the result, so that `verify` accepts the
pair; what was proved stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..certificate import StepClaim
from ..covariance.covariance import Covariance
from ..result import (
    NEGLIGIBLE,
    OPTIMAL_GAP,
    Result,
    Status,
    is_optimal_gap,
    is_within_gap,
)


def with_component(
    result: Result, x: FloatArray, problem: Covariance, *, reconsider: bool = False
) -> Result:
    """Return the result with component x, whose objective is computed on `problem`.

    The upper bound holds for every component and is kept. With `reconsider` the status
    is found again: optimal only if x reaches the bound. Without it, a status is kept
    that the bound still proves.
    """
    x = np.where(np.abs(x) > NEGLIGIBLE, x, 0.0)
    x = x / np.linalg.norm(x)
    support = np.flatnonzero(x)
    loadings = x[support]
    objective = float(loadings @ problem.submatrix(support) @ loadings)
    upper_bound = max(result.upper_bound, objective)
    certificate = result.certificate
    status = result.status
    wanted = None if certificate is None else certificate.gap
    optimal = is_optimal_gap(objective, upper_bound)
    if reconsider and optimal:
        status = Status.OPTIMAL
    elif status is Status.GAP_LIMIT or (status is Status.OPTIMAL and not optimal):
        reached = wanted is not None and is_within_gap(objective, upper_bound, wanted)
        status = Status.GAP_LIMIT if reached else Status.FEASIBLE
    if certificate is not None:
        certificate = replace(
            certificate,
            support=tuple(support.tolist()),
            loadings=tuple(loadings.tolist()),
            objective=objective,
            upper_bound=upper_bound,
            status=status,
            tolerance=OPTIMAL_GAP * abs(objective),
        )
    return replace(
        result,
        x=x,
        support=support,
        objective=objective,
        upper_bound=upper_bound,
        status=status,
        certificate=certificate,
    )


def with_bound(result: Result, status: Status, *steps: StepClaim) -> Result:
    """Return the result with the bound of the last of the steps, which prove it."""
    bound, name = steps[-1].upper_bound, steps[-1].bound_name
    certificate = result.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            upper_bound=bound,
            status=status,
            steps=steps,
            tolerance=OPTIMAL_GAP * abs(result.objective),
        )
    return replace(
        result,
        upper_bound=bound,
        bound_name=name,
        status=status,
        certificate=certificate,
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
    x = np.zeros(d)
    x[keep] = result.x
    certificate = result.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            n_features=d,
            support=tuple(keep[list(certificate.support)].tolist()),
            steps=tuple(
                replace(step, survivors=tuple(keep[list(step.survivors)].tolist()))
                for step in certificate.steps
            ),
        )
    blocks = result.blocks
    if blocks is not None:
        labels = np.full(d, -1, dtype=np.intp)
        labels[keep] = blocks.labels
        blocks = replace(blocks, labels=labels)
    return replace(
        result,
        x=x,
        support=keep[result.support],
        n_features=d,
        blocks=blocks,
        certificate=certificate,
        feature_names=feature_names,
    )
