"""Ordinary PCA as the ceiling: the largest eigenvalues of A."""

from __future__ import annotations

import numpy as np

from ._validation import FloatArray
from .covariance import Covariance

DENSE_UP_TO = 1500


def pca_variances(cov: Covariance, m: int) -> FloatArray:
    """Return the m largest eigenvalues of A, descending: what PCA explains.

    From data with fewer samples than features, or a matrix of moderate size, they are
    computed exactly; otherwise by Lanczos iterations from a fixed start.
    """
    d = cov.n_features
    m = min(m, d)
    if d <= DENSE_UP_TO:
        return np.linalg.eigvalsh(cov.submatrix(slice(None)))[::-1][:m].copy()
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator(
        (d, d), matvec=cov.matvec, matmat=cov.matvec, dtype=np.float64
    )
    values = eigsh(operator, k=m, which="LA", v0=np.ones(d), return_eigenvectors=False)
    return np.sort(values)[::-1]
