"""What `SparsePCA` computes from samples: in memory, in files or in a dask array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._validation import FloatArray, is_sparse
from .covariance.dask_source import is_dask
from .covariance.device_data import on_host
from .covariance.kinds import stays_in_place
from .covariance.stored import StoredSparse
from .covariance.task_tree import bounds


def checked_in_place(estimator: Any, X: Any, *, reset: bool) -> bool:
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


def projected(X: Any, mean: FloatArray, weights: FloatArray) -> FloatArray:
    """(X − mean) times the weights, with gaps as means; sparse X stays sparse.

    Data that are read in place give a block of rows at a time, and chunks of a dask
    array their scores where they are.
    """
    if is_dask(X):
        import dask

        edges = bounds(X.chunks[1])
        parts = [(mean[a:b], weights[a:b]) for a, b in edges]
        lines = [dask.delayed(_line_scores)(list(x), parts) for x in X.to_delayed()]
        return np.concatenate(dask.compute(*lines))
    if stays_in_place(X):
        return np.concatenate([projected(b, mean, weights) for b in _blocks(X)])
    if is_sparse(X):
        return np.asarray(X @ weights - mean @ weights)
    return np.nan_to_num(X - mean) @ weights


def _line_scores(line: list[Any], parts: list[tuple[FloatArray, ...]]) -> FloatArray:
    here = [on_host(block)[0] for block in line]
    scores = [projected(x, *part) for x, part in zip(here, parts, strict=True)]
    return np.sum(scores, axis=0)


def total_squares(X: Any, mean: FloatArray, scale: FloatArray) -> float:
    """Σ ‖(x − mean) / scale‖² over the samples."""
    if is_dask(X):
        import dask

        edges = bounds(X.chunks[1])
        parts = [
            dask.delayed(total_squares)(block, mean[a:b], scale[a:b])
            for line in X.to_delayed()
            for block, (a, b) in zip(line, edges, strict=True)
        ]
        return float(sum(dask.compute(*parts)))
    X = on_host(X)[0]  # a chunk may be on a GPU
    if stays_in_place(X):
        return float(sum(total_squares(block, mean, scale) for block in _blocks(X)))
    if not is_sparse(X):
        centred = np.nan_to_num(X - mean) / scale
        return float(np.einsum("ij,ij->", centred, centred))
    columns = X.tocsc()
    squares = np.asarray(columns.multiply(columns).sum(axis=0)).ravel()
    sums = np.asarray(columns.sum(axis=0)).ravel()
    squares = squares - 2 * mean * sums + X.shape[0] * mean**2
    return float((squares / scale**2).sum())


def _blocks(X: Any) -> Iterator[Any]:
    """Blocks of rows of a table in a file."""
    if isinstance(X, StoredSparse):
        return (block for _, block in X.parts())
    step = max(1, 2**22 // X.shape[1])
    return (
        np.array(X[i : i + step], dtype=np.float64) for i in range(0, X.shape[0], step)
    )
