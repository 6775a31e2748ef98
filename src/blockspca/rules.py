"""Constraints by index: sets of features that keep them, and what breaks them.

`constraints.checked` makes them of what a user writes. Data only: nothing here solves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    @property
    def limits(self) -> GroupLimits | None:
        """How many features of each group there may be, if anything is said of it."""
        if not self.label or self.whole_groups:
            return None
        return GroupLimits(np.array(self.label), np.array(self.room))

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
        limits = self.limits
        if limits is not None and not limits.allows(held):
            g = int(np.argmax(limits.counts(held) - limits.room))
            return f"{limits.counts(held)[g]} of group {self.name_of(g)}"
        return ""

    def name_of(self, group: int) -> str:
        return repr(self.names[group]) if self.names else str(group)

    def most_features(self) -> int:
        """The most features that a set which keeps the rules can have."""
        limits = self.limits
        keep = np.setdiff1d(np.arange(self.n_features), self.exclude)
        if limits is None:
            return len(keep)
        return GroupLimits(limits.label[keep], limits.room).capacity

    def refuse_infeasible(self, k: int) -> None:
        """Raise if no set of k features keeps the rules, and say why."""
        if len(self.include) > k:
            raise ValueError(
                f"include has {len(self.include)} features for k = {k}; pass a k of "
                f"at least {len(self.include)}, or include fewer."
            )
        if self.whole_groups:
            self._refuse_cut_groups(k)
            return
        most = self.most_features()
        if most < k:
            fix = f"pass k ≤ {most}, or loosen them" if most else "loosen them"
            raise ValueError(
                f"k = {k}, but exclude and max_per_group leave room for {most} "
                f"feature(s); {fix}."
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
