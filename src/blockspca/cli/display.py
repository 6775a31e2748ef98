"""Progress bars and notes of commands; no bars when output is piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .options import ShowOptions

if TYPE_CHECKING:
    from rich.console import Console

    from ..io.request import Tick


class Display:
    """Progress on standard error, results on standard output."""

    def __init__(self, show: ShowOptions) -> None:
        from rich.console import Console

        self.err: Console = Console(stderr=True)
        self.bars = self.err.is_terminal and not show.quiet
        self.log = (self.err.is_terminal or show.verbose) and not show.quiet

    @contextmanager
    def reading(self, name: str) -> Iterator[Tick]:
        """Show a bar of the bytes read; it appears at once."""
        if not self.bars:
            yield lambda done, total: None
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            console=self.err,
            transient=True,
        ) as bar:
            task = bar.add_task(f"Reading {_plain(name)}", total=None)
            bar.refresh()
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a spinner."""
        if not self.bars:
            yield
            return
        with self.err.status(_plain(what)):
            yield

    @contextmanager
    def solving(self) -> Iterator[Any]:
        """Give a value for `progress`: the log with its bar, or False."""
        if not self.log:
            yield False
            return
        from ..progress import ProgressLog

        with ProgressLog(self.err) as log:
            yield log

    def note(self, text: str) -> None:
        """Print one line on standard error."""
        self.err.print(
            f"blockspca: {text}", highlight=False, markup=False, soft_wrap=True
        )

    def say(self, text: str = "") -> None:
        """Print plain text on standard output."""
        print(text)


def _plain(text: str) -> str:
    """Keep a file's name from being read as markup."""
    return text.replace("[", "\\[")
