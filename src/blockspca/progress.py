"""Progress of a long run: events that a callable is told, and a log that shows them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TextIO

from ._messages import Proved, count, gap_in_percent
from .status import Status, relative_gap

SILENCE = 10.0  # seconds between two lines of a log that is no terminal
PATIENCE = 5.0  # seconds after which a solve that nobody asked about shows a line
HOW_TO_STOP = "Ctrl-C keeps what is known"


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
    component : int
        Which of several components is solved for, from 1; 0 for one alone.

    Examples
    --------
    >>> import blockspca as bs
    >>> heard = []
    >>> result = bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1, progress=heard.append)
    >>> heard[-1].stage, heard[-1].gap
    ('proof', 0.0)
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
    component: int = 0

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.upper_bound)


Listener = Callable[[Event], None]


_shown: list[object] = []  # lines and logs that are being shown


def silent(event: Event) -> None:
    """Show nothing."""


def of_component(listener: Listener, number: int) -> Listener:
    """Return a listener for the events of one component among several."""
    if listener is silent:  # for which no events are made
        return silent
    return lambda event: listener(replace(event, component=number))


@contextmanager
def as_listener(progress: Listener | bool | None) -> Iterator[Listener]:
    """Give a callable for events: the user's own, the log for True, or a silent one.

    None is a line after five seconds, where somebody watches, and nothing elsewhere.
    """
    if callable(progress):
        yield progress
    elif progress is None and _is_watched():
        with LateLine(sys.stderr) as line:
            yield line
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


def _is_watched() -> bool:
    """Whether a person may look at what this thread writes: a terminal, a notebook."""
    from multiprocessing import parent_process

    if threading.current_thread() is not threading.main_thread() or parent_process():
        return False
    if _shown:  # what is shown is about the call that this one is part of
        return False
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


def describe(event: Event) -> tuple[str, str]:
    """Return what is being done, and how far it is."""
    if event.stage == "scan":
        share = event.done / event.total if event.total else 0.0
        return "reading the matrix", f"{share:.0%}"
    detail = f"objective {event.objective:.6g}"
    if event.stage != "proof":
        return "solving blocks", detail
    gap = gap_in_percent(event.gap)
    of = f"component {event.component}, " if event.component else ""
    return f"{of}k = {event.k}", f"{detail}, gap {gap}, {count(event.nodes, 'node')}"


class LateLine:
    """One line about a run that takes long, written over and over, gone at the end.

    A thread of its own writes it, so that the clock goes on between two events. With
    spaces for what was longer before it works in notebooks, too, which know a carriage
    return and no other control characters.
    """

    def __init__(self, out: TextIO, patience: float | None = None) -> None:
        self.out = out
        self.patience = PATIENCE if patience is None else patience
        self.started = time.perf_counter()
        self.event: Event | None = None
        self.width = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> LateLine:
        _shown.append(self)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        _shown.remove(self)
        self.over.set()
        self.thread.join()
        if self.width:
            self._print(" " * self.width + "\r")

    def __call__(self, event: Event) -> None:
        self.event = event

    def _write(self) -> None:
        pause = self.patience
        while not self.over.wait(pause):
            pause = 1.0
            text = self.line()
            self._print(text.ljust(self.width))
            self.width = max(self.width, len(text))

    def line(self) -> str:
        """What is shown now."""
        what, detail = ("starting", "") if self.event is None else describe(self.event)
        elapsed = time.perf_counter() - self.started
        parts = [what, detail, f"{elapsed:.0f} s", HOW_TO_STOP]
        return "blockspca: " + ", ".join(part for part in parts if part)

    def _print(self, text: str) -> None:
        self.out.write("\r" + text)
        self.out.flush()


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
        self.component = 0
        self.begun: set[int] = set()  # components that the log has named
        #: What the call returns, where that is not all that was settled on the way
        self.returned: Sequence[Proved] = ()
        self.bar: Any = None

    def __enter__(self) -> ProgressLog:
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        class Clock(ProgressColumn):
            """Seconds since the start, also where a bar is full and work goes on."""

            def render(column, task: Any) -> Text:
                seconds = time.perf_counter() - self.started
                hint = f", {HOW_TO_STOP}" if seconds >= PATIENCE else ""
                return Text(f"{seconds:.0f} s{hint}")

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[detail]}"),
            Clock(),
            console=self.console,
            transient=True,
        )
        _shown.append(self)
        self.bar.start()
        self.task = self.bar.add_task("starting", total=None, detail="")
        return self

    def __exit__(self, *exception: object) -> None:
        _shown.remove(self)
        self.bar.stop()
        if self.settled:
            self._print(self.report())

    def __call__(self, event: Event) -> None:
        name, detail = describe(event)
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
            if event.component != self.component:
                self._print(self.heading(event.component))
            self._print(self.line(event))
        elif self.is_due():
            elapsed = time.perf_counter() - self.started
            self._print(f"  … {name}: {detail}, {elapsed:.0f} s, {HOW_TO_STOP}")

    def is_due(self) -> bool:
        """Whether a log without a bar should give a sign of life."""
        silent_for = time.perf_counter() - self.spoken
        return silent_for >= SILENCE and not self.console.is_terminal

    def heading(self, component: int) -> str:
        """The line before those of a component, which may be solved for again."""
        again = ", again" if component in self.begun else ""
        self.component = component
        self.begun.add(component)
        return (f"component {component}" if component else "all components") + again

    @staticmethod
    def line(event: Event) -> str:
        """One line of the log."""
        # None are left, but not because all were ruled out: there was no screening.
        unknown = event.survivors == 0 and event.status is not Status.OPTIMAL
        survivors = "-" if unknown else str(event.survivors)
        gap = gap_in_percent(event.gap)
        return (
            f"{event.k:>5} {survivors:>9} {event.nodes:>10} "
            f"{event.objective:>13.6g} {event.upper_bound:>13.6g} {gap:>8} "
            f"{event.elapsed:>7.2f}s  {event.source}"
        )

    def report(self) -> str:
        """The closing lines."""
        about: Sequence[Event | Proved] = self.returned or self.settled
        proved = sum(one.status is Status.OPTIMAL for one in about)
        worst = max(about, key=lambda one: (one.status is not Status.OPTIMAL, one.gap))
        widest = gap_in_percent(worst.gap)
        nodes = sum(event.nodes for event in self.settled)
        return (
            f"{proved} of {len(about)} proved optimal, widest gap {widest}, "
            f"{count(nodes, 'node')}, {time.perf_counter() - self.started:.2f} s"
        )

    def _print(self, text: str) -> None:
        self.spoken = time.perf_counter()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
