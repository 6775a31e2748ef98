"""The limits of a run and what has been used of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ._kernels.loading import load
from .result import Status
from .solvers.base import Limits

_DEFAULT_MEMORY = 2**30
_NO_LIMIT = 2**62


class LimitReached(Exception):
    """A limit of the whole run was reached; `status` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(str(status))
        self.status = status


class StepLimitReached(Exception):
    """This k has had its share of the time; the run goes on with the next."""


@dataclass
class Meter:
    """A clock and a counter of nodes; `check` raises when one has run out."""

    limits: Limits
    nodes: int = 0
    started: float = field(default_factory=lambda: time.perf_counter())
    step_ends: float = float("inf")

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def check(self) -> None:
        if self.limits.time is not None and self.elapsed >= self.limits.time:
            raise LimitReached(Status.TIME_LIMIT)
        if self.limits.nodes is not None and self.nodes >= self.limits.nodes:
            raise LimitReached(Status.NODE_LIMIT)
        if self.elapsed >= self.step_ends:
            raise StepLimitReached

    @property
    def time_left(self) -> float:
        """Seconds, infinitely many without a limit."""
        if self.limits.time is None:
            return float("inf")
        return max(0.0, self.limits.time - self.elapsed)

    def time_is_up(self) -> bool:
        return self.time_left <= 0

    def affords(self, seconds: float) -> bool:
        """Tell whether there is time for what takes so long and cannot be stopped."""
        return seconds <= self.time_left

    def load(self, *kernels: str) -> None:
        """Wait for kernels, which may have to be compiled, while there is time."""
        left = None if self.limits.time is None else self.time_left
        if not load(*kernels, seconds=left):
            raise LimitReached(Status.TIME_LIMIT)

    def start_step(self, last: bool) -> None:
        """Give a step half of the time that is left, the last one all of it.

        A k that is too hard then costs those after it half their time, not all.
        """
        self.step_ends = float("inf")
        if self.limits.time is not None and not last:
            self.step_ends = (self.elapsed + self.limits.time) / 2

    def share(self, part: float, most: float) -> float:
        """Seconds: a part of the time that is left, and no more than `most`."""
        return min(most, part * self.time_left)

    @property
    def nodes_left(self) -> int:
        if self.limits.nodes is None:
            return _NO_LIMIT
        return max(0, self.limits.nodes - self.nodes)

    @property
    def max_entries(self) -> int:
        """Most float64 numbers that one matrix, or one tree, may hold."""
        return (self.limits.memory or _DEFAULT_MEMORY) // 8
