"""Errors and notes about files, with the arguments that their messages name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from .._arguments import Argument as Argument
from .._arguments import NamesArguments
from .._feature_names import meant


class ReadError(NamesArguments, ValueError):
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


class ReadNote(NamesArguments, UserWarning):
    """How a doubtful part of a file was read."""


def tell(message: str, *arguments: Argument) -> None:
    """Warn how a doubtful part of a file was read."""
    warnings.warn(ReadNote(message, *arguments), stacklevel=3)


class WriteError(NamesArguments, OSError):
    """A file cannot be written; the message says why."""
