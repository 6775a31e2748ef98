"""Components of target minus background for a range of weights of the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._messages import interruption
from .._validation import check_n_jobs, check_real
from .._warnings import is_nested_call, warn_caller
from ..covariance.contrast import contrastive
from ..covariance.covariance import Covariance, as_covariance
from ..limits import Budget, Limits, as_limits
from ..numerics.threads import allowed_threads
from ..pipeline import solve
from ..result import Result
from ..status import Status

WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def contrastive_path(
    cov_target: Covariance | Any,
    cov_background: Covariance | Any,
    k: int,
    weights: Sequence[float] = WEIGHTS,
    *,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
) -> Mapping[float, Result]:
    """Solve the contrast for every weight, each proved, ascending.

    With g growing, the target's variance of the components falls and the background's
    falls faster; where the support settles is a weight to choose.

    Parameters
    ----------
    cov_target, cov_background : Covariance or symmetric matrix
    k : int
    weights : sequence of float
    limits : Limits, optional
        For all weights together; each gets an equal share of the time that is left.
    n_jobs : int, optional

    Returns
    -------
    dict from weight to Result
        After Ctrl-C, up to the weight that it has stopped, with a warning.

    Examples
    --------
    >>> import blockspca as bs
    >>> target, background = [[5.0, 0], [0, 4.0]], [[5.0, 0], [0, 0]]
    >>> path = bs.contrastive_path(target, background, 1, weights=[0, 0.1, 1])
    >>> [result.support.tolist() for result in path.values()]
    [[0], [0], [1]]
    """
    target, background = as_covariance(cov_target), as_covariance(cov_background)
    if not isinstance(weights, Iterable):
        raise TypeError(
            f"weights = {weights!r} is no list; pass one, such as [{weights!r}]."
        )
    chosen = sorted({check_real(g, "weights", minimum=0) for g in weights})
    if not chosen:
        raise ValueError("weights is empty; pass at least one number, such as [1.0].")
    budget = Budget(as_limits(limits))
    found: dict[float, Result] = {}
    start: np.ndarray | None = None
    with allowed_threads(check_n_jobs(n_jobs)):
        for number, weight in enumerate(chosen):
            left = budget.left(1 / (len(chosen) - number))
            cov = contrastive(target, background, weight)
            result = solve(cov, k, limits=left, n_jobs=n_jobs, start=start)
            budget.nodes += result.nodes
            found[weight] = result
            start = result.support
            if result.status is Status.INTERRUPTED:
                break
    if result.status is Status.INTERRUPTED and not is_nested_call():
        known = tuple(found.values())
        warn_caller(interruption("contrastive_path", known, len(chosen)))
    return found
