"""Progress of a long run: a callable that is told, and a bar that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int, float], None]  #: blocks done, blocks in all, objective


def _silent(done: int, total: int, objective: float) -> None:
    """Show nothing."""


@contextmanager
def as_progress(progress: Progress | bool | None) -> Iterator[Progress]:
    """Give a callable for progress: the user's own, a bar for True, or a silent one."""
    if callable(progress):
        yield progress
    elif progress in (None, False):
        yield _silent
    elif progress is True:
        with _bar() as report:
            yield report
    else:
        raise TypeError(
            f"progress = {progress!r} is neither a bool nor a callable; pass True for "
            "a progress bar."
        )


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as RichProgress

    columns: list[Any] = [
        TextColumn("blocks"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("objective {task.fields[objective]:.6g}"),
        TimeElapsedColumn(),
    ]
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("blocks", total=None, objective=0.0)

        def report(done: int, total: int, objective: float) -> None:
            bar.update(task, completed=done, total=total, objective=objective)

        yield report
