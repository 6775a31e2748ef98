"""The curve of a page: the best first component for every k, within its time."""

from __future__ import annotations

from dataclasses import replace

from ..components import Components
from ..covariance.covariance import Covariance
from ..limits import DEFAULT_LIMITS, Limits
from ..progress import Listener
from ..sparsity_path import SparsityPath

PATH_SECONDS = 20.0  # the curve over k is an extra: it may not hold the page up
PATH_SHARE = 0.25  # of a time limit, kept for that curve


def path_of(
    cov: Covariance,
    components: Components,
    limits: Limits,
    spent: float = 0.0,
    *,
    n_jobs: int | None,
    progress: Listener | bool,
) -> SparsityPath:
    """Return the path up to twice the largest k, and up to 10 at least.

    The limits are those of the components, which have `spent` so many seconds, and of
    this path together.
    """
    from ..pipeline import solve_path

    largest = max(result.k for result in components.results)
    seconds = PATH_SECONDS
    if limits.time is not None and limits != DEFAULT_LIMITS:
        seconds = max(0.0, min(seconds, limits.time - spent))
    return solve_path(
        cov,
        min(cov.n_features, max(10, 2 * largest)),
        limits=replace(limits, time=seconds),
        n_jobs=n_jobs,
        progress=progress,
    )
