"""Exit codes, and any failure as one line on standard error."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

# typer ships its own copy of click from 0.26 on; these are the classes of either.
UsageError = typer.BadParameter.__mro__[1]
ClickError = typer.BadParameter.__mro__[2]


class Interrupted(Exception):
    """Ctrl-C, as an exception that typer does not take for its own."""


class ExitCode(IntEnum):
    """What the exit code of `blockspca` means."""

    OK = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    NOT_PROVED = 3
    REFUTED = 4
    INTERRUPTED = 130


MEANING = {
    ExitCode.OK: "done, and what was asked for is proved",
    ExitCode.UNEXPECTED: "an error in blockspca itself; --debug shows where",
    ExitCode.BAD_INPUT: "a wrong option, file or value; one line says which",
    ExitCode.NOT_PROVED: "a limit was reached before the proof; results are written",
    ExitCode.REFUTED: "verify: a claim of the certificate does not hold",
    ExitCode.INTERRUPTED: "Ctrl-C; the results so far are written",
}

# Python arguments that messages of the library name, and the options that set them.
_OPTIONS = {
    "pass missing='pairwise'": "add --missing pairwise",
    "missing='pairwise'": "--missing pairwise",
    "pass constant='ignore'": "add --constant ignore",
    "scale=True": "--scale",
    "pass scale=False": "leave --scale out",
    "scheme=ProjectionDeflation()": "--scheme projection",
    "pass None for no limit": "leave it out for no limit",
    "or data (rows are samples) to Covariance.from_data": (
        "or leave --covariance out if its rows are samples"
    ),
    "rescale X": "rescale it",
    "n_jobs": "--jobs",
    "n_components": "--n-components",
    "k_max": "--k-max",
    "limits.": "--",
}


def report_error(error: BaseException, debug: bool) -> ExitCode:
    """Print one line about an error, and its traceback if asked; return the code."""
    if debug and not isinstance(error, (KeyboardInterrupt, Interrupted, typer.Abort)):
        traceback.print_exception(error)
    code, text = _describe(error)
    print(f"blockspca: {text}", file=sys.stderr)
    return code


def _describe(error: BaseException) -> tuple[ExitCode, str]:
    if isinstance(error, (KeyboardInterrupt, Interrupted, typer.Abort)):
        return ExitCode.INTERRUPTED, "interrupted."
    if isinstance(error, ClickError):
        text = one_line(error.format_message())  # type: ignore[attr-defined]
        return ExitCode.BAD_INPUT, text.rstrip(".") + "; --help lists the options."
    if type(error).__name__ == "VerificationError":
        return ExitCode.REFUTED, f"refuted: {one_line(str(error))}"
    if isinstance(error, MemoryError):
        return ExitCode.BAD_INPUT, "there is not enough memory for this; use less data."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return ExitCode.BAD_INPUT, f"{error.filename}: {one_line(error.strerror)}."
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return ExitCode.BAD_INPUT, in_options(one_line(str(error)))
    name = type(error).__name__
    return ExitCode.UNEXPECTED, f"{name}: {one_line(str(error))} (see it with --debug)"


def one_line(text: str) -> str:
    """Return the text without line breaks, control characters and class names."""
    text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", text)  # np.float64(1.5)
    text = text.replace("Value error, ", "")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def in_options(text: str) -> str:
    """Return a sentence of the library with options in place of its arguments."""
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return text


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings as one line each, without the place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"blockspca: warning: {one_line(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():  # restores showwarning at the end
        warnings.showwarning = show
        yield
