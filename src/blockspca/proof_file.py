"""A proof as a file; `docs/proof-format.md` says what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

FORMAT = "blockspca-proof"


def needed_version(
    header: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> int:
    """Return the least version of the format that has all of a section."""
    rules = {record["rule"] for record in records}
    if header.keys() & {"deflated", "constraints", "raised", "level"}:
        return 7
    if "entry-tree" in rules:
        return 6
    if "entry" in rules:
        return 5
    if any("rounds" in record for record in records):
        return 4
    if "direction" in rules:
        return 3
    return 2 if "without" in header else 1


@dataclass(frozen=True)
class Section:
    """Claims about one matrix, and the records that prove them."""

    header: Mapping[str, Any]  #: data and claims
    records: tuple[Mapping[str, Any], ...]  #: one for each k that the claims need

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


class MayHaveProof:
    """What a call returns that may have been told to record a proof."""

    proof: Proof | None
    _call: ClassVar[str]  # that records it

    def write_proof(self, path: str | os.PathLike[str]) -> Path:
        """Write the proof that was recorded, for `python -m blockspca.checker`.

        Parameters
        ----------
        path : path
            Of the file; it is replaced if it exists.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> import blockspca as bs
        >>> result = bs.solve(np.array([[2.0, 1.0], [1.0, 2.0]]), 2, proof=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.write_proof(f"{folder}/two.proof").name
        'two.proof'
        """
        if self.proof is None:
            raise ValueError(
                f"this result has no proof to write: pass proof=True to {self._call}, "
                "which records it while solving, or more time, if that was passed."
            )
        return self.proof.write(path)
