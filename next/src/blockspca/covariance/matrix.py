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


def symmetric_copy(A: Any) -> tuple[Any, bool]:
    """Return a symmetric copy of A, dense or CSR, and whether its numbers are A's."""
    refuse_rectangular(A.shape)
    if isinstance(A, np.ndarray):
        A = np.array(A, dtype=np.float64, order="C")
        largest, difference, (i, j) = compared(A)
    else:
        A = A.tocsr().astype(np.float64)
        refuse_infinite(A.tocoo())
        largest = float(np.abs(A.data).max(initial=0.0))
        apart = abs(A - A.T).tocoo()
        difference, i, j = float(apart.data.max(initial=0.0)), 0, 0
        if difference:
            at = int(apart.data.argmax())
            i, j = sorted((int(apart.row[at]), int(apart.col[at])))
    if difference > TOLERANCE * largest:
        raise ValueError(
            f"A[{i}, {j}] = {A[i, j]} but A[{j}, {i}] = {A[j, i]}: a matrix must be "
            "symmetric; use (A + A.T) / 2, or Covariance.from_data(A) if its rows are "
            "samples."
        )
    refuse_far(largest, "A", "the largest entry", largest)
    if difference == 0:
        return A, True
    average = (A + A.T) / 2
    return average if isinstance(A, np.ndarray) else average.tocsr(), False


def compared(A: FloatArray) -> tuple[float, float, tuple[int, int]]:
    """Return max |A_ij|, and the largest difference of two halves with its place."""
    largest, difference, where = 0.0, 0.0, (0, 0)
    for i in range(0, len(A), TILE):
        for j in range(i, len(A), TILE):
            rows, columns = slice(i, i + TILE), slice(j, j + TILE)
            upper, lower = A[rows, columns], A[columns, rows].T
            size = max(np.abs(upper).max(), np.abs(lower).max())
            if not np.isfinite(size):
                from scipy.sparse import coo_array

                refuse_infinite(coo_array(A))
            largest = max(largest, float(size))
            apart = np.abs(upper - lower)
            if apart.max() > difference:
                difference = float(apart.max())
                at = np.unravel_index(apart.argmax(), apart.shape)
                where = (int(at[0]) + i, int(at[1]) + j)
    return largest, difference, where


def refuse_infinite(A: Any) -> None:
    """Refuse a matrix (COO) with an entry that is not finite."""
    bad = np.flatnonzero(~np.isfinite(A.data))
    if len(bad):
        i, j, value = A.row[bad[0]], A.col[bad[0]], A.data[bad[0]]
        raise ValueError(
            f"A[{i}, {j}] = {value} must be finite; replace it, or drop the feature."
        )
