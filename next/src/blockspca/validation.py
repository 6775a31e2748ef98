"""Checks of arguments: each error names the argument, its value and the fix.

Public functions validate once through this module. The rest trusts its input.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Indices = NDArray[np.int64]


def check_real(
    value: Any, argument: str, *, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
    """Return `value` as a float if it is finite and from minimum to maximum."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{argument} = {value!r} must be a number, not {type(value).__name__}; "
            f"use {argument}={_example(minimum, maximum, 1.0)}."
        )
    number = float(value)
    if not (math.isfinite(number) and minimum <= number <= maximum):
        limits = _interval(minimum, maximum, "a finite number")
        raise ValueError(
            f"{argument} = {value} must be {limits}; use for example "
            f"{argument}={_example(minimum, maximum, 1.0)}."
        )
    return number


def check_integer(
    value: Any, argument: str, *, minimum: float = -math.inf, maximum: float = math.inf
) -> int:
    """Return `value` as an int if it is an integer from minimum to maximum."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{argument} = {value!r} must be an integer, not {type(value).__name__}; "
            f"use for example {argument}={_example(minimum, maximum, 1)}."
        )
    if not minimum <= int(value) <= maximum:
        limits = _interval(minimum, maximum, "an integer")
        raise ValueError(
            f"{argument} = {value} must be {limits}; use for example "
            f"{argument}={_example(minimum, maximum, int(value))}."
        )
    return int(value)


def _interval(minimum: float, maximum: float, kind: str) -> str:
    """Describe a range of numbers in words."""
    if math.isfinite(minimum) and math.isfinite(maximum):
        return f"{kind} from {minimum:g} to {maximum:g}"
    if math.isfinite(minimum):
        return f"{kind}, at least {minimum:g}"
    return f"{kind}, at most {maximum:g}" if math.isfinite(maximum) else kind


def _example(minimum: float, maximum: float, usual: float) -> float:
    """Return the number of the range that is nearest to `usual`."""
    return type(usual)(min(max(usual, minimum), maximum))


def check_flag(value: Any, argument: str) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{argument} = {value!r} must be True or False, not "
            f"{type(value).__name__}; use {argument}=True or {argument}=False."
        )
    return bool(value)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return n_jobs if it is None, or an integer that is not 0."""
    if n_jobs is None:
        return None
    number = check_integer(n_jobs, "n_jobs")
    if number == 0:
        raise ValueError("n_jobs = 0 cannot work; use 1 for one core, -1 for all.")
    return number


def check_sparsity(k: Any, d: int, argument: str = "k") -> int:
    """Return k if it is an integer from 1 to d; round a share of d to an integer.

    A share is a float between 0 and 1. The integer is at least 1.

    Examples
    --------
    >>> from blockspca.validation import check_sparsity
    >>> check_sparsity(7, 200), check_sparsity(0.05, 200), check_sparsity(0.05, 3)
    (7, 10, 1)
    """
    if isinstance(k, (float, np.floating)) and 0 < k < 1:
        return max(1, round(float(k) * d))
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, numbers.Integral):
        raise TypeError(
            f"{argument} = {k!r} must be an integer from 1 to {d}, or a share below "
            f"1, not {type(k).__name__}; use {argument}="
            f"{_integer_near(k, min(5, d), d)}."
        )
    if not 1 <= int(k) <= d:
        raise ValueError(
            f"{argument} = {k} must be from 1 to {d}, the number of features; use "
            f"{argument}={min(max(int(k), 1), d)}."
        )
    return int(k)


def _integer_near(value: Any, usual: int, d: int) -> int:
    """Return the integer that a float is, if it is one from 1 to d, else `usual`."""
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return int(value) if whole and 1 <= value <= d else usual


def check_names(
    names: Iterable[Any] | None, d: int, argument: str = "feature_names"
) -> tuple[str, ...] | None:
    """Return d distinct names as text, or None if there are none."""
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise TypeError(
            f"{argument} = {names!r} must be a list of names; use one for each feature."
        )
    texts = tuple(str(name) for name in names)
    if len(texts) != d:
        raise ValueError(
            f"{argument} has {len(texts)} names and must have {d}; use one for each "
            "feature."
        )
    repeated = sorted(name for name, times in Counter(texts).items() if times > 1)
    if repeated:
        raise ValueError(
            f"{argument} cannot repeat {describe(repeated)}; use distinct names, for "
            f"example {repeated[0] + '_1'!r} and {repeated[0] + '_2'!r}."
        )
    return texts


def describe(values: Iterable[Any]) -> str:
    """Return up to five values as text, for an error."""
    shown = list(values)
    return ", ".join(repr(value) for value in shown[:5]) + ", ..." * (len(shown) > 5)


def describe_features(indices: Iterable[int], names: tuple[str, ...] | None) -> str:
    """Return up to five features as text, by name if they have names."""
    return describe(names[i] if names else int(i) for i in indices)
