"""What a component must be, besides sparse: features in or out, groups, one sign.

`Constraints` is what a user writes, by name or index. `checked` turns it into
`rules.Rules`, by index, or says in a sentence what cannot be.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import Subject, value_error
from ._feature_names import feature_index, feature_indices
from ._validation import check_count, check_flag, describe
from .constraint_rules import Rules

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
        leaves out belong to no group. Also a mapping from labels to lists of features.
    max_per_group : int or mapping from labels to int
        At most so many features of each group, or of the groups that are named.
    nonnegative : bool
        Whether every loading is at least 0.
    whole_groups : bool
        Whether a group is used as a whole or not at all. k still counts features. A
        feature without a group is one by itself.
    overlap_with : names or indices
        A support, such as yesterday's. It is one for all of several components; for
        one each, solve them one after the other, in `scheme.problem(cov, earlier)`.
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
        if self.overlap_with is not None and self.whole_groups:
            raise ValueError(
                "min_overlap with whole_groups is not offered; pass one of the two."
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
    beside: tuple[int, ...] = ()
    beside_room: tuple[int, ...] = ()
    if given.overlap_with is not None:
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
        beside, beside_room = label, room
        inside = [-1] * d if not label else [-1 if g < 0 else g + 1 for g in label]
        label = tuple(inside[i] if i in kept else 0 for i in range(d))
        room = (k - least, *beside_room)
        group_names = ("features outside overlap_with", *group_names)
    rules = Rules(
        d,
        include,
        exclude,
        label,
        room,
        bool(given.nonnegative),
        bool(given.whole_groups),
        group_names,
        beside,
        beside_room,
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
    for limits, first in ((rules.limits, 0), (rules.limits_beside, 1)):
        if limits is None:
            continue
        counts = limits.counts(np.array(rules.include, dtype=np.int64))
        over = np.flatnonzero(counts > limits.room)
        if len(over):
            g = int(over[0])
            members = [i for i in rules.include if limits.label[i] == g]
            raise value_error(
                f"include has {describe(members, names)}, {counts[g]} of group "
                f"{rules.name_of(g + first)}, of which there may be "
                f"{limits.room[g]}; include fewer, or raise max_per_group.",
                Subject("include"),
            )
        rules = rules.without(np.flatnonzero(limits.full()))
    return rules


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, numbers.Real) and math.isnan(float(label))


def _labels(
    groups: Any, d: int, names: tuple[str, ...] | None
) -> tuple[tuple[int, ...], list[Any]]:
    """The number of each feature's group, and the labels by number."""
    values: list[Any]
    groups = _by_feature(_with_names(groups, names))
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
            raise value_error(
                f"groups has {len(values)} label(s) for {d} features; pass one for "
                "each feature, or a mapping from features to labels.",
                Subject("groups"),
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
        # A table of all genes may name more than were measured.
        labels = [(name, label) for name, label in labels if name in known]
        named = [name for name, _ in labels]
    feature_indices(named, len(names), names, "groups")  # each once
    return dict(labels)


def _by_feature(groups: Any) -> Any:
    """A mapping from labels to lists of features, as one from features to labels."""
    lists = (list, set, frozenset, np.ndarray)
    if not isinstance(groups, Mapping) or not groups:
        return groups
    if not all(isinstance(members, lists) for members in groups.values()):
        return groups
    found: dict[Any, Any] = {}
    for label, members in groups.items():
        for feature in members:
            if feature in found:
                raise ValueError(
                    f"groups has {feature!r} in {found[feature]!r} and in {label!r}; "
                    "a feature is in one group at the most."
                )
            found[feature] = label
    return found


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
