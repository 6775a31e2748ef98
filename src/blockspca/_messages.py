"""Results in words, for the command line and the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .status import PROVED, Status

SHOWN_FROM = 1e-8  # a smaller gap is shown as 0

_STOPPED = {
    Status.TIME_LIMIT: ("the time was up", "time"),
    Status.NODE_LIMIT: ("the node limit was reached", "nodes"),
    Status.MEMORY_LIMIT: ("the memory limit was reached", "memory"),
    Status.INTERRUPTED: ("it was interrupted", ""),
    Status.FEASIBLE: ("the search has finished", ""),
}


class Proved(Protocol):
    """What a sentence about a proof needs: a `Result` has it."""

    @property
    def status(self) -> Status: ...
    @property
    def gap(self) -> float: ...


def percent(share: float) -> str:
    """Return 0.6234 as '62.3 %'."""
    return f"{100 * share:.1f} %" if abs(share) < 10 else f"{100 * share:.0f} %"


def gap_in_percent(gap: float) -> str:
    """Return a gap for a table or log; what rounding alone amounts to is 0.

    Examples
    --------
    >>> from blockspca._messages import gap_in_percent
    >>> gap_in_percent(8e-10), gap_in_percent(0.025)
    ('0', '2.50%')
    >>> gap_in_percent(8e-6), gap_in_percent(float("inf"))
    ('<0.01%', 'unknown')
    """
    if gap < SHOWN_FROM:
        return "0"
    if gap == float("inf"):
        return "unknown"
    return "<0.01%" if gap < 0.0001 else f"{gap:.2%}"


def proof_in_words(result: Proved, together: bool = False) -> str:
    """Say how sure an objective is, in half a sentence.

    Components that were chosen `together` are not meant to be the best one by one: a
    gap for each, given the ones before it, is what is proved of them.

    Examples
    --------
    >>> import blockspca as bs
    >>> from blockspca._messages import proof_in_words
    >>> proof_in_words(bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1))
    'proved optimal'
    """
    if result.status is Status.OPTIMAL:
        return "proved optimal"
    gap = result.gap
    if gap == float("inf"):
        return f"not proved: {what_stopped(result.status)[0]}"
    most = f"no other choice is more than {_small(gap)} better"
    if result.status is Status.GAP_LIMIT:
        return f"proved: {most}"
    stopped, _ = what_stopped(result.status)
    if not together:
        return f"not proved optimal: {stopped}, but {most}"
    ended = "" if result.status is Status.FEASIBLE else f" ({stopped})"
    return f"chosen together with the others: given the ones before it, {most}{ended}"


def interruption(call: str, results: Sequence[Proved], wanted: int = 1) -> str:
    """Say in one sentence what Ctrl-C has stopped, and what is proved so far.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from blockspca._messages import interruption
    >>> from blockspca.limits import Status
    >>> stopped = SimpleNamespace(status=Status.INTERRUPTED, gap=0.025)
    >>> interruption("solve", [stopped])
    'solve was interrupted: its best so far is returned, with a proved gap of 2.50%.'
    """
    widest = max(result.gap for result in results)
    bounded = widest < float("inf")
    gap, best = gap_in_percent(widest), "its best so far is returned"
    if wanted == 1:
        proved = f"a proved gap of {gap}" if bounded else "no bound proved yet"
        return f"{call} was interrupted: {best}, with {proved}."
    if len(results) < wanted:
        best = f"{len(results)} of {wanted} components are returned"
    done = sum(result.status in PROVED for result in results)
    rest = f"no gap is above {gap}" if bounded else "some have no bound yet"
    return (
        f"{call} was interrupted: {best}; {done} of {len(results)} are proved, and "
        f"{rest}."
    )


def what_stopped(status: Status) -> tuple[str, str]:
    """Return why a proof went no further, and the limit to raise; "" for none.

    Examples
    --------
    >>> from blockspca._messages import what_stopped
    >>> from blockspca.limits import Status
    >>> what_stopped(Status.NODE_LIMIT)
    ('the node limit was reached', 'nodes')
    """
    return _STOPPED.get(status, ("it stopped", ""))


def advice(status: Status) -> str:
    """Say how to go on where a limit has stopped the proof; else nothing."""
    _, limit = what_stopped(status)
    if not limit:
        return ""
    return (
        f"A limit stopped the proof: raise limits.{limit}, or ask for less with "
        "limits.gap."
    )


def _small(gap: float) -> str:
    if gap < 1e-5:  # or it reads 0.000 %
        return f"{100 * gap:.1g} %"
    digits = 1 if gap >= 0.01 else 3
    return f"{100 * gap:.{digits}f} %"


def count(number: int, one: str) -> str:
    """Return '1 sample' or '3 samples'."""
    return f"{number} {one if number == 1 else one + 's'}"
