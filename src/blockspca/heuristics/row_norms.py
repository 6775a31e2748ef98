"""Squared norms ‖Ae_i‖² of rows of A = C'C, without the rows: c_i'(CC')c_i.

CC' is n × n: of d = 100,000 features and n = 800 samples it takes as long as thirty
rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.rounding import EPS

_LARGEST_INDEX = 2**31 - 1  # of the kernels of sparse sums, which have 32-bit indices


def squared_row_norms(
    cov: Covariance,
    features: NDArray[np.intp],
    unit: float,
    most_entries: int,
    deadline: Deadline,
) -> FloatArray | None:
    """Bound ‖Ae_i‖² / unit² from above for some features, by more than rounding.

    None where A is not made from sparse data in memory, where CC' has more than
    `most_entries`, and where there is no time for it.
    """
    data = cov.sparse_data()
    if data is None:
        return None
    X, mean, factor = data
    n, stored = X.shape[0], np.diff(X.indptr)
    if n * n > most_entries or X.nnz > _LARGEST_INDEX:
        return None
    seconds = _cost.sparse_gram(float(stored.astype(np.float64) @ stored))
    seconds += _cost.passes(4, n * n + X.nnz)
    if not deadline.affords(seconds):
        return None
    if not deadline.loads(load, "sparse_columns"):
        return None
    from .._kernels.sparse_columns import add_gram, quadratic_forms

    scale = factor / np.sqrt(unit)
    Y = X.astype(np.float64).tocsc()
    Y.sort_indices()  # `add_gram` relies on it
    Y.data *= np.repeat(scale, stored)
    Y.indptr, Y.indices = Y.indptr.astype(np.int32), Y.indices.astype(np.int32)
    # Columns y_i − m_i 1 of C: CC' = YY' − s1' − 1s'
    m = scale * mean
    gram = np.zeros((n, n))
    shift = Y @ m - m @ m / 2
    add_gram(Y.indptr, Y.indices, Y.data, np.ones(len(m)), shift, gram)
    chosen, m_chosen = Y[:, features], m[features]
    forms, sums = np.empty(len(features)), gram.sum(axis=0)
    quadratic_forms(chosen.indptr, chosen.indices, chosen.data, gram, forms)
    forms += m_chosen * (m_chosen * sums.sum() - 2 * (chosen.T @ sums))
    # Sums of n or fewer terms, which a large mean makes larger than what is left
    sizes = cov.diagonal() / unit + n * m * m
    return forms + 8 * (n + 4) * EPS * sizes[features] * float(sizes.sum())
