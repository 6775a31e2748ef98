"""Exit codes, and any failure as one line on standard error."""

from __future__ import annotations

import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer

# typer ships its own copy of click from 0.26 on; these are the classes of either.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def refuse_unknown(name: str, what: str, known: Iterable[str]) -> None:
    """Refuse an unknown name, and list the known ones."""
    known = list(known)
    if name not in known:
        raise UsageError(f"{name!r} is not a {what}; give one of {', '.join(known)}")


class Interrupted(Exception):
    """Ctrl-C, as an exception that typer does not take for its own."""


class ExitCode(IntEnum):
    """The exit codes of `blockspca`."""

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
    ExitCode.NOT_PROVED: "results are written, but not all proved; one line says why",
    ExitCode.REFUTED: "verify: a claim of the certificate does not hold",
    ExitCode.INTERRUPTED: "Ctrl-C; the results so far are written",
}

# The options are called as the library's arguments, but for this one.
_RENAMED = {"limits.time": "time"}
_WITH_OPPOSITE = ("header",)  # of those without a value


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
        text = text if text.endswith("?") else text.rstrip(".") + ";"
        return ExitCode.BAD_INPUT, f"{text} --help lists the options."
    # By name: its module would import the provers, to tell of a misspelt option.
    if type(error).__name__ == "VerificationError":
        return ExitCode.REFUTED, f"refuted: {one_line(str(error))}"
    if type(error).__name__ == "MemoryLimitError":  # ours says what to do
        return ExitCode.BAD_INPUT, in_options(error)
    if isinstance(error, MemoryError):
        return ExitCode.BAD_INPUT, "there is not enough memory for this; use less data."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return ExitCode.BAD_INPUT, f"{error.filename}: {one_line(error.strerror)}."
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return ExitCode.BAD_INPUT, in_options(error)
    name = type(error).__name__
    return ExitCode.UNEXPECTED, f"{name}: {one_line(str(error))} (see it with --debug)"


def one_line(text: str) -> str:
    """Return the text without line breaks, control characters and class names."""
    text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", text)  # np.float64(1.5)
    text = text.replace("Value error, ", "")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def in_options(said: BaseException | str, *arguments: Any) -> str:
    """Return what an error says with options in place of the library's arguments.

    These are the `arguments` that the error has, and what is a name is left alone: a
    file or a column may be called as an argument is.
    """
    text = str(said)
    for argument in (*getattr(said, "arguments", ()), *arguments):
        option = as_option(argument.name, argument.value)
        if argument.value is False and argument.name not in _WITH_OPPOSITE:
            text = text.replace(f"pass {argument}", f"leave {option} out")
        elif argument.value is None:  # once: the message begins with its name
            text = text.replace(str(argument), option, 1)
        else:
            text = text.replace(f"pass {argument}", f"add {option}")
            text = text.replace(str(argument), option)
    return one_line(text)


def as_option(name: str, value: Any = None) -> str:
    """Return the option for an argument, as it is typed.

    Examples
    --------
    >>> as_option("drop", ["a b", "c"]), as_option("header", False)
    ("--drop 'a b' --drop c", '--no-header')
    """
    name = _RENAMED.get(name, name).replace("_", "-")
    if value is None or isinstance(value, bool):
        opposite = value is False and name in _WITH_OPPOSITE
        return f"--no-{name}" if opposite else f"--{name}"
    values = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"--{name} {shlex.quote(str(one))}" for one in values)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings as one line each, without the place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        # How a file was understood is said as it is; it is nothing to worry about.
        kind = "" if type(message).__name__ == "ReadNote" else "warning: "
        print(f"blockspca: {kind}{in_options(message)}", file=sys.stderr)

    with warnings.catch_warnings():  # restores showwarning at the end
        warnings.showwarning = show
        yield
