"""Features as a user names them, by name or index, turned into indices."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._arguments import Subject, value_error
from ._validation import describe

SHOWN = 8  # names that a message lists


def feature_indices(
    features: Any, d: int, names: tuple[str, ...] | None, argument: str
) -> tuple[int, ...]:
    """Turn names or indices into ascending indices; refuse what is neither."""
    if isinstance(features, (str, bytes, numbers.Integral)):
        raise TypeError(
            f"{argument} = {features!r} is a single feature; pass a list, "
            f"[{features!r}]."
        )
    if not isinstance(features, Iterable):
        raise TypeError(
            f"{argument} is of type {type(features).__name__}; pass a list of feature "
            "names or indices."
        )
    array = np.asarray(features)
    if array.dtype == bool:
        raise TypeError(
            f"{argument} is a mask of True and False; pass indices, "
            "numpy.flatnonzero(mask)."
        )
    position = None if names is None else {name: i for i, name in enumerate(names)}
    found: list[int] = []
    for feature in features:
        found.append(feature_index(feature, d, position, argument))
    if len(set(found)) < len(found):
        twice = sorted({i for i in found if found.count(i) > 1})
        raise value_error(
            f"{argument} has {describe(twice, names)} twice; name each feature once.",
            Subject(argument),
        )
    return tuple(sorted(found))


def feature_index(
    feature: Any, d: int, position: Mapping[str, int] | None, argument: str
) -> int:
    if isinstance(feature, str):
        if position is None:
            raise value_error(
                f"{argument} has the name {feature!r}, but the features have no "
                "names; pass indices, or feature_names to Covariance.",
                Subject(argument),
            )
        if feature not in position:
            raise value_error(
                f"{argument} has {feature!r}, which is not the name of a feature; "
                + meant(feature, list(position)),
                Subject(argument),
            )
        return position[feature]
    if isinstance(feature, (bool, np.bool_)) or not isinstance(
        feature, numbers.Integral
    ):
        raise TypeError(
            f"{argument} has {feature!r} of type {type(feature).__name__}; pass names "
            "or integers."
        )
    if not 0 <= int(feature) < d:
        raise value_error(
            f"{argument} has the index {int(feature)}, outside 0..{d - 1}; there "
            f"are {d} features.",
            Subject(argument),
        )
    return int(feature)


def meant(name: str, names: Iterable[str]) -> str:
    """Say which names are near to one that is none of them, or how they begin.

    Examples
    --------
    >>> from blockspca._feature_names import meant
    >>> meant("hieght", ["age", "Height", "weight"])
    "did you mean 'Height'?"
    >>> meant("g3", [f"G{i:04}" for i in range(50)])
    "did you mean 'G0003'?"
    >>> meant("sex", ["age", "height"])
    "the names are 'age', 'height'."
    >>> meant("age, height", ["age", "height", "sex"])
    "'age' and 'height' are names; give each by itself."
    """
    import difflib

    names = list(names)
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and set(parts) <= set(names):
        listed = f"{', '.join(map(repr, parts[:-1]))} and {parts[-1]!r}"
        return f"{listed} are names; give each by itself."
    plain = _plain(name)
    same = [other for other in names if _plain(other) == plain]
    if same:
        return f"did you mean {' or '.join(map(repr, same[:3]))}?"
    folded = {other.casefold(): other for other in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(repr(folded[key]) for key in near)}?"
    if not names:
        return "there are no names."
    few = len(names) <= SHOWN
    listed = ", ".join(map(repr, names[:SHOWN]))
    return f"the names {'are' if few else 'begin with'} {listed}."


def _plain(name: str) -> str:
    """A name as it is often typed: without case, signs and zeros before a number."""
    letters = re.sub(r"[\W_]+", "", name.casefold())
    return re.sub(r"(?<!\d)0+(?=\d)", "", letters)
