"""What a component must be, besides sparse: features in or out, groups, one sign.

`Constraints` is what a user writes, by name or index. `checked` turns it into a
`Rules`, by index, or says in a sentence what cannot be. Data only: nothing here solves.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._feature_names import feature_index, feature_indices
from ._validation import check_count, check_flag, describe

Features = Sequence[int | str] | NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Constraints:
    """What a component must be; see `solve(…, constraints=…)`.

    Parameters
    ----------
    include : names or indices
        Features that the k places must hold. One that helps nothing may get the loading
        0, but takes its place all the same.
    exclude : names or indices
        Features that may not be used.
    groups : one label per feature, or a mapping from features to labels
        With a mapping, or a Series whose index are names of features, those that it
        leaves out belong to no group.
    max_per_group : int or mapping from labels to int
        At most so many features of each group, or of the groups that are named.
    nonnegative : bool
        Whether every loading is at least 0.
    whole_groups : bool
        Whether a group is used as a whole or not at all. k still counts features. A
        feature without a group is one by itself.
    overlap_with : names or indices
        A support, such as yesterday's.
    min_overlap : int
        At least so many of the k places go to features of `overlap_with`.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> with_2 = bs.solve(A, k=2, constraints=bs.Constraints(include=[2]))
    >>> with_2.support, with_2.status.value
    (array([1, 2]), 'optimal')
    """

    include: Features = ()
    exclude: Features = ()
    groups: Sequence[Any] | Mapping[Any, Any] | NDArray[Any] | None = None
    max_per_group: int | Mapping[Any, int] | None = None
    nonnegative: bool = False
    whole_groups: bool = False
    overlap_with: Features | None = None
    min_overlap: int | None = None

    def __post_init__(self) -> None:
        check_flag(self.nonnegative, "nonnegative")
        check_flag(self.whole_groups, "whole_groups")
        if self.max_per_group is not None and self.groups is None:
            raise ValueError(
                "max_per_group is given without groups; pass groups=, one label for "
                "each feature."
            )
        if self.whole_groups and self.groups is None:
            raise ValueError(
                "whole_groups is True without groups; pass groups=, one label for each "
                "feature."
            )
        if self.whole_groups and self.max_per_group is not None:
            raise ValueError(
                "whole_groups takes all of a group or nothing, max_per_group a part of "
                "it; pass one of the two."
            )
        limited = self.max_per_group is not None or self.whole_groups
        if self.groups is not None and not limited:
            raise ValueError(
                "groups are given without a limit; pass max_per_group=, or "
                "whole_groups=True."
            )
        if (self.overlap_with is None) != (self.min_overlap is None):
            raise ValueError(
                "overlap_with and min_overlap go together: a support, and how many of "
                "its features to keep."
            )
        if self.overlap_with is not None and self.groups is not None:
            raise ValueError(
                "min_overlap with groups is not offered: both limit how many features "
                "come from where; pass one of the two."
            )


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


def checked(
    constraints: Any, n_features: int, names: tuple[str, ...] | None, k: int | None
) -> Rules:
    """Check constraints against the features, and against k if that is given."""
    if isinstance(constraints, Rules):
        rules = constraints
    elif not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints is of type {type(constraints).__name__}; pass for example "
            "blockspca.Constraints(include=[0])."
        )
    else:
        rules = _by_index(constraints, n_features, names, k)
    if k is not None:
        rules.refuse_infeasible(k)
    return rules


def _by_index(
    given: Constraints, d: int, names: tuple[str, ...] | None, k: int | None
) -> Rules:
    include = feature_indices(given.include, d, names, "include")
    exclude = feature_indices(given.exclude, d, names, "exclude")
    both = sorted(set(include) & set(exclude))
    if both:
        raise ValueError(
            f"include and exclude both have {describe(both, names)}; take it out of "
            "one of them."
        )
    label: tuple[int, ...] = ()
    room: tuple[int, ...] = ()
    group_names: tuple[str, ...] = ()
    if given.groups is not None:
        label, labels = _labels(given.groups, d, names)
        group_names = tuple(str(name) for name in labels)
        sizes = np.bincount([g for g in label if g >= 0], minlength=len(labels))
        room = tuple(sizes.tolist())
        if given.max_per_group is not None:
            room = _room(given.max_per_group, labels, sizes)
    elif given.overlap_with is not None:
        last = feature_indices(given.overlap_with, d, names, "overlap_with")
        least = check_count(given.min_overlap, "min_overlap")
        if least > len(last):
            raise ValueError(
                f"min_overlap = {least} for overlap_with of {len(last)} feature(s); "
                f"pass at most {len(last)}."
            )
        if k is None or least > k:
            raise ValueError(
                f"min_overlap = {least} for k = {k}; pass at most k, a single one."
            )
        # Of k places at least m for these are at most k − m for all the others.
        kept = set(last)
        label = tuple(-1 if i in kept else 0 for i in range(d))
        room = (k - least,)
        group_names = ("features outside overlap_with",)
    rules = Rules(
        d,
        include,
        exclude,
        label,
        room,
        bool(given.nonnegative),
        bool(given.whole_groups),
        group_names,
    )
    if rules.whole_groups:
        return _with_whole_groups(rules, names)
    return _without_empty_groups(rules, names)


def _with_whole_groups(rules: Rules, names: tuple[str, ...] | None) -> Rules:
    """Include and exclude the groups of the features that are named."""
    if rules.nonnegative:
        raise ValueError(
            "nonnegative with whole_groups is not offered; pass one of the two."
        )
    into = set().union(*(rules.group_of(i) for i in rules.include))
    out = set().union(*(rules.group_of(i) for i in rules.exclude))
    both = sorted(into & out)
    if both:
        raise ValueError(
            f"include and exclude both have features of the group of "
            f"{describe(both[:1], names)}, which is used as a whole; take one out."
        )
    return replace(rules, include=tuple(sorted(into)), exclude=tuple(sorted(out)))


def _without_empty_groups(rules: Rules, names: tuple[str, ...] | None) -> Rules:
    """Exclude groups without room; refuse an include that breaks a limit."""
    limits = rules.limits
    if limits is None:
        return rules
    counts = limits.counts(np.array(rules.include, dtype=np.int64))
    over = np.flatnonzero(counts > limits.room)
    if len(over):
        g = int(over[0])
        members = [i for i in rules.include if rules.label[i] == g]
        raise ValueError(
            f"include has {describe(members, names)}, {counts[g]} of group "
            f"{rules.name_of(g)}, of which there may be {limits.room[g]}; include "
            "fewer, or raise max_per_group."
        )
    return rules.without(np.flatnonzero(limits.full()))


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, numbers.Real) and math.isnan(float(label))


def _labels(
    groups: Any, d: int, names: tuple[str, ...] | None
) -> tuple[tuple[int, ...], list[Any]]:
    """The number of each feature's group, and the labels by number."""
    values: list[Any]
    groups = _with_names(groups, names)
    if isinstance(groups, Mapping):
        index = feature_indices(list(groups), d, names, "groups")
        position = None if names is None else {name: i for i, name in enumerate(names)}
        values = [None] * d
        for feature, label in groups.items():
            _refuse_missing(label, repr(feature))
            values[feature_index(feature, d, position, "groups")] = label
        named = set(index)
    elif isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise TypeError(
            f"groups = {groups!r:.60} is not a list of labels; pass one for each "
            "feature, or a mapping from features to labels."
        )
    else:
        values = list(groups)
        if len(values) != d:
            raise ValueError(
                f"groups has {len(values)} label(s) for {d} features; pass one for "
                "each feature, or a mapping from features to labels."
            )
        for i, label in enumerate(values):
            _refuse_missing(label, describe([i], names))
        named = set(range(d))
    _refuse_unhashable(values)
    labels: dict[Any, int] = {}
    numbered = [
        labels.setdefault(label, len(labels)) if i in named else -1
        for i, label in enumerate(values)
    ]
    return tuple(numbered), list(labels)


def _with_names(groups: Any, names: tuple[str, ...] | None) -> Any:
    """Labels with the names of features, as a pandas Series may have, as a mapping.

    They may come in another order than the features. Where all features have one, there
    may be more, such as those of genes that a mask leaves out.
    """
    index = getattr(groups, "index", None)
    if names is None or index is None or not hasattr(groups, "items"):
        return groups
    named = list(index)
    if not all(isinstance(name, str) for name in named):
        return groups
    labels = list(zip(named, groups, strict=True))
    known = set(names)
    if known <= set(named):
        labels = [(name, label) for name, label in labels if name in known]
        named = [name for name, _ in labels]
    feature_indices(named, len(names), names, "groups")  # each once
    return dict(labels)


def _refuse_unhashable(labels: Iterable[Any]) -> None:
    for label in labels:
        try:
            hash(label)
        except TypeError:
            raise TypeError(
                f"groups has the label {label!r:.60} of type {type(label).__name__}; "
                "pass texts or numbers."
            ) from None


def _refuse_missing(label: Any, feature: str) -> None:
    if _is_missing(label):
        raise ValueError(
            f"groups has no label (nan or None) for feature {feature}; give it one of "
            "its own, or pass a mapping that leaves the feature out."
        )


def _room(most: Any, labels: list[Any], sizes: NDArray[Any]) -> tuple[int, ...]:
    if not isinstance(most, Mapping):
        return (check_count(most, "max_per_group"),) * len(labels)
    unknown = [label for label in most if label not in labels]
    if unknown:
        raise ValueError(
            f"max_per_group has {unknown[0]!r}, which is no group; the groups begin "
            f"with {', '.join(repr(label) for label in labels[:5])}."
        )
    return tuple(
        check_count(most[label], f"max_per_group[{label!r}]")
        if label in most
        else int(size)
        for label, size in zip(labels, sizes, strict=True)
    )
