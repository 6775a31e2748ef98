"""Groups of which a set has at most so many features: docs/proof-format.md, section 8.

Sets that keep groups, of which no feature is in two, are the independent sets of a
partition matroid: the largest sum of numbers ≥ 0 over such sets of at most so many
features is found by taking the largest number again and again, where there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .problem import Group, Problem


class Groups:
    """Which group each feature of the records is in, and how much room groups have."""

    def __init__(self, owner: np.ndarray, room: np.ndarray) -> None:
        self.owner, self.room = owner, room  # owner: −1 for features that are in none

    @classmethod
    def of(cls, problem: Problem, groups: Sequence[Group]) -> Groups:
        """Return what is left of groups beside the features that are chosen."""
        kept, chosen = problem.kept, {*problem.chosen}
        owner = np.full(len(kept), -1)
        room = np.zeros(len(groups), dtype=np.int64)
        for g, group in enumerate(groups):
            owner[[kept[i] for i in group.features if i in kept]] = g
            room[g] = min(group.most - len(chosen & {*group.features}), problem.d)
        return cls(owner, room)

    def restricted(self, features: Sequence[int]) -> Groups:
        """Return the groups of some features, in their order."""
        owner = self.owner[list(features)]
        names, owner = np.unique(owner, return_inverse=True)
        if len(names) and names[0] == -1:
            names, owner = names[1:], owner - 1
        return Groups(owner.reshape(-1), self.room[names])

    def capacity(self, features: np.ndarray | None = None) -> int:
        """Return how many of some features can be had together."""
        owner = self.owner if features is None else self.owner[features]
        inside = owner[owner >= 0]
        counts = np.bincount(inside, minlength=len(self.room))
        return int(len(owner) - len(inside) + np.minimum(counts, self.room).sum())

    def has_room(self, order: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        """Say, of features that are tried one after the other, which have room.

        `order` has features in its rows, −1 for none. Each row is by itself; the
        feature of a row with number `own` is in the set already.
        """
        groups = np.where(order >= 0, self.owner[order], -1)
        by_group = np.argsort(groups, axis=1, kind="stable")
        sorted_groups = np.take_along_axis(groups, by_group, axis=1)
        places = np.broadcast_to(np.arange(groups.shape[1]), groups.shape)
        starts = np.ones(groups.shape, dtype=bool)
        starts[:, 1:] = sorted_groups[:, 1:] != sorted_groups[:, :-1]
        first = np.maximum.accumulate(np.where(starts, places, 0), axis=1)
        rank = np.empty_like(by_group)
        np.put_along_axis(rank, by_group, places - first, axis=1)
        room = np.append(self.room, groups.shape[1])[groups]
        if own is not None:
            mine = self.owner[own][:, None]
            room = room - ((groups == mine) & (mine >= 0))
        return rank < room

    def largest(
        self, values: Iterable[tuple[int, int]], count: int, own: int
    ) -> list[int]:
        """Return the `count` largest numbers of (number, feature), with `own` in it."""
        room = self.room.tolist()
        if self.owner[own] >= 0:
            room[self.owner[own]] -= 1
        found: list[int] = []
        for value, j in sorted(values, reverse=True):
            if len(found) == count:
                break
            group = self.owner[j]
            if group >= 0 and room[group] == 0:
                continue
            if group >= 0:
                room[group] -= 1
            found.append(value)
        return found


class Rooms:
    """The room that is left in a node of a tree, in groups and groups beside them."""

    def __init__(self, kinds: Sequence[Groups]) -> None:
        self.kinds = kinds

    def chosen(self, p: int) -> Rooms:
        """Return the rooms after the feature at position p is chosen."""
        kinds = []
        for groups in self.kinds:
            room = groups.room
            if groups.owner[p] >= 0:
                room = room.copy()
                room[groups.owner[p]] -= 1
            kinds.append(Groups(groups.owner, room))
        return Rooms(kinds)

    def is_open(self, F: np.ndarray) -> np.ndarray:
        """Say which positions are in no group that is full."""
        found = np.ones(len(F), dtype=bool)
        for groups in self.kinds:
            owner = groups.owner[F]
            found &= (owner < 0) | (np.append(groups.room, 1)[owner] > 0)
        return found

    def holds(self, F: np.ndarray, m: int) -> bool:
        """Say whether, of either kind alone, m of these can be had together."""
        return len(F) >= m and all(groups.capacity(F) >= m for groups in self.kinds)

    def pairs(self, F: np.ndarray) -> np.ndarray:
        """Say which pairs can be had together."""
        found = np.ones((len(F), len(F)), dtype=bool)
        for groups in self.kinds:
            owner = groups.owner[F]
            is_narrow = (owner >= 0) & (np.append(groups.room, 2)[owner] < 2)
            found &= ~((owner[:, None] == owner) & is_narrow)
        return found
