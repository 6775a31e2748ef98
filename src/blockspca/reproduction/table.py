"""A reproduced table: rows with printed and measured numbers, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from .printed_values import Verdict

NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """One column: the key in the rows, its heading, and how numbers are written."""

    key: str
    heading: str
    form: str = ""

    def write(self, value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return NOTHING
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return str(value)
        return format(value, self.form)


@dataclass(frozen=True)
class ReproducedTable:
    """A table of the paper beside what was measured."""

    name: str  #: as on the command line
    title: str
    source: str  #: which table of the paper, by its label
    #: Printed values are text, with the paper's digits; measured ones numbers.
    columns: tuple[Column, ...]
    #: By the keys of the columns; `verdict` is a `Verdict`.
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    pictures: dict[str, bytes] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        return [row["verdict"] for row in self.rows if "verdict" in row]

    @property
    def disagrees(self) -> bool:
        """Whether a number measured on the paper's data is not as printed or better."""
        return any(v in (Verdict.WORSE, Verdict.OTHER) for v in self.verdicts)

    @property
    def unfinished(self) -> bool:
        return Verdict.NOT_FINISHED in self.verdicts

    def cells(self) -> Iterator[list[str]]:
        for row in self.rows:
            yield [column.write(row.get(column.key)) for column in self.columns]

    def to_markdown(self) -> str:
        """Return the table with its heading and notes."""
        header = [column.heading for column in self.columns]
        lines = [header, ["---"] * len(header), *self.cells()]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        text = [f"## {self.title}", "", f"Paper: {self.source}.", "", *table, ""]
        text += [f"![{self.title}]({name})\n" for name in self.pictures]
        text += [f"- {note}" for note in self.notes]
        return "\n".join(text).rstrip() + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "columns": {c.key: c.heading for c in self.columns},
            "rows": [
                {k: str(v) if isinstance(v, Verdict) else v for k, v in row.items()}
                for row in self.rows
            ],
            "notes": list(self.notes),
            "pictures": list(self.pictures),
        }


@cache
def described(name: str) -> dict[str, Any]:
    """Return title, source, columns and notes of a table, as tables.json has them."""
    text = (files(__package__) / "tables.json").read_text(encoding="utf-8")
    about: dict[str, Any] = json.loads(text)[name]
    return about


def make_table(
    name: str,
    rows: Iterable[dict[str, Any]],
    *,
    notes: Sequence[str] = (),
    pictures: dict[str, bytes] | None = None,
    **values: Any,
) -> ReproducedTable:
    """Return a table with what is said about it in tables.json.

    The notes are those given, then those of the file with the values put in.
    """
    about = described(name)
    return ReproducedTable(
        name,
        about["title"],
        about["source"],
        tuple(Column(*column) for column in about["columns"]),
        tuple(rows),
        (*notes, *(note.format(**values) for note in about["notes"])),
        pictures or {},
    )
