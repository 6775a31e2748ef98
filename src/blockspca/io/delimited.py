"""CSV and TSV files, read row by row: numbers, names, gaps, nothing else."""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Argument, ReadError, text_column
from .table import Request, Table

if TYPE_CHECKING:
    from .._validation import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "."})
ROWS_PER_TICK = 64
MAX_FIELD = 2**20

_SIGNS = "%$€£¥ "
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([,']\d{3})+(\.\d*)?")


def read_delimited(path: Path, request: Request) -> Table:
    """Read numbers separated by commas, semicolons or tabs.

    The first row names the features if one of its cells is not a number, or if
    `header` says so; whole numbers that may be either are refused without it. A first
    column without a name, or the one called `index`, names the samples.
    """
    size = path.stat().st_size
    zipped = path.suffix.lower() == ".gz"
    csv.field_size_limit(MAX_FIELD)
    with open(path, "rb") as raw:
        stream: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if zipped else raw
        lines = (line.decode("utf-8-sig") for line in stream)
        try:
            parser = _Parser(path, request)
            return parser.parse(lines, lambda: request.tick(raw.tell(), size))
        except UnicodeDecodeError:
            raise ReadError(
                f"{path} is not UTF-8 text; save it as UTF-8, or give it the ending of "
                "what it is."
            ) from None
        except csv.Error as error:
            reason = str(error)
            if "new-line" in reason:
                reason = "its lines end with a carriage return alone; save it again "
                reason += "with the line ends of today"
            raise ReadError(f"{path} cannot be read: {reason}.") from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ReadError(f"{path} cannot be read: {error}.") from None


class _Parser:
    """One pass over the rows."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self.index = request.index
        self.label = request.label
        self.drop = request.left_out
        self.header = request.header
        self.separators = "commas, semicolons or tabs"
        if ".tsv" in path.name.lower():
            self.separators = "tabs, or give the file the ending .csv"
        self.cells = array("d")
        self.unnamed = False  # the header has no name for the names of the samples
        self.samples: list[str] = []
        self.labels: list[str] = []
        self.text: dict[int, tuple[int, str]] = {}  # column: first row with text, text

    def parse(self, lines: Iterator[str], progress: Any) -> Table:
        first_line = next((line for line in lines if line.strip()), None)
        if first_line is None:
            raise ReadError(f"{self.path} has no rows; give a file with numbers.")
        rows = csv.reader(
            chain([first_line], lines), delimiter=_delimiter(self.path, first_line)
        )
        first = [cell.strip() for cell in next(rows)]
        named = self.header
        if named is None:
            named = any(not _is_number(cell) for cell in first)
        header = first if named else None
        width = len(first)
        at = self._column(header, "index", self.index)
        labelled = self._column(header, "label", self.label)
        if at is None and header and width > 1 and header[0] == "":
            at = 0
        if header is None:
            self._add(first, 1, at)
        count = 0 if named else 1
        for row in rows:
            if not row:
                continue
            count += 1
            # A header may lack the name of the column of sample names, as R writes it.
            if count == 1 and header and at is None and len(row) == width + 1:
                header, width, at = ["", *header], width + 1, 0
                labelled = None if labelled is None else labelled + 1
                self.unnamed = True
            if len(row) != width:
                raise ReadError(self._about_width(row, count, header, width))
            if labelled is not None:
                self.labels.append(row[labelled].strip())
            self._add(row, count, at)
            if count % ROWS_PER_TICK == 0:
                progress()
        progress()
        return self._table(header, width, count, at)

    def _column(
        self, header: list[str] | None, argument: str, name: str | None
    ) -> int | None:
        """Where a column is that was asked for by name."""
        if name is None:
            return None
        if header is None or name not in header:
            asked = Argument(argument)
            raise ReadError(
                f"{self.path} has no column {name!r} for {asked}; "
                + (f"its columns start {header[:5]}." if header else "no header."),
                asked,
            )
        return header.index(name)

    def _add(self, row: list[str], number: int, at: int | None) -> None:
        if at is not None:
            self.samples.append(row[at])
            row = row[:at] + row[at + 1 :]
        try:
            self.cells.extend(list(map(float, row)))
        except ValueError:
            for column, cell in enumerate(row):
                self.cells.append(self._number(cell, number, column))

    def _number(self, cell: str, row: int, column: int) -> float:
        try:
            return float(cell)
        except ValueError:
            if cell.strip().lower() not in MISSING:
                self.text.setdefault(column, (row, cell.strip()))
            return math.nan

    def _table(
        self, header: list[str] | None, width: int, count: int, at: int | None
    ) -> Table:
        names = None
        if header is not None:
            names = tuple(name for j, name in enumerate(header) if j != at)
        if count == 0:
            raise ReadError(f"{self.path} has a header but no rows; give some numbers.")
        for column in list(self.text):
            if names and names[column] in self.drop:
                del self.text[column]
        if self.text:
            raise self._about_text(names)
        columns = width - (at is not None)
        if columns == 0:
            raise ReadError(f"{self.path} has no column of numbers besides its names.")
        values = np.frombuffer(self.cells).reshape(count, columns)
        if header is None and self.header is None and _may_be_names(values):
            start = ", ".join(f"{value:.0f}" for value in values[0, :4])
            more = ", …" if columns > 4 else ""
            names_them, is_sample = Argument("header", True), Argument("header", False)
            raise ReadError(
                f"{self.path}: its first row, {start}{more}, may be names or a sample; "
                f"add {names_them} if it names the columns, or {is_sample} if it is a "
                "sample.",
                names_them,
                is_sample,
            )
        return Table(
            values=values,
            feature_names=names,
            sample_names=tuple(self.samples) if self.samples else None,
            source=str(self.path),
            labels=tuple(self.labels) if self.labels else None,
        )

    def _about_width(
        self, row: list[str], number: int, header: list[str] | None, width: int
    ) -> str:
        if any("\n" in cell for cell in row):
            return (
                f"{self.path}: row {number} has a quotation mark that is not closed on "
                "its line; close it, or remove it."
            )
        why = "every row must have the same number"
        if header and width == 1:
            why = "remove lines above the header, such as a title or a comment"
        return (
            f"{self.path}: row {number} has {len(row)} cells where "
            f"{'the header' if header else 'the first row'} has {width}; {why}."
        )

    def _about_text(self, names: tuple[str, ...] | None) -> ReadError:
        column, (row, cell) = next(iter(self.text.items()))
        name = names[column] if names else str(column)
        if fix := _fix_of_number(cell):
            where = f"{self.path}: column {name!r}"
            return ReadError(f"{where} writes {cell[:40]!r} in row {row}; {fix}.")
        parts = re.split(r"[\s,;|]+", cell)
        if len(parts) > 1 and all(_is_number(part) for part in parts):
            return ReadError(
                f"{self.path}: a cell of row {row} holds {len(parts)} numbers, "
                f"{cell[:40]!r}; separate them by {self.separators}."
            )
        if self.unnamed and len(names or ()) == 1 and row == 1:
            return ReadError(
                f"{self.path}: its first line, {name[:40]!r}, was taken for the "
                f"header, but text follows, {cell[:40]!r}; remove lines above the "
                "header, such as a title or a comment."
            )
        others = f" (and {len(self.text) - 1} more)" if len(self.text) > 1 else ""
        return text_column(
            f"{self.path}: column {name!r}{others} holds text, {cell[:40]!r} in row "
            f"{row}",
            name,
        )


def _fix_of_number(cell: str) -> str | None:
    """Say how a number that is written otherwise has to be written."""
    if _THOUSANDS.fullmatch(cell):
        return "leave thousands separators out, and write decimals with a point"
    if re.fullmatch(r"[-+]?\d+,\d+", cell):
        return "write decimals with a point, not with a comma"
    if cell.lower() in ("true", "false"):
        return "write 1 and 0"
    if _is_number(cell.strip(_SIGNS)):
        return "write the number without the sign"
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _may_be_names(values: FloatArray) -> bool:
    """Whether the first row may be a header of numbers: 0, 1, 2, … or years.

    It is of distinct whole numbers, and other rows are not whole; or it counts up by
    one, which no other row does. The first row of a symmetric matrix is none.
    """
    first, body = values[0], values[1:]
    if len(first) < 2 or not len(body) or not np.isfinite(first).all():
        return False
    if np.any(first % 1) or len(np.unique(first)) < len(first):
        return False
    if values.shape[0] == values.shape[1] and np.array_equal(values, values.T):
        return False
    if any(np.any(np.isfinite(row) & (row != np.round(row))) for row in body):
        return True
    if len(first) < 3 or np.any(np.diff(first) != 1):
        return False
    return not any(np.all(np.diff(row) == 1) for row in body)


def _delimiter(path: Path, first_line: str) -> str:
    """Tabs for .tsv; otherwise what the first line has most of."""
    if ".tsv" in path.name.lower():
        return "\t"
    return max(",;\t", key=first_line.count)
