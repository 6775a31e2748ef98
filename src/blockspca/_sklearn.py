"""What `SparsePCA` accepts as X, across versions of scikit-learn from 1.4 on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._validation import (
    _refuse_text_columns,
    any_array,
    check_names,
    describe,
    is_sparse,
    refuse_other_things,
    split_names,
)
from .covariance.device_data import on_host
from .covariance.input_kinds import opened, stays_in_place


def validated(
    estimator: Any, X: Any, *, allow_nan: bool, is_matrix: bool, **options: Any
) -> Any:
    """Return X as float64, dense or sparse, or say what is wrong with it.

    Sets, or compares with, the n_features_in_ and feature_names_in_ of the estimator.
    """
    refuse_other_things(X, "X")
    X, names = split_names(X)
    X = opened(on_host(X))
    if _checked_in_place(estimator, X, reset=options.get("reset", True)):
        return X
    if names is not None:
        check_names(names, len(names))
        _refuse_text_columns(X, "X")
    elif isinstance(X, (list, tuple)):
        X = any_array(X, "X")
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 0:
        raise ValueError(
            f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required; "
            "pass at least one column."
        )
    if len(shape) == 2 and shape[0] == 0:
        raise ValueError(
            f"X has 0 sample(s): its shape is {shape}; pass at least two rows."
        )
    X = _validate_data(
        estimator, X, accept_sparse=("csr", "csc"), dtype=np.float64, **options
    )
    names = getattr(estimator, "feature_names_in_", None)
    labels: Any = getattr(estimator, "_labels", None)  # given beside an array, too
    if names is None and np.shape(labels) == X.shape[1:]:
        names = labels
    _refuse_not_finite(X, names, allow_nan, is_matrix)
    return X


def _checked_in_place(estimator: Any, X: Any, *, reset: bool) -> bool:
    """Tell whether X is read in place; if so, set or compare n_features_in_."""
    if not stays_in_place(X):
        return False
    n, d = (int(size) for size in X.shape)
    if reset:
        estimator.n_features_in_ = d
        if n < 2:
            raise ValueError(f"X has {n} sample(s); pass at least two rows.")
    elif d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but SparsePCA is expecting "
            f"{estimator.n_features_in_} features as input; pass the same ones."
        )
    return True


def _validate_data(estimator: Any, X: Any, **options: Any) -> Any:
    # NaN and infinite values pass: our message about them is more helpful.
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before 1.6 it was a method
        return estimator._validate_data(X, force_all_finite=False, **options)
    return validate_data(estimator, X, ensure_all_finite=False, **options)


def _refuse_not_finite(X: Any, names: Any, allow_nan: bool, is_matrix: bool) -> None:
    """Say which features hold NaN or infinite values, and what to do about them."""
    sparse = is_sparse(X)
    stored = X.data if sparse else X
    if np.isfinite(stored).all():
        return
    bad = np.isinf(stored)
    if bad.any():
        what, fix = f"{int(bad.sum())} infinite value(s)", "replace or drop them"
    elif allow_nan and not sparse:
        return
    else:
        bad = np.isnan(stored)
        what = f"{int(bad.sum())} missing value(s) (NaN)"
        how = "pass dense data and missing" if sparse else "pass missing"
        fix = f"fill them, drop those features, or {how}='pairwise'"
        if is_matrix:
            fix = "a covariance matrix must be complete: drop those features"
    columns = np.unique(X.tocoo().col[bad] if sparse else np.nonzero(bad)[1])
    known = None if names is None else tuple(names)
    raise ValueError(
        f"X has {what}, in feature(s) {describe(columns.tolist(), known)}; {fix}."
    )
