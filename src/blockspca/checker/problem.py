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
HOW = {  # what becomes of the columns of A; the last two also take something off A
    "residual": "residual",
    "projection": "projection",
    "hotelling": "",
    "orthogonal": "projection",
}
TAKING = ("hotelling", "orthogonal")  # of version 8
DERIVED = ("deflated", "constraints", "raised", "level")  # keys of version 7


@dataclass(frozen=True)
class Vector:
    """A vector of d numbers, by those that are not left out as 0; a_l is `value`."""

    support: tuple[int, ...]
    x: tuple[float, ...]
    value: float = 0.0


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
class TwoGroups:
    """Two kinds of groups at once: a feature may be in one of each."""

    one: Groups
    other: Groups

    def after(self, chosen: Iterable[int]) -> TwoGroups:
        """Return what is left once some features are chosen."""
        held = list(chosen)
        return TwoGroups(self.one.after(held), self.other.after(held))

    def has_room(self, feature: int) -> bool:
        """Say whether one more feature may be chosen."""
        return self.one.has_room(feature) and self.other.has_room(feature)

    def capacity(self, features: Iterable[int]) -> int:
        """Return what no number of features that go together is above."""
        names = list(features)
        return min(self.one.capacity(names), self.other.capacity(names))

    def at(self, features: Iterable[int]) -> TwoGroups:
        """Return the same of features that are named by their places in a list."""
        names = list(features)
        return TwoGroups(self.one.at(names), self.other.at(names))


Limits = Groups | TwoGroups


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
    penalty: float = 0.0
    raised: tuple[tuple[int, int], ...] | None = None
    include: tuple[int, ...] = ()
    groups: Groups | None = None
    beside: Groups | None = None  # whose features may be in `groups` as well
    nonnegative: bool = False
    level: float | None = None
    whole: tuple[tuple[int, ...], ...] = ()  # groups that are used as a whole

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
        beside = None if self.beside is None else self.beside.after(self.chosen)
        return tuple(
            i
            for i in range(self.d)
            if i not in out
            and (rest is None or rest.has_room(i))
            and (beside is None or beside.has_room(i))
        )

    @cached_property
    def places(self) -> Groups | None:
        """The same limits, of positions among the features kept."""
        return None if self.rest is None else self.rest.at(self.kept)

    def fits(self, feature: int) -> bool:
        """Say whether a feature has room beside those that are included."""
        limits = (one for one in (self.groups, self.beside) if one is not None)
        return all(one.after(self.include).has_room(feature) for one in limits)

    def limits_of(self, features: Iterable[int]) -> Limits | None:
        """All limits, of features by their places in a list of positions."""
        names = [self.kept[i] for i in features]
        if self.rest is None or self.beside is None:
            return None if self.rest is None else self.rest.at(names)
        beside = self.beside.after(self.chosen)
        return TwoGroups(self.rest.at(names), beside.at(names))

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The features kept, in groups that are used as a whole, or by themselves."""
        held, kept = {i for group in self.whole for i in group}, {*self.kept}
        own = tuple((i,) for i in self.kept if i not in held)
        return tuple(group for group in self.whole if group[0] in kept) + own

    def united(self, features: Iterable[int]) -> set[int]:
        """Return the features of all units that some features are of."""
        named = {*features}
        return {i for unit in self.units if named & {*unit} for i in unit}

    def in_units(self, named: Iterable[int]) -> tuple[list[int], int, list[int]]:
        """Return what the matrix of a group-tree has, for units by a feature each.

        The positions of `include` and then of the units, how many are of `include`, and
        the sizes of the units. Features are positions among those kept.
        """
        place = {name: position for position, name in enumerate(self.kept)}
        units = {place[unit[0]]: [place[i] for i in unit] for unit in self.units}
        inside, chosen = [place[i] for i in self.include], [units[i] for i in named]
        rows = inside + [i for unit in chosen for i in unit]
        return rows, len(inside), [len(unit) for unit in chosen]

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The features whose columns the matrix is made of, ascending."""
        more = {i for vector in self.vectors for i in vector.support}
        return tuple(sorted({*self.kept, *self.chosen, *more}))

    @property
    def columns_by(self) -> str:
        """How the columns of A are changed: "residual", "projection" or not."""
        return HOW[self.how] if self.vectors else ""

    @property
    def takes(self) -> bool:
        """Whether something is taken off A beside what its columns lose."""
        return self.how in TAKING

    @property
    def is_semidefinite(self) -> bool:
        """Whether the matrix is positive semidefinite by what it is."""
        return self.kind == "data" and self.raised is None and not self.takes

    def __str__(self) -> str:
        said = [_named(self)]
        if self.vectors:
            said.append(DEFLATED[self.how].format(m=len(self.vectors), M=self.penalty))
        if self.without:
            said.append("without features " + " ".join(map(str, self.without)))
        if self.include:
            said.append("sets with features " + " ".join(map(str, self.include)))
        if self.groups is not None:
            rooms = " ".join(map(str, self.groups.room))
            said.append(
                f"sets with at most {rooms} of {len(self.groups.room)} group(s)"
            )
        if self.beside is not None:
            rooms = " ".join(map(str, self.beside.room))
            said.append(f"and at most {rooms} of {len(self.beside.room)} group(s)")
        if self.whole:
            said.append(f"each of {len(self.whole)} group(s) as a whole or not at all")
        if self.nonnegative:
            said.append("no negative loadings")
        return ", ".join(said)


DEFLATED = {
    "residual": "without the scores of {m} given vector(s)",
    "projection": "without the directions of {m} given vector(s)",
    "hotelling": "less a multiple of vv' for {m} given vector(s) v",
    "orthogonal": "orthogonal to {m} given vector(s), with a penalty of {M!r}",
}


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
    if problem.level is not None and (problem.raised is not None or problem.takes):
        raise ProofError(f"{where}: level does not go with raised or {problem.how!r}")
    if problem.level is not None and problem.whole:
        raise ProofError(f"{where}: level does not go with whole groups")
    return problem


def _are_features(names: list[int], d: int) -> bool:
    """Say whether a list has features, ascending."""
    return names == sorted({i for i in names if 0 <= i < d})


def _deflated(value: Any, where: str, d: int) -> dict[str, Any]:
    where += ", deflated"
    how = value.get("how") if type(value) is dict else None
    readers: dict[str, Reader] = {"how": read_text, "vectors": read_list}
    if how == "orthogonal":
        readers["penalty"] = read_real
    found = take(value, where, **readers)
    if found["how"] not in HOW or not found["vectors"]:
        raise ProofError(f"{where}: vectors are needed, and one of {', '.join(HOW)}")
    if found.get("penalty", 0.0) < 0:
        raise ProofError(f"{where}: the penalty must not be negative")
    own: dict[str, Reader] = {"support": read_integers, "x": read_reals}
    if how == "hotelling":
        own["value"] = read_real
    vectors = []
    for item in found["vectors"]:
        one = take(item, where, **own)
        if not one["support"] or not _are_features(one["support"], d):
            raise ProofError(f"{where}: a support must be ascending features")
        if len(one["x"]) != len(one["support"]) or not any(one["x"]):
            raise ProofError(f"{where}: x must be a number per feature, not all 0")
        numbers = tuple(one["support"]), tuple(one["x"])
        vectors.append(Vector(*numbers, one.get("value", 0.0)))
    return {**found, "vectors": tuple(vectors)}


def _constraints(value: Any, where: str, fields: dict[str, Any]) -> dict[str, Any]:
    where, d = where + ", constraints", fields["d"]
    readers = {"include": read_integers, "groups": read_list}
    readers["nonnegative"] = read_boolean
    if type(value) is dict and "whole" in value:
        readers["whole"] = read_boolean
    if type(value) is dict and "beside" in value:
        readers["beside"] = read_list
    found = take(value, where, **readers)
    include = found["include"]
    if not _are_features(include, d) or {*include} & {*fields["without"]}:
        raise ProofError(f"{where}: include must be ascending features, none without")
    groups = _groups(found["groups"], where, d, include)
    if "whole" in found:
        if "beside" in found:
            raise ProofError(f"{where}: whole groups have no others beside them")
        return _whole(found, where, fields["without"])
    beside = _groups(found.get("beside", []), where, d, include)
    if "beside" in found and (groups is None or beside is None):
        raise ProofError(f"{where}: beside has groups, and is beside groups")
    return {
        "include": tuple(include),
        "groups": groups,
        "beside": beside,
        "nonnegative": found["nonnegative"],
    }


def _groups(value: list[Any], where: str, d: int, include: list[int]) -> Groups | None:
    """Read groups of which no two have a feature in common; None if there are none."""
    label: dict[int, int] = {}
    room: list[int] = []
    for g, item in enumerate(value):
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
    return Groups(label, tuple(room)) if room else None


def _whole(
    found: dict[str, Any], where: str, without: tuple[int, ...]
) -> dict[str, Any]:
    groups = tuple(tuple(group["features"]) for group in found["groups"])
    sizes = [group["most"] for group in found["groups"]]
    parts = (
        {*group} & {*named}
        for group in groups
        for named in (found["include"], without)
        if not {*group} <= {*named}
    )
    if not found["whole"] or found["nonnegative"] or not groups:
        raise ProofError(
            f"{where}: whole is true, for groups, with loadings of any sign"
        )
    if sizes != [len(group) for group in groups] or any(parts):
        raise ProofError(f"{where}: a whole group has room for all, and is in or out")
    return {"include": tuple(found["include"]), "whole": groups}


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
