"""Checks on what a user passes in: each error names the argument, the value, the fix.

The public functions validate once through this module; everything behind them trusts
its input.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class MemoryLimitError(MemoryError):
    """The memory allowed is too small for the work; raised before any of it."""


def is_sparse(value: object) -> bool:
    """Tell whether `value` is scipy sparse, without importing scipy."""
    module = type(value).__module__
    return module.startswith("scipy.sparse") and hasattr(value, "tocsr")


def pandas_for(method: str) -> Any:
    """Import pandas, which is not needed for anything else."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            f"{method} needs pandas (pip install pandas); to_rows and loadings do not."
        ) from None
    return pandas


def split_names(value: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Separate a pandas or polars DataFrame into its values and its column names.

    Anything else is returned as it is, with no names. Neither library is imported.
    """
    module = type(value).__module__.split(".")[0]
    if module not in ("pandas", "polars") or not hasattr(value, "columns"):
        return value, None
    names = tuple(str(name) for name in value.columns)
    return value, names


def numeric_array(value: Any, argument: str) -> FloatArray:
    """Turn array-like `value` into float64, refusing what is not real numbers."""
    refuse_other_things(value, argument)
    library = type(value).__module__.split(".")[0]
    if library in ("pandas", "polars"):
        if not hasattr(value, "columns") or not hasattr(value, "to_numpy"):
            raise TypeError(
                f"{argument} is a {library} {type(value).__name__}; pass a DataFrame."
            )
        _refuse_text_columns(value, argument)
        array = value.to_numpy()
        if array.dtype == object:  # nullable or decimal columns
            missing = value.isna().to_numpy() if library == "pandas" else array == None  # noqa: E711
            array = np.where(missing, math.nan, array).astype(float)
    elif isinstance(value, np.ma.MaskedArray):
        array = np.ma.filled(value.astype(float), math.nan)  # masked means missing
    else:
        array = any_array(value, argument)
    if np.iscomplexobj(array):
        raise TypeError(
            f"{argument} has complex dtype {array.dtype}; pass its real part, for "
            f"example {argument}.real."
        )
    if array.ndim != 2:
        raise ValueError(
            f"{argument} has {array.ndim} dimension(s) and shape {array.shape}; pass a "
            "two-dimensional array."
        )
    if array.dtype.kind == "O":
        _refuse_objects(array, argument)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{argument} has dtype {array.dtype}, which does not hold real numbers; "
            f"convert it first, for example with {argument}.astype(float)."
        )
    if 0 in array.shape:
        raise ValueError(
            f"{argument} is empty: its shape is {array.shape}; pass at least one row "
            "and one column."
        )
    return np.asarray(array, dtype=np.float64)


def any_array(value: Any, argument: str) -> Any:
    """Turn array-like `value` into an array, of whatever type it is."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{argument} cannot be read as an array ({error}); pass rows of equal "
            "length."
        ) from None


def refuse_other_things(value: Any, argument: str) -> None:
    """Say what was passed where that is no table at all."""
    if any(kind.__name__ == "Covariance" for kind in type(value).__mro__):
        raise TypeError(
            f"{argument} is a Covariance, which no longer has its samples; pass the "
            "data themselves, or pass the Covariance to solve or solve_components."
        )
    if isinstance(value, (str, bytes)) or hasattr(value, "__fspath__"):
        raise TypeError(
            f"{argument} = {value!r} is a text, not data; read the file first, for "
            "example with pandas.read_csv."
        )
    if hasattr(value, "var_names") and hasattr(value, "obsm"):
        raise TypeError(
            f"{argument} is an AnnData; call blockspca.tl.sparse_pca(adata), or pass "
            "adata.to_df(), which keeps the names, or adata.X."
        )
    if is_sparse(value):  # one kind of them is a dict
        return
    if value is None or isinstance(value, (dict, set)):
        raise TypeError(
            f"{argument} is of type {type(value).__name__}; pass a two-dimensional "
            "array or a DataFrame."
        )


def as_rows(X: Any) -> Any:
    """Data whose rows can be taken: a dense array, or a sparse matrix by rows."""
    refuse_other_things(X, "X")
    X, _ = split_names(X)
    return X.tocsr() if is_sparse(X) else numeric_array(X, "X")


def _refuse_objects(array: Any, argument: str) -> None:
    """Refuse an array of Python objects; name the first that is not a number."""
    for (i, j), value in np.ndenumerate(array):
        if not isinstance(value, numbers.Real):
            raise TypeError(
                f"{argument}[{i}, {j}] = {value!r:.60} in an array of dtype object is "
                "not a number; replace it, by nan if it is missing, and convert with "
                "astype(float)."
            )
    raise TypeError(
        f"{argument} has dtype object although its entries are numbers; pass "
        f"{argument}.astype(float)."
    )


def check_flag(value: Any, argument: str) -> bool:
    """Check that `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{argument} = {value!r} is of type {type(value).__name__}; pass True or "
            "False."
        )
    return bool(value)


def _refuse_text_columns(frame: Any, argument: str) -> None:
    bad = []
    columns = zip(frame.columns, frame.dtypes, strict=True)
    for position, (name, dtype) in enumerate(columns):
        numeric = dtype.is_numeric() if hasattr(dtype, "is_numeric") else None
        if numeric is None:
            numeric = getattr(dtype, "kind", "O") in "fiub" or getattr(
                dtype, "_is_numeric", False
            )
        if not numeric and "bool" not in str(dtype).lower():
            bad.append((position, f"{name!r} ({dtype})", dtype))
    if bad:
        position, _, dtype = bad[0]
        is_object = str(dtype) == "object"
        convert = ", or convert them with astype(float)" if is_object else ""
        if hasattr(frame, "set_index") and position == 0:
            first = frame.columns[0]
            convert += (
                f", or use {argument}.set_index({first!r}) if it names the samples"
            )
        shown = ", ".join(words for _, words, _ in bad[:5])
        shown += ", ..." if len(bad) > 5 else ""
        raise TypeError(
            f"{argument} has {len(bad)} column(s) that are not numeric: {shown}; drop "
            f"or encode them first{convert}."
        )


def check_names(names: Sequence[Any] | None, d: int) -> tuple[str, ...] | None:
    """Check that feature names, if given, are d distinct strings."""
    if names is None:
        return None
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise TypeError(
            f"feature_names = {names!r} is not a list of names; pass one per feature."
        )
    names = tuple(str(name) for name in names)
    if len(names) != d:
        raise ValueError(
            f"feature_names has {len(names)} entries for {d} features; pass one name "
            "per feature."
        )
    if len(set(names)) != d:
        seen: set[str] = set()
        duplicated = sorted({n for n in names if n in seen or seen.add(n)})  # type: ignore[func-returns-value]
        raise ValueError(
            f"feature_names (or column names) repeat {duplicated[:5]} as text; names "
            "must be distinct, so that a chosen feature can be told from the others."
        )
    return names


def share_of(k: Any, d: int) -> Any:
    """Return the k that a share of d features is; what is no share is left as it is.

    A share is a float between 0 and 1: 0.05 is a twentieth, and at least one feature.

    Examples
    --------
    >>> from blockspca._validation import share_of
    >>> share_of(0.05, 200), share_of(0.05, 3), share_of(7, 200), share_of(1.0, 200)
    (10, 1, 7, 1.0)
    """
    if isinstance(k, (float, np.floating)) and 0 < k < 1:
        return max(1, round(float(k) * d))
    return k


def check_sparsity(k: Any, d: int, argument: str = "k") -> int:
    """Check that k is an integer with 1 ≤ k ≤ d, or a share of d; see `share_of`."""
    k = share_of(k, d)
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(
            f"{argument} = {k!r} is a {type(k).__name__}; pass an integer between 1 "
            f"and {d}, the number of features to use, or a share such as 0.05."
        )
    k = int(k)
    if not 1 <= k <= d:
        raise ValueError(
            f"{argument} = {k} is outside 1..{d}; it is the number of features to "
            f"use, out of {d}."
        )
    return k


def check_real(value: Any, argument: str, *, minimum: float = -math.inf) -> float:
    """Check that `value` is a finite real number, not below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{argument} = {value!r} is of type {type(value).__name__}; pass a number."
        )
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{argument} = {value} is not finite; pass a finite number.")
    if value < minimum:
        raise ValueError(
            f"{argument} = {value} is negative; pass a number of at least {minimum:g}."
            if minimum == 0
            else f"{argument} = {value} is too small; it must be at least {minimum:g}."
        )
    return value


def check_positive(value: Any, argument: str) -> float:
    """Check that `value` is a finite real number above zero."""
    value = check_real(value, argument)
    if value <= 0:
        raise ValueError(
            f"{argument} = {value} is not positive; pass a number above 0."
        )
    return value


def check_positive_integer(value: Any, argument: str) -> int:
    """Check that `value` is an integer of at least one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{argument} = {value!r} is a {type(value).__name__}; pass an integer."
        )
    value = int(value)
    if value < 1:
        raise ValueError(f"{argument} = {value} is too small; pass an integer ≥ 1.")
    return value


def describe(indices: Sequence[int], names: tuple[str, ...] | None) -> str:
    """Name up to five features in an error message."""
    shown = [repr(names[i]) if names else str(i) for i in indices[:5]]
    return ", ".join(shown) + (", ..." if len(indices) > 5 else "")


def names_of(indices: Iterable[Any], names: tuple[str, ...] | None) -> list[str]:
    """Return the names of features, or their indices as text."""
    return [names[int(i)] if names else str(int(i)) for i in indices]


def check_count(value: Any, argument: str) -> int:
    """Check that `value` is an integer, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{argument} = {value!r} is of type {type(value).__name__}; pass an "
            "integer, 0 or more."
        )
    if value < 0:
        raise ValueError(f"{argument} = {value} is negative; pass 0 or more.")
    return int(value)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Check that n_jobs is None or a nonzero integer, as joblib has it."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(
            f"n_jobs = {n_jobs!r} is not an integer; pass 2, or -1 for all."
        )
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 means nothing; pass 1 for one at a time.")
    return int(n_jobs)


def check_seed(rng: Any) -> int:
    """Turn `rng` into a seed: None is 0, a Generator is drawn from."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**32))
    return _checked_seed(rng)


def as_generator(rng: Any) -> np.random.Generator:
    """Turn `rng` into a Generator; None is the seed 0."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(0 if rng is None else _checked_seed(rng))


def _checked_seed(rng: Any) -> int:
    if isinstance(rng, bool) or not isinstance(rng, numbers.Integral) or int(rng) < 0:
        raise ValueError(
            f"rng = {rng!r} is neither an integer ≥ 0 nor a numpy Generator; pass 0."
        )
    return int(rng)
