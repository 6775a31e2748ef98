"""Constraints by index: sets of features that keep them, and what breaks them.

`constraints.checked` makes them of what a user writes. Data only: nothing here solves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import Subject, value_error
from ._json_reader import Reader

_LATER = ("beside", "beside_room")  # not in all certificates with constraints


@dataclass(frozen=True, eq=False)
class GroupLimits:
    """At most `room[g]` features of group g; `label` is −1 for features without one.

    Sets that keep such limits are hereditary: all subsets of one keep them, too.
    """

    label: NDArray[np.int64]
    room: NDArray[np.int64]

    def allows(self, support: NDArray[np.integer[Any]]) -> bool:
        """Tell whether a set of features keeps the limits."""
        return bool((self.counts(support) <= self.room).all())

    def counts(self, support: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """How many features of a set are in each group."""
        labels = self.label[support]
        counts = np.bincount(labels[labels >= 0], minlength=len(self.room))
        return counts.astype(np.int64)

    def among(self, features: NDArray[Any]) -> GroupLimits:
        """The same limits for some of the features, numbered anew in their order."""
        return GroupLimits(self.label[features], self.room)

    def after(
        self, chosen: NDArray[np.integer[Any]], rest: NDArray[np.integer[Any]]
    ) -> GroupLimits:
        """The limits for the features `rest` once some others are chosen."""
        return GroupLimits(self.label[rest], self.room - self.counts(chosen))

    def closed_to(self, support: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Tell which features cannot be added to a set."""
        return GroupLimits(self.label, self.room - self.counts(support)).full()

    def exchanges(self, support: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Tell, for each feature of a set, which may take its place."""
        free = ~self.closed_to(support)
        same = self.label[support][:, None] == self.label
        return free | (same & (self.label >= 0))

    def first(self, order: NDArray[np.integer[Any]], k: int) -> NDArray[np.int64]:
        """The first k features of an order that can be had together."""
        left = self.room.copy()
        chosen: list[int] = []
        for i in order.tolist():
            if len(chosen) == k:
                break
            g = self.label[i]
            if g >= 0:
                if left[g] <= 0:
                    continue
                left[g] -= 1
            chosen.append(i)
        return np.array(chosen, dtype=np.int64)

    def full(self) -> NDArray[np.bool_]:
        """Tell which features are in a group without room."""
        return (self.label >= 0) & (self.room[self.label] <= 0)

    @property
    def capacity(self) -> int:
        """The most features that a set can have."""
        sizes = np.bincount(self.label[self.label >= 0], minlength=len(self.room))
        free = int((self.label < 0).sum())
        return free + int(np.minimum(sizes, np.maximum(self.room, 0)).sum())


@dataclass(frozen=True)
class Rules:
    """Constraints by index, checked: what is solved, certified and verified."""

    n_features: int
    #: `include`, `exclude`: ascending and disjoint.
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    #: The group of each feature, −1 for none; empty without groups.
    label: tuple[int, ...] = ()
    #: The most features of each group; of whole groups, their sizes.
    room: tuple[int, ...] = ()
    nonnegative: bool = False
    whole_groups: bool = False
    #: Of the groups, for messages.
    names: tuple[str, ...] = field(default=(), compare=False)
    #: Beside an overlap, limits of groups that the searches do not know: they know the
    #: features outside the overlap, group 0, and the groups' members inside it. A set
    #: that breaks one of these is taken apart (`certify/part_search.py`).
    beside: tuple[int, ...] = ()
    beside_room: tuple[int, ...] = ()

    @classmethod
    def read(cls, reader: Reader) -> Rules:
        """Read what `content` writes, refusing anything else."""
        reader.refuse_unknown({f.name for f in fields(cls)})
        d = reader.integer("n_features", 1)
        rules = cls(
            n_features=d,
            include=reader.indices("include"),
            exclude=reader.indices("exclude"),
            label=reader.indices("label"),
            room=reader.indices("room"),
            nonnegative=reader.flag("nonnegative"),
            whole_groups=reader.flag("whole_groups"),
            names=tuple(str(name) for name in reader.sequence("names")),
            **{name: reader.indices(name) for name in _LATER if name in reader.content},
        )
        for label, room in (rules.label, rules.room), (rules.beside, rules.beside_room):
            groups = len(room)
            if label and (len(label) != d or not all(-1 <= g < groups for g in label)):
                raise ValueError(f"{reader.where}: labels and groups do not agree.")
        return rules

    def __post_init__(self) -> None:
        if not self.beside:
            return
        # What `filled` relies on: group 0 is outside, and the others are those beside.
        pairs = zip(self.label, self.beside, strict=False)
        agree = all(a in (0, -1 if b < 0 else b + 1) for a, b in pairs)
        same_room = self.room[1:] == self.beside_room
        if len(self.label) != len(self.beside) or not (agree and same_room):
            raise ValueError(
                "the rules have groups beside an overlap that are not those of its "
                "members; make them with constraints.checked."
            )
        if self.whole_groups:
            raise ValueError(
                "the rules have whole groups beside an overlap, which is not offered; "
                "pass one of the two."
            )

    def content(self) -> dict[str, Any]:
        """What is written of the rules; older readers do not know all of it."""
        written = asdict(self)
        for name in _LATER:
            if not written[name]:
                del written[name]
        return written

    @property
    def limits(self) -> GroupLimits | None:
        """How many features of each group there may be; None without such limits."""
        if not self.label or self.whole_groups:
            return None
        return GroupLimits(np.array(self.label), np.array(self.room))

    @property
    def limits_beside(self) -> GroupLimits | None:
        """The limits that the searches do not know, if there are any."""
        if not self.beside:
            return None
        return GroupLimits(np.array(self.beside), np.array(self.beside_room))

    @property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """The features of each whole group, a feature without one by itself."""
        label = np.array(self.label)
        whole = tuple(np.flatnonzero(label == g) for g in range(len(self.room)))
        return whole + tuple(np.array([i]) for i in np.flatnonzero(label < 0))

    def group_of(self, feature: int) -> set[int]:
        """The features that are used together with one, itself among them."""
        g = self.label[feature]
        if g < 0:
            return {feature}
        return {i for i, label in enumerate(self.label) if label == g}

    def completed(self, support: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """A set with all the features that are used together with its own."""
        if not self.whole_groups:
            return np.asarray(support, dtype=np.intp)
        own: set[int] = set()
        for i in np.asarray(support).tolist():
            own |= self.group_of(i)
        return np.array(sorted(own), dtype=np.intp)

    def without(self, used: Iterable[int]) -> Rules:
        """The same rules, and some more features kept out."""
        if self.whole_groups:
            used = set().union(*(self.group_of(int(i)) for i in used))
        return replace(self, exclude=tuple(sorted({*self.exclude, *map(int, used)})))

    def implies(self, other: Rules) -> bool:
        """Tell whether all that these rules allow, in k places, others allow too."""
        has_limits = not other.label or (
            self.label == other.label
            and all(a <= b for a, b in zip(self.room, other.room, strict=True))
        )
        return (
            set(other.include) <= set(self.include)
            and set(other.exclude) <= set(self.exclude)
            and (self.nonnegative or not other.nonnegative)
            and (self.whole_groups or not other.whole_groups)
            and has_limits
            and (self.beside, self.beside_room) == (other.beside, other.beside_room)
        )

    def allows_support(self, support: NDArray[np.integer[Any]], k: int) -> bool:
        """Tell whether k places can hold a support and what must be included."""
        return self.objection(support, k) == ""

    def objection(self, support: NDArray[np.integer[Any]], k: int) -> str:
        """Say which rule a support breaks; nothing if it keeps all."""
        held = np.union1d(self.completed(support), self.include).astype(np.int64)
        if len(held) > k:
            what = "their groups" if self.whole_groups else "those to include"
            return f"{len(held)} features with {what}, for k = {k}"
        out = np.intersect1d(held, self.exclude)
        if len(out):
            return f"feature {int(out[0])} is excluded"
        for limits, first in ((self.limits, 0), (self.limits_beside, 1)):
            if limits is not None and not limits.allows(held):
                g = int(np.argmax(limits.counts(held) - limits.room))
                return f"{limits.counts(held)[g]} of group {self.name_of(g + first)}"
        if self.beside and len(self.filled(held, k)) < k:
            return "groups and overlap leave no room for the other places"
        return ""

    def clash(self, support: NDArray[np.integer[Any]], k: int) -> list[int]:
        """Features of a set that no allowed set has all of; none if it is allowed."""
        if self.allows_support(support, k):
            return []
        held = np.union1d(support, self.include).astype(np.int64)
        beside = self.limits_beside
        if beside is not None:
            over = np.flatnonzero(beside.counts(held) > beside.room)
            if len(over):
                held = held[beside.label[held] == over[0]]
        return [int(i) for i in held]

    def filled(
        self, held: NDArray[np.integer[Any]], k: int, order: Iterable[int] = ()
    ) -> NDArray[np.intp]:
        """Add features to a set that keeps all limits, up to k, in an order.

        At the end come, of all features, those in the overlap first. Of these as many
        as there is room for is best: each takes one place of its group, as any other
        would, and none of those outside. So if k cannot be reached from a set by
        these, it cannot be reached.
        """
        limits, beside = self.limits, self.limits_beside
        assert limits is not None
        assert beside is not None
        label, label_beside = limits.label, beside.label
        room = limits.room - limits.counts(held)
        room_beside = beside.room - beside.counts(held)
        chosen, out = set(map(int, held)), set(self.exclude)
        # Room outside the overlap is what is short: places inside are taken first.
        inside_first = np.argsort(label == 0, kind="stable").tolist()
        for i in (*order, *inside_first):
            if len(chosen) == k:
                break
            a, b = label[i], label_beside[i]
            full = (a >= 0 and room[a] <= 0) or (b >= 0 and room_beside[b] <= 0)
            if full or i in chosen or i in out:
                continue
            chosen.add(i)
            room[a] -= a >= 0
            room_beside[b] -= b >= 0
        return np.array(sorted(chosen), dtype=np.intp)

    def name_of(self, group: int) -> str:
        return repr(self.names[group]) if self.names else str(group)

    def most_features(self) -> int:
        """The most features that a set which keeps the rules can have."""
        limits = self.limits
        keep = np.setdiff1d(np.arange(self.n_features), self.exclude)
        if limits is None:
            return len(keep)
        if self.beside:
            return len(self.filled(np.array(self.include, dtype=int), self.n_features))
        return limits.among(keep).capacity

    def refuse_infeasible(self, k: int) -> None:
        """Raise if no set of k features keeps the rules, and say why."""
        if len(self.include) > k:
            raise value_error(
                f"include has {len(self.include)} features for k = {k}; pass a k "
                f"of at least {len(self.include)}, or include fewer.",
                Subject("include"),
            )
        if self.whole_groups:
            self._refuse_cut_groups(k)
            return
        most = self.most_features()
        if most < k:
            fix = f"pass k ≤ {most}, or loosen them" if most else "loosen them"
            what = "exclude and max_per_group"
            if self.beside:
                what, fix = "min_overlap and max_per_group together", "loosen them"
            raise ValueError(
                f"k = {k}, but {what} leave room for {most} feature(s); {fix}."
            )

    def _refuse_cut_groups(self, k: int) -> None:
        sizes = [
            len(group) for group in self.groups if int(group[0]) not in self.exclude
        ]
        least = len(self.include) or min(sizes, default=self.n_features + 1)
        if least > k:
            raise ValueError(
                f"k = {k}, but the whole groups that are allowed, or included, have "
                f"{least} feature(s) at least; pass a larger k."
            )
