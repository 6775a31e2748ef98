"""Options that several commands share, as dataclasses that typer sees one by one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import (
    MISSING,
    Field,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .errors import Interrupted

File = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, NPY, NPZ, MTX, h5ad or Zarr; rows are samples. - is "
        "text from standard input.",
        show_default=False,
    ),
]
Sparsity = Annotated[
    str,
    typer.Option(
        "-k",
        help="Features in a component: 5, a share of them: 0.05, one number for each: "
        "5,4,3, or auto.",
        show_default=False,
    ),
]
ProofFile = Annotated[
    Path | None,
    typer.Option(
        "--proof",
        help="A file for a proof that needs no blockspca to be checked.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


class Missing(str, Enum):
    """What to do with gaps in the data."""

    RAISE = "raise"
    PAIRWISE = "pairwise"


class Constant(str, Enum):
    """What to do with columns that do not vary, if there is a scale to divide by."""

    WARN = "warn"
    IGNORE = "ignore"
    RAISE = "raise"


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


def check_name(option: str, path: Path | None, *endings: str) -> None:
    """Refuse the name of a file that does not end with one of these; None is none."""
    from ..io.writing import WriteError

    if path is not None and path.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise WriteError(
            f"{option} {path} must end with {known if endings[1:] else endings[0]}."
        )


def check_directory(output: Path, names: Iterable[str], force: bool) -> None:
    """Refuse a place where these files could not be written."""
    from ..io.writing import WriteError, check_free

    if output.exists() and not output.is_dir():
        raise WriteError(f"--output {output} is a file; give a directory.")
    check_free((output / name for name in names), force)


_read = partial(option, panel="Reading the file")
_solve = partial(option, panel="Solving")
_show = partial(option, panel="Output")


@dataclass(frozen=True)
class ReadOptions:
    """How a file becomes a covariance matrix."""

    covariance: bool = _read("The file holds a symmetric matrix, not data.", False)
    scale: bool = _read("Divide by standard deviations: correlations.", False)
    no_center: bool = _read("Do not subtract the means.", False)
    missing: Missing = _read(
        "Refuse gaps, or use the samples that each pair has.", Missing.RAISE
    )
    constant: Constant = _read(
        "With --scale: constant columns get no loading, or are refused.", Constant.WARN
    )
    transpose: bool = _read("Columns are samples, rows are features.", False)
    index: str | None = _read("The column that names the samples.", None)
    drop: list[str] | None = _read("A column to leave out; may be repeated.", None)
    label: str | None = _read(
        "A column (of obs, in h5ad) with the kind of each sample: no feature; the "
        "report colours by it.",
        None,
    )
    header: bool | None = _read(
        "The first row of a text file names the columns, or is a sample.",
        None,
        "--header/--no-header",
    )
    numeric_only: bool = _read("Leave columns of text out, and say which.", False)
    na: list[str] | None = _read(
        "A cell that stands for a missing value; may be repeated.", None
    )
    decimal: str = _read("The decimal mark of a text file: . or ,", ".")
    encoding: str | None = _read("Of a text file, such as latin-1; UTF-8.", None)
    names: Path | None = _read("A text file with one feature a line.", None)
    key: str | None = _read("Array of an NPZ file, layer of AnnData.", None)
    mask_var: str | None = _read(
        "Of AnnData: the column of var that is True for genes to choose from.", None
    )
    background: Path | None = _read(
        "A file of the same features: its covariance is subtracted.", None
    )
    weight: float = _read("Of the background.", 1.0, **real(0))

    def as_arguments(self) -> list[str]:
        """Return the options that differ from their defaults, as words to type."""
        words: list[str] = []
        for at in fields(self):
            value = getattr(self, at.name)
            flag = "--" + at.name.replace("_", "-")
            if value == at.default:
                continue
            if value is True:
                words.append(flag)
            elif value is False:
                words.append("--no-" + at.name)
            elif isinstance(value, (list, tuple)):
                words += [word for item in value for word in (flag, item)]
            else:
                words += [flag, value.value if isinstance(value, Enum) else str(value)]
        return words

    def replaced_by(self, given: ReadOptions) -> ReadOptions:
        """Return these options with those of `given` that are not its defaults."""
        changed = {
            at.name: getattr(given, at.name)
            for at in fields(given)
            if getattr(given, at.name) != at.default
        }
        return replace(self, **changed)

    @classmethod
    def from_arguments(cls, words: Sequence[str]) -> ReadOptions:
        """Return the options that `as_arguments` has written as words."""
        flags = {"--" + f.name.replace("_", "-"): f for f in fields(cls)}
        chosen: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            if word in ("--header", "--no-header"):
                chosen["header"] = word == "--header"
                continue
            if word not in flags:
                raise ValueError(f"{word!r} is not an option.")
            name, default = flags[word].name, flags[word].default
            value = True if default is False else next(rest, "")
            if name in ("drop", "na"):
                chosen.setdefault(name, []).append(value)
            elif isinstance(default, Enum):
                chosen[name] = type(default)(value)
            else:
                kinds = {"names": Path, "background": Path, "weight": float}
                kind = kinds.get(name)
                chosen[name] = value if kind is None else kind(str(value))
        return cls(**chosen)


@dataclass(frozen=True)
class SolveOptions:
    """When to stop, and how many threads to use."""

    time: float | None = _solve("Stop after so many seconds.", None, **real(0))
    gap: float | None = _solve(
        "Stop when this is proved; 0.01 is 1 %.", None, **fraction("FRACTION")
    )
    nodes: int | None = _solve(
        "Stop after so many nodes; 200 000 without limits.", None, **whole(1)
    )
    jobs: int | None = _solve(
        "Most threads; 1 is one core, -1 all.", None, "--jobs", "-j"
    )

    def limits(self) -> Any:
        """Return them as the library's `Limits`; without any, its default."""
        from ..limits import DEFAULT_LIMITS, Limits

        limits = Limits(time=self.time, nodes=self.nodes, gap=self.gap)
        return DEFAULT_LIMITS if limits == Limits() else limits


@dataclass(frozen=True)
class ShowOptions:
    """What is shown while a command runs."""

    quiet: bool = _show("Show no progress.", False, "--quiet", "-q")
    verbose: bool = _show("Show the log, also when piped.", False, "--verbose", "-v")
    debug: bool = _show("Show the traceback of an error.", False)


def _parameter(at: Field[Any], hint: Any) -> inspect.Parameter:
    """A field as a parameter of a command."""
    if at.metadata:
        names = at.metadata["names"] or ("--" + at.name.replace("_", "-"),)
        hint = Annotated[hint, typer.Option(*names, **at.metadata["settings"])]
    default = inspect.Parameter.empty if at.default is MISSING else at.default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(at.name, kind, default=default, annotation=hint)


def spread(command: Callable[..., None]) -> Callable[..., None]:
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
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            chosen = {at.name: values.pop(at.name) for at in fields(kind)}
            values[name] = kind(**chosen)
        try:
            command(**values)
        except KeyboardInterrupt:
            raise Interrupted from None

    # typer would look through it, and see the command's own parameters.
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
