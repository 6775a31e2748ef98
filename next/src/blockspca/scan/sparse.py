"""Lists from sparse data with means, scales and a low rank: X'X is never formed.

Rows of A are computed by a kernel that costs Σ_s nnz(x_s)² in all. Means and low rank
fill A, but their part of an entry is a product of two norms, which few features have
large.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..call import Run
from ..linalg.rounding import gamma
from ..validation import FloatArray, Indices
from .lists import Lists
from .sweep import empty_lists, finished, sweep

PAIRS = 2**21  # pairs of nonzeros of a stripe: some hundredths of a second


def sparse_lists(
    X: Any,
    factor: FloatArray,
    shift: FloatArray,
    width: int,
    run: Run,
    *,
    low_rank: tuple[FloatArray, FloatArray] | None = None,
    diagonal: FloatArray | None = None,
    features: Indices | None = None,
) -> Lists:
    """Return the largest entries of sparse data; see `Lists`.

    Parameters
    ----------
    X : CSR or CSC matrix (n, d)
        Any values; A_ij = f_i f_j (X'X)_ij − s_i s_j − (LR' + RL')_ij. For centred data
        X holds values times √w of their samples, and s = f μ √(Σ w).
    factor, shift : array (d,)
        f ≥ 0 and s.
    low_rank : pair of arrays (d, r), optional
        L and R.
    diagonal : array (d,), optional
        The A_ii or more, if A is positive semidefinite: entries that cannot enter a
        list are then passed over.
    features : array of int64, optional
        Rows and columns to scan; indices of the result are positions in it.
    """
    from .._kernels.sparse_rows import add_sparse_rows

    d = X.shape[1]
    left, right = low_rank or (np.zeros((d, 0)), np.zeros((d, 0)))
    rank = left.shape[1]
    deviation = np.full(d, np.inf)
    if diagonal is not None:  # the margin covers the rounding of roots and products
        deviation = np.sqrt(np.maximum(diagonal, 0.0)) * (1 + 1e-14)
    norm = np.linalg.norm(np.column_stack([shift, left, right]), axis=1)
    norm *= 1 + gamma(2 * rank + 8)
    chosen = np.arange(d) if features is None else features
    places = np.argsort(-norm[chosen], kind="stable")
    order = chosen[places]
    by_feature = X.tocsc()[:, order]
    run.check()
    by_sample = by_feature.tocsr()
    by_sample.sum_duplicates()
    run.check()
    table = np.column_stack([factor, shift, deviation, norm])[order]
    others = np.ascontiguousarray(left[order]), np.ascontiguousarray(right[order])
    # The two terms of an entry have one sign, and partly cancel, only here.
    cancels = (by_sample.data >= 0).all() and (shift >= 0).all() and rank == 0
    largest = float(table[:, 0].max(initial=0.0)) if cancels else math.inf
    layout = (*_arrays(by_sample), *_arrays(by_feature), table, *others, largest)
    values, indices = empty_lists(len(order), min(width, max(len(order) - 1, 1)))

    def fill(rows: slice) -> None:
        total = np.zeros(len(order))
        add_sparse_rows(rows.start, rows.stop, *layout, total, values, indices)

    sweep(run, fill, _stripes(by_sample, by_feature))

    squares = np.zeros(len(order))
    np.add.at(squares, by_sample.indices, by_sample.data**2)
    most = int(np.diff(by_feature.indptr).max(initial=0))
    size = (table[:, 0] ** 2 * squares + table[:, 3] ** 2).max(initial=0.0)
    error = gamma(most + 2 * rank + 8) * float(size) * (1 + 1e-9)
    return finished(values, indices, width, error, features, places)


def _arrays(X: Any) -> tuple[Any, Any, Any]:
    """Return pointers, indices and data in the types of kernels."""
    data = np.ascontiguousarray(X.data, dtype=np.float64)
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), data


def _stripes(by_sample: Any, by_feature: Any) -> list[slice]:
    """Return stripes of rows with about as many pairs of nonzeros each."""
    d = by_feature.shape[1]
    of_sample = np.diff(by_sample.indptr).astype(np.float64)
    running = np.concatenate([[0.0], np.cumsum(of_sample[by_feature.indices])])
    pairs = running[by_feature.indptr[1:]] + np.arange(1, d + 1) * d / 4
    count = max(1, math.ceil(pairs[-1] / max(PAIRS, 8 * d)))
    inner = np.searchsorted(pairs, pairs[-1] * np.arange(1, count) / count)
    bounds = np.unique(np.concatenate([[0], inner, [d]])).tolist()
    return [slice(*ends) for ends in pairwise(bounds)]
