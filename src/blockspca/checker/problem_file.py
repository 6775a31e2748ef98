"""Reads what a header says of the matrix and the sets: all of it but its claims.

docs/proof-format.md, sections 1, 2 and 8. Whatever the page does not allow is refused.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from .fields import (
    ProofError,
    Reader,
    a_list,
    anything,
    ascending,
    boolean,
    has,
    integer,
    integers,
    real,
    reals,
    take,
    text,
)
from .problem import Constraints, Deflation, Group, Problem, Vector

HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
WAYS = ("residual", "projection", "hotelling", "orthogonal")
OPTIONAL: dict[str, Reader] = {
    "without": integers,
    "deflated": anything,
    "constraints": anything,
    "raised": a_list,
    "level": real,
}


def read_problem(header: dict[str, Any], where: str) -> Problem:
    """Read all of a header that says what the section is about."""
    found = _data(header["data"], where)
    d = found["d"]
    without = header.get("without", [])
    if not ascending(without, d) or len(without) >= d:
        raise ProofError(f"{where}: without must be ascending features, not all")
    found["without"] = tuple(without)
    if "deflated" in header:
        found["deflated"] = _deflation(header["deflated"], d, where)
    if "constraints" in header:
        given = header["constraints"]
        found["constraints"] = _constraints(given, d, {*without}, where)
    if "raised" in header:
        found["raised"] = _pairs(header["raised"], d, f"{where}, raised")
    problem = Problem(**found, level=header.get("level"))
    _check_together(problem, where)
    return problem


def used_by_header(header: dict[str, Any]) -> list[str]:
    """Return the keys of a header, and what of them came with a version of its own."""
    constraints, deflated = (header.get(key, {}) for key in ("constraints", "deflated"))
    used = [*header]
    if type(constraints) is dict:
        used += constraints
    if has(deflated, "how") and type(deflated["how"]) is str:
        used.append(deflated["how"])
    return used


def _data(value: Any, where: str) -> dict[str, Any]:
    readers: dict[str, Reader] = {
        "sha256": text,
        "kind": text,
        "n": integer,
        "d": integer,
    }
    if type(value) is dict and value.get("kind") == "data":
        readers |= {"center": boolean, "scale": boolean, "ddof": integer}
    found = take(value, where, **readers)
    ddof = found.get("ddof", 0)
    if found["kind"] not in ("matrix", "data"):
        raise ProofError(f"{where}: the kind {found['kind'][:40]!r} is not known")
    if not HASH.fullmatch(found["sha256"]):
        raise ProofError(f"{where}: sha256 must be 64 digits 0-9, a-f")
    if min(found["n"], found["d"]) < 1 or ddof < 0:
        raise ProofError(f"{where}: n and d must be at least 1, ddof at least 0")
    if found["kind"] == "matrix" and found["n"] != found["d"]:
        raise ProofError(f"{where}: a matrix must have n = d")
    if found["n"] - ddof < 1:
        raise ProofError(f"{where}: n - ddof must be at least 1")
    return found


def _deflation(value: Any, d: int, where: str) -> Deflation:
    where += ", deflated"
    readers: dict[str, Reader] = {"how": text, "vectors": a_list}
    how = value.get("how") if type(value) is dict else None
    if how == "orthogonal":
        readers["penalty"] = real
    found = take(value, where, **readers)
    if how not in WAYS or not found["vectors"]:
        raise ProofError(f"{where}: vectors are needed, and one of {', '.join(WAYS)}")
    if found.get("penalty", 0.0) < 0:
        raise ProofError(f"{where}: the penalty must not be negative")
    inner: dict[str, Reader] = {"support": integers, "x": reals}
    if how == "hotelling":
        inner["value"] = real
    vectors = []
    for item in found["vectors"]:
        one = take(item, where, **inner)
        if not one["support"] or not ascending(one["support"], d):
            raise ProofError(f"{where}: a support must be ascending features")
        if len(one["x"]) != len(one["support"]) or not any(one["x"]):
            raise ProofError(f"{where}: x must be a number per feature, not all 0")
        support, x = tuple(one["support"]), tuple(one["x"])
        vectors.append(Vector(support, x, one.get("value", 0.0)))
    return Deflation(how, tuple(vectors), found.get("penalty", 0.0))


def _constraints(value: Any, d: int, without: set[int], where: str) -> Constraints:
    where += ", constraints"
    readers: dict[str, Reader] = {
        "include": integers,
        "groups": a_list,
        "nonnegative": boolean,
    }
    readers |= {"beside": a_list} if has(value, "beside") else {}
    readers |= {"whole": boolean} if has(value, "whole") else {}
    found = take(value, where, **readers)
    include = found["include"]
    if not ascending(include, d) or without.intersection(include):
        raise ProofError(f"{where}: include must be ascending features, none without")
    groups = _groups(found["groups"], d, where)
    beside = _groups(found.get("beside", []), d, where)
    if "beside" in found and not (beside and groups):
        raise ProofError(f"{where}: beside has groups, and is beside groups")
    whole = "whole" in found
    if whole and beside:
        raise ProofError(f"{where}: whole groups have no others beside them")
    if whole and (not found["whole"] or found["nonnegative"]):
        raise ProofError(
            f"{where}: whole is true, for groups, with loadings of any sign"
        )
    constraints = Constraints(
        tuple(include), groups, found["nonnegative"], beside, whole
    )
    for group in groups if whole else ():
        parts = [{*group.features} & names for names in ({*include}, without)]
        if group.most != len(group.features) or any(
            0 < len(part) < group.most for part in parts
        ):
            raise ProofError(
                f"{where}: a whole group has room for all, and is in or out"
            )
    if not constraints.keeps({*include}):
        raise ProofError(f"{where}: more to include than a group has room for")
    return constraints


def _groups(value: list[Any], d: int, where: str) -> tuple[Group, ...]:
    groups, seen = [], set[int]()
    for item in value:
        found = take(item, where, most=integer, features=integers)
        features = found["features"]
        if found["most"] < 1 or not ascending(features, d) or seen & {*features}:
            raise ProofError(
                f"{where}: groups have most >= 1 and features of their own"
            )
        seen.update(features)
        groups.append(Group(found["most"], tuple(features)))
    return tuple(groups)


def _pairs(value: list[Any], d: int, where: str) -> tuple[tuple[int, int], ...]:
    pairs: list[tuple[int, int]] = []
    for item in value:
        found = integers(item, where)
        if len(found) != 2 or not ascending(found, d):
            raise ProofError(f"{where}: ascending pairs i < j of features are needed")
        pairs.append((found[0], found[1]))
    if any(a >= b for a, b in itertools.pairwise(pairs)):
        raise ProofError(f"{where}: ascending pairs i < j of features are needed")
    return tuple(pairs)


def _check_together(problem: Problem, where: str) -> None:
    """Refuse keys that do not go with one another."""
    constraints = problem.constraints
    if problem.raised is not None and not constraints.nonnegative:
        raise ProofError(f"{where}: raised is for loadings that are not negative")
    if problem.level is not None:
        if not constraints.include:
            raise ProofError(f"{where}: a level needs features to include")
        if problem.raised is not None or problem.is_less:
            how = problem.deflated.how if problem.is_less and problem.deflated else ""
            raise ProofError(f"{where}: level does not go with raised or {how!r}")
        if constraints.whole:
            raise ProofError(f"{where}: level does not go with whole groups")
