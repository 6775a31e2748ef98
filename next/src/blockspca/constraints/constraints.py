"""Constraints as users write them, and the problem that they lead to."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..covariance.covariance import Covariance
from ..covariance.views import raised
from ..validation import (
    Indices,
    check_flag,
    check_integer,
    describe,
    describe_features,
)
from .features import Names, indices_of
from .rules import FREE, Rules, nothing

Features = Sequence[int | str] | NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Constraints:
    """Constraints on the features of a component, an argument of `solve`.

    Features are names, indices, or patterns such as ``"RPL*"``.

    Parameters
    ----------
    include : features
        Features of every support. Each takes one of the k places, even if its loading
        is 0.
    exclude : features
        Features of no support.
    groups : labels, or a mapping
        A label for each feature (None is no group), a mapping from features to labels,
        or a mapping from labels to lists of features.
    max_per_group : int or mapping from labels to int
        The largest number of features of each group. A mapping limits only the groups
        that it names.
    nonnegative : bool
        Whether every loading must be at least 0.
    overlap_with : features
        A support, for example of an earlier analysis.
    min_overlap : int
        The least number of features from `overlap_with`.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.constraints import Constraints
    >>> from blockspca.pipeline import solve
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> result = solve(A, k=2, constraints=Constraints(include=[2]))
    >>> result.support, result.status.value
    (array([1, 2]), 'optimal')
    """

    include: Features = ()
    exclude: Features = ()
    groups: Sequence[Any] | Mapping[Any, Any] | NDArray[Any] | None = None
    max_per_group: int | Mapping[Any, int] | None = None
    nonnegative: bool = False
    overlap_with: Features | None = None
    min_overlap: int | None = None

    def __post_init__(self) -> None:
        check_flag(self.nonnegative, "nonnegative")
        for name, other in [
            ("groups", "max_per_group"),
            ("max_per_group", "groups"),
            ("overlap_with", "min_overlap"),
            ("min_overlap", "overlap_with"),
        ]:
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise ValueError(f"{name} must come with {other}; use both or neither.")
        if self.groups is not None and self.overlap_with is not None:
            raise ValueError(
                "max_per_group cannot be combined with min_overlap; use one of them."
            )


@dataclass(frozen=True, eq=False)
class Problem:
    """A matrix, and the rules about sets of its features.

    Attributes
    ----------
    cov : Covariance
        Restricted to `features`; raised if loadings must not be negative.
    features : array of int64
        The features of `cov` by their indices in the whole matrix.
    rules : Rules
        By positions in `features`.
    n_features : int
        Number of features of the whole matrix.
    unraised : Covariance or None
        The matrix before it was raised, if loadings must not be negative.
    """

    cov: Covariance
    features: Indices
    rules: Rules
    n_features: int
    unraised: Covariance | None = None


def problem_of(cov: Covariance, constraints: Any, k: int, is_path: bool) -> Problem:
    """Check constraints against the features and k, and apply them.

    For a path k is the largest one.
    """
    every = np.arange(cov.n_features)
    if constraints is None:
        return Problem(cov, every, FREE, len(every))
    if not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints = {constraints!r:.60} must be Constraints, not "
            f"{type(constraints).__name__}; use blockspca.Constraints(include=[0])."
        )
    d, names = cov.n_features, cov.feature_names
    include = indices_of(constraints.include, d, names, "include")
    exclude = indices_of(constraints.exclude, d, names, "exclude")
    label: Indices | None = None
    room = nothing()
    limit = "max_per_group"
    if constraints.groups is not None:
        label, room = limited_groups(constraints, d, names)
    elif constraints.overlap_with is not None:
        limit = "min_overlap"
        label, room = limited_overlap(constraints, d, names, k, is_path)
    both = np.intersect1d(include, exclude)
    if len(both):
        raise ValueError(
            f"include and exclude cannot both have {describe_features(both, names)}; "
            "use it in one of them."
        )
    if len(include) > k:
        raise ValueError(
            f"include has {len(include)} features and must have at most k = {k}; use "
            "a larger k, or fewer features."
        )
    kept = np.ones(d, dtype=bool)
    kept[exclude] = False
    if label is not None:
        rules = Rules(include, label, room)
        over = np.flatnonzero(rules.free_places(include) < 0)
        if len(over):
            broken = include[label[include] == over[0]]
            raise ValueError(
                f"include has {describe_features(broken, names)}, but {limit} allows "
                f"{room[over[0]]} of their group; use fewer of them, or change {limit}."
            )
        kept &= (label < 0) | (room[label] > 0)
    features = np.flatnonzero(kept)
    causes = ["exclude"] * (len(exclude) > 0) + [limit] * (label is not None)
    if not len(features):
        raise ValueError(
            f"{' and '.join(causes)} cannot leave no feature; use fewer constraints."
        )
    rules = Rules(include, label, room).among(features)
    most = len(rules.first(np.arange(len(features)), k))
    if most < k:
        raise ValueError(
            f"k = {k} must be at most {most}, because of {' and '.join(causes)}; use "
            "a smaller k, or fewer constraints."
        )
    if len(features) < d:
        cov = cov.subset(features)
    if constraints.nonnegative:
        return Problem(raised(cov), features, rules, d, cov)
    return Problem(cov, features, rules, d)


def limited_overlap(
    constraints: Constraints, d: int, names: Names, k: int, is_path: bool
) -> tuple[Indices, Indices]:
    """Return min_overlap as a group limit: at most k − m features from outside."""
    if is_path:
        raise ValueError(
            "min_overlap cannot be combined with a path; use solve for each k."
        )
    support = indices_of(constraints.overlap_with, d, names, "overlap_with")
    most = min(k, len(support))
    least = check_integer(constraints.min_overlap, "min_overlap", minimum=1)
    if least > most:
        raise ValueError(
            f"min_overlap = {least} must be at most {most} for k = {k} and an "
            f"overlap_with of {len(support)} features; use min_overlap={most}."
        )
    label = np.zeros(d, dtype=np.int64)
    label[support] = -1
    return label, np.array([k - least])


def limited_groups(
    constraints: Constraints, d: int, names: Names
) -> tuple[Indices, Indices]:
    """Return the group of each feature (−1 for none) and the limit of each group."""
    groups = group_labels(constraints.groups, d, names)
    numbers_of: dict[Any, int] = {}
    label = np.full(d, -1)
    for i, group in enumerate(groups):
        if group is not None:
            label[i] = numbers_of.setdefault(group, len(numbers_of))
    most = constraints.max_per_group
    room = np.bincount(label[label >= 0], minlength=len(numbers_of))
    if not isinstance(most, Mapping):
        room[:] = check_integer(most, "max_per_group", minimum=0)
        return label, room
    for group, limit in most.items():
        if group not in numbers_of:
            raise ValueError(
                f"max_per_group has {group!r}, which is no group; the groups are "
                f"{describe(map(str, numbers_of))}."
            )
        place = f"max_per_group[{group!r}]"
        room[numbers_of[group]] = check_integer(limit, place, minimum=0)
    return label, room


def group_labels(groups: Any, d: int, names: Names) -> list[Any]:
    """Return the label of each feature, None for a feature without a group."""
    by_name = (
        names is not None and hasattr(groups, "index") and hasattr(groups, "items")
    )
    if by_name and all(isinstance(name, str) for name in groups.index):
        # A Series may also have names that are no features.
        features = set(names or ())
        groups = {name: group for name, group in groups.items() if name in features}
    if isinstance(groups, Mapping):
        pairs: list[tuple[Any, Any]] = list(groups.items())
        if pairs and all(is_list(value) for _, value in pairs):
            pairs = [(member, group) for group, members in pairs for member in members]
        result: list[Any] = [None] * d
        for feature, group in pairs:
            for i in indices_of([feature], d, names, "groups"):
                if result[i] not in (None, group):
                    raise ValueError(
                        f"groups cannot have {describe_features([i], names)} in both "
                        f"{result[i]!r} and {group!r}; use one group for it."
                    )
                result[i] = without_missing(group)
        return result
    if not is_list(groups):
        raise TypeError(
            f"groups = {groups!r:.60} must be a list of labels or a mapping, not "
            f"{type(groups).__name__}; use one label for each feature."
        )
    result = [without_missing(group) for group in groups]
    if len(result) != d:
        raise ValueError(
            f"groups has {len(result)} labels and must have {d}; use one for each "
            "feature, or a mapping."
        )
    return result


def is_list(value: Any) -> bool:
    """Tell whether a value is a list of values."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def without_missing(group: Any) -> Any:
    """Return a label, or None for a missing value of pandas."""
    if isinstance(group, numbers.Real) and math.isnan(float(group)):
        return None
    return None if type(group).__name__ in ("NAType", "NaTType") else group
