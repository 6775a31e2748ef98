"""Makes fields of dataclasses options of typer commands."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from .errors import Interrupted, UsageError


def option(help: str, default: Any, *names: str, panel: str = "", **more: Any) -> Any:
    """Return a field that `spread` makes an option; --like-this if no name is given."""
    settings = {"help": help, "rich_help_panel": panel or None, **more}
    return field(default=default, metadata={"names": names, "settings": settings})


def _number(
    convert: Callable[[Any], Any], noun: str, minimum: float, metavar: str
) -> dict[str, Any]:
    def parse(text: Any) -> Any:
        try:
            number = convert(text)
        except ValueError:
            number = math.nan
        if isinstance(number, float) and math.isnan(number):
            raise typer.BadParameter(f"{text} is not {noun}.")
        if number < minimum:
            raise typer.BadParameter(f"{text} is less than {minimum:g}.")
        return number

    return {"parser": parse, "metavar": metavar}


def whole(minimum: int) -> dict[str, Any]:
    """Return the settings of an option that takes whole numbers from `minimum` on."""
    return _number(int, "a whole number", minimum, "INTEGER")


def real(minimum: float) -> dict[str, Any]:
    """Return the settings of an option that takes numbers from `minimum` on."""
    return _number(float, "a number", minimum, "NUMBER")


def fraction(metavar: str) -> dict[str, Any]:
    """Return the settings of an option that takes a number below 1, and not '1%'."""

    def parse(text: Any) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if 0 <= number < 1:
            return number
        raise typer.BadParameter(f"{text!r} is not a fraction below 1; 0.01 is 1 %.")

    return {"parser": parse, "metavar": metavar}


def _parameter(at: Field[Any], hint: Any) -> inspect.Parameter:
    """A field as a parameter of a command."""
    if at.metadata:
        names = at.metadata["names"] or ("--" + at.name.replace("_", "-"),)
        hint = Annotated[hint, typer.Option(*names, **at.metadata["settings"])]
    default = inspect.Parameter.empty if at.default is MISSING else at.default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(at.name, kind, default=default, annotation=hint)


def _has_jobs(options: Any) -> bool:
    """Whether a group of options has that of the number of threads."""
    return is_dataclass(options) and any(at.name == "jobs" for at in fields(options))


def _at_most(jobs: int | None) -> AbstractContextManager[None]:
    """Context of a command with so many threads, for reading and writing as well."""
    if jobs is None:  # nothing is loaded for it
        return nullcontext()
    if jobs == 0:
        raise UsageError("--jobs = 0 means nothing; pass 1 for one at a time")
    from ..numerics.threads import allowed_threads

    return allowed_threads(jobs)


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let typer see the fields of a command's dataclass parameters as its options."""
    groups: dict[str, Any] = {}
    parameters = []
    # Not get_type_hints: up to Python 3.10 it hides the option of what may be None.
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            parameters.append(
                parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        groups[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        parameters += [_parameter(at, hints[at.name]) for at in fields(kind)]

    @wraps(command)
    def run(**values: Any) -> Any:
        for name, kind in groups.items():
            chosen = {at.name: values.pop(at.name) for at in fields(kind)}
            values[name] = kind(**chosen)
        jobs = next((given.jobs for given in values.values() if _has_jobs(given)), None)
        try:
            with _at_most(jobs):
                return command(**values)
        except KeyboardInterrupt:
            raise Interrupted from None

    # typer would look through it, and see the command's own parameters.
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
