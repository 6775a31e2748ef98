"""Data with every column permuted by itself: variances stay, correlations go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import FloatArray, is_sparse
from ..covariance.covariance import Covariance


@dataclass(frozen=True)
class Columns:
    """Data to permute: rows X, and how a covariance is made of them.

    `factors` are what columns are multiplied by, instead of what `how` says of scale;
    None for no factors. `units` are the `unit_columns`, which take the place of all
    that where there are some. Constant columns have been refused, or ignored, before.
    `earlier` is the reference of the first component, where there was one.
    """

    X: Any
    how: dict[str, Any]
    factors: FloatArray | None = None
    earlier: Any = None
    units: np.ndarray | None = None

    def permuted(self, rng: np.random.Generator) -> Covariance:
        """The covariance of the data with every column permuted by itself."""
        shuffled, how = permuted_columns(self.X, rng), self.how
        if self.factors is not None:
            how = {**how, "scale": False}
            if is_sparse(shuffled):
                shuffled = shuffled.multiply(self.factors[None, :]).tocsc()
            else:
                shuffled *= self.factors
        return Covariance.from_data(shuffled, **how, constant="ignore")


def unit_columns(X: Any) -> np.ndarray | None:
    """Centred columns of norm 1, one a row; None where d > n, of sparse data and gaps.

    In single precision: an entry of the correlations of such columns errs by less than
    n · 6e-8, and one of permuted columns has the standard deviation 1 / √n.
    """
    if is_sparse(X) or X.shape[0] < X.shape[1] or not np.isfinite(X).all():
        return None
    columns = X.T - X.mean(axis=0)[:, None]
    size = np.abs(columns).max(axis=1, keepdims=True)  # squares stay in range
    columns /= np.where(size > 0, size, 1.0)
    norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))[:, None]
    columns /= np.where(norms > 0, norms, 1.0)
    return np.ascontiguousarray(columns, dtype=np.float32)


def permuted_covariance(
    units: np.ndarray, variances: FloatArray, rng: np.random.Generator
) -> Covariance:
    """The covariance of `unit_columns`, each permuted by itself, with these variances.

    Of n ≥ d samples it is smaller than permuted data, and made in less time.
    """
    permuted = rng.permuted(units, axis=1)
    A = (permuted @ permuted.T).astype(np.float64)
    deviations = np.sqrt(np.maximum(variances, 0.0))
    A *= deviations[:, None]
    A *= deviations
    np.fill_diagonal(A, np.maximum(variances, 0.0))
    return Covariance.from_matrix(A)


def permuted_columns(X: Any, rng: np.random.Generator) -> Any:
    """Permute every column by itself; NaNs stay in place, sparse data stays sparse."""
    if is_sparse(X):
        permuted = X.tocsc(copy=True)
        for start, stop in zip(permuted.indptr, permuted.indptr[1:], strict=False):
            rows = rng.choice(X.shape[0], size=stop - start, replace=False)
            permuted.indices[start:stop] = rows
        permuted.has_sorted_indices = False
        permuted.sort_indices()
        return permuted
    permuted = rng.permuted(X, axis=0)
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        seen = ~np.isnan(X[:, j])
        permuted[:, j] = np.nan
        permuted[seen, j] = rng.permutation(X[seen, j])
    return permuted
