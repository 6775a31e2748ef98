"""Labels of samples: a text file, a column of a CSV file, or one of an AnnData file."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

from .columnar import annotation
from .delimited import delimiter_of
from .errors import Argument, ReadError
from .groups import text_lines

_DELIMITED = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")


def is_column(source: str, data: Path) -> bool:
    """Tell whether labels are a column of the file of the data itself."""
    return not Path(source).is_file() and data.name.lower().endswith(_DELIMITED)


def read_labels(source: str, data: Path) -> list[str]:
    """Read a label for each sample.

    Parameters
    ----------
    source : str
        A text file of one label a line, in the order of the samples; or the name of a
        column of the data, if they are a CSV or TSV file, or of `obs`, if they are an
        h5ad file.
    data : Path
        The file of the data.
    """
    path, asked = Path(source), Argument("labels", source)
    if path.is_file():
        return [line.strip() for line in text_lines(path, asked)]
    if data.suffix.lower() == ".h5ad":
        return annotation(data, "obs", source)
    if is_column(source, data):
        return _column(data, source)
    raise ReadError(
        f"{asked} is not a file; give a text file with one label for each sample, or "
        "the column of a CSV file or, of an h5ad file, of obs.",
        asked,
    )


def _column(path: Path, name: str) -> list[str]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter_of(path, first))
        header = [cell.strip() for cell in next(rows, [])]
        if name not in header:
            raise ReadError(f"{path} has no column {name!r}; it has {header[:8]}.")
        at = header.index(name)
        found = []
        for row in rows:
            # A header may lack the name of the column of sample names, as R writes it.
            more = len(row) - len(header)
            if row:
                found.append(row[at + more] if 0 <= more <= 1 else "")
        return found
