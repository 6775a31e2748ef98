"""Which sets of features count, by index: what searches for sets need of constraints.

A set counts if it contains `root` and has at most `room[g]` features of each group g. A
feature is in one group or in none. All subsets of a set keep the limits of groups that
the set keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..validation import Indices


def nothing() -> Indices:
    """Return no features."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rules:
    """A root, and limits of groups; `label` is −1 without a group, None without any.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.constraints.rules import Rules
    >>> rules = Rules(label=np.array([0, 0, -1]), room=np.array([1]))
    >>> rules.first(np.array([1, 0, 2]), 2).tolist()
    [1, 2]
    """

    root: Indices = field(default_factory=nothing)
    label: Indices | None = None
    room: Indices = field(default_factory=nothing)

    @property
    def is_free(self) -> bool:
        """Whether all sets count."""
        return self.label is None and len(self.root) == 0

    def left(self, support: Indices) -> Indices:
        """Return how many more features of each group a set may have."""
        if self.label is None:
            return self.room
        taken = self.label[support]
        return self.room - np.bincount(taken[taken >= 0], minlength=len(self.room))

    def open_to(self, support: Indices) -> NDArray[np.bool_] | bool:
        """Tell which features may be added to a set; True for all."""
        if self.label is None:
            return True
        return (self.label < 0) | (self.left(support)[self.label] > 0)

    def exchanges(self, support: Indices) -> NDArray[np.bool_] | bool:
        """Tell, for each feature of a set, which may take its place; True for all."""
        if self.is_free:
            return True
        kept = np.isin(support, self.root)[:, None]
        if self.label is None:
            return ~kept
        own = self.label[support][:, None]
        same = (own == self.label) & (own >= 0)
        return (self.open_to(support) | same) & ~kept

    def first(self, order: Indices, k: int) -> Indices:
        """Return the root and then the first features of an order, k that count."""
        rest = order[~np.isin(order, self.root)]
        if self.label is not None:
            own, left = self.label[rest], self.left(self.root)
            kept = np.ones(len(rest), dtype=bool)
            for g in np.unique(own[own >= 0]):
                kept[np.flatnonzero(own == g)[left[g] :]] = False
            rest = rest[kept]
        return np.append(self.root, rest[: k - len(self.root)])

    def allows(self, support: Indices) -> bool:
        """Tell whether a set counts."""
        return bool(
            (self.left(support) >= 0).all() and np.isin(self.root, support).all()
        )

    def among(self, features: Indices) -> Rules:
        """Return the rules by positions in `features`, which contain the root."""
        if self.is_free:
            return self
        position = {int(feature): i for i, feature in enumerate(features)}
        root = np.array([position[int(i)] for i in self.root], dtype=np.int64)
        label = None if self.label is None else self.label[features]
        return Rules(root, label, self.room)


FREE = Rules()
