"""Progress of a long run: events that a callable is told, and a log that shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._messages import count
from .result import Status, relative_gap

SILENCE = 10.0  # seconds between two lines of a log that is no terminal


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes
    ----------
    stage : str
        "scan" while A is read, "blocks" while blocks are solved, "proof" while the
        certified path is walked.
    done, total : int
        Blocks solved, or values of k settled, of how many.
    k : int
        The sparsity at hand.
    objective, upper_bound : float
        The best known, and the best proved, for this k.
    survivors, nodes : int
        Features left by screening, or free in the direction dual; nodes of the
        proof so far.
    source : str
        Where the incumbent came from.
    elapsed : float
        Seconds since the start.
    status : Status or None
        Set when this k is settled.
    """

    stage: str
    done: int
    total: int
    k: int
    objective: float
    upper_bound: float = float("inf")
    survivors: int = 0
    nodes: int = 0
    source: str = ""
    elapsed: float = 0.0
    status: Status | None = None

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.upper_bound)


Listener = Callable[[Event], None]


def silent(event: Event) -> None:
    """Show nothing."""


@contextmanager
def as_listener(progress: Listener | bool | None) -> Iterator[Listener]:
    """Give a callable for events: the user's own, the log for True, or a silent one."""
    if callable(progress):
        yield progress
    elif progress in (None, False):
        yield silent
    elif progress is True:
        with ProgressLog() as log:
            yield log
    else:
        raise TypeError(
            f"progress = {progress!r} is neither a bool nor a callable; pass True for "
            "a log with a progress bar."
        )


class ProgressLog:
    """A log in the manner of MIP solvers: one line for each k, a bar, a closing report.

    Written to standard error. The bar appears on terminals only, and shows the gap of
    the proof at hand as it falls.
    """

    HEADER = (
        f"{'k':>5} {'survivors':>9} {'nodes':>10} {'objective':>13} "
        f"{'upper bound':>13} {'gap':>8} {'time':>8}  incumbent from"
    )

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console

        self.console = Console(stderr=True) if console is None else console
        self.started = time.perf_counter()
        self.lines = 0
        self.spoken = self.started
        self.settled: list[Event] = []
        self.bar: Any = None

    def __enter__(self) -> ProgressLog:
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self.bar.start()
        self.task = self.bar.add_task("", total=None, detail="")
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()
        if self.settled:
            self._print(self.report())

    def __call__(self, event: Event) -> None:
        detail = f"objective {event.objective:.6g}"
        if event.stage == "proof":
            detail += f", gap {event.gap:.2%}, {count(event.nodes, 'node')}"
        name = f"k = {event.k}" if event.stage == "proof" else event.stage
        self.bar.update(
            self.task,
            description=name,
            completed=event.done,
            total=event.total,
            detail=detail,
        )
        if event.status is not None:
            self.settled.append(event)
            if self.lines == 0:
                self._print(self.HEADER)
            self.lines += 1
            self._print(self.line(event))
        elif self.is_due():
            elapsed = time.perf_counter() - self.started
            self._print(f"  … {name}: {detail}, {elapsed:.0f} s")

    def is_due(self) -> bool:
        """Whether a log without a bar should give a sign of life."""
        silent_for = time.perf_counter() - self.spoken
        return silent_for >= SILENCE and not self.console.is_terminal

    @staticmethod
    def line(event: Event) -> str:
        """One line of the log."""
        # None are left, but not because all were ruled out: there was no screening.
        unknown = event.survivors == 0 and event.status is not Status.OPTIMAL
        survivors = "-" if unknown else str(event.survivors)
        return (
            f"{event.k:>5} {survivors:>9} {event.nodes:>10} "
            f"{event.objective:>13.6g} {event.upper_bound:>13.6g} {event.gap:>8.2%} "
            f"{event.elapsed:>7.2f}s  {event.source}"
        )

    def report(self) -> str:
        """The closing lines."""
        proved = sum(event.status is Status.OPTIMAL for event in self.settled)
        widest = max(event.gap for event in self.settled)
        nodes = sum(event.nodes for event in self.settled)
        return (
            f"{proved} of {len(self.settled)} proved optimal, widest gap {widest:.2%}, "
            f"{count(nodes, 'node')}, {time.perf_counter() - self.started:.2f} s"
        )

    def _print(self, text: str) -> None:
        self.spoken = time.perf_counter()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
