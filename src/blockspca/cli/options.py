"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..scheme_defaults import SchemeName
from .declaring import fraction, option, real, spread, whole
from .errors import UsageError

File = Annotated[
    Path,
    typer.Argument(
        help="A CSV, TSV, Parquet, NPY, NPZ, MTX, h5ad or Zarr file; rows are samples. "
        "- reads text from standard input.",
        show_default=False,
    ),
]
Sparsity = Annotated[
    str,
    typer.Option(
        "-k",
        help="Features in each component: a number (5), a share of all features "
        "(0.05), one number for each component (5,4,3), or auto.",
    ),
]
NComponents = Annotated[
    int, typer.Option("--n-components", "-n", help="Number of components.", **whole(1))
]
SchemeOption = Annotated[
    SchemeName,
    typer.Option(
        "--scheme",
        help="How a component depends on the earlier ones: residual counts what their "
        "scores do not explain; disjoint uses no feature twice; auto is residual, "
        "unless another set clearly predicts more.",
    ),
]
ProofFile = Annotated[
    Path | None,
    typer.Option(
        "--proof",
        help="Write a proof that can be checked without blockspca; a sixth of --time "
        "is kept for writing it.",
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


_read = partial(option, panel="Reading the file")
_solve = partial(option, panel="Solving")
_show = partial(option, panel="Output")


@dataclass(frozen=True)
class ReadOptions:
    """How a file becomes a covariance matrix."""

    covariance: bool = _read("The file is a covariance matrix, not data.", False)
    scale: bool = _read("Divide by standard deviations, for correlations.", False)
    no_center: bool = _read("Do not subtract the means.", False)
    missing: Missing = _read(
        "Refuse missing values, or use for each pair the samples that have both.",
        Missing.RAISE,
    )
    constant: Constant = _read(
        "With --scale: leave constant columns out, with a warning or without, or "
        "refuse them.",
        Constant.WARN,
    )
    transpose: bool = _read("Rows are features and columns are samples.", False)
    index: str | None = _read("The column that names the samples.", None)
    drop: list[str] | None = _read("A column to leave out; may be repeated.", None)
    label: str | None = _read(
        "A column (of obs, in h5ad) with a label for each sample, by which the report "
        "colours; it is not a feature.",
        None,
    )
    header: bool | None = _read(
        "Whether the first row of a text file names the columns.",
        None,
        "--header/--no-header",
    )
    numeric_only: bool = _read("Leave out columns of text, and list them.", False)
    na: list[str] | None = _read(
        "A text that stands for a missing value; may be repeated.", None
    )
    decimal: str = _read("The decimal mark of a text file: . or ,", ".")
    encoding: str | None = _read(
        "Encoding of a text file, such as latin-1; UTF-8 by default.", None
    )
    names: Path | None = _read(
        "A text file with the name of one feature per line.", None
    )
    key: str | None = _read("The array of an NPZ file, or the layer of AnnData.", None)
    mask_var: str | None = _read(
        "The column of var in AnnData that is True for the genes to use.", None
    )
    background: Path | None = _read(
        "A file with the same features, whose covariance is subtracted.", None
    )
    weight: float = _read(
        "Factor by which the background is multiplied.", 1.0, **real(0)
    )

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

    def as_keywords(self) -> dict[str, Any]:
        """Return those that differ from their defaults as keywords of `read_table`."""
        from ..io import Request

        ours = {at.name: at.default for at in fields(self)}
        names = [at.name for at in fields(Request) if at.name in ours]
        given = {name: getattr(self, name) for name in names}
        return {name: at for name, at in given.items() if at != ours[name]}

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
        reader = typer.Typer()
        reader.command(add_help_option=False)(spread(_as_typed))
        try:
            found: ReadOptions = reader(list(words), standalone_mode=False)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return found


def _as_typed(options: ReadOptions) -> ReadOptions:
    return options


@dataclass(frozen=True)
class SolveOptions:
    """When to stop, and how many threads to use."""

    time: float | None = _solve(
        "Stop after this many seconds; 20 if no limit is given.", None, **real(0)
    )
    gap: float | None = _solve(
        "Stop when this gap is proved; 0.01 is 1 %.", None, **fraction("FRACTION")
    )
    nodes: int | None = _solve(
        "Stop after this many nodes; 200 000 if no limit is given.", None, **whole(1)
    )
    jobs: int | None = _solve(
        "Number of threads; -1 uses all cores.", None, "--jobs", "-j"
    )

    def __post_init__(self) -> None:
        if self.time == math.inf:
            raise UsageError("--time = inf; leave it out for no limit")

    def limits(self, proof: bool = False) -> Any:
        """Return them as the library's `Limits`, with its defaults.

        Where a proof is written afterwards, time is kept for that.
        """
        from ..limits import DEFAULT_LIMITS, Limits, as_limits

        limits = Limits(time=self.time, nodes=self.nodes, gap=self.gap)
        if proof and self.time is not None:
            from ..certify.proof_log import time_to_solve

            return time_to_solve(limits)
        return DEFAULT_LIMITS if limits == Limits() else as_limits(limits)


@dataclass(frozen=True)
class ShowOptions:
    """What is shown while a command runs."""

    quiet: bool = _show("Show no progress.", False, "--quiet", "-q")
    verbose: bool = _show(
        "Show the log even when output is piped.", False, "--verbose", "-v"
    )
    debug: bool = _show("Show the traceback of an error.", False)
