"""Which limit, if any, ends a search."""

from __future__ import annotations

from ..result import Status
from .base import Deadline, Limits


def stop_reason(limits: Limits, deadline: Deadline, nodes: int) -> Status | None:
    """Return the status of a search that has to stop after so many nodes, or None."""
    if deadline.passed():
        return Status.TIME_LIMIT
    if limits.nodes is not None and nodes >= limits.nodes:
        return Status.NODE_LIMIT
    return None
