"""Reads a proof: strict, by docs/proof-format.md, sections 2 and 3.

What `fields` refuses and an unknown token make the file invalid. So what the other
modules are given is of the types below, and every real number in it is a finite
float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .composition_file import COMPOSED, Composed, read_composed
from .entry_file import EntryNode, read_nodes, shares_of
from .fields import (
    ProofError,
    Reader,
    many,
    parsed,
    positions,
    read_integer,
    read_integers,
    read_list,
    read_real,
    read_reals,
    read_text,
    take,
)
from .problem import DERIVED, OPTIONAL, TAKING, Problem, read_problem
from .tree_file import Node, read_tree

RULES = (
    *("variance", "rows", "average", "tree", "direction", "entry", "entry-tree"),
    "group-tree",
    "compositions",
    "signs",
)
VERSION = 9
FARTHEST = 2.0**100  # of a scaling from 1, either way


@dataclass(frozen=True)
class Claim:
    """There is x on `support` with x'Ax ≥ objective·x'x, and opt(k) ≤ upper_bound.

    The support are numbers of features, `places` what k leaves beside those that are
    chosen for good: the k of the record that the claim rests on.
    """

    k: int
    support: tuple[int, ...]
    x: list[float]
    objective: float
    upper_bound: float
    places: int


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
class Entry:
    """What a rule "entry" is made of: section 7; features are positions."""

    weights: list[float]
    core: tuple[int, ...]
    shares: list[int]
    dense: tuple[int, ...]
    scaling: list[float]


@dataclass(frozen=True)
class Added:
    """Numbers that are added to the entries of pairs of features: section 8."""

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
    entry: Entry | None = None
    nodes: tuple[EntryNode, ...] = ()
    composed: Composed | None = None
    added: tuple[Added, ...] = ()


@dataclass(frozen=True)
class Section:
    """A header and its records; their features are positions among those kept."""

    version: int
    problem: Problem
    kept: dict[int, int]  # the numbers of its features, with their positions
    row_list: int
    claims: list[Claim]
    records: list[Record]


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
        value, where = parsed(line, number), f"line {number}"
        if opened is None:
            opened = _header(value, where, shape)
        elif type(value) is dict and "end" in value:
            end = take(value, where, end=read_integer)["end"]
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


DIRECTION: dict[str, Reader] = {
    "rho": read_real,
    "rest": read_real,
    "weights": read_reals,
    "directions": many(read_reals),
}


ENTRY_LISTS = ("core", "dense")
ENTRY: dict[str, Reader] = {
    "weights": read_reals,
    "shares": read_integers,
    **dict.fromkeys(ENTRY_LISTS, read_integers),
}


# -- Header, claims, records --------------------------------------------------------


def _header(value: Any, where: str, shape: tuple[int, ...] | None) -> Section:
    readers: dict[str, Reader] = {
        "format": read_text,
        "version": read_integer,
        "data": lambda item, _: item,
        "row_list": read_integer,
        "claims": read_list,
    }
    if type(value) is dict:
        readers |= {key: read for key, read in OPTIONAL.items() if key in value}
    header = take(value, where, **readers)
    least = 2 if "without" in header else 1
    least = 7 if header.keys() & {*DERIVED} else least
    deflated = header.get("deflated")
    said = header.get("constraints")
    if type(deflated) is dict and deflated.get("how") in TAKING:
        least = 8
    if type(said) is dict and "whole" in said:
        least = 8
    if type(said) is dict and "beside" in said:
        least = 9
    if (
        header["format"] != "blockspca-proof"
        or not least <= header["version"] <= VERSION
    ):
        versions = f"{least} to {VERSION}"
        raise ProofError(f"{where}: no blockspca-proof of version {versions}")
    if header["row_list"] < 1:
        raise ProofError(f"{where}: row_list must be at least 1")
    problem = read_problem(header, where)
    if shape not in (None, (problem.n, problem.d)):
        raise ProofError(
            f"the data are {shape}, the proof's {problem.n, problem.d}; what was left "
            "out of the proof has to be left out of the data"
        )
    if not problem.kept:  # not before: d may be any number that the file says
        raise ProofError(f"{where}: no feature is left for the records")
    kept = {name: position for position, name in enumerate(problem.kept)}
    claims = [_claim(item, problem, where) for item in header["claims"]]
    ks = [claim.k for claim in claims]
    if not claims or ks != sorted(set(ks)):
        raise ProofError(f"{where}: one claim at least is needed, with ascending k")
    return Section(header["version"], problem, kept, header["row_list"], claims, [])


def _claim(value: Any, problem: Problem, where: str) -> Claim:
    where += ", claim"
    more: dict[str, Reader] = {} if problem.beside is None else {"set": read_integers}
    found = take(
        value,
        where,
        k=read_integer,
        support=read_integers,
        x=read_reals,
        objective=read_real,
        upper_bound=read_real,
        **more,
    )
    k, support, groups = found["k"], found["support"], problem.groups
    places = k - len(problem.chosen)
    kept, rest = problem.kept, problem.rest
    most = len(kept) if rest is None else rest.capacity(kept)
    most = problem.d if problem.whole else most  # sets of at most k features
    if not (k >= 1 and 0 <= places <= most):
        raise ProofError(f"{where}: k = {k} is not in 1 to {most + k - places}")
    if not 1 <= len(support) <= k or support != sorted(support):
        raise ProofError(f"{where}: the support must be 1 to k ascending features")
    there = {i for i in support if 0 <= i < problem.d} - {*problem.without}
    if len(there) < len(support):
        raise ProofError(f"{where}: different features are needed, of those there are")
    if len(found["x"]) != len(support) or not any(found["x"]):
        raise ProofError(f"{where}: x must be a number per feature, not all 0")
    held = {*support, *problem.include}
    if problem.whole:
        held = problem.united(held)
    if len(held) > k or (groups is not None and min(groups.after(held).room) < 0):
        raise ProofError(f"{where}: the support does not keep the constraints")
    if problem.nonnegative and min(found["x"]) < 0:
        raise ProofError(f"{where}: x has a negative entry")
    if problem.beside is not None:
        _check_set(found.pop("set"), held, k, problem, where)
    return Claim(**{**found, "support": tuple(support)}, places=places)


def _check_set(
    names: list[int], held: set[int], k: int, problem: Problem, where: str
) -> None:
    """Refuse what is no allowed set of k features with some of them in it."""
    there = {i for i in names if 0 <= i < problem.d} - {*problem.without}
    if len(names) != k or names != sorted(there) or not held <= there:
        raise ProofError(f"{where}: set must be k features, with those of the claim")
    for groups in (problem.groups, problem.beside):
        if groups is not None and min(groups.after(there).room) < 0:
            raise ProofError(f"{where}: the set does not keep the constraints")


def _record(value: Any, where: str, section: Section) -> Record:
    readers: dict[str, Reader] = {
        "k": read_integer,
        "upper": read_real,
        "rule": read_text,
    }
    rule = value.get("rule") if type(value) is dict else None
    if rule == "average":
        readers["from"] = read_integer
    if rule in ("tree", "group-tree", "signs"):
        readers |= {"features": read_integers, "tree": read_text}
    if rule == "signs":
        readers["added"] = read_list
    if rule == "direction":
        readers |= DIRECTION
        if "rounds" in value:
            readers["rounds"] = read_list
    if rule == "entry":
        readers |= ENTRY
        if "scaling" in value:
            readers["scaling"] = read_reals
    if rule == "entry-tree":
        readers |= {"features": read_integers, "nodes": read_list}
    if rule == "compositions":
        readers |= COMPOSED
    found = take(value, where, **readers)
    if found["rule"] not in RULES:
        raise ProofError(f"{where}: the rule {found['rule']!r} is not known")
    kept = section.kept
    most = section.problem.d if rule == "group-tree" else len(kept)
    if not 1 <= found["k"] <= most:
        raise ProofError(f"{where}: k = {found['k']} is not in 1 to {most}")
    is_sorted = rule == "entry-tree"
    features = positions(found.get("features", []), kept, where, is_sorted)
    tree: tuple[Node, ...] = ()
    depth = 0
    if found["rule"] == "group-tree":
        _check_units(found["features"], where, section.problem)
    added = tuple(_added(item, where, kept) for item in found.get("added", []))
    if found["rule"] == "signs" and (
        section.version < 9 or not section.problem.nonnegative or section.problem.chosen
    ):
        raise ProofError(f"{where}: signs are of version 9, for no negative loadings")
    if found["rule"] in ("tree", "group-tree", "signs"):
        tree, depth = read_tree(found["tree"], len(features), where, len(added))
    source = found.get("from", 0)
    direction = _direction(found, where, section) if rule == "direction" else None
    if direction is not None and "rounds" in found:
        if section.version < 4:
            raise ProofError(f"{where}: rounds are of version 4")
        rounds = tuple(_round(item, where, section) for item in found["rounds"])
        direction = replace(direction, rounds=rounds)
    return Record(
        found["k"],
        found["upper"],
        found["rule"],
        source,
        features,
        tree,
        depth,
        direction,
        _entry(found, where, section) if rule == "entry" else None,
        _nodes(found, where, section) if rule == "entry-tree" else (),
        _composed(found, where, section) if rule == "compositions" else None,
        added,
    )


def _added(value: Any, where: str, kept: dict[int, int]) -> Added:
    where += ", added"
    found = take(value, where, features=read_integers, numbers=read_reals)
    features, numbers = positions(found["features"], kept, where), found["numbers"]
    if len(numbers) != len(features) * (len(features) - 1) // 2:
        raise ProofError(f"{where}: a number is needed per pair of features")
    if min(numbers, default=0.0) < 0:
        raise ProofError(f"{where}: what is added must not be negative")
    return Added(features, numbers)


def _composed(found: dict[str, Any], where: str, section: Section) -> Composed:
    if section.version < 9:
        raise ProofError(f"{where}: compositions are of version 9")
    return read_composed(found, where, section.kept)


def _check_units(names: list[int], where: str, problem: Problem) -> None:
    """Refuse a list that has not every unit, by its smallest feature, once."""
    there = [unit[0] for unit in problem.units if not {*unit} <= {*problem.include}]
    if not problem.whole or sorted(names) != sorted(there):
        raise ProofError(f"{where}: group-tree names every unit of whole groups once")


def _nodes(
    found: dict[str, Any], where: str, section: Section
) -> tuple[EntryNode, ...]:
    if section.version < 6:
        raise ProofError(f"{where}: entry-tree is of version 6")
    return read_nodes(found["nodes"], where, found["features"])


def _entry(found: dict[str, Any], where: str, section: Section) -> Entry:
    d, m = len(section.kept), len(found["core"])
    weights, shares = found["weights"], found["shares"]
    if section.version < 5:
        raise ProofError(f"{where}: entry is of version 5")
    if len(weights) != d or min(weights) < 0:
        raise ProofError(f"{where}: a weight of at least 0 is needed per feature")
    core, dense = (
        positions(found[key], section.kept, where, True) for key in ENTRY_LISTS
    )
    if not {*core} <= {*dense}:
        raise ProofError(f"{where}: dense must contain the core")
    shares_of(shares, m, where)
    scaling = found.get("scaling", [])
    if ("scaling" in found) == (len(found["dense"]) == d) or not all(
        1 / FARTHEST <= v <= FARTHEST for v in scaling
    ):
        raise ProofError(f"{where}: scaling is needed beside dense, from 2^-100 on")
    if len(scaling) not in (0, d):
        raise ProofError(f"{where}: a scaling is needed per feature")
    return Entry(weights, core, shares, dense, scaling)


def _direction(found: dict[str, Any], where: str, section: Section) -> Direction:
    rho, rest, weights = found["rho"], found["rest"], found["weights"]
    problem = section.problem
    if section.version < 3 or not problem.is_semidefinite or problem.chosen:
        raise ProofError(f"{where}: direction is for data, and of version 3")
    if min(rho, rest, *weights) <= 0:
        raise ProofError(f"{where}: rho, rest and weights must be positive")
    sizes = [len(q) for q in found["directions"]]
    if sizes != [section.problem.n] * len(weights):
        raise ProofError(f"{where}: a direction of n numbers is needed per weight")
    return Direction(rho, rest, weights, found["directions"])


def _round(value: Any, where: str, section: Section) -> Round:
    readers = {**DIRECTION, "in": read_integers, "free": read_integers}
    if type(value) is dict and "vector" in value:
        readers["vector"] = read_reals
    found = take(value, f"{where}, round", **readers)
    vector = found.get("vector", [])
    if len(vector) != section.problem.n and (
        vector or found["in"] or "vector" in found
    ):
        raise ProofError(f"{where}: a round needs a vector of n numbers")
    return Round(
        _direction(found, where, section),
        positions(found["in"], section.kept, where, True),
        positions(found["free"], section.kept, where, True),
        vector,
    )
