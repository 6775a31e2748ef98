"""What `SparsePCA` was asked for, as numbers: how many components, how many features.

The estimator only stores its parameters; here they meet the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from ._samples import means_and_scales
from ._validation import (
    FloatArray,
    check_positive_integer,
    is_sparse,
    share_of,
    split_names,
)
from .components.requests import as_many_as_vary
from .components.scheme import BaseScheme
from .constraints import Constraints
from .covariance.contrast import contrastive
from .covariance.covariance import Covariance, refuse_constant
from .covariance.device_data import is_on_device
from .covariance.input_kinds import stays_in_place
from .limits import Budget, Limits
from .model_selection.choose_each_k import Chosen, choose_each_k

#: For scikit-learn, which refuses other values with a sentence.
PARAMETER_CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left"), None],
    "k": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0, 1, closed="neither"),
        "array-like",
        StrOptions({"auto"}),
    ],
    # Objects of these kinds are checked where they are used.
    "solver": "no_validation",
    "threshold": "no_validation",
    "certify": ["boolean"],
    "limits": [Limits, Interval(Real, 0, None, closed="left"), None],
    "scale": ["boolean"],
    "missing": [StrOptions({"raise", "pairwise"})],
    "constant": [StrOptions({"warn", "ignore", "raise"})],
    "scheme": "no_validation",
    "sweeps": [Interval(Integral, 0, None, closed="left")],
    "covariance": "no_validation",
    "transform_method": [StrOptions({"projection", "least-squares"})],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "constraints": [Constraints, None],
    "start": "no_validation",
    "background_weight": [Interval(Real, 0, None, closed="left")],
}


def is_precomputed(covariance: Any) -> bool:
    """Tell whether `fit` is given a covariance matrix instead of data."""
    if covariance is None or hasattr(covariance, "fit"):
        return False
    if isinstance(covariance, str) and covariance == "precomputed":
        return True
    raise ValueError(
        f"covariance = {covariance!r} is not known; pass None, 'precomputed' or an "
        "estimator with fit and covariance_, such as LedoitWolf()."
    )


def components_wanted(
    n_components: int | None,
    k: Any,
    shape: tuple[int, int],
    cov: Covariance,
    scheme: BaseScheme,
) -> int:
    """How many components: what was asked for, or as many as there can be.

    None is as in `sklearn.decomposition.PCA`, the lesser of samples and features, but
    of features that vary, and as many as use these up where each has its own; a
    sequence k has as many as it has numbers.
    """
    d = shape[1]
    if n_components is not None:
        return as_many_as_vary(
            check_positive_integer(n_components, "n_components"), cov
        )
    if isinstance(k, (Sequence, np.ndarray)) and not isinstance(k, str):
        return len(k)
    usable = refuse_constant(cov)
    most = min(*shape, usable)
    each = share_of(k, d)
    if scheme.disjoint and isinstance(each, Integral):
        # The last component may have fewer than k features.
        most = min(most, -(-usable // int(each)))
    return most


def column_labels(X: Any, feature_names: Any) -> Any:
    """The names of columns as they are, also numbers; None where there are none.

    scikit-learn keeps names that are strings, and no others, in feature_names_in_.
    """
    if feature_names is not None:
        return feature_names
    _, names = split_names(X)
    return None if names is None else list(X.columns)


def chosen_ks(
    estimator: Any,
    X: Any,
    cov: Covariance,
    m: int,
    scheme: BaseScheme,
    budget: Budget,
    seed: int | None,
) -> Chosen:
    """Choose a k for each component, for k="auto"."""
    how: dict[str, Any] = {"scale": estimator.scale, "missing": estimator.missing}
    # Nothing is permuted of a matrix, or of data that are read in place.
    whole = is_precomputed(estimator.covariance) or stays_in_place(X)
    data = None if whole else X
    if data is not None and estimator.covariance is not None:
        # Permuted data have no estimate of this kind: the sample covariance has.
        names = cov.feature_names
        cov = Covariance.from_data(X, **how, constant="ignore", feature_names=names)
    return choose_each_k(
        cov,
        data,
        m,
        scheme,
        how=how,
        budget=budget,
        n_jobs=estimator.n_jobs,
        rng=seed,
    )


@dataclass(frozen=True)
class Learnt:
    """What a fit learns from its input before anything is solved."""

    cov: Covariance  #: the matrix whose components are wanted
    mean: FloatArray
    scale: FloatArray
    estimator: Any = None  #: the user's own, fitted


def learnt_from(
    estimator: Any, X: Any, names: Any, *, constant: Any = None, given: Any = None
) -> Learnt:
    """Return the matrix of validated data, and how they are centred and scaled.

    `constant` in the place of the estimator's; `given` is what X was before it was
    copied from a GPU, if it was.
    """
    d, covariance, scale = X.shape[1], estimator.covariance, estimator.scale
    if is_precomputed(covariance):
        if scale:
            raise ValueError(
                "scale = True cannot be combined with covariance='precomputed'; "
                "pass the correlation matrix and scale=False."
            )
        if X.shape[0] != d:
            raise ValueError(
                f"X has shape {X.shape}; with covariance='precomputed' pass the "
                "square covariance matrix to fit."
            )
        cov = Covariance.from_matrix(X, feature_names=names)
        return Learnt(cov, np.zeros(d), np.ones(d))
    cov = Covariance.from_data(
        given if is_on_device(given) else X,
        scale=scale,
        missing=estimator.missing,
        constant=constant or estimator.constant,
        feature_names=names,
    )
    refuse_constant(cov)
    mean, deviation = means_and_scales(X, cov, scale)
    if covariance is None:
        return Learnt(cov, mean, deviation)
    fitted = _estimated(covariance, X, mean, deviation)
    A = np.array(fitted.covariance_)
    if scale:  # shrinkage gives a variance even to a constant
        still = cov.diagonal() <= 0
        A[still], A[:, still] = 0.0, 0.0
    cov = Covariance.from_matrix(A, feature_names=names)
    return Learnt(cov, mean, deviation, fitted)


def less_background(estimator: Any, cov: Covariance, background: Any) -> Covariance:
    """Take the covariance of a background off that of the target."""
    if isinstance(estimator.k, str):
        raise ValueError(
            "k = 'auto' cannot be combined with a background: permuted data are no "
            "reference for a difference; pass a number."
        )
    if is_precomputed(estimator.covariance):
        other = Covariance.from_matrix(background, feature_names=cov.feature_names)
    elif estimator.covariance is not None:
        raise ValueError(
            f"covariance = {estimator.covariance!r} cannot be combined with a "
            "background; pass covariance=None, or both matrices with "
            "covariance='precomputed'."
        )
    else:
        other = Covariance.from_data(
            background,
            scale=estimator.scale,
            missing=estimator.missing,
            constant="ignore",
            feature_names=cov.feature_names,
        )
    return contrastive(cov, other, estimator.background_weight)


def _estimated(asked: Any, X: Any, mean: FloatArray, scale: FloatArray) -> Any:
    """The user's own estimator, fitted to scaled data."""
    if is_sparse(X) or stays_in_place(X) or np.isnan(X).any():
        raise TypeError(
            f"covariance = {asked!r} needs dense data without missing values; pass "
            "X.toarray(), fill the gaps, or use covariance=None."
        )
    fitted = clone(asked).fit((X - mean) / scale)
    if not hasattr(fitted, "covariance_"):
        raise TypeError(
            f"covariance = {asked!r} has no covariance_ after fit; pass an estimator "
            "such as LedoitWolf()."
        )
    return fitted
