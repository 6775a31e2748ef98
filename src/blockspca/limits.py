"""When to stop: limits on time, nodes, gap and memory, and what is left of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol

from ._validation import check_positive_integer, check_real
from .status import Status


@dataclass(frozen=True)
class Limits:
    """Limits of one call. None means no limit.

    Where no `Limits` is given, or a gap or memory alone, every call stops after 20
    seconds or 200 000 nodes, whichever comes first; ``Limits()`` lets it go on until
    the proof is finished, or Ctrl-C. A result that a limit has stopped says so in its
    status.

    A limit on time alone decides in which order the provers have their turns. Beside
    one on nodes, as by default, time only ends the call: until then the answer is the
    same on every machine.

    Parameters
    ----------
    time : float
        Seconds, kept to within a tenth and a second: what cannot be stopped, such as a
        factorization, is begun only if the time left suffices for it. (Beside a limit
        on nodes it is begun, and compiling, once on a machine, does not count.)
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


#: What every call uses where none is given: a proof may take days. Nodes, unlike
#: seconds, stop every machine at the same place, so that the answer is the same
#: everywhere; where they take long, nobody waits for more than the seconds.
DEFAULT_LIMITS = Limits(time=20.0, nodes=200_000)


def as_limits(limits: Any) -> Limits:
    """Accept Limits, a number of seconds, or None for the default limits.

    A gap, or memory, says when to stop, and not never to: the default is kept beside.

    Examples
    --------
    >>> from blockspca.limits import as_limits
    >>> as_limits(10)
    Limits(time=10.0, nodes=None, gap=None, memory=None)
    """
    if limits is None:
        return DEFAULT_LIMITS
    if isinstance(limits, Limits):
        if limits.time is None and limits.nodes is None and limits != Limits():
            return replace(limits, time=DEFAULT_LIMITS.time, nodes=DEFAULT_LIMITS.nodes)
        return limits
    if isinstance(limits, Real) and not isinstance(limits, bool):
        return Limits(time=check_real(limits, "limits", minimum=0))
    raise TypeError(
        f"limits = {limits!r} is of type {type(limits).__name__}; pass seconds, for "
        "example limits=10, or blockspca.Limits(time=10)."
    )


_FORGETTING = 0.7  # share of a long step that the next estimate keeps


class Called(Protocol):
    """What calls work off once it is set."""

    def is_set(self) -> bool: ...


# Set once another prover has an answer, or the time of the call is over: work in this
# context is then called off.
_called_off: ContextVar[Called | None] = ContextVar("_called_off", default=None)
_is_stopped: ContextVar[bool] = ContextVar("_is_stopped", default=False)


@contextmanager
def stopped_clocks() -> Iterator[None]:
    """Context of what no limit is meant for: compiling, and reading the data.

    It takes none of the time of the budgets whose `ending` it is in.
    """
    if _is_stopped.get():
        yield
        return
    started, stopped = time.perf_counter(), _is_stopped.set(True)
    clock = _called_off.get()
    going = _called_off.set(None) if isinstance(clock, Budget) else None
    try:
        yield
    finally:
        _is_stopped.reset(stopped)
        if going is not None:
            _called_off.reset(going)
        while isinstance(clock, Budget):
            clock.not_counted += time.perf_counter() - started
            clock = clock._event


@contextmanager
def until_called_off(event: Called) -> Iterator[None]:
    """Context in which every deadline that is made passes once the event is set."""
    token = _called_off.set(event)
    try:
        yield
    finally:
        _called_off.reset(token)


class Deadline:
    """The clock of one call: `passed()` once `seconds` have gone by.

    Or once the work that it is a part of is called off, see `until_called_off`.
    """

    def __init__(self, seconds: float | None) -> None:
        self.start = time.perf_counter()
        self.not_counted = 0.0
        self.seconds = seconds
        self.step = 0.0  # seconds, of the steps of late
        # Where it was made, not where it is asked: worker threads have contexts of
        # their own.
        self._event = _called_off.get()

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def used(self) -> float:
        """What counts of the seconds that have gone by."""
        return self.elapsed() - self.not_counted

    def is_called_off(self) -> bool:
        return self._event is not None and self._event.is_set()

    def remaining(self) -> float | None:
        if self.is_called_off():
            return 0.0
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - self.used())

    def ends_in(self) -> float | None:
        """Seconds until it passes by its own clock or by one that calls its work off.

        For other processes, which no clock of this one reaches.
        """
        left = self.remaining()
        outer = self._event.ends_in() if isinstance(self._event, Deadline) else None
        if left is None or outer is None:
            return outer if left is None else left
        return min(left, outer)

    def within(self, seconds: float) -> Deadline:
        """A deadline that passes after so many seconds, or with this one if sooner."""
        left = self.remaining()
        part = Deadline(seconds if left is None else min(seconds, left))
        part._event = self._event
        return part

    def end(self) -> None:
        """End it now, also for the other threads that share it."""
        self.seconds = -1.0

    def passed(self) -> bool:
        if self.is_called_off():
            return True
        return self.seconds is not None and self.used() >= self.seconds

    def is_set(self) -> bool:
        """The same, for work that is called off with it."""
        return self.passed()

    def affords(self, seconds: float) -> bool:
        """Tell whether there is time for so many seconds of work that nothing stops."""
        left = self.remaining()
        return left is None or seconds <= left

    def loads(self, load: Callable[..., bool], *names: str) -> bool:
        """Call load(*names, seconds=…), which tells whether it ended in time.

        Where there is no limit on it, as beside one on nodes, it takes no time at all.
        """
        if self.affords(math.inf):
            with stopped_clocks():
                return load(*names, seconds=None)
        return load(*names, seconds=self.remaining())

    # -- steps of unknown length, such as those of an ascent -----------------------

    def affords_step(self) -> bool:
        """Tell whether there is time for another step like the last ones."""
        return not self.passed() and self.affords(self.step)

    def step_took(self, seconds: float) -> None:
        """Remember how long a step took; longer ones are forgotten by and by."""
        self.step = max(seconds, _FORGETTING * self.step)


# Bytes for working arrays where there is no limit: what a small machine has to spare.
_DEFAULT_MEMORY = 2**30
_NO_LIMIT = 2**62  # nodes; fits an int64, which kernels count with


class LimitReached(Exception):
    """A limit of the whole run was reached; `status` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(str(status))
        self.status = status


class StepLimitReached(Exception):
    """This k has used its share of the time; the run continues with the next."""


class NotAffordable(Exception):
    """There is not enough time, or memory, to make a problem and take a step in it."""


class Budget(Deadline):
    """Limits and what has been used of them; `check` raises when one has run out.

    Whatever takes a `Deadline` takes a budget: it is the clock of the whole run.

    Attributes
    ----------
    limits : Limits
    nodes : int
        Opened so far; searches add theirs.

    Examples
    --------
    >>> from blockspca.limits import Budget, Limits
    >>> budget = Budget(Limits(nodes=10))
    >>> budget.nodes += 7
    >>> budget.stop_reason() is None, budget.left()
    (True, Limits(time=None, nodes=3, gap=None, memory=None))
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        super().__init__(self.limits.time)
        self.nodes = 0
        self._step_ends = math.inf
        self._whole: Budget | None = None  # that has the limit on time

    @contextmanager
    def ending(self) -> Iterator[Budget]:
        """Context that ends with the time, and the budget for what is done in it.

        Beside a limit on nodes that budget has none on time, so that no prover has its
        turn by the clock: all work is called off when the time is over.
        """
        if self.limits.time is None or self.limits.nodes is None:
            yield self
            return
        with until_called_off(self):
            inside = Budget(replace(self.limits, time=None))
            inside.start, inside.nodes, inside._whole = self.start, self.nodes, self
            yield inside

    @contextmanager
    def reading(self) -> Iterator[Budget]:
        """Context of reading the data, which a limit on time alone is for as well."""
        if self.limits.time is None or self.limits.nodes is None:
            yield self
            return
        with stopped_clocks():
            yield Budget(replace(self.limits, time=None))

    def of_a_call(self, share: float = 1.0) -> Limits:
        """Return the limits of another call, with a share of the time that is left."""
        left = self.left(share)
        if self._whole is None:
            return left
        return replace(left, time=self._whole.left(share).time)

    # -- what ends the run ---------------------------------------------------------

    def stop_reason(self) -> Status | None:
        """Return the limit that ends the run now, or None."""
        return stop_reason(self.limits, self, self.nodes)

    def check(self) -> None:
        """Raise `LimitReached`, or `StepLimitReached` where only this k has to end."""
        if self.seconds is None and self.limits.nodes is None and self._event is None:
            return  # no limit is set, and paths of a millisecond call this often
        stopped = self.stop_reason()
        if stopped is not None:
            raise LimitReached(stopped)
        if self.elapsed() >= self._step_ends:
            raise StepLimitReached

    def wait_for(self, load: Callable[..., bool], *names: str) -> None:
        """Load kernels, or raise `LimitReached`; see `Deadline.loads`."""
        if not self.loads(load, *names):
            raise LimitReached(Status.TIME_LIMIT)

    # -- what is left --------------------------------------------------------------

    def left(self, share: float = 1.0) -> Limits:
        """Return the limits of what comes next, with a share of the time.

        One node is always left.
        """
        nodes = self.limits.nodes
        if nodes is not None:
            # Limits refuse zero, and one node makes every search give an answer.
            nodes = max(1, nodes - self.nodes)
        seconds = self.remaining()
        if seconds is None and nodes is None:
            return self.limits
        time = None if seconds is None else share * seconds
        return replace(self.limits, time=time, nodes=nodes)

    @property
    def nodes_left(self) -> int:
        if self.limits.nodes is None:
            return _NO_LIMIT
        return max(0, self.limits.nodes - self.nodes)

    @property
    def max_entries(self) -> int:
        """Most float64 numbers that one matrix, or one tree, may hold."""
        return (self.limits.memory or _DEFAULT_MEMORY) // 8

    def share(self, part: float, most: float) -> float:
        """Seconds: a part of the time that is left, and no more than `most`."""
        left = self.remaining()
        return most if left is None else min(most, part * left)

    def start_step(self, last: bool) -> None:
        """Give a step half of the time that is left, the last one all of it.

        A k that is too hard then costs those after it half their time, not all.
        """
        self._step_ends = math.inf
        if self.limits.time is not None and not last:
            self._step_ends = (self.elapsed() + self.limits.time) / 2


def stop_reason(limits: Limits, deadline: Deadline, nodes: int) -> Status | None:
    """Return the limit that ends a search after so many nodes, or None."""
    if deadline.passed():
        return Status.TIME_LIMIT
    if limits.nodes is not None and nodes >= limits.nodes:
        return Status.NODE_LIMIT
    return None
