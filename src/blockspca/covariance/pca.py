"""Ordinary PCA: the largest eigenvalues of A, which no sparse component exceeds."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..numerics.linalg import lanczos
from .covariance import Covariance

# All eigenvalues of this order take 0.13 s with one thread, and never fail to converge.
DENSE_UP_TO = 1500


def small_matrix(cov: Covariance) -> FloatArray | None:
    """A, or the n × n matrix with the same nonzero eigenvalues, whichever is small."""
    n, d = cov.n_samples, cov.n_features
    if n is not None and n < d and n <= DENSE_UP_TO:
        return cov.gram(np.ones(d))  # what has samples has a factor C, A = C'C
    return cov.submatrix(slice(None)) if d <= DENSE_UP_TO else None


def pca_variances(cov: Covariance, m: int) -> FloatArray:
    """Return the m largest eigenvalues of A, descending: what PCA explains.

    Computed directly where features or samples are at most 1500, otherwise by Lanczos
    iterations from a fixed start, which may end a little below. Not a bound.
    """
    d = cov.n_features
    m = min(m, d)
    matrix = small_matrix(cov)
    if matrix is not None:
        top = np.zeros(m)  # what the samples do not span
        values = np.linalg.eigvalsh(matrix)[::-1][:m]
        top[: len(values)] = values
        return top
    found = lanczos(cov.matvec, np.ones(d), count=m)
    if found is None:
        raise RuntimeError(
            f"the {m} largest eigenvalues of A, d = {d}, did not converge; ask for "
            "fewer, or for those of its dense matrix"
        )
    return np.sort(found[0])[::-1]
