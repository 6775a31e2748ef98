"""Copies a matrix that was passed in, and checks it: symmetric, finite, in range."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import FloatArray, numeric_array
from .rounding import NORMAL

TILE_SIZE = 256  # a float64 tile of 512 KiB, which stays in cache with its mirror image

# Two halves of a matrix computed in floating point differ by rounding only.
SYMMETRY_TOLERANCE = 1e-12


def own_matrix(A: Any) -> tuple[FloatArray, bool]:
    """Return A, symmetric, in a private array; and whether its numbers are unchanged.

    A copy is needed because results that are computed from A are kept and combined in
    proofs with entries that are read later.
    """
    values = numeric_array(A, "A")
    refuse_rectangular(values)
    symmetric = symmetric_dense(values)
    is_same = symmetric is values
    # In Fortran order the transpose is the same matrix in C order, without a copy.
    by_columns = symmetric.flags.f_contiguous
    rows = np.ascontiguousarray(symmetric.T if by_columns else symmetric)
    # Lists and other dtypes were converted and other layouts copied; anything else may
    # share memory with the argument.
    converted = isinstance(A, list) or (type(A) is np.ndarray and A.dtype != np.float64)
    ours = converted or not np.may_share_memory(rows, values)
    return rows if ours else rows.copy(), is_same


def refuse_rectangular(A: Any) -> None:
    """Refuse what is not d × d."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A has shape {A.shape}, which is not square; pass data (rows are "
            "samples) to Covariance.from_data instead."
        )


def refuse_unscaled(largest: float, d: int) -> None:
    """Refuse a matrix whose sums overflow, or whose entries are short of digits."""
    if largest > np.finfo(float).max / (4 * d):
        raise ValueError(
            f"A has entries as large as {largest:.3g}, so that x'Ax overflows; divide "
            "A by a constant."
        )
    if 0 < largest < NORMAL:
        raise ValueError(
            f"A has no entry larger than {largest:.3g}, so small that float64 holds it "
            "with fewer digits; multiply A by a constant."
        )


def symmetric_dense(A: FloatArray) -> FloatArray:
    """Check that A is finite and symmetric, tile by tile."""
    d = len(A)
    side = d if d <= 2 * TILE_SIZE else TILE_SIZE  # a small matrix is one tile
    worst, largest, where = 0.0, 0.0, (0, 0)
    deviation = np.sqrt(np.abs(np.diagonal(A)))
    symmetric = True
    for i0 in range(0, d, side):
        for j0 in range(i0, d, side):
            rows, columns = slice(i0, i0 + side), slice(j0, j0 + side)
            upper, lower = A[rows, columns], A[columns, rows].T
            same = np.array_equal(upper, lower)  # never where something is NaN
            top = max(upper.max(), -upper.min())
            if not same:
                top = np.abs([top, lower.max(), lower.min()]).max()  # NaN if one is
            if not np.isfinite(top):
                tile = np.isfinite(upper) & np.isfinite(lower)
                i, j = np.argwhere(~tile)[0] + (i0, j0)
                raise ValueError(
                    f"A[{i}, {j}] = {A[i, j]} and A[{j}, {i}] = {A[j, i]}: A must be "
                    "finite; replace or drop those features."
                )
            largest = max(largest, float(top))
            if same:
                continue
            symmetric = False
            size = np.maximum(np.abs(upper), np.abs(lower))
            size = np.maximum(size, np.outer(deviation[rows], deviation[columns]))
            size[size == 0] = 1.0
            difference = np.abs(upper / size - lower / size)
            if difference.max() > worst:
                worst = float(difference.max())
                i, j = np.unravel_index(difference.argmax(), difference.shape)
                where = (i0 + int(i), j0 + int(j))
    refuse_unscaled(largest, d)
    if worst > SYMMETRY_TOLERANCE:
        i, j = where
        raise ValueError(
            f"A is not symmetric: A[{i}, {j}] = {A[i, j]} but A[{j}, {i}] = "
            f"{A[j, i]}; pass (A + A.T) / 2 if its symmetric part is meant, or data "
            "(rows are samples) to Covariance.from_data."
        )
    return A if symmetric else (A + A.T) / 2


def symmetric_sparse(A: Any) -> Any:
    """Check that A is square, symmetric and of a size that float64 can add up."""
    refuse_rectangular(A)
    refuse_unscaled(float(abs(A).max()), A.shape[0])
    difference = abs(A - A.T)
    worst = difference.max()
    if worst > SYMMETRY_TOLERANCE * abs(A).max():
        raise ValueError(
            f"A is not symmetric: an entry differs from its mirror image by {worst}; "
            "pass (A + A.T) / 2 if its symmetric part is meant."
        )
    return A if worst == 0 else ((A + A.T) / 2).tocsr()
