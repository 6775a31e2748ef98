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
        # Where the search for the current k begins, as positions in the pool.
        self._starts: list[tuple[NDArray[np.int64], str]] = []
        # Positions in the pool, by ascending feature, with λ and its eigenvector.
        self._pairs: dict[int, tuple[NDArray[np.int64], tuple[float, FloatArray]]] = {}

    def start(self, k: int) -> None:
        """Extend the support of k − 1, or take what was given, without swaps."""
        previous, pair = self._pairs.get(k - 1, (self.supports[k - 1], None))
        self._starts = [(extended(self.pool.matrix, previous, k, pair), "extension")]
        given = self.given.get(k)
        if given is not None and len(given) <= k:
            positions = self.pool.positions(given)
            self._starts.append((extended(self.pool.matrix, positions, k), "given"))
        for positions, source in self._starts:
            value, x = leading_pair(self.pool.matrix, positions)
            if value > self.values[k]:
                self._keep(k, positions, value, x, source)

    def improve(self, k: int) -> None:
        """Improve what k was started with by swaps."""
        for positions, source in self._starts:
            self.offer(k, positions, source)

    def loadings(self, k: int) -> FloatArray:
        """The leading eigenvector on supports[k], in its one form."""
        positions, (_, x) = self._pairs[k]
        if np.array_equal(self.pool.features[positions], self.supports[k]):
            return with_sign(x)
        return leading_eigenvector(self.pool.submatrix(self.supports[k]))

    def offer(self, k: int, positions: NDArray[np.int64], source: str) -> bool:
        """Improve a support by swaps; keep it if it beats the incumbent of k."""
        before = positions
        positions, value, x = swapped(self.pool.matrix, positions)
        if positions is not before and not source.endswith("swaps"):
            source += " + swaps"
        if value <= self.values[k]:
            return False
        self._keep(k, positions, value, x, source)
        return True

    def _keep(
        self,
        k: int,
        positions: NDArray[np.int64],
        value: float,
        x: FloatArray,
        source: str,
    ) -> None:
        features = self.pool.features[positions]
        order = features.argsort()
        # The value comes last: Ctrl-C may strike between the lines, and a status is
        # judged by the value.
        self.supports[k] = features[order]
        self.sources[k] = source
        self._pairs[k] = (positions[order], (value, x[order]))
        self.values[k] = value

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
