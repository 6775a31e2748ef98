"""A form of A that does not depend on the order, signs and scale of its features."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..numerics.linalg import leading_eigenvector


class CanonicalForm:
    """A with features ordered by leading loading, all loadings ≥ 0, largest entry 1.

    Packages that start at a random or at the first feature depend on the order and
    signs of features. On this form, `matrix`, they do not, ties aside.
    """

    def __init__(self, A: FloatArray) -> None:
        loadings = leading_eigenvector(A)
        self._order = np.argsort(-np.abs(loadings), kind="stable")
        self._signs = np.where(loadings < 0, -1.0, 1.0)[self._order]
        scale = float(np.abs(A).max()) or 1.0
        matrix = A[np.ix_(self._order, self._order)] / scale
        matrix *= np.outer(self._signs, self._signs)
        self.matrix: FloatArray = (matrix + matrix.T) / 2

    def restore(self, weights: FloatArray) -> FloatArray:
        """Return `weights` in the order and with the signs of A."""
        restored = np.empty(len(weights))
        restored[self._order] = self._signs * weights
        return restored
