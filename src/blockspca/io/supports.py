"""Supports to start from: of an earlier fit, of a text file, or names as typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from .errors import Argument, ReadError
from .groups import text_lines


def read_supports(source: str) -> list[list[str]]:
    """Return the features of components, one list for each.

    Parameters
    ----------
    source : str
        The folder, summary.json or loadings.csv that `blockspca fit` has written; a
        text file with one feature a line; or names with commas between them.

    Examples
    --------
    >>> from blockspca.io.supports import read_supports
    >>> read_supports("AAPL, MSFT")
    [['AAPL', 'MSFT']]
    """
    path, asked = Path(source), Argument("start", source)
    if path.is_dir():
        path = path / "summary.json"
    if not path.is_file():
        if "/" in source or path.suffix in (".json", ".csv", ".txt"):
            raise ReadError(f"{asked}: there is no such file.", asked)
        return [[name.strip() for name in source.split(",") if name.strip()]]
    try:
        if path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            return [list(each["loadings"]) for each in content["components"]]
        if path.suffix == ".csv":
            return _of_loadings(path)
    except (OSError, ValueError, KeyError, TypeError):
        raise ReadError(f"{asked} is not what fit writes.", asked) from None
    return [[line.split("\t")[0].strip() for line in text_lines(path, asked)]]


def _of_loadings(path: Path) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["component"], []).append(row["feature"])
    return list(found.values())
