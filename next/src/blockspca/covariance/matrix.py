"""A matrix that a user passes in: a finite, symmetric copy in range."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..validation import FloatArray
from .moments import refuse_far

TILE = 256  # 512 KiB, which stay in the cache with their mirror image
TOLERANCE = 1e-12  # two halves of a computed matrix differ by rounding only


def refuse_rectangular(shape: tuple[int, int]) -> None:
    """Refuse a matrix that is not square."""
    if shape[0] != shape[1]:
        raise ValueError(
            f"A has shape {shape} and must be square; use Covariance.from_data for "
            "samples × features."
        )


def symmetric_dense(A: Any) -> tuple[FloatArray, bool]:
    """Return a symmetric copy of A, and whether its numbers are those of A."""
    refuse_rectangular(A.shape)
    A = np.array(A, dtype=np.float64, order="C")
    d = len(A)
    largest, difference, where = 0.0, 0.0, (0, 0)
    for i in range(0, d, TILE):
        for j in range(i, d, TILE):
            rows, columns = slice(i, i + TILE), slice(j, j + TILE)
            upper, lower = A[rows, columns], A[columns, rows].T
            size = max(np.abs(upper).max(), np.abs(lower).max())
            if not np.isfinite(size):
                at = np.argwhere(~(np.isfinite(upper) & np.isfinite(lower)))[0]
                a, b = int(at[0]) + i, int(at[1]) + j
                if np.isfinite(A[a, b]):
                    a, b = b, a
                raise ValueError(
                    f"A[{a}, {b}] = {A[a, b]} must be finite; replace it, or drop the "
                    "feature."
                )
            largest = max(largest, float(size))
            apart = np.abs(upper - lower)
            if apart.max() > difference:
                difference = float(apart.max())
                at = np.unravel_index(apart.argmax(), apart.shape)
                where = (int(at[0]) + i, int(at[1]) + j)
    if difference > TOLERANCE * largest:
        i, j = where
        raise ValueError(
            f"A[{i}, {j}] = {A[i, j]} but A[{j}, {i}] = {A[j, i]}: a matrix must be "
            "symmetric; use (A + A.T) / 2, or Covariance.from_data(A) if its rows are "
            "samples."
        )
    refuse_far(largest, "A", "the largest entry", largest)
    return (A, True) if difference == 0 else ((A + A.T) / 2, False)


def symmetric_sparse(A: Any) -> tuple[Any, bool]:
    """Return a symmetric copy of A (CSR), and whether its numbers are those of A."""
    refuse_rectangular(A.shape)
    A = A.tocsr().astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(A.data))
    if len(bad):
        i = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"A[{i}, {A.indices[bad[0]]}] = {A.data[bad[0]]} must be finite; replace "
            "it, or drop the feature."
        )
    largest = float(np.abs(A.data).max(initial=0.0))
    apart = abs(A - A.T).tocoo()
    difference = float(apart.data.max(initial=0.0))
    if difference > TOLERANCE * largest:
        at = int(apart.data.argmax())
        i, j = int(apart.row[at]), int(apart.col[at])
        raise ValueError(
            f"A[{i}, {j}] and A[{j}, {i}] differ by {difference:.3g}: a matrix must be "
            "symmetric; use (A + A.T) / 2, or Covariance.from_data(A) if its rows are "
            "samples."
        )
    refuse_far(largest, "A", "the largest entry", largest)
    return (A, True) if difference == 0 else (((A + A.T) / 2).tocsr(), False)
