"""Progress of a call: events for a listener, a line for a terminal, a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from .limits import relative_gap
from .messages import gap_in_percent

PATIENCE = 3.0  # seconds before the line appears
LOG_PAUSE = 1.0  # seconds between two lines of the log, ends of stages excepted


@dataclass(frozen=True, kw_only=True)
class Event:
    """One step of a call.

    Attributes
    ----------
    stage : str
        The work under way: "scan", "supports", "proof".
    done, total : int
        Steps of the stage, and how many there are; 0 if nobody can say. The stage ends
        with ``done == total``.
    k : int
        The sparsity; 0 if the stage serves them all.
    objective, bound : float
        The best component so far, and the least proved bound.
    nodes : int
        Nodes of all searches.
    work : float
        Work of the call so far; `Run.tell` fills it in.
    message : str
        Anything else, in words.

    Examples
    --------
    >>> from blockspca.progress import Event
    >>> Event(stage="proof", k=5, objective=2.0, bound=2.5).gap
    0.25
    """

    stage: str
    done: int = 0
    total: int = 0
    k: int = 0
    objective: float = float("-inf")
    bound: float = float("inf")
    nodes: int = 0
    work: float = 0.0
    message: str = ""

    @property
    def gap(self) -> float:
        """The relative gap of objective and bound."""
        if self.bound == float("inf"):
            return float("inf")
        return relative_gap(self.objective, self.bound)

    @property
    def ends_stage(self) -> bool:
        """Whether this is the last event of its stage."""
        return 0 < self.total == self.done


Listener = Callable[[Event], None]


class Line:
    """One line about a call that takes long; it is erased at the end.

    Carriage returns and spaces are all that it writes, so it works in notebooks too.
    """

    def __init__(self, stream: TextIO, patience: float = PATIENCE) -> None:
        self.stream, self.patience = stream, patience
        self.start = time.perf_counter()
        self.width = 0

    def __call__(self, event: Event) -> None:
        """Write the event over the previous one, if the call takes long already."""
        seconds = time.perf_counter() - self.start
        if seconds < self.patience:
            return
        parts = [event.stage]
        if event.k:
            parts.append(f"k = {event.k}")
        if event.total:
            parts.append(f"{event.done / event.total:.0%}")
        if event.objective > float("-inf"):
            gap = gap_in_percent(event.gap)
            parts.append(f"objective {event.objective:.6g}, gap {gap}")
        parts += [event.message] * bool(event.message)
        parts += [f"{seconds:.0f} s", "Ctrl-C returns the best so far"]
        text = f"blockspca: {', '.join(parts)}"
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)

    def close(self) -> None:
        """Erase the line."""
        if self.width:
            self._write("")
            self.stream.write("\r")


class Log:
    """A log with a header and a line for each event, as HiGHS writes it."""

    HEADER = (
        "     time     work  stage         k   done      objective          bound"
        "       gap      nodes"
    )

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.start = time.perf_counter()
        self.written = float("-inf")
        stream.write(self.HEADER + "\n")

    def __call__(self, event: Event) -> None:
        """Write a line, unless the previous one is very recent."""
        now = time.perf_counter()
        if not event.ends_stage and now - self.written < LOG_PAUSE:
            return
        self.written = now
        done = f"{event.done / event.total:.0%}" if event.total else "-"
        objective = (
            "-" if event.objective == float("-inf") else f"{event.objective:.8g}"
        )
        bound = "-" if event.bound == float("inf") else f"{event.bound:.8g}"
        gap = "-" if bound == "-" else gap_in_percent(event.gap)
        text = (
            f"{now - self.start:8.1f}s {event.work:8.2f}  {event.stage:<10}"
            f"{event.k or '-':>5} {done:>6} {objective:>14} {bound:>14} {gap:>9} "
            f"{event.nodes:>10}  {event.message}"
        )
        self.stream.write(text.rstrip() + "\n")
        self.stream.flush()


@contextmanager
def listening(progress: Any) -> Iterator[Listener | None]:
    """Give the listener for `progress`.

    A callable is the listener itself. True asks for a log on standard error. None asks
    for a line, if a person watches: a terminal or a notebook. False asks for nothing.
    """
    if (
        progress is not None
        and not callable(progress)
        and progress not in (True, False)
    ):
        raise TypeError(
            f"progress = {progress!r} must be None, True, False or a callable; use "
            "progress=True for a log."
        )
    if callable(progress):
        yield progress
    elif progress is True and sys.stderr is not None:
        yield Log(sys.stderr)
    elif progress is None and _is_watched():
        line = Line(sys.stderr)
        try:
            yield line
        finally:
            line.close()
    else:
        yield None


def _is_watched() -> bool:
    """Tell whether a person may see what the main thread writes."""
    from multiprocessing import parent_process

    if threading.current_thread() is not threading.main_thread() or parent_process():
        return False
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())
