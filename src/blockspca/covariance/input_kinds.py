"""Chooses the source for data by their type: dense, sparse, on disk, dask, on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._arguments import value_error
from .._validation import check_names, describe, is_sparse, numeric_array, split_names
from .dask_chunks import DaskChunks, has_sparse_chunks
from .dask_source import dask_data, is_dask
from .device_data import is_on_device, on_host
from .ingest import (
    PAIRWISE,
    Preparation,
    checked_sparse,
    dense_data,
    mapped_data,
    refuse_overflow,
    sparse_data,
)
from .origin import Origin, data_origin
from .pairwise import pairwise_data
from .sources import DenseDataSource, Source, SparseDataSource
from .sparse_chunks import FileChunks, chunks_data
from .stored import StoredRows, StoredSparse, as_stored

MAP_FROM = 2**28  # bytes of data in files that are not copied into memory


def source_of(
    X: Any,
    prepare: Preparation,
    missing: Literal["raise", "pairwise"],
    feature_names: Sequence[str] | None,
) -> tuple[Source, tuple[str, ...] | None, Origin | None]:
    """Return the source for X, the names of its features, and its origin for proofs."""
    if missing not in ("raise", "pairwise"):
        raise ValueError(
            f"missing = {missing!r} is not known; pass 'raise' or 'pairwise'."
        )
    X, names = split_names(X)
    on_device = is_on_device(X)
    given = X = opened(on_host(X))
    sparse, in_place = is_sparse(X), stays_in_place(X)
    if not in_place:
        X = checked_sparse(X, "X") if sparse else numeric_array(X, "X")
    n, d = X.shape
    names = check_names(names if feature_names is None else feature_names, d)
    prepare = replace(prepare, names=names)
    prepare.check_samples(n)
    source: Source | None = None
    if is_dask(X) and has_sparse_chunks(X):
        source = chunks_data(DaskChunks(X), prepare)
    elif is_dask(X):
        source = dask_data(X, prepare)
    elif sparse:
        source = sparse_data(X, prepare)
    elif isinstance(X, StoredSparse):
        source = chunks_data(FileChunks(X), prepare)
    elif in_place:
        source = mapped_data(X, prepare)  # None if values are missing
    if source is None:
        values = X.to_memory() if isinstance(X, StoredRows) else X
        source = _in_memory(numeric_array(values, "X"), prepare, missing)
    if on_device and isinstance(source, (DenseDataSource, SparseDataSource)):
        source.on_device = True
    # Keep the array that was passed, not a copy with another dtype. Other tables are
    # kept as arrays, since another layout would add up in another order.
    kept = given if isinstance(given, np.ndarray) and not in_place else X
    origin = data_origin(kept, source, prepare)
    return refuse_overflow(source), names, origin


def opened(X: Any) -> Any:
    """Return a reader for a large table in a file; a small one in memory; else X."""
    stored = as_stored(X)
    if stored is None:
        return X
    return stored if 8 * stored.size > MAP_FROM else stored.to_memory()


def stays_in_place(X: Any) -> bool:
    """Tell whether data are read where they are: a dask array, or a large file."""
    if is_dask(X):
        return X.ndim == 2 and X.dtype.kind in "fiub"
    if isinstance(X, (StoredRows, StoredSparse)):
        return True
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub"
    return mapped and 8 * X.size > MAP_FROM


def _in_memory(X: np.ndarray, prepare: Preparation, missing: str) -> Source:
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(X.sum()))  # then every number is
    if finite:
        return dense_data(X, prepare)
    _refuse(np.isinf(X), "infinite", "replace or drop them", prepare)
    gaps = np.isnan(X)
    if not gaps.any():  # finite numbers whose sum is not
        return dense_data(X, prepare)
    if missing != "pairwise":
        remedy = f"fill them, drop those features, or pass {PAIRWISE}"
        _refuse(gaps, "missing", remedy, prepare)
    return pairwise_data(X, gaps, prepare)


def _refuse(bad: np.ndarray, kind: str, remedy: str, prepare: Preparation) -> None:
    """Refuse data with `bad` entries, if there are any."""
    if bad.any():
        columns = np.flatnonzero(bad.any(axis=0)).tolist()
        raise value_error(
            f"X has {int(bad.sum())} {kind} value(s), in feature(s) "
            f"{describe(columns, prepare.names)}; {remedy}.",
            PAIRWISE,
        )
