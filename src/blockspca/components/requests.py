"""What is asked of several components: sparsities, constraints, starts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arguments import Subject, value_error
from .._messages import count
from .._validation import check_positive_integer, check_sparsity, share_of
from .._warnings import warn_caller
from ..constraints import Constraints, checked, feature_indices
from ..covariance.covariance import Covariance, refuse_constant
from ..result import Result
from ..scheme_defaults import DEFAULT_COMPONENTS, DEFAULT_K
from .orthogonal import Conditioned
from .scheme import RESIDUAL, BaseScheme, completed


def check_constraints(
    constraints: Constraints,
    cov: Covariance,
    sparsities: Sequence[int],
    scheme: BaseScheme,
) -> None:
    """Refuse constraints that several components cannot keep."""
    for k in sparsities:
        rules = checked(constraints, cov.n_features, cov.feature_names, k)
    if isinstance(scheme, Conditioned):
        raise value_error(
            f"constraints with {type(scheme).__name__}(): its own search does not "
            f"know them; pass {RESIDUAL}.",
            RESIDUAL,
        )
    if scheme.prediction:
        raise value_error(
            f"constraints with {scheme!r}: its search does not know them; pass "
            f"{RESIDUAL}.",
            RESIDUAL,
        )
    if scheme.disjoint and rules.include and len(sparsities) > 1:
        raise value_error(
            "include with disjoint supports: a feature can be in one component "
            f"only; pass {RESIDUAL}, or solve the first component alone.",
            RESIDUAL,
        )


def check_sweeps(sweeps: int, scheme: BaseScheme) -> None:
    """Refuse to raise the adjusted variance of components that are to predict."""
    if sweeps and scheme.prediction:
        raise ValueError(
            f"sweeps = {sweeps} with {scheme!r}: its components are changed together "
            "as it is, and sweeps would take prediction back; pass sweeps=0."
        )


def check_starts(
    start: Any, cov: Covariance, sparsities: Sequence[int]
) -> list[list[int]]:
    """Check supports to start from, one for each component; none is an empty list."""
    if start is None:
        return []
    if isinstance(start, str) or not hasattr(start, "__len__"):
        raise TypeError(
            f"start = {start!r} is of type {type(start).__name__}; pass a list of "
            "supports, one for each component, such as [[0, 1], [2, 3]]."
        )
    if len(start) != len(sparsities):
        raise ValueError(
            f"start has {len(start)} support(s) for {len(sparsities)} component(s); "
            "pass one for each."
        )
    d, names = cov.n_features, cov.feature_names
    return [
        list(feature_indices(support, d, names, f"start[{j}]"))[:k]
        for j, (support, k) in enumerate(zip(start, sparsities, strict=True))
    ]


def check_sparsities(
    k: Any, n_components: Any, cov: Covariance, scheme: BaseScheme
) -> list[int]:
    """Return k for each component, if A has as many components of the scheme."""
    d = cov.n_features
    m = check_positive_integer(n_components, "n_components")
    if m > d:
        raise value_error(
            f"n_components = {m} is more than the {d} feature(s); pass at most as "
            "many components as features.",
            Subject("n_components"),
        )
    if not isinstance(k, (Sequence, np.ndarray)) or isinstance(k, str):
        sparsities = [check_sparsity(k, d)] * m
    elif len(k) != m:
        raise ValueError(
            f"k has {len(k)} value(s) for n_components = {m}; pass one integer, or one "
            "for each component."
        )
    else:
        sparsities = [check_sparsity(one, d, f"k[{j}]") for j, one in enumerate(k)]
    usable = refuse_constant(cov)
    if m > usable:
        raise value_error(
            f"n_components = {m} is more than the {usable} feature(s) that vary; "
            "pass at most as many components.",
            Subject("n_components"),
        )
    scheme.check(sparsities, usable)
    return sparsities


def asked_of(results: Sequence[Result], sparsities: Sequence[int]) -> tuple[int, ...]:
    """The k of each component as asked for, or its own where that is not known."""
    return tuple(sparsities[: len(results)]) or tuple(r.k for r in results)


def as_many_as_vary(n_components: int, cov: Covariance) -> int:
    """How many components, for `SparsePCA` and the command line.

    One for each feature that varies at the most, with a warning; by default also no
    more than the rank that so many centred samples can have.
    """
    usable = refuse_constant(cov)
    if n_components == DEFAULT_COMPONENTS and cov.n_samples is not None:
        usable = min(usable, max(1, cov.n_samples - 1))
    if n_components <= usable:
        return n_components
    if n_components != DEFAULT_COMPONENTS:
        warn_caller(
            f"n_components = {n_components} is more than can be had, as "
            f"{count(usable, 'feature')} of {cov.n_features} vary; n_components = "
            f"{usable} is used."
        )
    return usable


def features_wanted(k: Any, m: int, scheme: BaseScheme, cov: Covariance) -> Any:
    """How many features for each component, for `SparsePCA` and the command line.

    A share counts of all features. Where more are asked for than there are, or than
    m components with features of their own can have, there are fewer and a warning,
    unless k is the default.
    A value of another kind is left to `solve_components` to refuse.
    """
    d = cov.n_features
    given = list(k) if isinstance(k, (Sequence, np.ndarray)) else [k] * m
    asked = [share_of(value, d) for value in given]
    if not all(_is_whole(value) for value in asked):
        return k
    most = [min(int(value), d) for value in asked]
    usable = refuse_constant(cov)
    why = f"there are {d} features"
    if scheme.disjoint and len(most) == m and sum(most[:-1]) >= usable >= m:
        most = [min(value, usable // m) for value in most]
        why = f"{m} components without a common feature have {usable} to share"
    if most == asked:
        return k
    if isinstance(k, int) and k == DEFAULT_K:
        return most
    now = str(most[0]) if len(set(most)) == 1 else str(most)
    warn_caller(f"k = {k} is more than can be had, as {why}; k = {now} is used.")
    return most


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_chosen_together(found: Any) -> bool:
    """Tell whether components are to be bounded, and not each the best there is."""
    return found.in_turn is not None or completed(found.scheme).prediction > 0
