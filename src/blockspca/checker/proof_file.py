"""Reads a proof: strict, by docs/proof-format.md, sections 2 and 3.

Nothing is repaired and nothing is guessed: a key too many or too few, a number of
another type, a second key of one name, an unknown token make the file invalid. So what
the other modules are given is of the types below, and every real number in it is a
finite float64.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

# 1 or 0, up to 13 hexadecimal digits, an exponent of two: what `float.hex` writes.
# `float.fromhex` alone would also take "nan", "inf", "10" (for 16) and round.
REAL = re.compile(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-]?[0-9]{1,4}")
HASH = re.compile(r"[0-9a-f]{64}")
WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")
DEEPEST = 300  # nodes within nodes; each is a call of a function
RULES = ("variance", "rows", "average", "tree", "direction")


Reader = Callable[[Any, str], Any]  # of a value and where it is, for errors


class ProofError(Exception):
    """The proof is not accepted; the message says why."""


@dataclass(frozen=True)
class Problem:
    """Which matrix the proof is about: section 1."""

    sha256: str
    kind: str
    n: int
    d: int
    center: bool = False
    scale: bool = False
    ddof: int = 0
    without: tuple[int, ...] = ()

    def __str__(self) -> str:
        left = ", without features " + " ".join(map(str, self.without))
        left = left if self.without else ""
        if self.kind == "matrix":
            return f"A = (Y + Y')/2 of the {self.d} x {self.d} matrix Y{left}"
        name = "correlations" if self.scale and self.center else "covariances"
        centred = "columns centred" if self.center else "columns not centred"
        scaled = ", scaled to variance 1" if self.scale else ""
        return (
            f"A = {name} of {self.n} x {self.d} data, {centred}{scaled}, "
            f"divided by n - {self.ddof} = {self.n - self.ddof}{left}"
        )


@dataclass(frozen=True)
class Claim:
    """There is x on `support` with x'Ax ≥ objective·x'x, and opt(k) ≤ upper_bound."""

    k: int
    support: tuple[int, ...]
    x: list[float]
    objective: float
    upper_bound: float


@dataclass(frozen=True)
class Node:
    """A token of a tree: its letter, and the positions that an `S` opens."""

    letter: str
    opened: tuple[int, ...] = ()


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
        value, where = _parse(line, number), f"line {number}"
        if opened is None:
            opened = _header(value, where, shape)
        elif type(value) is dict and "end" in value:
            end = _take(value, where, end=_integer)["end"]
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


# -- JSON ---------------------------------------------------------------------------


def _parse(line: str, number: int) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ProofError(f"line {number}: a key occurs twice")
        return found

    def refuse(text: str) -> NoReturn:
        raise ProofError(f"line {number}: {text} is no integer")

    try:
        return json.loads(
            line, object_pairs_hook=unique, parse_float=refuse, parse_constant=refuse
        )
    except (ValueError, RecursionError) as error:
        raise ProofError(f"line {number}: no JSON ({error})") from None


def _take(value: Any, where: str, **readers: Reader) -> dict[str, Any]:
    """Return the fields of an object that has exactly the keys of `readers`."""
    if type(value) is not dict:
        raise ProofError(f"{where}: an object is expected")
    if set(value) != set(readers):
        raise ProofError(
            f"{where}: the keys are {sorted(value)}, and not {sorted(readers)}"
        )
    return {key: read(value[key], f"{where}, {key}") for key, read in readers.items()}


def _of(kind: type, name: str) -> Reader:
    def read(value: Any, where: str) -> Any:
        if type(value) is not kind:  # and not isinstance: True is an instance of int
            raise ProofError(f"{where}: {name} is expected")
        return value

    return read


def _many(read: Reader) -> Reader:
    return lambda value, where: [read(item, where) for item in _list(value, where)]


def _real(value: Any, where: str) -> float:
    text = _text(value, where)
    if not REAL.fullmatch(text):
        raise ProofError(f"{where}: {text[:40]!r} is no hexadecimal float")
    try:
        number = float.fromhex(text)
    except OverflowError:
        raise ProofError(f"{where}: {text} is too large for a float64") from None
    # fromhex rounds what is below the range of float64; such a number is refused.
    mantissa, exponent = text.lstrip("-")[2:].split("p")
    digits = mantissa.replace(".", "")
    exact = int(digits, 16) * Fraction(2) ** (int(exponent) - 4 * (len(digits) - 1))
    if exact != abs(Fraction(number)):
        raise ProofError(f"{where}: {text} is no float64")
    return number


_integer, _boolean = _of(int, "an integer"), _of(bool, "true or false")
_text, _list = _of(str, "a text"), _of(list, "a list")
_integers, _reals = _many(_integer), _many(_real)
DIRECTION: dict[str, Reader] = {
    "rho": _real,
    "rest": _real,
    "weights": _reals,
    "directions": _many(_reals),
}


# -- Header, claims, records --------------------------------------------------------


def _header(value: Any, where: str, shape: tuple[int, ...] | None) -> Section:
    readers: dict[str, Reader] = {
        "format": _text,
        "version": _integer,
        "data": lambda item, _: item,
        "row_list": _integer,
        "claims": _list,
    }
    if type(value) is dict and "without" in value:
        readers["without"] = _integers
    header = _take(value, where, **readers)
    least = 2 if "without" in header else 1
    if header["format"] != "blockspca-proof" or not least <= header["version"] <= 4:
        raise ProofError(f"{where}: no blockspca-proof of version {least} to 4")
    if header["row_list"] < 1:
        raise ProofError(f"{where}: row_list must be at least 1")
    problem = _problem(header["data"], header.get("without", []), where)
    if shape not in (None, (problem.n, problem.d)):
        raise ProofError(f"the data are {shape}, the proof's {problem.n, problem.d}")
    left = sorted({*range(problem.d)} - {*problem.without})
    kept = {name: position for position, name in enumerate(left)}
    claims = [_claim(item, kept, where) for item in header["claims"]]
    ks = [claim.k for claim in claims]
    if not claims or ks != sorted(set(ks)):
        raise ProofError(f"{where}: one claim at least is needed, with ascending k")
    return Section(header["version"], problem, kept, header["row_list"], claims, [])


def _problem(value: Any, without: list[int], where: str) -> Problem:
    readers: dict[str, Reader] = {
        "sha256": _text,
        "kind": _text,
        "n": _integer,
        "d": _integer,
    }
    if type(value) is dict and value.get("kind") == "data":
        readers |= {"center": _boolean, "scale": _boolean, "ddof": _integer}
    problem = Problem(**_take(value, where, **readers), without=tuple(without))
    if problem.kind not in ("matrix", "data"):
        raise ProofError(f"{where}: the kind {problem.kind!r} is not known")
    if not HASH.fullmatch(problem.sha256):
        raise ProofError(f"{where}: sha256 must be 64 digits 0-9, a-f")
    if min(problem.n, problem.d) < 1 or problem.ddof < 0:
        raise ProofError(f"{where}: n and d must be at least 1, ddof at least 0")
    if problem.kind == "matrix" and problem.n != problem.d:
        raise ProofError(f"{where}: a matrix must have n = d")
    if problem.n - problem.ddof < 1:
        raise ProofError(f"{where}: n - ddof must be at least 1")
    inside = [i for i in without if 0 <= i < problem.d]
    if without != sorted({*inside}) or len(without) >= problem.d:
        raise ProofError(f"{where}: without must be ascending features, not all")
    return problem


def _positions(names: list[int], kept: dict[int, int], where: str) -> tuple[int, ...]:
    if len({*names}) != len(names) or any(name not in kept for name in names):
        raise ProofError(f"{where}: different features are needed, of those there are")
    return tuple(kept[name] for name in names)


def _claim(value: Any, kept: dict[int, int], where: str) -> Claim:
    where += ", claim"
    found = _take(
        value,
        where,
        k=_integer,
        support=_integers,
        x=_reals,
        objective=_real,
        upper_bound=_real,
    )
    k, support = found["k"], found["support"]
    if not 1 <= k <= len(kept):
        raise ProofError(f"{where}: k = {k} is not in 1 to {len(kept)}")
    if not 1 <= len(support) <= k or support != sorted(support):
        raise ProofError(f"{where}: the support must be 1 to k ascending features")
    if len(found["x"]) != len(support) or not any(found["x"]):
        raise ProofError(f"{where}: x must be a number per feature, not all 0")
    found["support"] = _positions(support, kept, where)
    return Claim(**found)


def _record(value: Any, where: str, section: Section) -> Record:
    readers: dict[str, Reader] = {
        "k": _integer,
        "upper": _real,
        "rule": _text,
    }
    rule = value.get("rule") if type(value) is dict else None
    if rule == "average":
        readers["from"] = _integer
    if rule == "tree":
        readers |= {"features": _integers, "tree": _text}
    if rule == "direction":
        readers |= DIRECTION
        if "rounds" in value:
            readers["rounds"] = _list
    found = _take(value, where, **readers)
    if found["rule"] not in RULES:
        raise ProofError(f"{where}: the rule {found['rule']!r} is not known")
    kept = section.kept
    if not 1 <= found["k"] <= len(kept):
        raise ProofError(f"{where}: k = {found['k']} is not in 1 to {len(kept)}")
    features = _positions(found.get("features", []), kept, where)
    tree: tuple[Node, ...] = ()
    depth = 0
    if found["rule"] == "tree":
        tree, depth = _tree(found["tree"], len(features), where)
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
    )


def _direction(found: dict[str, Any], where: str, section: Section) -> Direction:
    rho, rest, weights = found["rho"], found["rest"], found["weights"]
    if section.version < 3 or section.problem.kind != "data":
        raise ProofError(f"{where}: direction is for data, and of version 3")
    if min(rho, rest, *weights) <= 0:
        raise ProofError(f"{where}: rho, rest and weights must be positive")
    sizes = [len(q) for q in found["directions"]]
    if sizes != [section.problem.n] * len(weights):
        raise ProofError(f"{where}: a direction of n numbers is needed per weight")
    return Direction(rho, rest, weights, found["directions"])


def _round(value: Any, where: str, section: Section) -> Round:
    readers = {**DIRECTION, "in": _integers, "free": _integers}
    if type(value) is dict and "vector" in value:
        readers["vector"] = _reals
    found = _take(value, f"{where}, round", **readers)
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


def _tree(text: str, size: int, where: str) -> tuple[tuple[Node, ...], int]:
    """Return the tokens of one node with all its children, and how deep it goes."""
    tokens = text.split(" ")
    nodes: list[Node] = []
    waiting = [1]  # nodes still to be read at each depth
    depth = at = 0
    while at < len(tokens) and waiting:
        token, at = tokens[at], at + 1
        if token in ("L", "P"):
            nodes.append(Node(token))
            waiting[-1] -= 1
        elif token == "D":
            nodes.append(Node(token))
        elif token[:1] == "S" and WHOLE.fullmatch(token[1:]):
            opened = tokens[at : at + int(token[1:])]
            at += int(token[1:])
            if not all(WHOLE.fullmatch(position) for position in opened):
                raise ProofError(f"{where}: positions are expected after {token}")
            places = tuple(map(int, opened))
            if len(places) != int(token[1:]) or list(places) != sorted(set(places)):
                raise ProofError(f"{where}: ascending positions must follow {token}")
            if places and places[-1] >= size:
                raise ProofError(f"{where}: position {places[-1]} of {size} features")
            nodes.append(Node("S", places))
            waiting[-1] -= 1
            waiting.append(len(places))
            depth = max(depth, len(waiting) - 1)
        else:
            raise ProofError(f"{where}: the token {token[:20]!r} is not known")
        while waiting and waiting[-1] == 0:
            waiting.pop()
    if waiting or at != len(tokens):
        raise ProofError(f"{where}: the tree ends too early or too late")
    if depth > DEEPEST:
        raise ProofError(f"{where}: the tree is deeper than {DEEPEST}")
    return tuple(nodes), depth
