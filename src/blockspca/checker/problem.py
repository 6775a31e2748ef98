"""Which matrix a section is about, and which sets of features count: sections 1 and 8.

What the header says of the problem, read strictly. Numbers of features are those of
the data throughout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .fields import (
    ProofError,
    Reader,
    read_boolean,
    read_integer,
    read_integers,
    read_list,
    read_real,
    read_reals,
    read_text,
    take,
)

HASH = re.compile(r"[0-9a-f]{64}")
HOW = ("residual", "projection")
DERIVED = ("deflated", "constraints", "raised", "level")  # keys of version 7


@dataclass(frozen=True)
class Vector:
    """A vector of d numbers, by those that are not left out as 0."""

    support: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True)
class Groups:
    """At most `room[g]` features of group g; `label[i]` is the group of feature i."""

    label: dict[int, int]
    room: tuple[int, ...]

    def after(self, chosen: Iterable[int]) -> Groups:
        """Return what is left once some features are chosen."""
        room = list(self.room)
        for i in chosen:
            if i in self.label:
                room[self.label[i]] -= 1
        return Groups(self.label, tuple(room))

    def has_room(self, feature: int) -> bool:
        """Say whether one more feature may be chosen."""
        return feature not in self.label or self.room[self.label[feature]] > 0

    def capacity(self, features: Iterable[int]) -> int:
        """Return how many of some features can be chosen together."""
        left, count = list(self.room), 0
        for i in features:
            g = self.label.get(i)
            if g is None or left[g] > 0:
                count += 1
                if g is not None:
                    left[g] -= 1
        return count

    def at(self, features: Iterable[int]) -> Groups:
        """Return the same of features that are named by their places in a list."""
        names = enumerate(features)
        return Groups(
            {p: self.label[i] for p, i in names if i in self.label}, self.room
        )


@dataclass(frozen=True)
class Problem:
    """The matrix and the sets that count."""

    sha256: str
    kind: str
    n: int
    d: int
    center: bool = False
    scale: bool = False
    ddof: int = 0
    without: tuple[int, ...] = ()
    how: str = ""  # of `vectors`
    vectors: tuple[Vector, ...] = ()
    raised: tuple[tuple[int, int], ...] | None = None
    include: tuple[int, ...] = ()
    groups: Groups | None = None
    nonnegative: bool = False
    level: float | None = None

    @property
    def chosen(self) -> tuple[int, ...]:
        """The features that are in for good in the matrix: those of B(level)."""
        return self.include if self.level is not None else ()

    @cached_property
    def rest(self) -> Groups | None:
        """The limits of groups for the features beside those chosen."""
        return None if self.groups is None else self.groups.after(self.chosen)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The features that the records are about, ascending."""
        out, rest = {*self.without, *self.chosen}, self.rest
        return tuple(
            i
            for i in range(self.d)
            if i not in out and (rest is None or rest.has_room(i))
        )

    @cached_property
    def places(self) -> Groups | None:
        """The same limits, of positions among the features kept."""
        return None if self.rest is None else self.rest.at(self.kept)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The features whose columns the matrix is made of, ascending."""
        more = {i for vector in self.vectors for i in vector.support}
        return tuple(sorted({*self.kept, *self.chosen, *more}))

    @property
    def is_semidefinite(self) -> bool:
        """Whether the matrix is positive semidefinite by what it is."""
        return self.kind == "data" and self.raised is None

    def __str__(self) -> str:
        said = [_named(self)]
        if self.vectors:
            what = "the scores of" if self.how == "residual" else "the directions of"
            said.append(f"without {what} {len(self.vectors)} given vector(s)")
        if self.without:
            said.append("without features " + " ".join(map(str, self.without)))
        if self.include:
            said.append("sets with features " + " ".join(map(str, self.include)))
        if self.groups is not None:
            rooms = " ".join(map(str, self.groups.room))
            said.append(
                f"sets with at most {rooms} of {len(self.groups.room)} group(s)"
            )
        if self.nonnegative:
            said.append("no negative loadings")
        return ", ".join(said)


def _named(problem: Problem) -> str:
    if problem.kind == "matrix":
        return f"A = (Y + Y')/2 of the {problem.d} x {problem.d} matrix Y"
    name = "correlations" if problem.scale and problem.center else "covariances"
    centred = "columns centred" if problem.center else "columns not centred"
    scaled = ", scaled to variance 1" if problem.scale else ""
    return (
        f"A = {name} of {problem.n} x {problem.d} data, {centred}{scaled}, "
        f"divided by n - {problem.ddof} = {problem.n - problem.ddof}"
    )


# -- reading ------------------------------------------------------------------------


def read_problem(header: dict[str, Any], where: str) -> Problem:
    """Read what a header says of the problem."""
    value = header["data"]
    readers: dict[str, Reader] = {
        "sha256": read_text,
        "kind": read_text,
        "n": read_integer,
        "d": read_integer,
    }
    if type(value) is dict and value.get("kind") == "data":
        readers |= {"center": read_boolean, "scale": read_boolean, "ddof": read_integer}
    fields = take(value, where, **readers)
    if fields["kind"] not in ("matrix", "data"):
        raise ProofError(f"{where}: the kind {fields['kind']!r} is not known")
    if not HASH.fullmatch(fields["sha256"]):
        raise ProofError(f"{where}: sha256 must be 64 digits 0-9, a-f")
    if min(fields["n"], fields["d"]) < 1 or fields.get("ddof", 0) < 0:
        raise ProofError(f"{where}: n and d must be at least 1, ddof at least 0")
    if fields["kind"] == "matrix" and fields["n"] != fields["d"]:
        raise ProofError(f"{where}: a matrix must have n = d")
    if fields["n"] - fields.get("ddof", 0) < 1:
        raise ProofError(f"{where}: n - ddof must be at least 1")
    without = header.get("without", [])
    if not _are_features(without, fields["d"]) or len(without) >= fields["d"]:
        raise ProofError(f"{where}: without must be ascending features, not all")
    fields["without"] = tuple(without)
    if "deflated" in header:
        fields |= _deflated(header["deflated"], where, fields["d"])
    if "constraints" in header:
        fields |= _constraints(header["constraints"], where, fields)
    if "raised" in header:
        fields["raised"] = _pairs(header["raised"], where, fields["d"])
    fields["level"] = header.get("level")
    problem = Problem(**fields)
    if problem.raised is not None and not problem.nonnegative:
        raise ProofError(f"{where}: raised is for loadings that are not negative")
    if problem.level is not None and not problem.include:
        raise ProofError(f"{where}: a level needs features to include")
    if problem.level is not None and problem.raised is not None:
        raise ProofError(f"{where}: level and raised do not go together")
    return problem


def _are_features(names: list[int], d: int) -> bool:
    """Say whether a list has features, ascending."""
    return names == sorted({i for i in names if 0 <= i < d})


def _deflated(value: Any, where: str, d: int) -> dict[str, Any]:
    where += ", deflated"
    found = take(value, where, how=read_text, vectors=read_list)
    if found["how"] not in HOW or not found["vectors"]:
        raise ProofError(f"{where}: residual or projection is needed, and vectors")
    vectors = []
    for item in found["vectors"]:
        one = take(item, where, support=read_integers, x=read_reals)
        if not one["support"] or not _are_features(one["support"], d):
            raise ProofError(f"{where}: a support must be ascending features")
        if len(one["x"]) != len(one["support"]) or not any(one["x"]):
            raise ProofError(f"{where}: x must be a number per feature, not all 0")
        vectors.append(Vector(tuple(one["support"]), tuple(one["x"])))
    return {"how": found["how"], "vectors": tuple(vectors)}


def _constraints(value: Any, where: str, fields: dict[str, Any]) -> dict[str, Any]:
    where, d = where + ", constraints", fields["d"]
    found = take(
        value, where, include=read_integers, groups=read_list, nonnegative=read_boolean
    )
    include, room = found["include"], []
    label: dict[int, int] = {}
    if not _are_features(include, d) or {*include} & {*fields["without"]}:
        raise ProofError(f"{where}: include must be ascending features, none without")
    for g, item in enumerate(found["groups"]):
        one = take(item, where, most=read_integer, features=read_integers)
        members = one["features"]
        if (
            one["most"] < 1
            or not _are_features(members, d)
            or label.keys() & {*members}
        ):
            raise ProofError(
                f"{where}: groups have most >= 1 and features of their own"
            )
        if len({*members} & {*include}) > one["most"]:
            raise ProofError(f"{where}: more to include than a group has room for")
        label |= dict.fromkeys(members, g)
        room.append(one["most"])
    return {
        "include": tuple(include),
        "groups": Groups(label, tuple(room)) if room else None,
        "nonnegative": found["nonnegative"],
    }


def _pairs(value: Any, where: str, d: int) -> tuple[tuple[int, int], ...]:
    where += ", raised"
    pairs = [tuple(read_integers(item, where)) for item in read_list(value, where)]
    if pairs != sorted({*pairs}) or not all(
        len(pair) == 2 and 0 <= pair[0] < pair[1] < d for pair in pairs
    ):
        raise ProofError(f"{where}: ascending pairs i < j of features are needed")
    return tuple((i, j) for i, j in pairs)


#: What a header may have beside what it must have.
OPTIONAL: dict[str, Reader] = {
    "without": read_integers,
    "deflated": lambda item, _: item,
    "constraints": lambda item, _: item,
    "raised": read_list,
    "level": read_real,
}
