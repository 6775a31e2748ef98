"""The status that a bound justifies: one rule for results and solvers."""

from __future__ import annotations

from .limits import Limits, Status, stop_reason
from .result import is_optimal_gap, is_within_gap

__all__ = ["claim", "entitled", "status_of_gap", "stop_reason"]


def status_of_gap(
    objective: float,
    upper_bound: float,
    gap: float | None,
    stopped: Status | None,
    *,
    keep_interrupt: bool = False,
) -> Status:
    """Return the status that a bound on the matrix justifies.

    Gaps are relative to the objective, so that large entries which no component uses do
    not loosen the claim.

    Parameters
    ----------
    objective, upper_bound : float
        A bound that is not finite, or below the objective, proves nothing.
    gap : float or None
        The gap that was asked for.
    stopped : Status or None
        The limit that ended the search.
    keep_interrupt : bool
        Stay `INTERRUPTED` even where the bound proves more: the caller may have further
        work to stop.

    Examples
    --------
    >>> from blockspca.stopping import status_of_gap
    >>> [str(status_of_gap(2.0, 2.1, gap, None)) for gap in (0.1, None)]
    ['gap_limit', 'feasible']
    """
    if keep_interrupt and stopped is Status.INTERRUPTED:
        return stopped
    if is_optimal_gap(objective, upper_bound):
        return Status.OPTIMAL
    if gap is not None and is_within_gap(objective, upper_bound, gap):
        return Status.GAP_LIMIT
    return stopped or Status.FEASIBLE


def claim(
    objective: float, upper_bound: float, limits: Limits, stopped: Status | None
) -> Status:
    """Return the status of a result."""
    return status_of_gap(objective, upper_bound, limits.gap, stopped)


def entitled(
    objective: float, upper_bound: float, limits: Limits, stopped: Status | None
) -> Status:
    """Return the status of a solver, which stays `INTERRUPTED` after Ctrl-C."""
    return status_of_gap(
        objective, upper_bound, limits.gap, stopped, keep_interrupt=True
    )
