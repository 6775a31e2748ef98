"""How a solve ended: what each status means, what "optimal" means, who may claim it."""

from __future__ import annotations

import math
from enum import Enum

OPTIMAL_GAP = 1e-6  #: "optimal" is proved within this, relative to |objective|
SEARCH_GAP = 1e-9  #: at which searches end, so that rounding seldom decides a status
STATUS_ULPS = 8  # of the objective, by which numbers may be rounded after the status


class Status(str, Enum):
    """How a solve ended. Only `OPTIMAL` and `GAP_LIMIT` say that a claim was proved.

    Examples
    --------
    >>> import blockspca as bs
    >>> result = bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1)
    >>> result.status is bs.Status.OPTIMAL, result.status == "optimal"
    (True, True)
    """

    OPTIMAL = "optimal"  #: proved optimal on the original matrix; see `is_optimal_gap`
    GAP_LIMIT = "gap_limit"  #: the requested gap was proved
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    FEASIBLE = "feasible"  #: finished; the gap is whatever the upper bound says

    def __str__(self) -> str:
        return self.value


#: What was asked for is proved.
PROVED = (Status.OPTIMAL, Status.GAP_LIMIT)
#: Something else than the proof ended it; the first counts where several did.
STOPPED = (
    Status.INTERRUPTED,
    Status.TIME_LIMIT,
    Status.NODE_LIMIT,
    Status.MEMORY_LIMIT,
)


def relative_gap(objective: float, upper_bound: float) -> float:
    """Return (upper_bound − objective) / |objective|, and 0 where the two are equal."""
    if upper_bound <= objective:
        return 0.0
    if objective == 0:
        return float("inf")
    return (upper_bound - objective) / abs(objective)


def is_optimal_gap(objective: float, upper_bound: float) -> bool:
    """Tell whether 0 ≤ upper_bound − objective ≤ OPTIMAL_GAP · |objective|.

    This is the meaning of "optimal" everywhere. The scale is the objective alone:
    an entry of A that no component uses says nothing about this one. Where the
    objective is 0 only an equal bound will do. A bound that is not finite, or below
    what was reached, proves nothing.

    Notes
    -----
    The difference is exact in floating point where it matters (Sterbenz: the numbers
    are within a factor of two), so that the test errs by one rounding of the product.

    Examples
    --------
    >>> from blockspca.status import is_optimal_gap
    >>> is_optimal_gap(2.0, 2.0 + 1e-6), is_optimal_gap(2.0, 2.0 + 1e-5)
    (True, False)
    """
    return is_within_gap(objective, upper_bound, OPTIMAL_GAP)


def is_within_gap(objective: float, upper_bound: float, gap: float) -> bool:
    """Tell whether 0 ≤ upper_bound − objective ≤ gap · |objective|, all finite."""
    if not (math.isfinite(objective) and math.isfinite(upper_bound)):
        return False
    return 0 <= upper_bound - objective <= gap * abs(objective)


def is_search_over(objective: float, upper_bound: float, gap: float | None) -> bool:
    """Tell whether the bound is as low as a search for a gap aims at.

    Searches aim at less than "optimal" allows, so that its status is a poor reason to
    end one.
    """
    return is_within_gap(objective, upper_bound, max(gap or 0.0, SEARCH_GAP))


class NotProvedError(ValueError):
    """The status says more than the bound proves."""


def refuse_unproved(status: Status, objective: float, upper_bound: float) -> None:
    """Raise if the status is optimal and the bound does not meet the objective.

    A few ulps of the objective are allowed, for a status that was found before a last
    rounding of either number.
    """
    if status is not Status.OPTIMAL:
        return
    rounded = max(upper_bound, objective)
    slack = STATUS_ULPS * math.ulp(1.0)
    if upper_bound >= objective - slack * abs(objective) and is_within_gap(
        objective, rounded, OPTIMAL_GAP + slack
    ):
        return
    raise NotProvedError(
        f"the status is optimal, but the bound {upper_bound:.17g} is not within "
        f"{OPTIMAL_GAP:g} of the objective {objective:.17g}, relative to the "
        "objective; pass the status of the limit that ended the run, or feasible."
    )


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
    >>> from blockspca.status import status_of_gap
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
