"""The best support known for each k, and the ways it is improved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance
from ..vectors import leading_eigenvector, with_sign
from .incumbent import Pool, best_supports, extended, leading_pair, swapped
from .screening import Screening

# Rows tried as starts, and how many of them are improved by swaps.
_N_ROWS = 100
_N_STARTS = 8


class Incumbents:
    """Supports, values (in units of `unit`) and sources for k = 1, …, k_max.

    Parameters
    ----------
    cov : Covariance
    unit : float
    k_max : int
    start : array of int
        Features that the first supports are made of.
    given : mapping from k to features
        Supports found elsewhere.
    """

    def __init__(
        self,
        cov: Covariance,
        unit: float,
        k_max: int,
        start: NDArray[np.int64],
        given: Mapping[int, Sequence[int]],
    ) -> None:
        self.pool = Pool(cov, unit)
        self.given = {
            k: np.unique(np.asarray(features, dtype=np.int64))
            for k, features in given.items()
            if len(features)
        }
        self.pool.add(np.unique(np.concatenate([start, *self.given.values()])))
        self.supports: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * (k_max + 1)
        self.values = np.full(k_max + 1, -np.inf)
        self.sources = ["none"] * (k_max + 1)
        self._rows_tried = 0
        # Positions in the pool with λ and its eigenvector, for the next extension.
        self._pairs: dict[int, tuple[NDArray[np.int64], tuple[float, FloatArray]]] = {}

    def start(self, k: int) -> None:
        """Extend the support of k − 1, take what was given; improve by swaps."""
        matrix, positions = self.pool.matrix, self.pool.positions
        previous, pair = self._pairs.get(k - 1, (self.supports[k - 1], None))
        self.offer(k, extended(matrix, previous, k, pair), "extension")
        given = self.given.get(k)
        if given is not None and len(given) <= k:
            self.offer(k, extended(matrix, positions(given), k), "given")

    def fill(self, k: int) -> None:
        """Extend the support of k − 1, or take what was given, without swaps."""
        previous, pair = self._pairs.get(k - 1, (self.supports[k - 1], None))
        starts = [(previous, pair, "extension")]
        given = self.given.get(k)
        if given is not None and len(given) <= k:
            starts.append((self.pool.positions(given), None, "given"))
        for positions, pair, source in starts:
            support = extended(self.pool.matrix, positions, k, pair)
            value, x = leading_pair(self.pool.matrix, support)
            if value > self.values[k]:
                self.supports[k] = np.sort(self.pool.features[support])
                self.sources[k] = source
                self._pairs[k] = (support, (value, x))
                self.values[k] = value

    def loadings(self, k: int) -> FloatArray:
        """The leading eigenvector on supports[k], in its one form."""
        positions, (_, x) = self._pairs.get(k, (np.empty(0, np.int64), (0.0, None)))
        features = self.pool.features[positions]
        order = np.argsort(features)
        if x is not None and np.array_equal(features[order], self.supports[k]):
            return with_sign(x[order])
        return leading_eigenvector(self.pool.submatrix(self.supports[k]))

    def offer(self, k: int, positions: NDArray[np.int64], source: str) -> bool:
        """Improve a support by swaps; keep it if it beats the incumbent of k."""
        if k == 1:
            value = float(self.pool.matrix[positions[0], positions[0]])
            x = np.ones(1)
        else:
            before = positions
            positions, value, x = swapped(self.pool.matrix, positions)
            if positions is not before and not source.endswith("swaps"):
                source += " + swaps"
        if value <= self.values[k]:
            return False
        # The value comes last: Ctrl-C may strike between the lines, and a status is
        # judged by the value.
        self.supports[k] = np.sort(self.pool.features[positions])
        self.sources[k] = source
        self._pairs[k] = (positions, (value, x))
        self.values[k] = value
        return True

    def admit(self, k: int, features: NDArray[np.int64]) -> bool:
        """Add features to the pool; True if swaps with them improved k."""
        if self.pool.add(features) == 0:
            return False
        positions = self.pool.positions(self.supports[k])
        return self.offer(k, positions, self.sources[k])

    def accept(self, k: int, features: NDArray[np.int64]) -> bool:
        """Take a set that a proof came upon, which may be smaller than k."""
        support = extended(self.pool.matrix, self.pool.positions(features), k)
        return self.offer(k, support, "proof tree")

    def restart_from_rows(self, k: int, screening: Screening) -> bool:
        """Try truncated rows of A, once for each k; True if that improved k."""
        if self._rows_tried >= k or k == 1:
            return False
        self._rows_tried = k
        supports = screening.row_supports(k, _N_ROWS)
        if len(supports) == 0:
            return False
        self.pool.add(np.unique(supports))
        starts = best_supports(
            self.pool.matrix, self.pool.positions(supports), _N_STARTS
        )
        better = [self.offer(k, start, "rows") for start in starts]
        return any(better)
