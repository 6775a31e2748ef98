"""What came with which version of the format: docs/proof-format.md, section 12."""

from __future__ import annotations

from collections.abc import Iterable

from .fields import ProofError

NEWEST = 9
#: Keys of headers and records, ways to deflate, and rules; all others are of version 1.
#: (Several sections are of version 2, but each has the version that it needs itself.)
VERSIONS = {
    "without": 2,
    "direction": 3,
    "rounds": 4,
    "entry": 5,
    "entry-tree": 6,
    "deflated": 7,
    "constraints": 7,
    "raised": 7,
    "level": 7,
    "hotelling": 8,
    "orthogonal": 8,
    "whole": 8,
    "group-tree": 8,
    "beside": 9,
    "compositions": 9,
    "signs": 9,
}


def check_version(version: int, used: Iterable[str], where: str) -> None:
    """Refuse what came later than the version that a section says it has."""
    what = max(used, key=lambda name: VERSIONS.get(name, 1))
    least = VERSIONS.get(what, 1)
    if version < least:
        raise ProofError(f"{where}: {what} is of version {least}, not {version}")
