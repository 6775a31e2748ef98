"""One large k by itself: power steps find a support, the named bounds bound it.

For k in the hundreds the chain from k = 1 up is long, while the direction dual is often
within a per cent at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..covariance import Covariance
from ..large_k import truncated_power
from ..limits import Deadline, Limits
from ..result import Status
from ..vectors import leading_eigenvector, rayleigh
from .best_bound import NamedBound, best_bound, is_sound
from .records import TOLERANCE, CertifiedStep

SECONDS = 60.0  # for the bound, without a limit on time
SEARCH_SHARE = 0.4  # of the time that is left, for power steps
BOUND_SHARE = 0.9


def direct_step(
    cov: Covariance,
    k: int,
    limits: Limits,
    given: Sequence[int] | NDArray[np.intp] | None = None,
) -> CertifiedStep:
    """Solve for k alone and bound it without the chain.

    Parameters
    ----------
    cov : Covariance
    k : int
    limits : Limits
        The bound stops at `limits.gap`.
    given : sequence of int, optional
        A support found elsewhere.

    Returns
    -------
    CertifiedStep
        Its status is that of the limit, or feasible, if the gap was not reached.
    """
    started = time.perf_counter()
    deadline = Deadline(limits.time)
    remaining = deadline.remaining()
    share = None if remaining is None else SEARCH_SHARE * remaining
    found = truncated_power(cov, k, limits=replace(limits, time=share))
    candidates = [("power steps", np.flatnonzero(found.x))]
    if given is not None and 0 < len(given) <= k:
        candidates.append(("given", np.sort(np.asarray(given, dtype=np.intp))))
    best = (-np.inf, "none", np.empty(0, np.intp), np.empty(0))
    for source, support in candidates:
        within = cov.submatrix(support)
        x = leading_eigenvector(within)
        if (value := rayleigh(within, x)) > best[0]:
            best = (value, source, support, x)
    objective, source, support, loadings = best
    spread = max(objective, float(np.abs(cov.diagonal()).max()))
    gap = limits.gap or 0.0
    bound = NamedBound(np.inf, "none")
    status = Status.FEASIBLE
    try:
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        left = deadline.remaining()
        bound = best_bound(
            cov,
            k,
            support,
            target=objective + max(gap * abs(objective), 0.5 * TOLERANCE * spread),
            # the step that is under way when the time is up still has to end
            time_limit=SECONDS if left is None else BOUND_SHARE * left,
        )
        left = deadline.remaining()
        if limits.time is not None and left is not None and left < limits.time / 2:
            status = Status.TIME_LIMIT  # the chain would need more
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if not is_sound(bound, objective, TOLERANCE * spread):
        bound = NamedBound(np.inf, "none")
    upper_bound = max(bound.value, objective)
    excess = upper_bound - objective
    if excess <= TOLERANCE * spread:
        status = Status.OPTIMAL
    elif limits.gap is not None and excess <= gap * abs(objective):
        status = Status.GAP_LIMIT
    return CertifiedStep(
        k=k,
        n_features=cov.n_features,
        support=support,
        loadings=loadings,
        objective=objective,
        upper_bound=upper_bound,
        bound_name=bound.name,
        status=status,
        source=source,
        tolerance=TOLERANCE * spread,
        time=time.perf_counter() - started,
    )
