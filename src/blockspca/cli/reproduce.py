"""`blockspca reproduce`: the tables of the paper, measured again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .declaring import option, real
from .display import Display
from .errors import ExitCode, UsageError, refuse_unknown
from .options import Force, ShowOptions

if TYPE_CHECKING:
    from ..reproduction import ReproducedTable

ALL = "all"


def __getattr__(name: str) -> float:
    """Give the limits that scripts of earlier versions import from here."""
    if name not in ("SECONDS", "QUICK_SECONDS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ..reproduction import measurements

    return float(getattr(measurements, name))


@dataclass(frozen=True)
class ReproduceOptions:
    """Data, time limit and output of the tables."""

    data: Path | None = option(
        "The folder of the data sets; $BLOCKSPCA_DATA by default.", None
    )
    time_limit: float | None = option(
        "Seconds for each run of each method; 60 by default, 15 with --quick.",
        None,
        **real(0.1),
    )
    quick: bool = option(
        "Take at most ten minutes for all tables, leaving some runs out.", False
    )
    output: Path | None = option(
        "A directory for Markdown, JSON and picture files.", None, "--output", "-o"
    )
    force: Force = False
    download: bool = option(
        "Download missing data sets from their public sources.", False
    )


def reproduce(
    show: ShowOptions,
    asked: ReproduceOptions,
    table: Annotated[
        str | None,
        typer.Argument(help="The table, or all; without it, the tables are listed."),
    ] = None,
) -> None:
    """Measure a table of the paper again, beside what the paper prints."""
    from ..io.writing import check_directory
    from ..reproduction.catalogue import TABLES

    if table is None:
        for name in TABLES:
            typer.echo(f"  {name}")
        typer.echo("Measure one: blockspca reproduce branch-and-bound --data DIR")
        return
    refuse_unknown(table, "table", [ALL, *TABLES])
    data, output, quick = asked.data, asked.output, asked.quick
    if asked.download:
        _download(data)
    _check_folder(data)
    names = list(TABLES) if table == ALL else [table]
    if output is not None:
        check_directory("--output", output, _file_names(names), asked.force)
    from ..reproduction import Measurements, Settings, warm_up
    from ..reproduction import reproduce as measure
    from ..reproduction.measurements import QUICK_SECONDS, SECONDS

    display = Display(show)
    tell = display.note if display.log else lambda text: None
    seconds = asked.time_limit or (QUICK_SECONDS if quick else SECONDS)
    measurements = Measurements(Settings(data, seconds, quick, tell))
    with display.working("Compiling"):
        # The paper's times are without compilation.
        warm_up()
    tables = []
    for name in names:
        found = measure(name, measurements)
        tables.append(found)
        if output is not None:  # at once, so that Ctrl-C leaves what was measured
            _write(output, found, asked.force)
        display.say(found.to_markdown())
    if output is not None:
        display.say(f"Written to {output}")
    for line in verdict_lines(tables):
        display.say(line)
    raise typer.Exit(exit_code(tables))


def _download(data: Path | None) -> None:
    """Download missing sets; the rows of those that fail stay empty, with a message."""
    from ..datasets.catalogue import PAPER_SETS
    from ..datasets.download import DownloadError, download_paper_set

    for chosen in PAPER_SETS.values():
        try:
            download_paper_set(chosen, data)
        except (DownloadError, ImportError) as error:
            typer.echo(f"blockspca: {error}", err=True)
            if isinstance(error, ImportError):
                return


def _check_folder(data: Path | None) -> None:
    from ..datasets.catalogue import data_folder

    if data is not None and not data.is_dir():
        raise UsageError(f"--data {data} is not a directory")
    if data is None and not data_folder().is_dir():
        typer.echo(
            f"blockspca: there is no folder {data_folder()}; rows that need data are "
            "left empty. --data names the folder.",
            err=True,
        )


def _file_names(names: list[str]) -> list[str]:
    from ..reproduction.figure import NAME, PICTURE

    files = [f"{name}.{kind}" for name in names for kind in ("md", "json")]
    return [*files, PICTURE] if NAME in names else files


def _write(output: Path, table: ReproducedTable, force: bool) -> None:
    from .. import __version__
    from ..io.writing import to_json, write_file
    from ..reproduction.machine import machine

    content = {
        "format": "blockspca-table",
        "version": 1,
        "blockspca": __version__,
        "machine": machine(),
        **table.to_dict(),
    }
    write_file(output / f"{table.name}.md", table.to_markdown(), force=force)
    write_file(output / f"{table.name}.json", to_json(content), force=force)
    for name, picture in table.pictures.items():
        write_file(output / name, picture, force=force)


def verdict_lines(tables: list[ReproducedTable]) -> list[str]:
    """Count the verdicts of each table."""
    from collections import Counter

    width = max(len(table.name) for table in tables)
    lines = []
    for table in tables:
        counts = Counter(str(verdict) for verdict in table.verdicts)
        said = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
        lines.append(f"{table.name:<{width}}  {said or 'drawn'}")
    return lines


def exit_code(tables: list[ReproducedTable]) -> ExitCode:
    """Return NOT_PROVED if a number is worse than printed, or was not reached."""
    failed = any(table.disagrees or table.unfinished for table in tables)
    return ExitCode.NOT_PROVED if failed else ExitCode.OK
