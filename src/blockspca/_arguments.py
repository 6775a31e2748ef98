"""The arguments that an error names, for programs that have other words for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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


class Subject(Argument):
    """An argument that a message is about, and begins with: its name alone."""

    def __str__(self) -> str:
        return self.name


class NamesArguments(Exception):
    """An error whose message names arguments, in the words of a call."""

    arguments: tuple[Argument, ...]

    def __init__(self, message: str, *arguments: Argument) -> None:
        super().__init__(message)
        self.arguments = arguments


def value_error(message: str, *arguments: Argument) -> ValueError:
    """Return a plain ValueError, with the arguments that its message names.

    Examples
    --------
    >>> from blockspca._arguments import Subject, value_error
    >>> n = Subject("n_components")
    >>> value_error(f"{n} = 0 is too small.", n).arguments
    (Subject(name='n_components', value=None),)
    """
    error = ValueError(message)
    error.arguments = arguments  # type: ignore[attr-defined]
    return error
