"""Reads a proof: strict, by docs/proof-format.md, sections 2, 3 and 8.

What the other modules are given is of the types below, and every real number in it is a
finite float64. The features of records are positions among those that records are
about; those of claims keep their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .claims import Claim, claim_limit, read_claim
from .composition_file import COMPOSITIONS, Compositions, read_compositions
from .entry_file import (
    ENTRY,
    ENTRY_TREE,
    Entry,
    EntryNode,
    in_order,
    read_entry,
    read_entry_nodes,
)
from .fields import (
    ProofError,
    Reader,
    a_list,
    anything,
    integer,
    integers,
    many,
    parse,
    real,
    reals,
    take,
    text,
)
from .problem import Problem
from .problem_file import OPTIONAL, read_problem, used_by_header
from .tree_text import Node, read_tree
from .versions import NEWEST, check_version

DIRECTION: dict[str, Reader] = {
    "rho": real,
    "rest": real,
    "weights": reals,
    "directions": many(reals),
}
TREE: dict[str, Reader] = {"features": integers, "tree": text}

# The keys that a record of each rule has beside k, upper and rule, and those that it
# may have.
RULES: dict[str, dict[str, Reader]] = {
    "variance": {},
    "rows": {},
    "average": {"from": integer},
    "tree": TREE,
    "direction": DIRECTION,
    "entry": ENTRY,
    "entry-tree": ENTRY_TREE,
    "group-tree": TREE,
    "compositions": COMPOSITIONS,
    "signs": {**TREE, "added": a_list},
}
MAY_HAVE: dict[str, dict[str, Reader]] = {
    "direction": {"rounds": a_list},
    "entry": {"scaling": reals},
}


@dataclass(frozen=True)
class Direction:
    """What a rule "direction" is made of: section 6."""

    rho: float
    rest: float
    weights: list[float]
    directions: list[list[float]]
    rounds: tuple[Round, ...] = ()


@dataclass(frozen=True)
class Round:
    """Features that every better set has, and those that it may have besides."""

    direction: Direction
    needed: tuple[int, ...]
    free: tuple[int, ...]
    vector: list[float]


@dataclass(frozen=True)
class Added:
    """Numbers that are added to entries of A, a row for each of `features`."""

    features: tuple[int, ...]
    numbers: list[float]


@dataclass(frozen=True)
class Record:
    """No set of k features has an eigenvalue above `upper`, by `rule`."""

    k: int
    upper: float
    rule: str
    source: int = 0
    features: tuple[int, ...] = ()
    tree: tuple[Node, ...] = ()
    depth: int = 0
    direction: Direction | None = None
    added: tuple[Added, ...] = ()
    entry: Entry | None = None
    nodes: tuple[EntryNode, ...] = ()
    compositions: Compositions | None = None


@dataclass(frozen=True)
class Section:
    """A header and its records."""

    version: int
    problem: Problem
    row_list: int
    claims: list[Claim]
    records: list[Record]

    @property
    def kept(self) -> dict[int, int]:
        """The numbers of the features of its records, with their positions."""
        return self.problem.kept


def read_proof(
    proof: str | Path | bytes, shape: tuple[int, ...] | None = None
) -> list[Section]:
    """Read a file, or its bytes; raise `ProofError` if it is not of the format.

    `shape` is that of the data, which the header must have.
    """
    content = proof if isinstance(proof, bytes) else Path(proof).read_bytes()
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ProofError(f"the file is no UTF-8 text: {error}") from None
    if lines[-1] == "":
        lines.pop()
    sections: list[Section] = []
    opened: Section | None = None
    for number, line in enumerate(lines, start=1):
        value, where = parse(line, number), f"line {number}"
        if opened is None:
            opened = _header(value, where, shape)
        elif type(value) is dict and "end" in value:
            end = take(value, where, end=integer)["end"]
            if end != len(opened.records):
                raise ProofError(
                    f"{where}: {len(opened.records)} records, but the end says {end}"
                )
            sections.append(opened)
            opened = None
        else:
            record = _record(value, where, opened)
            if opened.records and record.k <= opened.records[-1].k:
                raise ProofError(f"{where}: k = {record.k} is not above the last k")
            opened.records.append(record)
    if opened is not None or not sections:
        raise ProofError("a section has no end: the file is truncated")
    return sections


# -- Header -------------------------------------------------------------------------


def _header(value: Any, where: str, shape: tuple[int, ...] | None) -> Section:
    readers: dict[str, Reader] = {
        "format": text,
        "version": integer,
        "data": anything,
        "row_list": integer,
        "claims": a_list,
    }
    if type(value) is dict:
        readers |= {key: read for key, read in OPTIONAL.items() if key in value}
    header = take(value, where, **readers)
    if header["format"] != "blockspca-proof" or not 1 <= header["version"] <= NEWEST:
        raise ProofError(f"{where}: no blockspca-proof of version 1 to {NEWEST}")
    if header["row_list"] < 1:
        raise ProofError(f"{where}: row_list must be at least 1")
    check_version(header["version"], used_by_header(header), where)
    problem = read_problem(header, where)
    if shape not in (None, (problem.n, problem.d)):
        raise ProofError(f"the data are {shape}, the proof's {problem.n, problem.d}")
    if not problem.kept:
        raise ProofError(f"{where}: no features are left for the records")
    most = claim_limit(problem)
    claims = [read_claim(item, problem, most, where) for item in header["claims"]]
    ks = [claim.k for claim in claims]
    if not claims or ks != sorted(set(ks)):
        raise ProofError(f"{where}: one claim at least is needed, with ascending k")
    return Section(header["version"], problem, header["row_list"], claims, [])


# -- Records ------------------------------------------------------------------------


def _positions(names: list[int], kept: dict[int, int], where: str) -> tuple[int, ...]:
    if len({*names}) != len(names) or any(name not in kept for name in names):
        raise ProofError(f"{where}: different features are needed, of those there are")
    return tuple(kept[name] for name in names)


def _record(value: Any, where: str, section: Section) -> Record:
    readers: dict[str, Reader] = {"k": integer, "upper": real, "rule": text}
    rule = value.get("rule") if type(value) is dict else None
    if type(rule) is str and rule in RULES:
        more = MAY_HAVE.get(rule, {})
        readers |= RULES[rule] | {key: more[key] for key in more if key in value}
    found = take(value, where, **readers)
    if rule not in RULES:
        raise ProofError(f"{where}: the rule {found['rule'][:40]!r} is not known")
    check_version(section.version, [found["rule"], *found], where)
    kept = section.kept
    most = section.problem.d if rule == "group-tree" else len(kept)
    if not 1 <= found["k"] <= most:
        raise ProofError(f"{where}: k = {found['k']} is not in 1 to {most}")
    features = _positions(found.get("features", []), kept, where)
    record = Record(found["k"], found["upper"], found["rule"], features=features)
    if rule == "average":
        return replace(record, source=found["from"])
    if rule == "direction":
        return replace(record, direction=_direction_with_rounds(found, where, section))
    if rule == "signs":
        return _signs(record, found, where, section)
    if rule in ("tree", "group-tree"):
        if rule == "group-tree":
            _check_units(features, where, section)
        tree, depth = read_tree(found["tree"], len(features), where)
        if rule == "group-tree" and any(node.letter == "D" for node in tree):
            raise ProofError(f"{where}: the token 'D' is not known")
        return replace(record, tree=tree, depth=depth)
    return _with_parts(record, found, where, section)


def _with_parts(
    record: Record, found: dict[str, Any], where: str, section: Section
) -> Record:
    """Return a record with what rules that have a file of their own add to it."""

    def places(names: list[int]) -> tuple[int, ...]:
        return _positions(names, section.kept, where)

    if record.rule == "entry":
        return replace(
            record, entry=read_entry(found, where, places, len(section.kept))
        )
    if record.rule == "entry-tree":
        in_order(found["features"], where)
        nodes = read_entry_nodes(found["nodes"], where, places)
        return replace(record, nodes=nodes)
    if record.rule == "compositions":
        read = read_compositions(found, where, places, record.k)
        return replace(record, compositions=read)
    return record


def _check_units(features: tuple[int, ...], where: str, section: Section) -> None:
    """A group-tree names every unit that may be added by its smallest feature."""
    problem = section.problem
    constraints = problem.constraints
    if not constraints.whole:
        raise ProofError(f"{where}: group-tree is for whole groups")
    included = {*constraints.include}
    units = {
        place
        for name, place in problem.kept.items()
        if name not in included and constraints.unit(name)[0] == name
    }
    if units != {*features}:
        raise ProofError(f"{where}: group-tree names every unit of whole groups once")


def _signs(
    record: Record, found: dict[str, Any], where: str, section: Section
) -> Record:
    problem = section.problem
    if not problem.constraints.nonnegative or problem.level is not None:
        raise ProofError(f"{where}: signs is for no negative loadings, without a level")
    added = []
    for item in found["added"]:
        one = take(item, f"{where}, added", features=integers, numbers=reals)
        size, numbers = len(one["features"]), one["numbers"]
        if len(numbers) != size * (size - 1) // 2:
            raise ProofError(f"{where}, added: a number is needed per pair of features")
        if min(numbers, default=0.0) < 0:
            raise ProofError(f"{where}, added: what is added must not be negative")
        places = _positions(one["features"], section.kept, f"{where}, added")
        added.append(Added(places, numbers))
    size = len(record.features)
    tree, depth = read_tree(found["tree"], size, where, len(added))
    return replace(record, tree=tree, depth=depth, added=tuple(added))


def _direction_with_rounds(
    found: dict[str, Any], where: str, section: Section
) -> Direction:
    direction = _direction(found, where, section)
    if "rounds" not in found:
        return direction
    rounds = tuple(_round(item, where, section) for item in found["rounds"])
    return replace(direction, rounds=rounds)


def _direction(found: dict[str, Any], where: str, section: Section) -> Direction:
    rho, rest, weights = found["rho"], found["rest"], found["weights"]
    problem = section.problem
    level = problem.level is not None  # its columns would be longer than n
    if level or not problem.is_semidefinite:
        raise ProofError(f"{where}: direction is for data")
    if min(rho, rest, *weights) <= 0:
        raise ProofError(f"{where}: rho, rest and weights must be positive")
    sizes = [len(q) for q in found["directions"]]
    if sizes != [section.problem.n] * len(weights):
        raise ProofError(f"{where}: a direction of n numbers is needed per weight")
    return Direction(rho, rest, weights, found["directions"])


def _round(value: Any, where: str, section: Section) -> Round:
    readers = {**DIRECTION, "in": integers, "free": integers}
    if type(value) is dict and "vector" in value:
        readers["vector"] = reals
    found = take(value, f"{where}, round", **readers)
    vector = found.get("vector", [])
    for key in ("in", "free"):
        if found[key] != sorted(found[key]):
            raise ProofError(f"{where}: {key} must be ascending")
    if len(vector) != section.problem.n and (
        vector or found["in"] or "vector" in found
    ):
        raise ProofError(f"{where}: a round needs a vector of n numbers")
    return Round(
        _direction(found, where, section),
        _positions(found["in"], section.kept, where),
        _positions(found["free"], section.kept, where),
        vector,
    )
