"""Lists from a matrix in memory, and from any function that returns blocks of A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..call import Run
from ..validation import FloatArray, Indices
from .lists import Lists
from .sweep import empty_lists, finished, row_lists


def matrix_lists(
    A: FloatArray, width: int, run: Run, features: Indices | None = None
) -> Lists:
    """Return the largest entries of a symmetric matrix in memory; see `Lists`."""
    if features is None:
        lists = row_lists(lambda rows: A[rows], len(A), width, run)
    else:
        lists = row_lists(
            lambda rows: A[features[rows, None], features], len(features), width, run
        )
    return finished(*lists, width, 0.0, features)


def block_lists(
    block: Callable[[Indices, Indices], FloatArray],
    d: int,
    width: int,
    run: Run,
    features: Indices | None = None,
) -> Lists:
    """Return the largest entries of any A; see `Lists`.

    ``block(rows, columns)`` returns A[rows, columns] for two arrays of features.
    Several threads call it at a time. Its numbers count as exact.
    """
    every = np.arange(d) if features is None else features
    lists = row_lists(lambda rows: block(every[rows], every), len(every), width, run)
    return finished(*lists, width, 0.0, features)


def stored_lists(
    A: Any, width: int, run: Run, features: Indices | None = None
) -> Lists:
    """Return the largest entries of a symmetric sparse matrix; see `Lists`."""
    run.check()
    A = A.tocsr() if features is None else A.tocsr()[features][:, features]
    stored = A.tocoo()
    stored.sum_duplicates()
    rows, columns = stored.row, stored.col
    sizes = np.abs(stored.data.astype(np.float64))
    kept = (rows != columns) & (sizes > 0)
    rows, columns, sizes = rows[kept], columns[kept], sizes[kept]
    order = np.lexsort((columns, -sizes, rows))
    rows, columns, sizes = rows[order], columns[order], sizes[order]
    first = np.searchsorted(rows, np.arange(A.shape[0]))
    places = np.arange(len(rows)) - first[rows]
    listed = places < width
    values, indices = empty_lists(A.shape[0], width)
    values[rows[listed], places[listed]] = sizes[listed]
    indices[rows[listed], places[listed]] = columns[listed]
    return Lists(values, indices, 0.0, features)
