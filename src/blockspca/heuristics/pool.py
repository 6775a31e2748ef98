"""The pool of features that good supports are made of, and eigenvectors within it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..numerics.linalg import SMALL, leading_eigenvector, rayleigh
from ..numerics.rounding import in_units

# −λmin / |λmax| from which on LAPACK's λmax is not right to 1e-12 of itself.
_LOPSIDED = 1e3


class Pool:
    """A growing principal submatrix of A, in units of `unit`.

    Everything after the scan (swaps, proofs) happens inside it.
    """

    def __init__(self, cov: Covariance, unit: float) -> None:
        self.cov = cov
        self.n_features = cov.n_features
        self._unit = unit
        self.features: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.matrix: FloatArray = np.empty((0, 0))
        self._position = np.full(cov.n_features, -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.features)

    def add(self, features: NDArray[np.int64]) -> int:
        """Make sure the features are in; returns how many were new."""
        new = features[self._position[features] < 0]
        if len(new) == 0:
            return 0
        old = len(self.features)
        size = old + len(new)
        self._position[new] = np.arange(old, size)
        within = in_units(self.cov.submatrix(new), self._unit)
        if old == 0:
            self.features, self.matrix = new, within
            return size
        matrix = np.empty((size, size))
        matrix[:old, :old] = self.matrix
        matrix[old:, old:] = within
        cross = in_units(self.cov.submatrix(new, self.features), self._unit)
        matrix[old:, :old] = cross
        matrix[:old, old:] = cross.T
        self.features = np.concatenate([self.features, new])
        self.matrix = matrix
        return len(new)

    def positions(self, features: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the features are in `matrix`."""
        return self._position[features]

    def submatrix(self, features: NDArray[np.int64]) -> FloatArray:
        return self.within(self._position[features])

    def within(self, at: NDArray[np.int64]) -> FloatArray:
        """The part of `matrix` at some positions."""
        return submatrix_at(self.matrix, at)


def first_pool(k_max: int) -> int:
    """How many features the first supports for 1, …, k_max are made of."""
    # Ten for each place where that is cheap; the pool holds all entries among its
    # features, and swaps look at each of them.
    return max(4 * k_max, min(10 * k_max, 100))


def submatrix_at(matrix: FloatArray, at: NDArray[np.int64]) -> FloatArray:
    return matrix.take(at, 0).take(at, 1)  # twice as fast as [at][:, at]


def leading_pair(
    matrix: FloatArray, support: NDArray[np.int64]
) -> tuple[float, FloatArray]:
    """λ(S) and its eigenvector."""
    if len(support) == 1:
        return float(matrix[support[0], support[0]]), np.ones(1)
    within = submatrix_at(matrix, support)
    if len(support) > SMALL:
        x = leading_eigenvector(within)
        return rayleigh(within, x), x
    values, vectors = _eigen(within)
    return float(values[-1]), vectors[:, -1]


@cache
def _lapack() -> Any:
    # SciPy is not for those who only import: solvers are imported with the package.
    from scipy.linalg import lapack

    return lapack


def _eigen(within: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, ascending, and eigenvectors, as `numpy.linalg.eigh` has them.

    For a handful of features the checks of `eigh` take longer than LAPACK. The largest
    is what its eigenvector reaches where LAPACK's may be more.
    """
    values, vectors, failed = _lapack().dsyevd(within)
    if failed:
        values, vectors = np.linalg.eigh(within)
    if -values[0] > _LOPSIDED * abs(values[-1]):
        # LAPACK errs by eps times the largest |λ|; the Rayleigh quotient does not.
        values[-1] = rayleigh(within, vectors[:, -1])
    return values, vectors


Resolvent = Callable[[float], FloatArray]


def spectrum(
    within: FloatArray, pair: tuple[float, FloatArray] | None = None
) -> tuple[float, FloatArray, Resolvent]:
    """λ, its eigenvector and τ ↦ (τI − A_SS)^{-1} for A_SS; `pair` is λ and x."""
    if len(within) > SMALL:  # all eigenvalues would cost more than the inverse
        if pair is None:
            x = leading_eigenvector(within)
            pair = rayleigh(within, x), x
        value, x = pair
        identity = np.eye(len(x))
        return value, x, lambda tau: np.linalg.inv(tau * identity - within)
    values, vectors = _eigen(within)
    return (
        float(values[-1]),
        vectors[:, -1],
        lambda tau: (vectors / (tau - values)) @ vectors.T,
    )


def best_supports(
    matrix: FloatArray, supports: NDArray[np.int64], n_best: int
) -> NDArray[np.int64]:
    """The n_best rows S of `supports` with the largest λ(S), best first."""
    supports = np.unique(np.sort(supports, axis=1), axis=0)
    blocks = matrix[supports[:, :, None], supports[:, None, :]]
    values = np.linalg.eigvalsh(blocks)[:, -1]
    return supports[np.argsort(-values, kind="stable")[:n_best]]
