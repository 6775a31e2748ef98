"""Scores, squares, means and scales of samples: in memory, in files or in dask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._validation import FloatArray, is_sparse
from .covariance.covariance import Covariance
from .covariance.dask_source import is_dask
from .covariance.device_data import on_host
from .covariance.input_kinds import stays_in_place
from .covariance.stored import StoredSparse
from .covariance.task_tree import bounds


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
    here = [on_host(block) for block in line]
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
    X = on_host(X)  # a chunk may be on a GPU
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


def means_and_scales(
    X: Any, cov: Covariance, scale: bool
) -> tuple[FloatArray, FloatArray]:
    """Means of the features, and what they are divided by: 1 for what is constant."""
    varies = cov.diagonal() > 0
    known = cov.given_moments()
    if known is not None:  # data that are read in place
        return known[0], np.where(varies, known[1], 1.0)
    sparse = is_sparse(X)
    mean = np.asarray(X.mean(axis=0)).ravel() if sparse else np.nanmean(X, axis=0)
    if not scale:
        return mean, np.ones(len(mean))
    return mean, np.where(varies, standard_deviations(X, mean), 1.0)


def standard_deviations(X: Any, mean: FloatArray) -> FloatArray:
    """Return Σ (x − mean)² / (n − 1) of each feature, its root taken; NaN is left out.

    In units of the largest deviation, so that no square leaves the range of float64.
    """
    if is_sparse(X):
        columns = X.tocsc(copy=True)
        columns.sum_duplicates()
        feature = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
        centred = columns.data - mean[feature]
        zeros = X.shape[0] - np.diff(columns.indptr)
        size = np.where(zeros > 0, np.abs(mean), 0.0)
        np.maximum.at(size, feature, np.abs(centred))
        unit = np.where(size > 0, size, 1.0)
        squares = np.bincount(feature, (centred / unit[feature]) ** 2, X.shape[1])
        squares = squares + zeros * (mean / unit) ** 2
        return unit * np.sqrt(squares / (X.shape[0] - 1))
    centred = X - mean
    # Squares of very large or small numbers would overflow, or vanish.
    size = np.nanmax(np.abs(centred), axis=0)
    unit = np.where(size > 0, size, 1.0)
    samples = (~np.isnan(centred)).sum(axis=0)
    return unit * np.sqrt(np.nansum((centred / unit) ** 2, axis=0) / (samples - 1))
