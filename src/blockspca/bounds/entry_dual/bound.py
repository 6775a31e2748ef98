"""Bound opt(k) by the entry dual: strong entries, a first ε, cores that grow, a proof.

From the best soft threshold, U_ij = clip(A_ij, ±ε), weights and the entries of U in a
core of features are improved by an ascent; the core grows where the leading
eigenvectors of the matrix are outside of it.  The result is rounded to a record and
proved from that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics import cost as _cost
from ...numerics.blas import single_threaded
from ...numerics.linalg import leading_eigenvector, rayleigh
from ...numerics.rounding import EPS, power_of_four
from .ascent import Ascent, Point
from .check import LOWEST, dense_problem, proved_value, searched_value
from .log import SearchRecord
from .matrix import DualMatrix
from .node import Node
from .pairs import OutOfTime, Pairs, seconds_of_pass, strong_pairs
from .record import EntryRecord
from .search import EntrySearch

# Of the mean entry within the support: entries below are not listed, and no product of
# weights falls below; a larger part of it where there would be too many.
_LISTED = 0.02
_MOST_PAIRS = 1_500_000
_SAMPLED = 400  # features from which the number of strong pairs is guessed
# ε that are tried, of the mean entry; and the part of the best that the ascent starts
# with: from less than the best threshold it gets further (CovColon, k = 100: 0.05 %
# from 0.9 of it, 0.3 % from the best, in as many steps).
_FIRST_MU = 0.02  # relative; a wide density says which features the core needs
_TRIED: tuple[float, tuple[float, ...], tuple[float, ...]] = (
    0.9,
    (0.8, 0.7, 0.55, 0.4, 0.2, 0.05),
    (1.0, 1.15, 1.35, 1.6, 2.0),
)
_START = 0.9
# Of a weight, that it may fall to before pairs are listed anew: in the core, beside it
_ROOM = 0.85
_ROOM_OUTSIDE = 0.97
_FIRST_CORE = 200
_CORE_PER_K = 2.5
_LARGEST_CORE = 1600
_GRACE = 0.3  # seconds, that a last proof may take beyond the limit,
_GRACE_SHARE = 0.8  # and part of it: estimates have room
_FEW_STEPS = 6  # with a larger core, for which there must be time
_DENSE = 1200  # features that the search can begin with
# Of the worth of a feature, 1/k of the objective: with a smaller gap some can be fixed.
_FIXABLE = 0.4
_BRANCHABLE = 3.0  # the same where the ascent gets no further: then nodes are split
_OFTEN = 10  # a proof on the way may take this part of the time that is left
_LONELY = 0.97  # of the objective, from which M_ii counts also without strong entries
_GAIN = 0.1  # of the gap, that an ascent has to gain for another with its core


@dataclass(frozen=True)
class EntryBound:
    """An upper bound on opt(k) and the point of the dual that proves it.

    Attributes
    ----------
    value : float
        opt(k) ≤ value, rounding included; infinite if there was no time for any.
    record : EntryRecord, SearchRecord or None
        The point that proves it, or the log of the search that does.
    evaluations, nodes : int
        Of the dual's matrix, and of the search.
    better : array of int or None
        A support above the target, up to rounding, if the search came upon one.
    elapsed : float
        Seconds.
    interrupted : bool
        By the keyboard; the bound holds all the same.
    """

    value: float
    record: EntryRecord | SearchRecord | None = None
    evaluations: int = 0
    nodes: int = 0
    better: NDArray[np.intp] | None = None
    elapsed: float = 0.0
    interrupted: bool = False


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

    Parameters
    ----------
    cov : Covariance
        Any symmetric matrix, or data.
    k : int
    support : sequence of int
        A good one, which says how large strong entries are; the bound holds for any.
    target : float
        Stop as soon as the bound is this low.
    time_limit : float
        Seconds; what cannot be stopped is begun only if they suffice for it.
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
    bound = dual.improve(time_limit, iterations, until_fixable=nodes > 0)
    if nodes and not bound.interrupted:
        bound = dual.search(max(0.0, time_limit - bound.elapsed), nodes)
    return bound


class EntryDual:
    """The entry dual of one problem, improved as far as each call has time.

    All numbers are in multiples of `unit`.
    """

    def __init__(
        self,
        cov: Covariance,
        k: int,
        support: Sequence[int] | NDArray[np.intp],
        *,
        target: float = -np.inf,
        memory: int | None = None,
    ) -> None:
        self.cov, self.k = cov, k
        self.memory = memory or 2**30
        self.best = EntryBound(np.inf)
        support = np.sort(np.asarray(support, dtype=np.intp))
        within = cov.submatrix(support)
        x = leading_eigenvector(within)
        objective = rayleigh(within, x)
        own = float(x * x @ np.diagonal(within))
        self.unit = power_of_four(abs(objective))
        self.objective = objective / self.unit
        self.target = max(target / self.unit, self.objective)
        self.mean_entry = (objective - own) / self.unit / max(k - 1, 1)
        self.diagonal = cov.diagonal() / self.unit
        np.maximum(self.diagonal, LOWEST, out=self.diagonal)
        self.evaluations = self.iterations = 0
        self.core: NDArray[np.intp] = np.empty(0, np.intp)
        self.point: Point | None = None
        self.size = int(max(_FIRST_CORE, _CORE_PER_K * k))
        self.is_done = False  # nothing is to be gained by more steps
        self.until_fixable = False
        self.root: EntrySearch | None = None
        self.features: NDArray[np.intp] = np.empty(0, np.intp)

    def improve(
        self, time_limit: float, iterations: int = 400, until_fixable: bool = False
    ) -> EntryBound:
        """Go on for so many seconds; return the best bound so far.

        With `until_fixable`, only until the search has something to begin with.
        """
        deadline = Deadline(time_limit)
        self.iterations, self.until_fixable = iterations, until_fixable
        interrupted = True
        with suppress(KeyboardInterrupt), single_threaded():
            with suppress(OutOfTime):
                if self.point is None:
                    self._begin(deadline)
                if self.point is not None:
                    self._grow(self.point, deadline)
            interrupted = False
        elapsed = self.best.elapsed + deadline.elapsed()
        self.best = replace(self.best, elapsed=elapsed, interrupted=interrupted)
        return self.best

    @property
    def is_fixable(self) -> bool:
        """Whether a feature is worth more than the gap, and all fit into the search."""
        if self.point is None or len(self.diagonal) > _DENSE:
            return False
        gap = self.point.value - self.target
        most = _BRANCHABLE if self.is_done else _FIXABLE
        return gap <= most * abs(self.objective) / self.k

    def search(self, time_limit: float, nodes: int) -> EntryBound:
        """Fix features and branch for so many seconds, or go on with that."""
        deadline = Deadline(time_limit)
        cov, unit = self.cov, self.unit
        if self.root is None:
            point = self.point
            if point is None or not self.is_fixable or self.best.value == np.inf:
                return self.best
            features, point = self._with_core(point, len(self.diagonal))
            inside = np.zeros(len(features), dtype=bool)
            bound = self.best.value / unit
            root = Node(features, inside, point.weights, point.shares, bound=bound)
            error = self.k * cov.entry_error / unit
            tau = max(self.target - error, self.objective) * (1 + 8 * EPS)
            A = dense_problem(cov, features, unit)
            self.root = EntrySearch(A, self.k, tau, root)
            self.features = features
        search, features = self.root, self.features
        interrupted = True
        with suppress(KeyboardInterrupt), single_threaded():
            search.run(deadline, nodes)
            interrupted = False
        found = search.result()
        value = searched_value(found.value, unit, self.k, cov)
        better = None if found.better is None else features[found.better]
        elapsed = self.best.elapsed + deadline.elapsed()
        best = replace(self.best, elapsed=elapsed, nodes=found.nodes, better=better)
        if value < self.best.value:
            d = len(self.diagonal)
            record = SearchRecord(d, unit, search.tau, features, search.log)
            best = replace(best, value=value, record=record)
        self.best = replace(best, interrupted=interrupted)
        return self.best

    # -- the way -------------------------------------------------------------------

    def _begin(self, deadline: Deadline) -> None:
        """List the strong entries and find a threshold to begin with."""
        if self.k < 2 or self.objective == 0 or not np.isfinite(self.unit):
            return
        if not deadline.affords(seconds_of_pass(self.cov)):
            return
        level = self._listed_level()
        roots = np.full(len(self.diagonal), np.sqrt(level * self.unit))
        listed = strong_pairs(self.cov, roots, deadline)
        if len(listed) > 8 * _MOST_PAIRS:
            return
        self.pairs = Pairs(listed.rows, listed.columns, listed.values / self.unit)
        self.level = level
        self.point = self._threshold(deadline)

    def _grow(self, point: Point, deadline: Deadline) -> None:
        """Ascend with cores that grow."""
        proved = True
        while (
            not self.is_done
            and not (self.until_fixable and self.is_fixable)
            and deadline.affords_step()
            and self.best.value > self.target * self.unit
        ):
            before = point.value
            core, point = self._with_core(point, self.size)
            point = self._ascend(point, core, deadline)
            self.core, self.point, proved = core, point, False
            if point.presence is None or point.value <= self.target:
                self.is_done = True
                break
            if self.until_fixable and self.is_fixable:
                break
            largest, gained = self._largest_core(), before - point.value
            if len(core) == largest and gained < _GAIN * (point.value - self.target):
                self.is_done = not deadline.passed()
                break
            if deadline.affords(_OFTEN * self._proof_seconds(core)):
                self._prove(point, core, deadline)
                proved = True
            self.size = self._next_size(len(core), deadline)
        if not proved:
            self._prove(point, self.core, deadline)

    def _next_size(self, size: int, deadline: Deadline) -> int:
        """Twice the core, if there is time for a few steps with it and a proof."""
        larger = min(2 * size, self._largest_core())
        step = deadline.step * (larger / size) ** 2
        seconds = _FEW_STEPS * step + self._proof_seconds(np.arange(larger))
        return larger if deadline.affords(seconds) else size

    def _listed_level(self) -> float:
        """The product of weights below which none falls."""
        base = max(self.mean_entry, 0.1 * abs(self.objective) / self.k)
        level = _LISTED * base
        d = self.cov.n_features
        rng = np.random.default_rng(0)
        sample = np.sort(rng.permutation(d)[:_SAMPLED])
        sizes = np.abs(self.cov.submatrix(sample))[np.triu_indices(len(sample), 1)]
        sizes = sizes / self.unit
        share = min(1.0, _MOST_PAIRS / max(1.0, d * (d - 1) / 2))
        if len(sizes) and share < 1.0:
            level = max(level, float(np.quantile(sizes, 1.0 - share)))
        return level

    def _largest_core(self) -> int:
        # L-BFGS holds twenty arrays of the core's order.
        return min(
            _LARGEST_CORE, len(self.diagonal), int(np.sqrt(self.memory / 8 / 30))
        )

    def _threshold(self, deadline: Deadline) -> Point:
        """The best of a few soft thresholds, each with equal weights."""
        base = max(self.mean_entry, self.level)
        none = np.zeros((0, 0))
        nobody = np.empty(0, np.intp)
        mu = _FIRST_MU * abs(self.objective)
        d = len(self.diagonal)

        def at(epsilon: float) -> Point:
            w = np.full(d, np.sqrt(max(epsilon, self.level)))
            return self._slope_at(w, nobody, none, mu)

        first, *ways = _TRIED
        middle = (at(first * base), first * base)
        best = middle
        for way in ways:
            for part in way:
                if part * base < self.level or deadline.passed():
                    break
                here = (at(part * base), part * base)
                if here[0].value > best[0].value:
                    break
                best = here
            if best is not middle:
                break
        self._prove(best[0], nobody, deadline)
        wide = at(_START * best[1])
        return Point(best[0].weights, none, np.inf, wide.presence)

    def _with_core(self, point: Point, size: int) -> tuple[NDArray[np.intp], Point]:
        """Enlarge the core by the features that the density is at; clip their U."""
        assert point.presence is not None
        core, shares = self.core, point.shares
        size = max(size, len(core))  # a limit on memory does not take features out
        score = point.presence.copy()
        score[core] += 2.0
        chosen = np.sort(np.argsort(-score, kind="stable")[:size])
        block = self.cov.submatrix(chosen) / self.unit
        w = point.weights[chosen]
        if not len(core):
            w = w * np.sqrt(_START)
        product = w[:, None] * w
        larger = np.clip(block, -product, product)
        np.divide(larger, product, out=larger, where=product > 0)
        np.fill_diagonal(larger, 0.0)
        if len(core):
            at = np.searchsorted(chosen, core)
            larger[np.ix_(at, at)] = shares
        weights = point.weights.copy()
        weights[chosen] = np.maximum(w, np.sqrt(self.level))
        return chosen, replace(point, weights=weights, shares=larger)

    def _ascend(
        self, point: Point, core: NDArray[np.intp], deadline: Deadline
    ) -> Point:
        """Improve a point with one core; return it for all features."""
        room = np.full(len(point.weights), _ROOM_OUTSIDE)
        room[core] = 0.0 if len(core) == len(room) else _ROOM
        levels = np.maximum(room * point.weights, np.sqrt(self.level))
        if len(core) == len(room):
            levels[:] = 0.0
        matrix, features = self._matrix(point.weights, core, levels)
        inner = Deadline(
            None
            if deadline.seconds is None
            else max(0.0, (deadline.remaining() or 0.0) - self._proof_seconds(core))
        )
        inner.step = deadline.step
        start = Point(point.weights[features], point.shares, point.value)
        may_grow = len(core) < self._largest_core()
        ascent = Ascent(matrix, start, self.target, may_grow)
        best = ascent.run(self.iterations, inner)
        deadline.step = inner.step
        self.evaluations += ascent.evaluations
        if best.presence is None:  # nothing better was found
            return point
        weights = point.weights.copy()
        weights[features] = best.weights
        presence = np.zeros(len(weights))
        presence[features] = best.presence
        return Point(weights, best.shares, best.value, presence)

    # -- matrices and proofs -------------------------------------------------------

    def _matrix(
        self, w: FloatArray, core: NDArray[np.intp], levels: FloatArray
    ) -> tuple[DualMatrix, NDArray[np.intp]]:
        """The dual's matrix for the features that have strong entries, and these."""
        d = len(self.diagonal)
        members = np.zeros(d, dtype=bool)
        members[core] = True
        pairs = self.pairs.outside(members).above(levels)
        used = members.copy()
        used[pairs.rows] = used[pairs.columns] = True
        priced = self.diagonal + (self.k - 1) * w * w
        used |= priced >= min(_LONELY * self.objective, float(priced.max()))
        features = np.flatnonzero(used)
        place = np.full(d, -1)
        place[features] = np.arange(len(features))
        local = Pairs(place[pairs.rows], place[pairs.columns], pairs.values)
        block = self.cov.submatrix(core) / self.unit if len(core) else np.zeros((0, 0))
        matrix = DualMatrix(
            self.diagonal[features],
            np.full(len(features), self.k - 1.0),
            place[core],
            block,
            local,
            levels[features],
        )
        return matrix, features

    def _slope_at(
        self, w: FloatArray, core: NDArray[np.intp], shares: FloatArray, mu: float
    ) -> Point:
        """Return the point, with λmax as far as it is known."""
        matrix, features = self._matrix(w, core, w)
        slope = matrix.slope(w[features], shares, mu)
        self.evaluations += 1
        presence = np.zeros(len(w))
        presence[features] = slope.presence
        return Point(w, shares, slope.largest, presence)

    def _proof_seconds(self, core: NDArray[np.intp]) -> float:
        order = len(core) + 200
        return 4 * _cost.cholesky(order) + _cost.passes(160, len(self.pairs) / 4)

    def _prove(self, point: Point, core: NDArray[np.intp], deadline: Deadline) -> None:
        """Round a point to a record, prove its bound, and keep it if it is better."""
        low = 0.0 if len(core) == len(point.weights) else np.sqrt(self.level)
        levels = np.full(len(point.weights), low)
        record = EntryRecord.of(point.weights, self.unit, core, point.shares, levels)
        # What was reserved for it may have been used up by the last step; without the
        # proof that step, and all before it, would be lost.
        known = np.isfinite(self.best.value)
        seconds = self._proof_seconds(core)
        if known and not deadline.affords(seconds - _GRACE - _GRACE_SHARE * seconds):
            return
        value = proved_value(self.cov, self.k, record, self.pairs)
        if value < self.best.value:
            self.best = EntryBound(value, record, self.evaluations)
