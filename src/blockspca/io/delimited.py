"""CSV and TSV files, read row by row: numbers, names and missing values."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import (
    Argument,
    ReadError,
    no_column,
    tell,
    text_among_numbers,
    text_column,
)
from .lines import as_number, open_lines, split_rows
from .request import Request
from .table import Table

if TYPE_CHECKING:
    from .._validation import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "."})
ROWS_PER_TICK = 64
FEW_WORDS = 3  # in a column of numbers, that may stand for missing values

_SIGNS = "%$€£¥ "
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([,'_]\d{3})+(\.\d*)?")


def read_delimited(path: Path, request: Request) -> Table:
    """Read numbers separated by commas, semicolons, tabs, bars or white space.

    The first row names the features if one of its cells is not a number, or if
    `header` says so; whole numbers that may be either are refused without it. A first
    column without a name, or the one called `index`, names the samples. Lines that
    begin with # are comments. If every row ends with a separator, the empty last column
    is ignored.
    """
    with open_lines(path, request) as (lines, progress):
        return _Parser(path, request).parse(split_rows(path, lines, request), progress)


@dataclass
class _Text:
    """Text in a column: where it was first met, in how many cells, which words."""

    row: int
    cell: str
    count: int = 0
    words: set[str] = field(default_factory=set)

    def add(self, cell: str) -> None:
        self.count += 1
        if len(self.words) <= FEW_WORDS:
            self.words.add(cell)


class _Parser:
    """One pass over the rows."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path, self.request = path, request
        self.drop = request.left_out
        self.separators = "commas, semicolons, tabs, | or spaces"
        if ".tsv" in path.name.lower():
            self.separators = "tabs, or give the file the ending .csv"
        # Eight bytes a number; a list of floats would take four times as much.
        self.cells = array("d")
        self.na = frozenset(request.na)
        parsed = (as_number(word, request.decimal) for word in request.na)
        self.na_numbers = frozenset(number for number in parsed if number is not None)
        self.unnamed = False  # the header has no name for the names of the samples
        self.ended = False  # whether rows end with a separator
        self.samples: list[str] = []
        self.labels: list[str] = []
        self.text: dict[int, _Text] = {}  # by column

    def parse(self, rows: Iterator[list[str]], progress: Any) -> Table:
        first = [cell.strip() for cell in next(rows)]
        header = self._header(first)
        width = len(first)
        if header is None:
            width -= self.ended
        at = self._column(header, "index", self.request.index)
        labelled = self._column(header, "label", self.request.label)
        for name in self.request.drop if header else ():  # before text is met in one
            self._column(header, "drop", name)
        if at is None and header and width > 1 and header[0] == "":
            at = 0
        count = 0
        if header is None:
            rows = chain([first], rows)
        for row in rows:
            if not row:
                continue
            count += 1
            if count == 1 and header and len(row) != width:
                header, shift = self._fitted(header, row, at)
                width = len(header)
                if shift:
                    at, self.unnamed = 0, True
                    labelled = None if labelled is None else labelled + 1
            if self.ended:
                row = self._without_end(row, width, count)
            if len(row) != width:
                raise ReadError(self._about_width(row, count, header, width))
            if labelled is not None:
                self.labels.append(row[labelled].strip())
            self._add(row, count, at)
            if count % ROWS_PER_TICK == 0:
                progress()
        progress()
        return self._table(header, width, count, at)

    def _header(self, first: list[str]) -> list[str] | None:
        """The names of the columns, or None if the first row is a sample.

        A sample whose last cell is empty ends with a separator, unless `header` says
        that it is a sample: then its last value may be missing.
        """
        named = self.request.header
        if named is None:
            ends = len(first) > 1 and first[-1] == ""
            cells = first[: len(first) - ends]
            named = any(self._parsed(cell) is None for cell in cells)
            if named and self._is_a_sample_with_gaps(cells):
                named = False
            self.ended = ends and not named
        return first if named else None

    def _is_a_sample_with_gaps(self, cells: list[str]) -> bool:
        """Whether a first row of numbers and words for missing values is a sample.

        Numbers that are not whole, or that are there twice, are no names. Whole numbers
        may be: those of pandas are, behind nothing in the first cell; others are asked
        about.
        """
        numbers = [self._parsed(cell) for cell in cells]
        gaps = [
            cell for cell, number in zip(cells, numbers, strict=True) if number is None
        ]
        known = [number for number in numbers if number is not None]
        if not known or not all(c in self.na or c.lower() in MISSING for c in gaps):
            return False
        if len({*known}) < len(known) or any(number % 1 for number in known):
            return True
        if len(gaps) == 1 and cells[0] == "":
            return False
        raise self._about_names(cells)

    def _fitted(
        self, header: list[str], row: list[str], at: int | None
    ) -> tuple[list[str], bool]:
        """The header for rows of another length, and whether it begins with a gap.

        Rows that end with a separator have a cell too many. Otherwise, where there is
        one cell more than names, the header lacks the name of the column of sample
        names, as R writes it.
        """
        if len(row) == len(header) + 1:
            if row[-1].strip() == "":
                self.ended = True
            elif at is None:
                return ["", *header], True
        elif len(row) == len(header) - 1 and header[-1] == "":
            return header[:-1], False
        return header, False

    def _without_end(self, row: list[str], width: int, number: int) -> list[str]:
        """The row without the nothing after its last separator."""
        if len(row) != width + 1:
            return row
        if row[-1].strip() == "":
            return row[:-1]
        is_sample = Argument("header", False)
        raise ReadError(
            f"{self.path}: row 1 ends with a separator, row {number} has {row[-1]!r} "
            f"there; name all columns, or add {is_sample} if there are no names.",
            is_sample,
        )

    def _column(
        self, header: list[str] | None, argument: str, name: str | None
    ) -> int | None:
        """Where a column is that was asked for by name."""
        if name is None:
            return None
        if header is None:
            asked = Argument(argument)
            raise ReadError(
                f"{self.path} has no header, and so no column {name!r} for {asked}; "
                "add a first row of names.",
                asked,
            )
        if name not in header:
            raise no_column(self.path, "column", Argument(argument, name), header)
        return header.index(name)

    def _add(self, row: list[str], number: int, at: int | None) -> None:
        if at is not None:
            self.samples.append(row[at])
            row = row[:at] + row[at + 1 :]
        if not self.na and self.request.decimal == "." and "_" not in "".join(row):
            with suppress(ValueError):
                # A list first: had `extend` failed in the middle of a row, its first
                # cells would be there twice.
                self.cells.extend(list(map(float, row)))
                return
        for column, cell in enumerate(row):
            self.cells.append(self._number(cell.strip(), number, column))

    def _parsed(self, cell: str) -> float | None:
        return as_number(cell, self.request.decimal)

    def _number(self, cell: str, row: int, column: int) -> float:
        if cell in self.na:
            return math.nan
        number = self._parsed(cell)
        if number is not None:  # -99 means -99.0 as well, as pandas writes it
            return math.nan if number in self.na_numbers else number
        if cell.lower() not in MISSING:
            self.text.setdefault(column, _Text(row, cell)).add(cell)
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
        if self.text and not self.request.numeric_only:
            raise self._about_text(names, count)
        columns = width - (at is not None)
        if columns == len(self.text):
            raise ReadError(f"{self.path} has no column of numbers besides its names.")
        values = np.frombuffer(self.cells).reshape(count, columns)
        unnamed = names is not None and columns > 1 and names[-1] == ""
        if unnamed and "" not in self.drop and np.isnan(values[:, -1]).all():
            values, self.ended = values[:, :-1], True
            names = None if names is None else names[:-1]
        self._tell(names, at)
        if header is None and self.request.header is None and _may_be_names(values):
            raise self._about_names([f"{value:.0f}" for value in values[0]])
        table = Table(
            values=values,
            feature_names=names,
            sample_names=tuple(self.samples) if self.samples else None,
            source=str(self.path),
            labels=tuple(self.labels) if self.labels else None,
        )
        if not self.text:
            return table
        # By place: a column of numbers may have the same name.
        return table.kept([j for j in range(values.shape[1]) if j not in self.text])

    def _tell(self, names: tuple[str, ...] | None, at: int | None) -> None:
        """Tell the user how doubtful parts of the file were read."""
        if self.ended:
            tell(
                f"{self.path}: every row ends with a separator; the empty last column "
                "is ignored."
            )
        if at is not None and self.request.index is None:
            shown = ", ".join(map(repr, self.samples[:2]))
            tell(
                f"{self.path}: the first column, {shown}, …, has no name in the "
                "header; it was taken for the names of the samples."
            )
        if self.text:
            shown = ", ".join(
                f"{_name(names, column)!r} ({text.cell[:20]!r})"
                for column, text in list(self.text.items())[:5]
            )
            more = ", …" if len(self.text) > 5 else ""
            tell(f"{self.path}: columns that hold text were left out: {shown}{more}.")

    def _about_names(self, first: list[str]) -> ReadError:
        """Return the error for a first row that may be names or a sample."""
        start = ", ".join(cell or "''" for cell in first[:4])
        more = ", …" if len(first) > 4 else ""
        names_them, is_sample = Argument("header", True), Argument("header", False)
        return ReadError(
            f"{self.path}: its first row, {start}{more}, may be names or a sample; add "
            f"{names_them} if it names the columns, or {is_sample} if it is a sample.",
            names_them,
            is_sample,
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

    def _about_text(self, names: tuple[str, ...] | None, count: int) -> ReadError:
        column, text = next(iter(self.text.items()))
        row, cell, name = text.row, text.cell, _name(names, column)
        if fix := _fix_of_number(cell, self.request.decimal):
            where = f"{self.path}: column {name!r}"
            decimal = Argument("decimal", ",")
            fix = fix.replace("DECIMAL", str(decimal))
            said = f"{where} writes {cell[:40]!r} in row {row}; {fix}."
            return ReadError(said, decimal)
        parts = re.split(r"[\s,;|]+", cell)
        if len(parts) > 1 and all(as_number(part) is not None for part in parts):
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
        if column == 0 and self._is_a_sample(names):
            return ReadError(
                f"{self.path}: its first line, {name[:40]!r} and numbers, was taken "
                "for the names of the columns; put a line above it that names them."
            )
        others = f" (and {len(self.text) - 1} more)" if len(self.text) > 1 else ""
        message = (
            f"{self.path}: column {name!r}{others} holds text, {cell[:40]!r} in row "
            f"{row}"
        )
        if len(text.words) <= FEW_WORDS and 2 * text.count <= count:
            return text_among_numbers(message, sorted(text.words), name)
        return text_column(message, name)

    def _is_a_sample(self, names: tuple[str, ...] | None) -> bool:
        """Whether names but the first are numbers that cannot be names, such as 0.5."""
        numbers = [self._parsed(name) for name in (names or ())[1:]]
        known = [number for number in numbers if number is not None]
        if not known or len(known) < len(numbers):
            return False
        return len({*known}) < len(known) or any(number % 1 for number in known)


def _fix_of_number(cell: str, decimal: str) -> str | None:
    """Return how to correct a number in another notation; None if it is none."""
    if decimal == ",":
        points = re.fullmatch(r"[-+]?[\d.]+(,\d*)?", cell)
        return (
            "leave out the points, as the decimal mark is a comma" if points else None
        )
    if _THOUSANDS.fullmatch(cell):
        return (
            "leave thousands separators out, and write decimals with a point, or add "
            "DECIMAL"
        )
    if re.fullmatch(r"[-+]?\d+,\d+", cell):
        return "write decimals with a point, or add DECIMAL"
    if as_number(cell.strip(_SIGNS)) is not None:
        return "write the number without the sign"
    return None


def _name(names: tuple[str, ...] | None, column: int) -> str:
    return names[column] if names else str(column)


def _may_be_names(values: FloatArray) -> bool:
    """Whether the first row may be a header of numbers: 0, 1, 2, … or years.

    It is of distinct whole numbers, and other rows are not whole; or it ascends, and is
    above all others in every column, or by equal steps, which no other row does. The
    first row of a symmetric matrix is none.
    """
    first, body = values[0], values[1:]
    if len(first) < 2 or not len(body) or not np.isfinite(first).all():
        return False
    if np.any(first % 1) or len(np.unique(first)) < len(first):
        return False
    if values.shape[0] == values.shape[1] and np.array_equal(values, values.T):
        return False
    # Whole numbers above others that are not whole.
    if any(np.any(np.isfinite(row) & (row != np.round(row))) for row in body):
        return True
    steps = np.diff(first)
    if np.any(steps <= 0):
        return False
    if np.all(first > np.fmax.reduce(body, axis=0)):
        return True
    if len(first) < 3 or np.any(steps != steps[0]):
        return False
    return not any(np.all(np.diff(row) == steps[0]) for row in body)
