"""The pool of features that good supports are made of, with A among them in memory."""

from __future__ import annotations

import numpy as np

from ..constraints.rules import Rules
from ..covariance.covariance import Covariance
from ..validation import FloatArray, Indices


class Pool:
    """A growing principal submatrix of A.

    Attributes
    ----------
    features : array of int64
        In the order in which they came.
    matrix : array
        A among these features.
    rules : Rules
        By positions in `features`.
    """

    def __init__(self, cov: Covariance, rules: Rules) -> None:
        self.cov, self._rules = cov, rules
        self.features: Indices = np.empty(0, dtype=np.int64)
        self.matrix: FloatArray = np.empty((0, 0))
        self.rules = Rules()
        self._position = np.full(cov.n_features, -1, dtype=np.int64)
        self.add(rules.root)

    def __len__(self) -> int:
        return len(self.features)

    def add(self, features: Indices) -> int:
        """Make sure that the features are in; return how many are new."""
        new = features[self._position[features] < 0]
        if len(new) == 0:
            return 0
        old, size = len(self), len(self) + len(new)
        matrix = np.empty((size, size))
        matrix[:old, :old] = self.matrix
        matrix[old:, old:] = self.cov.submatrix(new)
        if old:
            matrix[old:, :old] = self.cov.block(new, self.features)
            matrix[:old, old:] = matrix[old:, :old].T
        self._position[new] = np.arange(old, size)
        self.features = np.concatenate([self.features, new])
        self.matrix = matrix
        self.rules = self._rules.among(self.features)
        return len(new)

    def positions(self, features: Indices) -> Indices:
        """Return the rows of `matrix` of some features."""
        return self._position[features]

    def submatrix(self, features: Indices) -> FloatArray:
        """Return A among some features of the pool."""
        return at(self.matrix, self._position[features])


def at(matrix: FloatArray, positions: Indices) -> FloatArray:
    """Return a principal submatrix; twice as fast as one index of two arrays."""
    return matrix.take(positions, 0).take(positions, 1)


def first_pool(k: int) -> int:
    """Return how many features the first supports are made of.

    Ten for each place if that is cheap: swaps look at all entries among them.
    """
    return max(4 * k, min(10 * k, 100))
