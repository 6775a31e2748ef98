"""When a call stops: limits on time, work, gap and memory, and why it stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any

from .validation import check_integer, check_real

OPTIMAL_GAP = 1e-6  # a result is optimal within this share of its objective
SEARCH_GAP = 1e-9  # searches go on until the gap is below this share


class Status(Enum):
    """The quality of a result, or the reason why its call stopped."""

    OPTIMAL = "optimal"  #: proved within 1e-6 of the objective
    GAP = "gap"  #: proved within the gap that `Limits` asks for
    FEASIBLE = "feasible"  #: the search is complete and leaves a gap
    TIME_LIMIT = "time limit"
    WORK_LIMIT = "work limit"
    MEMORY_LIMIT = "memory limit"
    INTERRUPTED = "interrupted"  #: by Ctrl-C


@dataclass(frozen=True)
class Limits:
    """Limits of one call; None is no limit.

    Public functions use ``Limits(work=30)`` if no limits are given. ``Limits()`` lets
    them run until the proof is complete.

    Parameters
    ----------
    time : float, optional
        Seconds from the start of the call.
    work : float, optional
        Counted operations, in units that take about a second of one core. The same
        work stops every machine at the same place, so results can be repeated.
    gap : float, optional
        Relative gap that is good enough: 0.01 asks for 1 %.
    memory : int, optional
        Bytes for working arrays. The data and the result do not count.

    Examples
    --------
    >>> from blockspca.limits import Limits
    >>> Limits(time=10, gap=0.01)
    Limits(time=10, work=None, gap=0.01, memory=None)
    """

    time: float | None = None
    work: float | None = None
    gap: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("time", "work"):
            value = getattr(self, name)
            if value == math.inf:
                raise ValueError(
                    f"limits.{name} = inf cannot limit; use None for no limit."
                )
            if value is not None:
                check_real(value, f"limits.{name}", minimum=0)
        if self.gap is not None and not 0 <= check_real(self.gap, "limits.gap") < 1:
            raise ValueError(
                f"limits.gap = {self.gap} must be a share from 0 to below 1; use 0.01 "
                "for 1 %."
            )
        if self.memory is not None:
            if isinstance(self.memory, float):
                raise TypeError(
                    f"limits.memory = {self.memory!r} must be an integer, not float; "
                    "use for example limits.memory=2**30."
                )
            check_integer(self.memory, "limits.memory", minimum=1)


DEFAULT = Limits(work=30)


def as_limits(limits: Any) -> Limits:
    """Return `Limits` for an argument: Limits, seconds, or None for DEFAULT.

    Examples
    --------
    >>> from blockspca.limits import as_limits
    >>> as_limits(10)
    Limits(time=10.0, work=None, gap=None, memory=None)
    >>> as_limits(None)
    Limits(time=None, work=30, gap=None, memory=None)
    """
    if limits is None:
        return DEFAULT
    if isinstance(limits, Limits):
        return limits
    if isinstance(limits, float) and limits == math.inf:
        raise ValueError("limits = inf cannot limit; use Limits() for no limit.")
    if isinstance(limits, Real) and not isinstance(limits, bool):
        return Limits(time=check_real(limits, "limits", minimum=0))
    raise TypeError(
        f"limits = {limits!r} must be seconds or Limits, not {type(limits).__name__}; "
        "use limits=10 or limits=blockspca.Limits(time=10)."
    )


def relative_gap(objective: float, bound: float) -> float:
    """Return (bound − objective) / |objective|, at least 0.

    If the objective is 0, the gap is 0 if the bound is 0 too, and infinite if not.

    Examples
    --------
    >>> from blockspca.limits import relative_gap
    >>> relative_gap(2.0, 3.0), relative_gap(0.0, 1.0)
    (0.5, inf)
    """
    if bound <= objective:
        return 0.0
    return (bound - objective) / abs(objective) if objective else math.inf
