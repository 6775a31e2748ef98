"""Features as users name them: indices, names, or patterns of names."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..validation import Indices, describe

Names = tuple[str, ...] | None


def indices_of(features: Any, d: int, names: Names, argument: str) -> Indices:
    """Return the indices of features that a user lists, in ascending order.

    A name with *, ? or [ is a pattern, unless a feature has exactly this name.

    Examples
    --------
    >>> from blockspca.constraints.features import indices_of
    >>> names = ("RPL3", "MALAT1", "RPL10", "ACTB")
    >>> indices_of(["RPL*", "ACTB"], 4, names, "exclude")
    array([0, 2, 3])
    """
    if isinstance(features, (str, bytes, numbers.Integral)):
        raise TypeError(
            f"{argument} = {features!r} must be a list; use {argument}=[{features!r}]."
        )
    if not isinstance(features, Iterable):
        raise TypeError(
            f"{argument} = {features!r} must be a list of features, not "
            f"{type(features).__name__}; use for example {argument}=[0]."
        )
    if np.asarray(features).dtype == bool:
        raise TypeError(
            f"{argument} is a mask and must be a list of features; use "
            f"{argument}=numpy.flatnonzero(mask)."
        )
    position = {name: i for i, name in enumerate(names or ())}
    indices: set[int] = set()
    for feature in features:
        indices.update(matches(feature, d, names, position, argument))
    return np.array(sorted(indices), dtype=np.int64)


def matches(
    feature: Any, d: int, names: Names, position: dict[str, int], argument: str
) -> list[int]:
    """Return the index of a feature, or the indices that match a pattern."""
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"{argument} has the name {feature!r}, but the features have no names; "
                "use indices, or Covariance.from_data(X, feature_names=...)."
            )
        if feature in position:
            return [position[feature]]
        is_pattern = any(sign in feature for sign in "*?[")
        indices = [i for i, name in enumerate(names) if fnmatchcase(name, feature)]
        if not (is_pattern and indices):
            kind = "pattern" if is_pattern else "name"
            raise ValueError(
                f"{argument} has the {kind} {feature!r}, which matches no feature; "
                f"{suggestion(feature, names)}."
            )
        return indices
    if isinstance(feature, (bool, np.bool_)) or not isinstance(
        feature, numbers.Integral
    ):
        raise TypeError(
            f"{argument} has {feature!r} and must have names or integers, not "
            f"{type(feature).__name__}; use for example {argument}=[0]."
        )
    if not 0 <= int(feature) < d:
        raise ValueError(
            f"{argument} has the index {int(feature)}, which must be from 0 to "
            f"{d - 1}; there are {d} features."
        )
    return [int(feature)]


def suggestion(wrong: str, names: tuple[str, ...]) -> str:
    """Return, as text, the names of features that are most similar to a wrong name."""
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(wrong.casefold().strip("*?"), folded, n=3)
    if near:
        return f"use {' or '.join(repr(folded[key]) for key in near)}"
    return f"the names are {describe(names)}"
