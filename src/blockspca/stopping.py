"""Which limit, if any, ends a search, and what its bound entitles to."""

from __future__ import annotations

import math

from .result import Status, is_optimal_gap, is_within_gap
from .solvers.base import Deadline, Limits


def stop_reason(limits: Limits, deadline: Deadline, nodes: int) -> Status | None:
    """Return the status of a search that has to stop after so many nodes, or None."""
    if deadline.passed():
        return Status.TIME_LIMIT
    if limits.nodes is not None and nodes >= limits.nodes:
        return Status.NODE_LIMIT
    return None


def claim(
    objective: float,
    upper_bound: float,
    limits: Limits,
    stopped: Status | None,
) -> Status:
    """Return the status that a bound on the matrix entitles to.

    Relative to the objective: what no component uses does not loosen the claim.
    """
    if is_optimal_gap(objective, upper_bound):
        return Status.OPTIMAL
    if limits.gap is not None and is_within_gap(objective, upper_bound, limits.gap):
        return Status.GAP_LIMIT
    return stopped or Status.FEASIBLE


def entitled(
    objective: float,
    upper_bound: float,
    limits: Limits,
    stopped: Status | None,
) -> Status:
    """Return what a solver says of itself: as `claim`, but that Ctrl-C stays Ctrl-C.

    The caller has to know of it. Nothing is claimed of a bound that has overflowed.
    """
    if stopped is Status.INTERRUPTED:
        return stopped
    if not math.isfinite(upper_bound):
        return stopped or Status.FEASIBLE
    return claim(objective, upper_bound, limits, stopped)
