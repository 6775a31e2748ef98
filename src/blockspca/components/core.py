"""A and A² on the features that components may use, and turns of components there.

What a set of components has, and what it predicts of *all* features, is known from A
and A² on its own features: with V the components, V'AV and V'A²V. So a search needs no
more than both matrices on a core of promising features, which is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._kernels.joint_constants import EXCHANGES, STEPS
from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline
from .goal import Goal

Indices = NDArray[np.intp]

CHUNK = 2**22  # entries of rows of A that are held at a time
TURNS = 10  # of every component, at the most
WORK = 10**8  # of a call, about, in multiplications; then the time is looked at


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
    ordered : bool
        Whether the order of components is not free, because each place has its k.
    disjoint : bool
        Whether no feature may be used twice.
    """

    def __init__(
        self,
        cov: Covariance,
        unit: float,
        ordered: bool,
        disjoint: bool,
        deadline: Deadline,
    ) -> None:
        self.cov, self.unit, self.deadline = cov, unit, deadline
        self.ordered, self.disjoint = ordered, disjoint
        self.features = np.empty(0, dtype=np.intp)
        self.A = self.square = np.empty((0, 0))
        self._place = np.full(cov.n_features, -1, dtype=np.int64)
        self._factor: FloatArray | None = None
        self._between: FloatArray | None = None
        factor = cov.dense_factor()
        if factor is not None and len(factor) < cov.n_features:
            self._factor = factor
            self._between = cov.gram(np.ones(cov.n_features))

    def extend(self, features: Indices) -> bool:
        """Add features; False if all are there."""
        new = np.setdiff1d(features, self.features)
        if not len(new):
            return False
        old = self.features
        self.features = np.concatenate([old, new])
        self._place[new] = np.arange(len(old), len(self.features))
        # A of a matrix of data may be a copy of the large one: only the new rows.
        first = self.cov.submatrix(new, self.features) / self.unit
        self.A = _bordered(self.A, first, len(old))
        self.square = _bordered(self.square, self._squares(new), len(old))
        return True

    def _squares(self, new: Indices) -> FloatArray:
        """Return A² of new features and all of them."""
        if self._factor is not None:
            of_new = self._factor[:, new].T @ self._between
            found = of_new @ self._factor[:, self.features]
            return np.asarray(found / self.unit**2)
        d = self.cov.n_features
        found = np.zeros((len(new), len(self.features)))
        width = max(1, CHUNK // len(self.features))
        for begin in range(0, d, width):
            columns = np.arange(begin, min(begin + width, d))
            rows = self.cov.submatrix(self.features, columns) / self.unit
            found += rows[self._place[new]] @ rows.T
        return found

    def raised(self, V: FloatArray, ks: list[int], goal: Goal) -> Measured:
        """Return a set that no turn of a component improves, or as time allows."""
        from .._kernels.joint_exchange import take_turns

        m, d = V.shape
        supports, loadings = np.zeros((m, max(ks)), np.int64), np.zeros((m, max(ks)))
        counts = np.zeros(m, dtype=np.int64)
        for j, x in enumerate(V):
            own = np.flatnonzero(x)
            counts[j] = len(own)
            supports[j, : len(own)] = self._place[own]
            loadings[j, : len(own)] = x[own] / max(np.linalg.norm(x[own]), 1e-300)
        most = TURNS * m
        at_once = max(1, WORK // (max(ks) * (len(self.features) + 100 * max(ks))))
        numbers, turn, in_vain = goal.numbers(), 0, 0
        while True:
            count = 0 if self.deadline.passed() else min(most, at_once)
            turn, in_vain, adjusted, predicted = take_turns(
                self.A,
                self.square,
                numbers,
                supports,
                loadings,
                counts,
                self.ordered,
                self.disjoint,
                (turn, in_vain, count, EXCHANGES, STEPS),
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
