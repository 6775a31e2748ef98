"""The lines of a text file, decoded and without comments, and their separator."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from .errors import Argument, ReadError, tell
from .request import Request

STANDARD_INPUT = Path("-")
COMMENT = "#"
SEPARATORS = ",;\t|"
SPACES = " "  # any run of white space
# Characters. A cell of more is a quotation mark that is not closed, and the rest of the
# file.
MAX_FIELD = 2**20


@contextmanager
def open_lines(
    path: Path, request: Request
) -> Iterator[tuple[Iterator[str], Callable[[], None]]]:
    """Give the lines of a file, or of standard input, and a function for progress.

    Errors while they are read, here or by `csv`, become ReadErrors.
    """
    csv.field_size_limit(MAX_FIELD)
    try:
        with _opened(path) as raw:
            zipped = path.suffix.lower() == ".gz" or _begins(raw, b"\x1f\x8b")
            stream: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
            encoding = request.encoding or _by_mark(raw)
            text = io.TextIOWrapper(stream, encoding=encoding, newline="")
            size = None if path == STANDARD_INPUT else path.stat().st_size

            def progress() -> None:
                if size is not None:
                    request.tick(raw.tell(), size)

            try:
                yield iter(text), progress
            finally:
                text.detach()  # the caller closes the file
    except LookupError:
        asked = Argument("encoding", request.encoding)
        raise ReadError(f"{asked} is not a known encoding.", asked) from None
    except UnicodeError:
        how = Argument("encoding", "latin-1")
        known = request.encoding or "UTF-8"
        raise ReadError(
            f"{path} is not {known} text; save it as UTF-8, name its encoding, such as "
            f"{how}, or give the file the ending of its format.",
            how,
        ) from None
    except csv.Error as error:
        raise ReadError(f"{path} cannot be read: {error}.") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ReadError(f"{path} cannot be read: {error}.") from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if path != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
        return
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise ReadError(
            "- is standard input, but nothing is piped into it; write cat FILE | …, or "
            "name the file."
        )
    yield stream if hasattr(stream, "peek") else io.BufferedReader(stream)


def _begins(raw: Any, mark: bytes) -> bool:
    return bool(raw.peek(4)[: len(mark)] == mark)


def _by_mark(raw: Any) -> str:
    """UTF-16 if the file begins with its byte order mark, as Excel's text does."""
    if _begins(raw, codecs.BOM_UTF16_LE) or _begins(raw, codecs.BOM_UTF16_BE):
        return "utf-16"
    return "utf-8-sig"


def split_rows(
    path: Path, lines: Iterator[str], request: Request
) -> Iterator[list[str]]:
    """Split lines into cells, by what the first two have most of; skip comments.

    The last comment above the first row is its header if it has as many cells, none of
    them a number, while the row has some: as `numpy.savetxt` writes it.

    Raises
    ------
    ReadError
        If there is no line.
    """
    comments: list[str] = []
    first = next(_content(lines, comments), None)
    if first is None:
        raise ReadError(f"{path} has no rows; give a file with numbers.")
    above = comments[-1].lstrip(COMMENT).strip() if comments else ""
    comments.clear()
    rest = _content(lines, comments)
    second = next(rest, None)
    both = [first] if second is None else [first, second]
    separator = find_separator(path, both, request.decimal)
    if above and _names(above, first, separator, request.decimal):
        tell(f"{path}: the comment above the first row names the columns.")
        both = [above, *both]
    if separator != SPACES:
        yield from csv.reader(chain(both, rest), delimiter=separator)
    else:
        spaced = (line.strip().replace("\t", " ") for line in chain(both, rest))
        yield from csv.reader(spaced, delimiter=" ", skipinitialspace=True)
    if comments:
        tell(
            f"{path}: {len(comments)} line(s) that begin with # were left out, the "
            f"first is {comments[0].strip()[:40]!r}."
        )


def _content(lines: Iterator[str], comments: list[str]) -> Iterator[str]:
    """Yield the lines that are neither empty nor comments; collect the comments."""
    for line in lines:
        if line.startswith(COMMENT):
            comments.append(line)
        elif line.strip():
            yield line


def find_separator(path: Path, lines: list[str], decimal: str) -> str:
    """Tabs for .tsv; otherwise what the first line has most of, or white space."""
    if ".tsv" in path.name.lower():
        return "\t"
    marks = SEPARATORS.replace(decimal, "")
    if any(mark in line for mark in marks for line in lines):
        return max(marks, key=lines[0].count)
    spaced = all(len(line.split()) > 1 for line in lines)
    return SPACES if spaced else marks[0]


def _names(above: str, first: str, separator: str, decimal: str) -> bool:
    """Whether a comment has a name for each cell of the first row."""
    names = above.split(None if separator == SPACES else separator)
    cells = first.split(None if separator == SPACES else separator)
    if len(names) != len(cells) or len(cells) < 2 or not all(n.strip() for n in names):
        return False
    numbers = [as_number(cell, decimal) is not None for cell in (*cells, *names)]
    return any(numbers[: len(cells)]) and not any(numbers[len(cells) :])


TRUTH = {"true": 1.0, "false": 0.0}


def as_number(cell: str, decimal: str = ".") -> float | None:
    """Return a cell as a number, True and False as 1 and 0, anything else as None.

    With a decimal comma, a point is no part of a number: 1.500 may be 1500. Nor is an
    underscore, as it is in Python: 1_2 is a name more often than 12.

    Examples
    --------
    >>> from blockspca.io.lines import as_number
    >>> as_number("1e-3"), as_number("TRUE"), as_number("1,5", ","), as_number("red")
    (0.001, 1.0, 1.5, None)
    """
    if "_" in cell:
        return None
    if decimal == ",":
        cell = cell.replace(".", "x").replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return TRUTH.get(cell.strip().lower())
