"""Bound opt(k) by the entry dual: a point, then features ruled out, then a search.

A point is improved (`growing_core.py`) until its gap is less than a feature is worth.
Then features are ruled out by a bound on opt(k − 1), if there are many, and fixed and
branched on by the search (`search.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics.blas import single_threaded
from ...numerics.rounding import EPS
from ...numerics.upper_eigenvalues import AGREED
from .ascent import Point
from .check import dense_problem, screened_features, searched_value
from .growing_core import EntryBound, GrowingCore
from .log import Screen, SearchRecord
from .node import Node
from .search import EntrySearch

_DENSE = 1200  # features that the search can begin with
_LESS = 0.5  # of the gap with which too many features were left, before another try
# Of the worth of a feature, 1/k of the objective: with a smaller gap some can be fixed.
_FIXABLE = 0.4
_SCREENABLE = 0.25  # the same where most have to be ruled out before the search
_BRANCHABLE = 3.0  # the same where the ascent gets no further: then nodes are split


def entry_bound(
    cov: Covariance,
    k: int,
    support: Sequence[int] | NDArray[np.intp],
    *,
    target: float = -np.inf,
    time_limit: float = 10.0,
    iterations: int = 400,
    nodes: int = 0,
    memory: int | None = None,
) -> EntryBound:
    """Bound opt(k) by λmax(A − U + (k − 1) Diag(w²)), |U_ij| ≤ w_i w_j.

    The bound holds for any support; a good one says how large strong entries are. It
    stops at the target, or when the seconds are over.

    Parameters
    ----------
    iterations : int
        Steps of the ascent with one core.
    nodes : int
        Of the search that follows where features can be fixed; 0 for none.
    memory : int, optional
        Bytes for working arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> A = np.full((6, 6), 0.1) + 0.9 * np.eye(6)
    >>> A[:3, :3] += 0.5 * (1 - np.eye(3))
    >>> bound = entry_bound(Covariance.from_matrix(A), 3, [0, 1, 2])
    >>> round(bound.value, 4)  # opt(3) = 1 + 2 · 0.6
    2.2
    """
    dual = EntryDual(cov, k, support, target=target, memory=memory)
    return dual.run(time_limit, iterations, nodes)


class EntryDual(GrowingCore):
    """The entry dual of one problem, improved as far as each call has time."""

    root: EntrySearch | None = None
    features: NDArray[np.intp] = np.empty(0, np.intp)
    screen: Screen | None = None
    screens_below: float = np.inf  # gap from which too many features were left

    def run(self, time_limit: float, iterations: int, nodes: int) -> EntryBound:
        """Improve the bound, and search where nodes are allowed and a proof is near."""
        deadline = Deadline(time_limit)
        tried = None
        while True:
            left = deadline.remaining() or 0.0
            bound = self.improve(left, iterations, until_fixable=nodes > 0)
            if bound.interrupted or not (nodes and self.is_fixable):
                return bound
            if bound.value <= self.target * self.unit:  # there is nothing to search for
                return bound
            if self.root is None and self.point is tried:  # too many features left
                return bound
            tried = self.point
            bound = self.search(deadline.remaining() or 0.0, nodes)
            if self.root is not None or bound.interrupted or deadline.passed():
                return bound

    @property
    def is_fixable(self) -> bool:
        """Whether a feature is worth more than the gap: the search can begin."""
        if self.point is None:
            return False
        return self.point.value - self.target <= self._enough()

    def _enough(self) -> float:
        """With more features than the search takes, some must be ruled out first."""
        is_large = len(self.diagonal) > _DENSE
        most = _BRANCHABLE if self.is_done else _FIXABLE
        if is_large:
            most = _SCREENABLE
        gap = most * abs(self.objective) / self.k
        return min(gap, self.screens_below) if is_large else gap

    def _begin_search(self, deadline: Deadline) -> None:
        """Choose the features of the search, unless too many are left."""
        cov, unit, point = self.cov, self.unit, self.point
        if point is None or not self.is_fixable or self.best.value == np.inf:
            return
        error = self.k * cov.entry_error / unit
        tau = max(self.target - error, self.objective) * (1 + 8 * EPS)
        features = np.arange(len(self.diagonal))
        most = min(_DENSE, self._held_features())
        if len(features) > _DENSE:
            self.screens_below = _LESS * (point.value - self.target)
            if not deadline.affords(2 * self._proof_seconds(self.core)):
                return
            self.screen = Screen(self._record(point, self.core), self.level)
            features = screened_features(
                cov, self.k, tau, self.screen, self.pairs, AGREED
            )
            # With the support there is always something left to search.
            features = np.union1d(features, self.support)
        if len(features) > most:
            return
        weights, shares = self._dense_point(point, features)
        rows, inside = np.arange(len(features)), np.zeros(len(features), dtype=bool)
        # Without the bound that is known: nodes go by their bounds, and who repeats the
        # log has those of the log alone.
        root = Node(rows, inside, weights, shares)
        A = dense_problem(cov, features, unit)
        slack, screened = tau - self.objective, self.screen is not None
        self.root = EntrySearch(A, self.k, tau, root, slack=slack, screened=screened)
        self.features = features

    def search(self, time_limit: float, nodes: int) -> EntryBound:
        """Begin or resume the search, for so many seconds."""
        deadline = Deadline(time_limit)
        cov, unit = self.cov, self.unit
        interrupted = True
        with suppress(KeyboardInterrupt), single_threaded():
            if self.root is None:
                self._begin_search(deadline)
            if self.root is not None:
                self.root.run(deadline, nodes)
            interrupted = False
        if self.root is None:
            self.best = replace(self.best, interrupted=interrupted)
            return self.best
        search, features = self.root, self.features
        value = searched_value(search.value, unit, self.k, cov)
        better = None if search.better is None else features[search.better]
        best = replace(self.best, nodes=search.nodes, better=better)
        if value < self.best.value:
            d = len(self.diagonal)
            record = SearchRecord(
                d, unit, search.tau, features, search.log, self.screen
            )
            best = replace(best, value=value, record=record)
        self.best = replace(best, interrupted=interrupted)
        return self.best

    def _dense_point(
        self, point: Point, features: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and shares of some features; those beside the core are clipped."""
        w = point.weights[features]
        product = w[:, None] * w
        shares = self.cov.submatrix(features) / self.unit
        np.clip(shares, -product, product, out=shares)
        np.divide(shares, product, out=shares, where=product > 0)
        np.fill_diagonal(shares, 0.0)
        kept = np.isin(self.core, features)
        at = np.searchsorted(features, self.core[kept])
        shares[np.ix_(at, at)] = point.shares[np.ix_(kept, kept)]
        return w, shares
