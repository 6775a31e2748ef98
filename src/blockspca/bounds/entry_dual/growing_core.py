"""Improve a point of the entry dual: strong entries, a start, cores that grow, a proof.

From a point made from a good component (`start.py`), or the best soft threshold,
U_ij = clip(A_ij, ±ε), weights and the entries of U in a core of features are improved
by an ascent; the core grows where the leading eigenvectors of the matrix are outside of
it.  The result is rounded to a record and proved from that alone.
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
from ...numerics.linalg import leading_eigenvector, rayleigh, vector_on
from ...numerics.rounding import power_of_four
from .ascent import Ascent, Point
from .check import LOWEST, proved_value
from .log import SearchRecord
from .matrix import DualMatrix
from .pairs import OutOfTime, Pairs, seconds_of_pass, strong_pairs
from .proximal import Proximal, is_worthwhile, work
from .record import EntryRecord
from .start import Component, starting_point

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
_START = 0.9  # of the best ε that was tried; see above
# Of a weight, that it may fall to before pairs are listed anew: in the core, beside it
_ROOM = 0.85
_ROOM_OUTSIDE = 0.97
# Squares of entries, in units of the objective, have to be numbers; and a unit that is
# subnormal has no digits.
_FARTHEST = 1e100
_LEAST_UNIT = 1e-290
_FIRST_CORE = 200
_CORE_PER_K = 2.5
# Features nearest to a component that the first core begins with; the density of the
# point that is made from it says which others belong there.
_FIRST_NEAR = 120
_NEAR_PER_K = 1.6
_HALF = 0.5
_TIES = 1e-6  # of the density: where there is none, features near the component first
_LARGEST_CORE = 2500
_GRACE = 0.3  # seconds, that a last proof may take beyond the limit,
_GRACE_SHARE = 0.8  # and part of it: estimates have room
# How fast cores grow, and proximal steps with a larger one, for which there must be
# time. Cores that the smoothed ascent is for have all features, and cannot grow.
_GROWTH = 2.0
_STEPS_AFTER_GROWTH = 5
_OFTEN = 25  # a proof on the way may take this part of the time that is left
# Of the objective, from which M_ii counts also without strong entries. With 0.9 so many
# count that CovColon, k = 50, is at 0.07 %, and not at 0.015 %.
_LONELY = 0.97
_GAIN = 0.1  # of the gap, that an ascent has to gain for another with its core
# Where the core cannot grow and there is time, an ascent goes on that gains as much
# less in its steps: 2,308 or 765 features, k = 100, are 5.9 and 3.4 % off after 7 s,
# not 6.2 and 5.4 %. With less at first, steps are lost on small cores.
_PATIENCE = (1.0, 0.2, 0.04)


@dataclass(frozen=True)
class EntryBound:
    """An upper bound on opt(k) and the point of the dual that proves it."""

    #: opt(k) ≤ value, rounding included; infinite if there was no time for any.
    value: float
    #: The point that proves it, or the log of the search that does.
    record: EntryRecord | SearchRecord | None = None
    nodes: int = 0  #: of the search
    #: A support above the target, up to rounding, if the search came upon one.
    better: NDArray[np.intp] | None = None
    interrupted: bool = False  #: by the keyboard; the bound holds all the same


class GrowingCore:
    """A point of one problem, improved as far as each call has time.

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
        self.support = np.sort(np.asarray(support, dtype=np.intp))
        within = cov.submatrix(self.support)
        self.loadings = x = leading_eigenvector(within)
        objective = rayleigh(within, x)
        own = float(x * x @ np.diagonal(within))
        self.unit = power_of_four(abs(objective))
        self.objective = objective / self.unit
        self.target = max(target / self.unit, self.objective)
        self.mean_entry = (objective - own) / self.unit / max(k - 1, 1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            self.diagonal = cov.diagonal() / self.unit
        np.maximum(self.diagonal, LOWEST, out=self.diagonal)
        self.evaluations = self.iterations = 0
        self.core: NDArray[np.intp] = np.empty(0, np.intp)
        self.vectors = np.zeros((len(self.diagonal), 0))  # leading, at the last point
        self.work = 0.0  # of a step with the last core
        self.density = np.zeros((len(self.diagonal), 0))  # of proximal steps
        self.nearness = np.zeros(len(self.diagonal))  # |Ax|, at most 1
        self.point: Point | None = None
        self.size = int(max(_FIRST_CORE, _CORE_PER_K * k))
        self.is_done = False  # nothing is to be gained by more steps
        self.patience = 0  # place in the list of them
        self.until_fixable = False

    def improve(
        self, time_limit: float, iterations: int = 400, until_fixable: bool = False
    ) -> EntryBound:
        """Go on for so many seconds; return the best bound so far.

        With `until_fixable`, only until the gap is `enough`.
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
        self.best = replace(self.best, interrupted=interrupted)
        return self.best

    def _enough(self) -> float:
        """The gap that ends an ascent before it has got as far as it can."""
        return 0.0

    def _is_enough(self, point: Point) -> bool:
        return self.until_fixable and point.value - self.target <= self._enough()

    # -- start and growth ----------------------------------------------------------

    def _begin(self, deadline: Deadline) -> None:
        """List the strong entries and find a threshold to begin with."""
        if self.k < 2 or not self._is_in_range():
            return
        if not deadline.affords(seconds_of_pass(self.cov)):
            return
        level = self._listed_level()
        roots = np.full(len(self.diagonal), np.sqrt(level * self.unit))
        listed = strong_pairs(self.cov, roots, deadline)
        largest = float(np.abs(listed.values).max(initial=0.0))
        if len(listed) > 8 * _MOST_PAIRS or largest > _FARTHEST * self.unit:
            return
        self.pairs = Pairs(listed.rows, listed.columns, listed.values / self.unit)
        self.level = level
        if not deadline.affords(self._proof_seconds(self.core)):
            return  # of thousands of features: what is found could not be proved
        fits = 1 < len(self.support) <= self._largest_core() // 2
        if fits and self.objective > 0 and self.mean_entry > 0:
            self.point = self._from_component(deadline)
        else:
            self.point = self._threshold(deadline)

    def _is_in_range(self) -> bool:
        """Whether the objective is a number in whose units all others are numbers."""
        if self.objective == 0 or not np.isfinite(self.objective):
            return False
        is_unit = np.isfinite(self.unit) and self.unit >= _LEAST_UNIT
        return is_unit and bool((self.diagonal <= _FARTHEST).all())

    def _from_component(self, deadline: Deadline) -> Point:
        """The point that the support suggests."""
        x = vector_on(self.support, self.loadings, len(self.diagonal))
        image = self.cov.matvec(x) / self.unit
        component = Component(self.support, self.loadings, self.objective, image)
        self.nearness = np.abs(image) / (float(np.abs(image).max()) or 1.0)
        nearby = max(_FIRST_NEAR, int(_NEAR_PER_K * self.k))
        core = component.nearest(min(nearby, self._largest_core()))
        A = self.cov.submatrix(core) / self.unit
        weights, shares = starting_point(
            component, self.k, self.diagonal, A, np.sqrt(self.level)
        )
        point = self._slope_at(weights, core, shares, _FIRST_MU * abs(self.objective))
        self.core = core
        assert point.presence is not None
        if point.presence[core].sum() < _HALF:  # other features are the trouble
            self.size *= 2
        self._prove(point, core, deadline)
        return replace(point, value=np.inf)

    def _grow(self, point: Point, deadline: Deadline) -> None:
        """Ascend with cores that grow."""
        proved = True
        while (
            not self.is_done
            and not self._is_enough(point)
            and deadline.affords_step()
            and self.best.value > self.target * self.unit
        ):
            before, spent = point.value, self.evaluations
            core, point = self._with_core(point, self.size)
            point = self._ascend(point, core, deadline)
            if self.evaluations > spent:
                point = self._recomputed(point, core)
            self.core, self.point, proved = core, point, False
            if self.evaluations == spent:  # no time for a step
                break
            if point.presence is None or point.value <= self.target:
                self.is_done = True
                break
            if self._is_enough(point):
                break
            self.size = self._next_size(len(core), deadline)
            is_slow = before - point.value < _GAIN * (point.value - self.target)
            if is_slow and self.size == len(core):
                is_timed = not deadline.affords(np.inf)
                if is_timed and self.patience < len(_PATIENCE) - 1:
                    self.patience += 1
                elif len(core) >= self._largest_core():
                    self.is_done = not deadline.passed()
                    break
            if deadline.affords(_OFTEN * self._proof_seconds(core)):
                self._prove(point, core, deadline)
                proved = True
        if not proved:
            self._prove(point, self.core, deadline)

    def _next_size(self, size: int, deadline: Deadline) -> int:
        """A larger core, if there is time for a few steps with it and a proof."""
        # A core that memory would not allow is kept, and ends the ascent when slow.
        larger = max(size, min(int(_GROWTH * size), self._largest_core()))
        # What is beside the core costs no more with a larger one.
        beside = self.work - size**2
        step = deadline.step * (larger**2 + beside) / (size**2 + beside)
        seconds = _STEPS_AFTER_GROWTH * step + self._proof_seconds(np.arange(larger))
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
        return min(_LARGEST_CORE, len(self.diagonal), self._held_features())

    def _held_features(self) -> int:
        """So many fit into the memory.

        The smoothed ascent's L-BFGS holds twenty arrays of their order, and a proof
        some more; proximal steps hold less.
        """
        return int(np.sqrt(self.memory / 8 / 30))

    def _threshold(self, deadline: Deadline) -> Point:
        """The best of a few soft thresholds, each with equal weights."""
        base = max(self.mean_entry, self.level)
        none = np.zeros((0, 0))
        empty = np.empty(0, np.intp)
        mu = _FIRST_MU * abs(self.objective)
        d = len(self.diagonal)

        def at(epsilon: float) -> Point:
            w = np.full(d, np.sqrt(max(epsilon, self.level)))
            return self._slope_at(w, empty, none, mu)

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
        self._prove(best[0], empty, deadline)
        wide = at(_START * best[1])
        return Point(best[0].weights, none, np.inf, wide.presence)

    def _with_core(self, point: Point, size: int) -> tuple[NDArray[np.intp], Point]:
        """Enlarge the core by the features that the density is at; clip their U."""
        assert point.presence is not None
        core, shares = self.core, point.shares
        size = max(size, len(core))  # a limit on memory does not take features out
        score = point.presence + _TIES * self.nearness
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
        inner.step, self.work = deadline.step, work(matrix)
        start = Point(point.weights[features], point.shares, point.value)
        may_grow = self._next_size(len(core), deadline) > len(core)
        enough = self.target
        if self.until_fixable:
            enough += self._enough()
        patience = _PATIENCE[self.patience]
        ascent: Ascent | Proximal
        if is_worthwhile(matrix, inner):
            ascent = Proximal(matrix, start, self.target, may_grow, enough, patience)
            ascent.density = self.density[features]
        else:
            ascent = Ascent(matrix, start, self.target, enough, patience)
        best = ascent.run(self.iterations, inner)
        if isinstance(ascent, Proximal) and ascent.density is not None:
            self.density = np.zeros((len(point.weights), ascent.density.shape[1]))
            self.density[features] = ascent.density
        deadline.step = inner.step
        self._remember(matrix, features)
        self.evaluations += ascent.evaluations
        if best.presence is None:  # nothing better was found
            return point
        weights = point.weights.copy()
        weights[features] = best.weights
        presence = np.zeros(len(weights))
        presence[features] = best.presence
        return Point(weights, best.shares, best.value, presence)

    def _recomputed(self, point: Point, core: NDArray[np.intp]) -> Point:
        """Compute the leading eigenvectors from random vectors.

        Those that an ascent follows may be overtaken by others; what it says of λmax is
        too low then.
        """
        if len(core) == len(self.diagonal):
            return point
        self.vectors = self.vectors[:, :0]
        mu = _FIRST_MU * abs(self.objective)
        found = self._slope_at(point.weights, core, point.shares, mu)
        if found.value <= point.value:
            return point
        return replace(found, shares=point.shares)

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
            self.vectors[features],
        )
        return matrix, features

    def _remember(self, matrix: DualMatrix, features: NDArray[np.intp]) -> None:
        """Keep the eigenvectors, from which those of the next matrix are found."""
        vectors = matrix.leading.vectors
        self.vectors = np.zeros((len(self.diagonal), vectors.shape[1]))
        self.vectors[features] = vectors

    def _slope_at(
        self, w: FloatArray, core: NDArray[np.intp], shares: FloatArray, mu: float
    ) -> Point:
        """Return the point, with λmax as far as it is known."""
        matrix, features = self._matrix(w, core, w)
        slope = matrix.slope(w[features], shares, mu)
        self._remember(matrix, features)
        self.evaluations += 1
        presence = np.zeros(len(w))
        presence[features] = slope.presence
        return Point(w, shares, slope.largest, presence)

    def _proof_seconds(self, core: NDArray[np.intp]) -> float:
        order = len(core) + 200
        return 4 * _cost.cholesky(order) + _cost.passes(160, len(self.pairs) / 4)

    def _prove(self, point: Point, core: NDArray[np.intp], deadline: Deadline) -> None:
        """Round a point to a record, prove its bound, and keep it if it is better."""
        record = self._record(point, core)
        # What was reserved for it may have been used up by the last step; without the
        # proof that step, and all before it, would be lost.
        seconds = self._proof_seconds(core)
        if not deadline.affords(seconds - _GRACE - _GRACE_SHARE * seconds):
            return
        value = proved_value(self.cov, self.k, record, self.pairs)
        if value < self.best.value:
            self.best = EntryBound(value, record)

    def _record(self, point: Point, core: NDArray[np.intp]) -> EntryRecord:
        low = 0.0 if len(core) == len(point.weights) else np.sqrt(self.level)
        return EntryRecord.of(point.weights, self.unit, core, point.shares, low)
