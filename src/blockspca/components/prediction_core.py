"""A and A² on the features that components may use, and turns of components there.

What a set of components has, and what it predicts of *all* features, is known from A
and A² on its own features: with V the components, V'AV and V'A²V. So a search needs no
more than both matrices on a core of promising features, which is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._kernels.prediction_constants import CANDIDATES, EXCHANGES, FITS, REFINED, STEPS
from .._validation import FloatArray
from ..bounds.entry_dual.pairs import OutOfTime
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from .prediction_goal import Goal

Indices = NDArray[np.intp]

CHUNK = 2**22  # entries of rows of A that are held at a time
TURNS = 10  # of every component, at the most
# Multiplications of a call, about, some 0.03 s; then the time is looked at. At the
# most: exchanges of a turn are as many as there may be.
WORK = 3 * 10**7
ANGLE = 40  # multiplications that an arctangent, sine and cosine take as long as


@dataclass(frozen=True)
class Measured:
    """A set of components V, (m, d), what they have, and what they predict."""

    V: FloatArray
    adjusted: float
    predicted: float

    def value(self, goal: Goal) -> float:
        return goal.value(self.adjusted, self.predicted)


class Core:
    """Some features, and A and A² on them, in given units.

    Parameters
    ----------
    entries : int
        Numbers that all its arrays may hold. Half are for A and A², and new ones with
        them as they grow.
    """

    def __init__(
        self, cov: Covariance, unit: float, deadline: Deadline, entries: int
    ) -> None:
        self.cov, self.unit, self.deadline = cov, unit, deadline
        self.features = np.empty(0, dtype=np.intp)
        self.A = self.square = np.empty((0, 0))
        self._place = np.full(cov.n_features, -1, dtype=np.int64)
        self.largest = math.isqrt(entries // 8)  # features
        self._chunk = max(1, min(CHUNK, entries // 8))
        self._factor: FloatArray | None = None
        self._between: FloatArray | None = None  # CC', once it is needed
        factor = cov.dense_factor()
        if factor is not None and len(factor) < cov.n_features:
            fits = len(factor) ** 2 <= entries // 4
            self._factor = factor if fits else None

    def extend(self, features: Indices) -> bool:
        """Add features; False if all are there.

        Where time does not suffice, `OutOfTime` is raised and none is added.
        """
        new = np.setdiff1d(features, self.features)
        if not len(new):
            return False
        old = len(self.features)
        features = np.concatenate([self.features, new])
        sizes = len(new), len(features)
        # CC' once and for all, or rows of A, which few features take less time with.
        factored = self._factor is not None
        if factored and not self.deadline.affords(self._seconds(*sizes, True)):
            factored = False
        if not factored and not self.deadline.affords(self._seconds(*sizes, False)):
            raise OutOfTime
        # A of a matrix of data may be a copy of the large one: only the new rows.
        first = self.cov.submatrix(new, features) / self.unit
        if len(new) == self.cov.n_features:
            second = first @ first.T
        else:
            second = self._squares(features, old, factored)
        self.A = _bordered(self.A, first, old)
        self.square = _bordered(self.square, second, old)
        self.features = features
        self._place[new] = np.arange(old, len(features))
        return True

    def _squares(self, features: Indices, old: int, factored: bool) -> FloatArray:
        """Return A² of the features after so many old ones, and of all."""
        d = self.cov.n_features
        if factored and self._factor is not None:
            if self._between is None:
                self._between = self.cov.gram(np.ones(d))
            of_new = self._factor[:, features[old:]].T @ self._between
            found = of_new @ self._factor[:, features]
            return np.asarray(found / self.unit**2)
        found = np.zeros((len(features) - old, len(features)))
        width = max(1, self._chunk // len(features))
        for begin in range(0, d, width):
            if self.deadline.passed():
                raise OutOfTime
            columns = np.arange(begin, min(begin + width, d))
            rows = self.cov.submatrix(features, columns) / self.unit
            found += rows[old:] @ rows.T
        return found

    def _seconds(self, new: int, size: int, factored: bool) -> float:
        """Seconds to add new features to what is so large then, by CC' or without."""
        d = self.cov.n_features
        seconds = self._entry_seconds(new, size)
        if self._factor is None or not factored:
            return seconds + self._entry_seconds(size, d) + _cost.product(new, d, size)
        n = len(self._factor)
        if self._between is None:
            seconds += _cost.product(n, d, n)
        return seconds + _cost.product(new, n, n) + _cost.product(new, n, size)

    def _entry_seconds(self, rows: int, columns: int) -> float:
        """Seconds for so many rows and columns of A."""
        d, sparse = self.cov.n_features, self.cov.sparse_data()
        seconds = _cost.passes(1, rows * columns)
        if self.cov.in_memory:
            return seconds
        if sparse is None:
            return seconds + _cost.product(rows, self.cov.n_samples or d, columns)
        per_feature = sparse[0].nnz / d
        pairs = rows * columns * per_feature**2 / max(1, self.cov.n_samples or 1)
        return seconds + _cost.passes(2, sparse[0].nnz) + _cost.sparse_gram(2 * pairs)

    def _at_once(self, m: int, k: int) -> tuple[int, int, int]:
        """Turns of a call, exchanges of a turn, steps of all loadings together."""
        size = len(self.features)
        measuring = 2 * m * k * size + m**4
        exchange = (
            (2 * k + 3 * m) * size  # what pulls
            + 4 * m * k * (k + CANDIDATES)  # what the others leave
            + ANGLE * k * CANDIDATES
            + 2 * REFINED * (FITS + 1) * k * k
        )
        exchanges = min(EXCHANGES, max(1, WORK // exchange))
        turn = 2 * measuring + 3 * m * m * size + exchanges * exchange
        steps = min(STEPS, max(1, WORK // measuring))
        return max(1, WORK // turn), exchanges, steps

    def raised(
        self, V: FloatArray, ks: list[int], goal: Goal, in_place: bool, disjoint: bool
    ) -> Measured:
        """Return a set that no turn of a component improves, or as time allows.

        Parameters
        ----------
        in_place : bool
            Whether the order of components is not free, because each place has its k.
        disjoint : bool
            Whether no feature may be used twice.
        """
        from .._kernels.prediction_exchange import take_turns
        from .._kernels.prediction_sets import Components

        m, d = V.shape
        supports, loadings = np.zeros((m, max(ks)), np.int64), np.zeros((m, max(ks)))
        counts = np.zeros(m, dtype=np.int64)
        for j, x in enumerate(V):
            own = np.flatnonzero(x)
            counts[j] = len(own)
            supports[j, : len(own)] = self._place[own]
            loadings[j, : len(own)] = x[own] / max(np.linalg.norm(x[own]), 1e-300)
        at_once, exchanges, steps = self._at_once(m, max(ks))
        most = TURNS * m * -(-EXCHANGES // exchanges)  # shorter turns, more of them
        numbers, turn, in_vain = goal.numbers(), 0, 0
        while True:
            count = 0 if self.deadline.passed() else min(most, at_once)
            turn, in_vain, adjusted, predicted = take_turns(
                self.A,
                self.square,
                numbers,
                Components(supports, loadings, counts),
                in_place,
                disjoint,
                (turn, in_vain, count, exchanges, steps),
            )
            most -= count
            if in_vain > m or not count or not most:
                break
        found = np.zeros((m, d))
        for j, k in enumerate(counts):
            found[j, self.features[supports[j, :k]]] = loadings[j, :k]
        return Measured(found, float(adjusted), float(predicted))


def _bordered(old: FloatArray, rows: FloatArray, size: int) -> FloatArray:
    """Return a symmetric matrix with new last rows, which hold all columns."""
    whole = np.empty((rows.shape[1], rows.shape[1]))
    whole[:size, :size] = old
    whole[size:] = rows
    whole[:size, size:] = rows[:, :size].T
    corner = rows[:, size:]
    whole[size:, size:] = (corner + corner.T) / 2
    return whole
