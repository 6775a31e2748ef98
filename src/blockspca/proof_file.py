"""A proof as a file; `docs/proof-format.md` says what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "blockspca-proof"
VERSION = 1
WITH_SECTIONS = 2  # of what is about A without some features
WITH_DIRECTIONS = 3  # of what has a bound by the direction dual
WITH_ROUNDS = 4  # and fixes features by it
WITH_ENTRIES = 5  # of what has a bound by the entry dual

MISSING = (
    "this result has no proof to write: pass proof=True to {call}, which records it "
    "while solving."
)


@dataclass(frozen=True)
class Section:
    """Claims about one matrix, and the records that prove them.

    Attributes
    ----------
    header : mapping
        Data and claims.
    records : tuple of mappings
        One for each k that the claims need.
    """

    header: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]

    def to_text(self) -> str:
        """Return the lines of this section, each a JSON object."""
        lines = [self.header, *self.records, {"end": len(self.records)}]
        return "".join(json.dumps(line) + "\n" for line in lines)


@dataclass(frozen=True)
class Proof:
    """What a file holds: a section, or one for each component.

    Attributes
    ----------
    sections : tuple of Section
    message : str
        What is proved less well here than in the result, if anything is.
    nodes : int
        Of all trees.
    """

    sections: tuple[Section, ...]
    message: str = ""
    nodes: int = 0

    def to_text(self) -> str:
        """Return the content of the file."""
        return "".join(section.to_text() for section in self.sections)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, and return its path."""
        target = Path(path)
        target.write_text(self.to_text(), encoding="utf-8")
        return target

    def __add__(self, other: Proof) -> Proof:
        """One proof after the other."""
        message = "; ".join(filter(None, (self.message, other.message)))
        return Proof(self.sections + other.sections, message, self.nodes + other.nodes)
