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

    Columns are multiplied by `factors`, if there are any, in place of the scale that
    `how` asks for. Where there are `units`, they are permuted instead.
    Constant columns have been refused, or ignored, before. `earlier` is the reference
    of the first component, where there was one.
    """

    X: Any
    how: dict[str, Any]
    factors: FloatArray | None = None
    earlier: Any = None
    units: PermutedUnits | None = None

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


class PermutedUnits:
    """Correlations of `unit_columns`, permuted each by itself, as often as asked.

    Every column is permuted once. For permutation b it is then moved round by a
    distance of its own, drawn uniformly from 0, …, n − 1.

    **Each b permutes as if anew.** A uniform permutation followed by any other one
    that does not depend on it is uniform, and columns stay independent.

    **Entries of two b are uncorrelated.** Given the once permuted columns x and y, the
    mean of Σ_s x_s y_(s+δ) over the distances δ is (Σ x_s)(Σ y_s) / n = 0.

    Moving is a tenth of the work of permuting. What b gives depends on the seed and on
    b only, so that all components can use the same, and the first `kept` are kept.
    """

    def __init__(self, units: np.ndarray, rng: np.random.Generator, kept: int) -> None:
        self.columns = rng.permuted(units, axis=1)
        self.seed = int(rng.integers(2**63))
        self.kept = kept
        self._correlations: dict[int, np.ndarray] = {}

    def permuted(self, b: int) -> np.ndarray:
        """The columns of permutation b, one a row."""
        n = self.columns.shape[1]
        rng = np.random.default_rng((self.seed, b))
        distances = rng.integers(n, size=len(self.columns))
        moved = np.empty_like(self.columns)
        for row, column, distance in zip(moved, self.columns, distances, strict=True):
            row[: n - distance] = column[distance:]
            row[n - distance :] = column[:distance]
        return moved

    def correlations(self, b: int) -> np.ndarray:
        found = self._correlations.get(b)
        if found is None:
            permuted = self.permuted(b)
            found = permuted @ permuted.T
            # Later components ask for the first few again; more would be as many
            # matrices of d × d.
            if b < self.kept:
                self._correlations[b] = found
        return found

    def covariance(self, b: int, variances: FloatArray) -> Covariance:
        """The covariance of permutation b, where columns have these variances.

        Of n ≥ d samples it is smaller than permuted data, and made in less time.
        """
        variances = np.maximum(variances, 0.0)
        deviations = np.sqrt(variances)
        A = self.correlations(b) * deviations[:, None]
        A *= deviations
        np.fill_diagonal(A, variances)
        return Covariance.from_matrix(A)


def permuted_units(
    X: Any, rng: np.random.Generator, kept: int = 0
) -> PermutedUnits | None:
    """`PermutedUnits` of data that have `unit_columns`."""
    units = unit_columns(X)
    return None if units is None else PermutedUnits(units, rng, kept)


def permuted_columns(X: Any, rng: np.random.Generator) -> Any:
    """Permute every column by itself; NaNs stay in place, sparse data stays sparse."""
    if is_sparse(X):
        permuted = X.tocsc(copy=True)
        for start, stop in zip(permuted.indptr, permuted.indptr[1:], strict=False):
            rows = rng.choice(X.shape[0], size=stop - start, replace=False)
            permuted.indices[start:stop] = rows
        # SciPy believes what it found before the rows were changed.
        permuted.has_sorted_indices = False
        permuted.sort_indices()
        return permuted
    permuted = rng.permuted(X, axis=0)
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        seen = ~np.isnan(X[:, j])
        permuted[:, j] = np.nan
        permuted[seen, j] = rng.permutation(X[seen, j])
    return permuted
