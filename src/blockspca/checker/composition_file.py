"""Reads the rule "compositions": section 5 of docs/proof-format.md, version 9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .entry_file import Places, in_order
from .fields import (
    ProofError,
    Reader,
    a_list,
    integers,
    many,
    real,
    reals,
    take,
    text,
)
from .tree_text import Node, read_tree

MOST_PARTS = 100

COMPOSITIONS: dict[str, Reader] = {
    "parts": many(integers),
    "level": real,
    "bounds": many(a_list),
    "counts": text,
    "cases": a_list,
}


@dataclass(frozen=True)
class PartBound:
    """tI + vv' is said to be above the matrix of a part."""

    t: float
    v: list[float]


@dataclass(frozen=True)
class Case:
    """A tree for sets with known numbers of features of each part."""

    features: tuple[int, ...]
    tree: tuple[Node, ...]
    depth: int


@dataclass(frozen=True)
class Compositions:
    """What a rule "compositions" is made of; features are positions among those kept.

    `counts` are nodes as those of a tree, in which counts are opened.
    """

    parts: tuple[tuple[int, ...], ...]
    level: float
    bounds: tuple[tuple[PartBound, ...], ...]
    counts: tuple[Node, ...]
    cases: tuple[Case, ...]

    def counted(self) -> list[tuple[int, ...]]:
        """Return the counts of each case; what is not said, of the last parts, is 0."""
        found, waiting = [], [tuple[int, ...]()]
        for node in self.counts:
            begin = waiting.pop()
            if node.letter == "L":
                found.append(begin)
            waiting += [(*begin, count) for count in reversed(node.opened)]
        return found


def read_compositions(
    found: dict[str, Any], where: str, places: Places, k: int
) -> Compositions:
    """Return the rule of a record whose values have been read."""
    names = found["parts"]
    if not 1 <= len(names) <= MOST_PARTS or not all(names):
        raise ProofError(f"{where}: 1 to {MOST_PARTS} parts are needed, none empty")
    parts = tuple(places(in_order(part, where)) for part in names)
    places([name for part in names for name in part])  # none is in two
    if found["level"] < 0:
        raise ProofError(f"{where}: the level must not be negative")
    if len(found["bounds"]) != len(parts):
        raise ProofError(f"{where}: a list of bounds is needed per part")
    bounds = tuple(
        tuple(_bound(item, len(part), where) for item in items)
        for part, items in zip(parts, found["bounds"], strict=True)
    )
    counts, _ = read_tree(found["counts"], k + 1, f"{where}, counts")
    leaves = sum(node.letter == "L" for node in counts)
    if any(node.letter not in "SL" for node in counts) or leaves != len(found["cases"]):
        raise ProofError(f"{where}: counts have S, and an L for each of the cases")
    cases = tuple(_case(item, where, places) for item in found["cases"])
    return Compositions(parts, found["level"], bounds, counts, cases)


def _bound(value: Any, size: int, where: str) -> PartBound:
    found = take(value, f"{where}, bounds", t=real, v=reals)
    if len(found["v"]) != size:
        raise ProofError(f"{where}: v has a number per feature of its part")
    return PartBound(found["t"], found["v"])


def _case(value: Any, where: str, places: Places) -> Case:
    found = take(value, f"{where}, case", features=integers, tree=text)
    features = places(found["features"])
    tree, depth = read_tree(found["tree"], len(features), where)
    return Case(features, tree, depth)
