"""Which matrix and which sets a section is about, and how that is said in words.

`data` and `without` are those of docs/proof-format.md, sections 1 and 2; `deflated`,
`constraints`, `raised` and `level` those of section 8. What they do is in `taken`,
`groups`, `raising` and `chosen`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

NAMED = 8  # groups that are named in a phrase


@dataclass(frozen=True)
class Vector:
    """A vector that is taken away, with its multiple if it has one."""

    support: tuple[int, ...]
    x: tuple[float, ...]
    value: float = 0.0


@dataclass(frozen=True)
class Deflation:
    """Step 1: how A is changed, by which vectors."""

    how: str
    vectors: tuple[Vector, ...]
    penalty: float = 0.0

    def __str__(self) -> str:
        count = f"{len(self.vectors)} given vector(s)"
        return {
            "residual": f"without the scores of {count}",
            "projection": f"without the directions of {count}",
            "hotelling": f"less a multiple of vv' for {count} v",
            "orthogonal": f"orthogonal to {count}, with a penalty of {self.penalty!r}",
        }[self.how]


@dataclass(frozen=True)
class Group:
    """Features of which a set has at most `most`."""

    most: int
    features: tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """Which sets count."""

    include: tuple[int, ...] = ()
    groups: tuple[Group, ...] = ()
    nonnegative: bool = False
    beside: tuple[Group, ...] = ()
    whole: bool = False

    def keeps(self, features: set[int]) -> bool:
        """Say whether a set has no more of any group than it may have."""
        return all(
            len(features.intersection(group.features)) <= group.most
            for group in (*self.groups, *self.beside)
        )

    @cached_property
    def units(self) -> dict[int, tuple[int, ...]]:
        """The features of the group of each feature that is in one of `groups`."""
        return {i: group.features for group in self.groups for i in group.features}

    def unit(self, feature: int) -> tuple[int, ...]:
        """Return the unit of a feature: its group, or itself."""
        return self.units.get(feature, (feature,))

    def words(self) -> list[str]:
        """Return what it says, in phrases; groups only by their number."""
        said = []
        if self.include:
            said.append("sets with features " + " ".join(map(str, self.include)))
        if self.whole:
            said.append(f"each of {len(self.groups)} group(s) as a whole or not at all")
        elif self.groups:
            said.append(f"sets with at most {_rooms(self.groups)}")
        if self.beside:
            said.append(f"and at most {_rooms(self.beside)}")
        if self.nonnegative:
            said.append("no negative loadings")
        return said

    def group_words(self) -> list[str]:
        """Return what each group says, with all of its features."""
        return [
            f"{'all or none' if self.whole else f'at most {group.most}'} of features "
            + " ".join(map(str, group.features))
            for group in (*self.groups, *self.beside)
        ]


def _rooms(groups: tuple[Group, ...]) -> str:
    more = " …" if len(groups) > NAMED else ""
    rooms = " ".join(str(group.most) for group in groups[:NAMED])
    return f"{rooms}{more} of {len(groups)} group(s)"


@dataclass(frozen=True)
class Problem:
    """The matrix that the records are about, and the sets."""

    sha256: str
    kind: str
    n: int
    d: int
    center: bool = False
    scale: bool = False
    ddof: int = 0
    without: tuple[int, ...] = ()
    deflated: Deflation | None = None
    constraints: Constraints = field(default_factory=Constraints)
    raised: tuple[tuple[int, int], ...] | None = None
    level: float | None = None

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """The features that step 3 takes out of the matrix; none without `level`."""
        return () if self.level is None else self.constraints.include

    @cached_property
    def kept(self) -> dict[int, int]:
        """The features of the records, with their positions."""
        chosen = {*self.chosen}
        out = chosen.union(self.without)
        for group in (*self.constraints.groups, *self.constraints.beside):
            if chosen and len(chosen.intersection(group.features)) >= group.most:
                out.update(group.features)
        left = (name for name in range(self.d) if name not in out)
        return {name: place for place, name in enumerate(left)}

    @cached_property
    def names(self) -> tuple[int, ...]:
        """The numbers of the features of the records, in their order."""
        return tuple(self.kept)

    def feature(self, place: int) -> str:
        """Name a feature of the records, given its position, by its number."""
        return f"feature {self.names[place]}"

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """The vectors of step 1."""
        return self.deflated.vectors if self.deflated else ()

    @property
    def is_less(self) -> bool:
        """Say whether what is taken off may be more than there is."""
        how = self.deflated.how if self.deflated else ""
        return how in ("hotelling", "orthogonal")

    @property
    def is_semidefinite(self) -> bool:
        """Say whether the matrix of the records is known to be that."""
        return self.kind == "data" and self.raised is None and not self.is_less

    def __str__(self) -> str:
        said = [self._matrix_words()]
        if self.deflated:
            said.append(str(self.deflated))
        if self.without:
            said.append("without features " + " ".join(map(str, self.without)))
        return ", ".join(said + self.constraints.words())

    def _matrix_words(self) -> str:
        if self.kind == "matrix":
            return f"A = (Y + Y')/2 of the {self.d} x {self.d} matrix Y"
        name = "correlations" if self.scale and self.center else "covariances"
        centred = "columns centred" if self.center else "columns not centred"
        scaled = ", scaled to variance 1" if self.scale else ""
        return (
            f"A = {name} of {self.n} x {self.d} data, {centred}{scaled}, "
            f"divided by n - {self.ddof} = {self.n - self.ddof}"
        )
