"""The pool: features for supports, with their covariances in memory."""

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
        In the order of their addition.
    matrix : array
        A on these features.
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
        """Add features that are not in the pool yet; return how many."""
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
        position = self._position.copy()
        position[new] = np.arange(old, size)
        features = np.concatenate([self.features, new])
        rules = self._rules.among(features)
        # Nothing is called in between, so that Ctrl-C does not see half of it.
        self.features, self.matrix, self.rules, self._position = (
            features, matrix, rules, position
        )  # fmt: skip
        return len(new)

    def positions(self, features: Indices) -> Indices:
        """Return the positions of features in the pool."""
        return self._position[features]

    def submatrix(self, features: Indices) -> FloatArray:
        """Return A on some features of the pool."""
        return principal(self.matrix, self._position[features])


def principal(matrix: FloatArray, positions: Indices) -> FloatArray:
    """Return a principal submatrix; twice as fast as one index of two arrays."""
    return matrix.take(positions, 0).take(positions, 1)
