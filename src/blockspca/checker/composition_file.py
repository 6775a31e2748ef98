"""Reads a rule "compositions": docs/proof-format.md, section 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .fields import (
    ProofError,
    Reader,
    many,
    positions,
    read_integers,
    read_list,
    read_real,
    read_reals,
    read_text,
    take,
)
from .tree_file import Node, read_tree

MOST_PARTS = 100  # tables grow with their square


@dataclass(frozen=True)
class PartBound:
    """Ã of a part is at most vv' + tI."""

    t: float
    v: list[float]


@dataclass(frozen=True)
class ComposedCase:
    """Sets with given counts: their features beside whole parts, and a tree."""

    features: tuple[int, ...]
    tree: tuple[Node, ...]
    depth: int


@dataclass(frozen=True)
class Composed:
    """Parts of the features, what bounds each, and the counts that are left open."""

    parts: tuple[tuple[int, ...], ...]
    level: float
    points: tuple[tuple[PartBound, ...], ...]
    counts: tuple[Node, ...]
    cases: tuple[ComposedCase, ...]

    def counted(self) -> list[tuple[int, ...]]:
        """The counts of the cases, in their order, without zeros at the end."""
        found: list[tuple[int, ...]] = []
        waiting: list[tuple[int, ...]] = [()]
        for node in self.counts:
            begun = waiting.pop()
            waiting += [(*begun, s) for s in reversed(node.opened)]
            if node.letter == "L":
                found.append(begun)
        return found


COMPOSED: dict[str, Reader] = {
    "parts": many(read_integers),
    "level": read_real,
    "bounds": many(read_list),
    "counts": read_text,
    "cases": read_list,
}


def read_composed(found: dict[str, Any], where: str, kept: dict[int, int]) -> Composed:
    """Read the fields of a record; features become positions among those kept."""
    parts = tuple(positions(part, kept, where, True) for part in found["parts"])
    together = [i for part in parts for i in part]
    if not 1 <= len(parts) <= MOST_PARTS or not all(parts):
        raise ProofError(f"{where}: 1 to {MOST_PARTS} parts are needed, none empty")
    if len({*together}) < len(together):
        raise ProofError(f"{where}: a feature is in two parts")
    if found["level"] < 0:
        raise ProofError(f"{where}: the level must not be negative")
    if len(found["bounds"]) != len(parts):
        raise ProofError(f"{where}: a list of bounds is needed per part")
    points = tuple(
        tuple(_part_bound(item, len(part), where) for item in items)
        for items, part in zip(found["bounds"], parts, strict=True)
    )
    counts, _ = read_tree(found["counts"], found["k"] + 1, f"{where}, counts")
    letters = [node.letter for node in counts]
    if not {*letters} <= {"S", "L"} or letters.count("L") != len(found["cases"]):
        raise ProofError(f"{where}: counts have S, and an L for each of the cases")
    cases = tuple(_composed_case(item, kept, where) for item in found["cases"])
    return Composed(parts, found["level"], points, counts, cases)


def _part_bound(value: Any, size: int, where: str) -> PartBound:
    found = take(value, f"{where}, bounds", t=read_real, v=read_reals)
    if len(found["v"]) != size:
        raise ProofError(f"{where}: v has a number per feature of its part")
    return PartBound(**found)


def _composed_case(value: Any, kept: dict[int, int], where: str) -> ComposedCase:
    where += ", case"
    found = take(value, where, features=read_integers, tree=read_text)
    features = positions(found["features"], kept, where)
    return ComposedCase(features, *read_tree(found["tree"], len(features), where))
