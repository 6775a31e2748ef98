"""The best support known for each k, and the ways it is improved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..heuristics.extend import extended, extended_at_once
from ..heuristics.pool import Pool, best_supports, leading_pair
from ..heuristics.swap import swapped
from ..numerics import cost as _cost
from ..numerics.linalg import rayleigh
from .screening import Screening

# Rows tried as starts, which cost a product each, and how many of them, the best that
# differ, are improved by swaps, which cost far more.
_N_ROWS = 100
_N_STARTS = 8

# In units: what entries lose when they are divided by one is 1e-23 of it, or less
_DIGITS_LOST = 1e-300


class Incumbent(NamedTuple):
    """A support and its leading eigenpair, features ascending."""

    support: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    #: Of the features in the pool.
    positions: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    value: float = -np.inf  #: λ(S), in units of the pool
    x: FloatArray = np.empty(0)  #: its eigenvector
    source: str = "none"  #: where it came from


class Incumbents:
    """The best support for each k = 1, …, k_max; `values` are their λ, −inf for none.

    Parameters
    ----------
    start : array of int
        Features that the first supports are made of.
    given : mapping from k to features
        Supports found elsewhere.
    affords : callable
        Tells whether there is time for so many seconds of work that nothing stops.
    groups : GroupLimits, optional
        Of all features; supports keep them.
    """

    def __init__(
        self,
        cov: Covariance,
        unit: float,
        k_max: int,
        start: NDArray[np.int64],
        given: Mapping[int, Sequence[int]],
        affords: Callable[[float], bool],
        groups: GroupLimits | None,
    ) -> None:
        self._affords, self._groups = affords, groups
        self._cov, self._unit = cov, unit
        self.pool = Pool(cov, unit)
        self.given = {
            k: np.unique(np.asarray(features, dtype=np.int64))
            for k, features in given.items()
            if len(features)
        }
        self.pool.add(start)
        if groups is not None:  # there is room for k_max features among these alone
            order = np.argsort(-cov.diagonal(), kind="stable")
            self.pool.add(groups.first(order, k_max))
        if self.given:
            self.pool.add(np.unique(np.concatenate(list(self.given.values()))))
        self.best = [Incumbent()] * (k_max + 1)
        self.values = [-np.inf] * (k_max + 1)
        # Objectives that were asked for, with the incumbents that have them.
        self._reached: list[tuple[Incumbent | None, float]]
        self._reached = [(None, np.nan)] * (k_max + 1)
        self._rows_tried = 0
        # Where the search for the current k begins, as positions in the pool.
        self._starts: list[tuple[NDArray[np.int64], str]] = []

    def _limits(self) -> GroupLimits | None:
        """The limits of groups, by positions in the pool."""
        return self._groups and self._groups.among(self.pool.features)

    def objective(self, k: int) -> float:
        """x'Ax, not λ as LAPACK found it, and not in units.

        The pool holds entries of A in units, in which the very small lose digits.
        """
        best = self.best[k]
        if self._reached[k][0] is not best:
            value = rayleigh(self.pool.within(best.positions), best.x)
            if abs(value) < _DIGITS_LOST:
                value = rayleigh(self._cov.submatrix(best.support), best.x)
            else:
                value *= self._unit
            self._reached[k] = best, value
        return self._reached[k][1]

    def start(self, k: int) -> None:
        """Extend the support of k − 1, or take what was given, without swaps."""
        matrix, last = self.pool.matrix, self.best[k - 1]
        pair = (last.value, last.x) if k > 1 else None
        limits = self._limits()
        self._starts = [
            (extended(matrix, last.positions, k, pair, limits), "extension")
        ]
        given = self.given.get(k)
        if given is not None and len(given) <= k:
            positions = self.pool.positions(given)
            self._starts.append(
                (extended(matrix, positions, k, groups=limits), "given")
            )
        for positions, source in self._starts:
            value, x = leading_pair(matrix, positions)
            self._keep_better(k, positions, value, x, source)

    def take_over(self, k: int) -> None:
        """Give k the component of k − 1, with a loading of 0 for one feature more."""
        last = self.best[k - 1]
        self.values[k] = -np.inf
        if k > 1 and len(last.positions) < len(self.pool):
            free = np.ones(len(self.pool), dtype=bool)
            free[last.positions] = False
            limits = self._limits()
            if limits is not None:
                free &= ~limits.closed_to(last.positions)
            more = np.append(last.positions, np.flatnonzero(free)[0])
            self._keep_better(k, more, last.value, np.append(last.x, 0.0), last.source)

    def start_at_once(self, k: int) -> None:
        """Give k a support without any search, for a step that was not reached.

        The component of k − 1; what was given for k; for the last k, the support of
        k − 1 extended.
        """
        matrix, last = self.pool.matrix, self.best[k - 1]
        self.take_over(k)
        starts = []
        # Only the first and the last are extended anew: the others lie between.
        if k in (1, len(self.best) - 1):
            starts.append((last.positions, "extension"))
        given = self.given.get(k)
        if given is not None and len(given) <= k:
            starts.append((self.pool.positions(given), "given"))
        for positions, source in starts:
            positions = extended_at_once(matrix, positions, k, self._limits())
            value, x = leading_pair(matrix, positions)
            self._keep_better(k, positions, value, x, source)

    def improve(self, k: int) -> None:
        """Improve what k was started with by swaps."""
        for positions, source in self._starts:
            self.offer(k, positions, source)

    def offer(self, k: int, positions: NDArray[np.int64], source: str) -> bool:
        """Improve a support by swaps; keep it if it beats the incumbent of k."""
        before = positions
        seconds = self._swap_seconds(len(positions))
        positions, value, x = swapped(
            self.pool.matrix,
            positions,
            stop=lambda: not self._affords(seconds),
            groups=self._limits(),
        )
        if positions is not before and not source.endswith("swaps"):
            source += " + swaps"
        return self._keep_better(k, positions, value, x, source)

    def _swap_seconds(self, k: int) -> float:
        """Seconds that a round of swaps takes."""
        n = len(self.pool)
        return _cost.product(k, k, n) + _cost.inverse(k) + _cost.passes(4, k * n)

    def _keep_better(
        self,
        k: int,
        positions: NDArray[np.int64],
        value: float,
        x: FloatArray,
        source: str,
    ) -> bool:
        if value <= self.values[k]:
            return False
        features = self.pool.features[positions]
        order = features.argsort()
        # The value comes last: Ctrl-C may strike between the lines, and a status is
        # judged by the value.
        self.best[k] = Incumbent(
            features[order], positions[order], value, x[order], source
        )
        self.values[k] = value
        return True

    def admission_seconds(self, features: NDArray[np.int64]) -> float:
        """Seconds that it takes to have the features in the pool."""
        new = int((self.pool.positions(features) < 0).sum())
        size = len(self.pool) + new
        if new == 0:
            return 0.0
        n = self.pool.cov.n_samples or 0
        return _cost.product(new, n, size) + _cost.passes(4, size * size)

    def admit(self, k: int, features: NDArray[np.int64]) -> bool:
        """Add features to the pool; True if swaps with them improved k."""
        if self.pool.add(features) == 0:
            return False
        return self.offer(k, self.best[k].positions, self.best[k].source)

    def accept(
        self, k: int, features: NDArray[np.int64], source: str = "proof tree"
    ) -> bool:
        """Offer a set that a proof found; it may have fewer than k features."""
        self.pool.add(features)
        at = self.pool.positions(features)
        support = extended(self.pool.matrix, at, k, groups=self._limits())
        return self.offer(k, support, source)

    def restart_from_rows(self, k: int, screening: Screening) -> bool:
        """Try truncated rows of A, once for each k; True if that improved k."""
        if self._rows_tried >= k or k == 1:
            return False
        self._rows_tried = k
        supports = screening.row_supports(k, _N_ROWS)
        if len(supports) == 0:
            return False
        features = np.unique(supports)
        seconds = self.admission_seconds(features)
        seconds += len(supports) * _cost.eigenvalues(k)
        if not self._affords(seconds):
            return False
        self.pool.add(features)
        starts = best_supports(
            self.pool.matrix, self.pool.positions(supports), _N_STARTS
        )
        better = [self.offer(k, start, "rows") for start in starts]
        return any(better)
