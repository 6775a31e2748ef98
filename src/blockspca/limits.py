"""When to stop: limits on time, nodes, gap and memory, and the clock that keeps one."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from ._validation import check_positive_integer, check_real


@dataclass(frozen=True)
class Limits:
    """Limits of one call. None means no limit.

    Where no `Limits` is given, `solve`, `solve_path` and `solve_components` go on until
    the proof is finished, or Ctrl-C. `SparsePCA` and the command line stop after
    200 000 nodes; ``Limits()`` lets `SparsePCA` go on as well. A result that a limit
    has stopped says so in its status.

    Parameters
    ----------
    time : float
        Seconds, kept to within a tenth and a second: what cannot be stopped, such as a
        factorization, is begun only if the time left suffices for it.
    nodes : int
        Nodes of all searches together, as `Result.nodes` counts them. A search looks
        at the limit between slices, so that there may be a slice more.
    gap : float
        Relative gap that is good enough: 0.01 asks for 1 %. Below 1.
    memory : int
        Bytes for working arrays: matrices of blocks or of surviving features, and rows
        computed ahead. The input and the O(d) arrays of a result do not count.

    Examples
    --------
    >>> from blockspca import Limits
    >>> Limits(time=10, gap=0.01)
    Limits(time=10, nodes=None, gap=0.01, memory=None)
    """

    time: float | None = None
    nodes: int | None = None
    gap: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("time", "gap"):
            value = getattr(self, name)
            if value == math.inf:
                raise ValueError(f"limits.{name} = inf; pass None for no limit.")
            if value is not None:
                check_real(value, f"limits.{name}", minimum=0)
        if self.gap is not None and self.gap >= 1:
            raise ValueError(
                f"limits.gap = {self.gap} is not below 1: a gap is a fraction; pass "
                "0.01 for 1 %."
            )
        for name in ("nodes", "memory"):
            if getattr(self, name) is not None:
                check_positive_integer(getattr(self, name), f"limits.{name}")


#: What `SparsePCA` and the command line use where no limit is given: they run
#: unattended, and a proof may take days. Nodes, unlike seconds, stop every machine at
#: the same place, so that the answer is the same everywhere.
DEFAULT_LIMITS = Limits(nodes=200_000)


def as_limits(limits: Any) -> Limits:
    """Accept Limits, or None for no limits."""
    if limits is None:
        return Limits()
    if isinstance(limits, Limits):
        return limits
    raise TypeError(
        f"limits = {limits!r} is of type {type(limits).__name__}; pass for example "
        "blockspca.Limits(time=10)."
    )


_FORGETTING = 0.7  # of a long step, that is still expected after the next


class Deadline:
    """The clock of one call: `passed()` once `seconds` have gone by."""

    def __init__(self, seconds: float | None) -> None:
        self.start = time.perf_counter()
        self.seconds = seconds
        self.step = 0.0  # seconds, of the steps of late

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def remaining(self) -> float | None:
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - self.elapsed())

    def end(self) -> None:
        """Let it have passed, for all who look at it."""
        self.seconds = -1.0

    def passed(self) -> bool:
        return self.seconds is not None and self.elapsed() >= self.seconds

    def affords(self, seconds: float) -> bool:
        """Tell whether there is time for what takes so long and cannot be stopped."""
        left = self.remaining()
        return left is None or seconds <= left

    # -- steps of unknown length, such as those of an ascent -----------------------

    def affords_step(self) -> bool:
        """Tell whether there is time for another step like the last ones."""
        return not self.passed() and self.affords(self.step)

    def step_took(self, seconds: float) -> None:
        """Remember how long a step took; longer ones are forgotten by and by."""
        self.step = max(seconds, _FORGETTING * self.step)
