"""Options that several commands share, as dataclasses that typer sees one by one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import wraps
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


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def _parse_gap(text: Any) -> float:
    """Return '0.01' as a number, and say what to write for '1%'."""
    try:
        gap = float(text)
    except ValueError:
        gap = math.nan
    if 0 <= gap < 1:
        return gap
    raise typer.BadParameter(f"{text!r} is not a fraction below 1; 0.01 is 1 %.")


def whole(minimum: int) -> dict[str, Any]:
    """Return the settings of an option that takes whole numbers from `minimum` on."""

    def parse(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            raise typer.BadParameter(f"{text} is not a whole number.") from None
        if number < minimum:
            raise typer.BadParameter(f"{text} is less than {minimum}.")
        return number

    return {"parser": parse, "metavar": "INTEGER"}


def real(minimum: float) -> dict[str, Any]:
    """Return the settings of an option that takes numbers from `minimum` on."""

    def parse(text: Any) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise typer.BadParameter(f"{text} is not a number.")
        if number < minimum:
            raise typer.BadParameter(f"{text} is less than {minimum:g}.")
        return number

    return {"parser": parse, "metavar": "NUMBER"}


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


_READ = "Reading the file"
_SOLVE = "Solving"
_SHOW = "Output"


@dataclass(frozen=True)
class ReadOptions:
    """How a file becomes a covariance matrix."""

    covariance: Annotated[
        bool,
        _option(_READ, "The file holds a symmetric matrix, not data.", "--covariance"),
    ] = False
    scale: Annotated[
        bool, _option(_READ, "Divide by standard deviations: correlations.", "--scale")
    ] = False
    no_center: Annotated[
        bool, _option(_READ, "Do not subtract the means.", "--no-center")
    ] = False
    missing: Annotated[
        Missing,
        _option(
            _READ, "Refuse gaps, or use the samples that each pair has.", "--missing"
        ),
    ] = Missing.RAISE
    constant: Annotated[
        Constant,
        _option(
            _READ,
            "With --scale: constant columns get no loading, or are refused.",
            "--constant",
        ),
    ] = Constant.WARN
    transpose: Annotated[
        bool, _option(_READ, "Columns are samples, rows are features.", "--transpose")
    ] = False
    index: Annotated[
        str | None, _option(_READ, "The column that names the samples.", "--index")
    ] = None
    drop: Annotated[
        list[str] | None,
        _option(_READ, "A column to leave out; may be repeated.", "--drop"),
    ] = None
    label: Annotated[
        str | None,
        _option(
            _READ,
            "A column (of obs, in h5ad) with the kind of each sample: no feature; the "
            "report colours by it.",
            "--label",
        ),
    ] = None
    header: Annotated[
        bool | None,
        _option(
            _READ,
            "The first row of a text file names the columns, or is a sample.",
            "--header/--no-header",
        ),
    ] = None
    numeric_only: Annotated[
        bool,
        _option(_READ, "Leave columns of text out, and say which.", "--numeric-only"),
    ] = False
    na: Annotated[
        list[str] | None,
        _option(
            _READ, "A cell that stands for a missing value; may be repeated.", "--na"
        ),
    ] = None
    decimal: Annotated[
        str, _option(_READ, "The decimal mark of a text file: . or ,", "--decimal")
    ] = "."
    encoding: Annotated[
        str | None,
        _option(_READ, "Of a text file, such as latin-1; UTF-8.", "--encoding"),
    ] = None
    names: Annotated[
        Path | None, _option(_READ, "A text file with one feature a line.", "--names")
    ] = None
    key: Annotated[
        str | None,
        _option(_READ, "Array of an NPZ file, layer of AnnData.", "--key"),
    ] = None
    mask_var: Annotated[
        str | None,
        _option(
            _READ,
            "Of AnnData: the column of var that is True for genes to choose from.",
            "--mask-var",
        ),
    ] = None
    background: Annotated[
        Path | None,
        _option(
            _READ,
            "A file of the same features: its covariance is subtracted.",
            "--background",
        ),
    ] = None
    weight: Annotated[
        float,
        _option(_READ, "Of the background.", "--weight", **real(0)),
    ] = 1.0

    def as_arguments(self) -> list[str]:
        """Return the options that differ from their defaults, as words to type."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            flag = "--" + field.name.replace("_", "-")
            if value == field.default:
                continue
            if value is True:
                words.append(flag)
            elif value is False:
                words.append("--no-" + field.name)
            elif isinstance(value, (list, tuple)):
                words += [word for item in value for word in (flag, item)]
            else:
                words += [flag, value.value if isinstance(value, Enum) else str(value)]
        return words

    def replaced_by(self, given: ReadOptions) -> ReadOptions:
        """Return these options with those of `given` that are not its defaults."""
        changed = {
            field.name: getattr(given, field.name)
            for field in fields(given)
            if getattr(given, field.name) != field.default
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

    time: Annotated[
        float | None,
        _option(_SOLVE, "Stop after so many seconds.", "--time", **real(0)),
    ] = None
    gap: Annotated[
        float | None,
        _option(
            _SOLVE,
            "Stop when this is proved; 0.01 is 1 %.",
            "--gap",
            parser=_parse_gap,
            metavar="FRACTION",
        ),
    ] = None
    nodes: Annotated[
        int | None,
        _option(
            _SOLVE,
            "Stop after so many nodes; 200 000 without limits.",
            "--nodes",
            **whole(1),
        ),
    ] = None
    jobs: Annotated[
        int | None,
        _option(_SOLVE, "Most threads; 1 is one core, -1 all.", "--jobs", "-j"),
    ] = None

    def limits(self) -> Any:
        """Return them as the library's `Limits`; without any, its default."""
        from ..limits import DEFAULT_LIMITS, Limits

        limits = Limits(time=self.time, nodes=self.nodes, gap=self.gap)
        return DEFAULT_LIMITS if limits == Limits() else limits


@dataclass(frozen=True)
class ShowOptions:
    """What is shown while a command runs."""

    quiet: Annotated[bool, _option(_SHOW, "Show no progress.", "--quiet", "-q")] = False
    verbose: Annotated[
        bool, _option(_SHOW, "Show the log, also when piped.", "--verbose", "-v")
    ] = False
    debug: Annotated[
        bool, _option(_SHOW, "Show the traceback of an error.", "--debug")
    ] = False


def _default(value: Any) -> Any:
    """The default of a field as that of a parameter; a field without has none."""
    return inspect.Parameter.empty if value is MISSING else value


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
        field_hints = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_default(field.default),
                annotation=field_hints[field.name],
            )
            for field in fields(kind)
        ]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            chosen = {field.name: values.pop(field.name) for field in fields(kind)}
            values[name] = kind(**chosen)
        try:
            command(**values)
        except KeyboardInterrupt:
            raise Interrupted from None

    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
