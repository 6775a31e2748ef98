"""Errors and notes about files, with the arguments that their messages name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._feature_names import meant


@dataclass(frozen=True)
class Argument:
    """An argument that a message names; as text, name=value as in a call.

    A program with other words for it, such as the options of a command line, finds it
    in the `arguments` of the error and may put its own words there.

    Examples
    --------
    >>> from blockspca.io.errors import Argument
    >>> f"leave it out with {Argument('drop', ['b'])}"
    "leave it out with drop=['b']"
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        value = "..." if self.value is None else repr(self.value)
        return f"{self.name}={value}"


class _NamesArguments(Exception):
    """An error whose message names arguments, in the words of a call."""

    arguments: tuple[Argument, ...]

    def __init__(self, message: str, *arguments: Argument) -> None:
        super().__init__(message)
        self.arguments = arguments


class ReadError(_NamesArguments, ValueError):
    """A file cannot be read as a table of numbers; the message says why."""


def unreadable(path: Path, kind: str, error: Exception) -> ReadError:
    """Return the error for a file whose format is broken."""
    reason = (str(error).strip() or repr(error)).splitlines()[0]
    return ReadError(f"{path} is not a readable {kind}: {reason.rstrip('.')}.")


def no_column(
    path: str | Path, kind: str, asked: Argument, known: Iterable[str]
) -> ReadError:
    """Return the error for a column that is asked for by name and is not there."""
    name = asked.value
    asked = Argument(asked.name)
    return ReadError(
        f"{path} has no {kind} {name!r} for {asked}; {meant(name, known)}", asked
    )


def text_among_numbers(message: str, words: Sequence[str], name: str) -> ReadError:
    """Return the error for a few words in a column of numbers, and ways out."""
    na, drop = Argument("na", list(words)), Argument("drop", [name])
    stands = "it stands" if len(words) == 1 else "they stand"
    return ReadError(
        f"{message}; use {na} if {stands} for missing values, write numbers there, or "
        f"leave the column out with {drop}.",
        na,
        drop,
    )


def text_column(message: str, name: str) -> ReadError:
    """Return the error for a column of text: the message, and ways out."""
    drop, index = Argument("drop", [name]), Argument("index", name)
    label, numbers = Argument("label", name), Argument("numeric_only", True)
    return ReadError(
        f"{message}; use {index} if it names the samples, {label} if it says of what "
        f"kind they are, or leave it out with {drop}, or all such columns with "
        f"{numbers}.",
        drop,
        index,
        label,
        numbers,
    )


class ReadNote(_NamesArguments, UserWarning):
    """How a doubtful part of a file was read."""


def tell(message: str, *arguments: Argument) -> None:
    """Warn how a doubtful part of a file was read."""
    warnings.warn(ReadNote(message, *arguments), stacklevel=3)


class WriteError(_NamesArguments, OSError):
    """A file cannot be written; the message says why."""
