"""What ends the recording of a proof: limits of its trees, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import Budget


@dataclass(frozen=True)
class TreeLimits:
    """The nodes of one tree, and the budget of all, which they are charged to."""

    most_nodes: int
    budget: Budget


class NotRecordable(ValueError):
    """The proof format has no rule for this result."""


class NoTimeToRecord(NotRecordable):
    """A was not read once more in the time that a recording has."""


class NotClosed(Exception):
    """A set is above τ, or there are too many nodes."""
