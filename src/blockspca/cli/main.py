"""Assembles the commands, runs one, and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from .. import __version__
from .blocks import blocks
from .compile import compile
from .datasets import datasets
from .declaring import spread
from .demo import demo
from .errors import MEANING, ExitCode, UsageError, report_error, warnings_in_one_line
from .explain import explain
from .explore import explore
from .fit import fit
from .info import info
from .path import path
from .report import report
from .reproduce import reproduce
from .verify import verify

_CODES = "; ".join(
    f"{int(code)} = {text.split(';')[0]}" for code, text in MEANING.items()
)

app = typer.Typer(
    name="blockspca",
    help="Sparse PCA by block-diagonalization, with a proof of how good the answer is.",
    epilog=f"Exit codes: {_CODES}.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"blockspca {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Sparse PCA by block-diagonalization, with a proof of how good the answer is."""


_COMMANDS = (
    fit,
    path,
    blocks,
    report,
    explore,
    verify,
    explain,
    reproduce,
    datasets,
    demo,
    compile,
    info,
)
for command in _COMMANDS:
    app.command()(spread(command))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the `blockspca` script; ends with a documented exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    code = ExitCode.OK
    try:
        _refuse_empty(arguments)
        with warnings_in_one_line():
            code = app(arguments or ["--help"], standalone_mode=False) or code
        sys.stdout.flush()
    except BaseException as error:
        # The reader of a pipe may close it early; typer would exit with 1 then.
        if BrokenPipeError in (type(error), type(error.__context__)):
            _forget_output()
            return int(code)
        if isinstance(error, SystemExit):
            raise
        return report_error(error, "--debug" in arguments)
    return int(code)


def _refuse_empty(arguments: list[str]) -> None:
    """Refuse '', which would mean the folder one is in; a column may be called so."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word == "" and before not in ("--drop", "--index"):
            raise UsageError("an argument is empty; is a variable not set?")


def _forget_output() -> None:
    """Discard buffered output, so that Python reports no broken pipe at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
