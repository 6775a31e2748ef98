"""The keywords of `read_table`, and which kinds of file they apply to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .errors import Argument, ReadError

#: Told (bytes read, bytes in the file) while a file is read.
Tick = Callable[[int, int], None]

TEXT = (".csv", ".tsv", ".txt")
TABLES = (*TEXT, ".parquet")  #: files whose columns may hold text
#: Arguments that only some files can have, by the beginning of their endings.
_APPLIES = {
    "key": (".npz", ".h5ad", ".zarr"),
    "index": TABLES,
    "header": TEXT,
    "mask_var": (".h5ad", ".zarr"),
    "label": (*TABLES, ".h5ad", ".zarr"),
    "encoding": TEXT,
    "na": TEXT,
    "decimal": TEXT,
    "numeric_only": TABLES,
}


def no_tick(done: int, total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Request:
    """What is wanted from a file; the keywords of `read_table`."""

    #: Which array of an NPZ file, or which layer of an h5ad file.
    key: str | None = None
    #: The column of a CSV, TSV or Parquet file that names the samples.
    index: str | None = None
    drop: tuple[str, ...] = ()  #: columns to leave out, by name
    #: Whether the first row of a text file names its columns; by default it does if
    #: one of its cells is not a number.
    header: bool | None = None
    tick: Tick = no_tick  #: told (bytes read, bytes in the file) now and then
    #: A column of a text or Parquet file, or of `obs` of an h5ad file, that says what
    #: kind of sample each is. It becomes the `labels` of the table, and is no feature.
    label: str | None = None
    decimal: str = "."  #: the decimal mark of a text file, "." or ","
    #: Of a text file; UTF-8 by default, or UTF-16 if it begins with its mark.
    encoding: str | None = None
    #: Cells that stand for a missing value, besides those that are empty, NA, NaN, ….
    na: tuple[str, ...] = ()
    #: Whether columns that hold text are left out, and not refused.
    numeric_only: bool = False
    #: A column of `var` of an h5ad file, True for the features that are read.
    mask_var: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "na"):  # any iterable will do
            object.__setattr__(self, name, tuple(getattr(self, name) or ()))
        if self.decimal not in (".", ","):
            asked = Argument("decimal", self.decimal)
            raise ReadError(f"{asked} is neither a point nor a comma.", asked)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that are no features."""
        return self.drop if self.label is None else (*self.drop, self.label)

    def check_applies(self, name: str, ending: str) -> None:
        """Refuse keywords that do not apply to files with this ending."""
        default = Request()
        for field, endings in _APPLIES.items():
            value = getattr(self, field)
            if value == getattr(default, field) or ending.startswith(endings):
                continue
            given = Argument(field, value)
            raise ReadError(
                f"{name}: {given} does not apply to {ending} files; leave it out.",
                given,
            )
