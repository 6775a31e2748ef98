"""Components that predict, from several sets to begin with.

Residual deflation's, rotated eigenvectors and a lasso's, each cut to k features, are
raised to the goal (`prediction`), and the best is searched further. Or they are raised
until they dominate a set that is given. Nothing is proved here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from .._kernels.loading import load
from .._validation import FloatArray, as_generator
from .._warnings import warn_caller
from ..bounds.entry_dual.pairs import OutOfTime
from ..covariance.covariance import Covariance
from ..limits import Deadline, NotAffordable
from ..numerics.rounding import power_of_two
from .prediction import MUCH, Prediction
from .prediction_core import Measured
from .prediction_goal import USUAL, Goal
from .scheme import BaseScheme
from .variance import adjusted_variance, by_size, score_covariance

KERNELS = ("prediction_sets", "prediction_exchange", "lasso")
NOT_COMPARED = (
    "above_lasso=True: the time was up before a lasso was fitted, so that the "
    "components may have less adjusted variance or R² than its; pass a longer limit."
)


def more_predictive(
    cov: Covariance,
    given: FloatArray | None,
    sparsities: Sequence[int],
    scheme: BaseScheme,
    deadline: Deadline,
    rng: int | np.random.Generator | None = None,
    memory: int | None = None,
    variations: bool = True,
) -> FloatArray | None:
    """Return components, (m, d), with at least the goal of the given ones, if any.

    With `above_lasso`: with at least both numbers of the lasso's (`Prediction`'s
    `lasso_sets`), if it has components, for which some of the goal may be given; a
    warning says so if time ends before there is a lasso. The given ones, or None, where
    time is too short to begin.

    Parameters
    ----------
    given : array of shape (m, d), optional
        A set to begin with besides others.
    sparsities : sequence of int
        How many features each may use.
    scheme : BaseScheme
        Its `prediction`, `disjoint` and `above_lasso`.
    rng : int or Generator, optional
        For the variations that are tried; 0 by default.
    memory : int, optional
        Bytes for working arrays. Sets whose features are too many for them are not
        begun with.
    variations : bool
        Whether variations of the best are searched. Without them a fifth of the time is
        enough, and the goal is what it is with them on ten of 22 data sets; adjusted
        variance or R² is less by up to 7 % on the others.
    """
    try:
        if not deadline.loads(load, *KERNELS):
            raise OutOfTime
        search = Prediction(
            cov, sparsities, scheme.disjoint, deadline, memory, variations
        )
        lasso = search.lasso_sets()
    except OutOfTime:
        if scheme.above_lasso:
            warn_caller(NOT_COMPARED)
        return given
    goal, rng = Goal(scheme.prediction), as_generator(rng)
    vectors, starts = _begun(search, lasso, given)
    enclosed: list[FloatArray] = []
    with suppress(OutOfTime):
        enclosed = _enclosed(search, vectors, starts, given)
    best = None
    if enclosed:
        best = _best([search.raised(V, goal) for V in enclosed], goal)
        best = search.grown(best, goal)
        if variations:
            best = search.grown(search.searched(best, goal, rng), goal)
    if scheme.above_lasso and lasso:
        named = starts[-len(lasso) :]
        best = _above(search, best, goal, enclosed, named, rng if variations else None)
    if best is None:
        return given
    return _in_order(cov, best.V, sparsities)


def dominating(
    cov: Covariance,
    given: FloatArray,
    sparsities: Sequence[int],
    disjoint: bool,
    deadline: Deadline,
    memory: int | None = None,
) -> FloatArray:
    """Return components, (m, d), with no less adjusted variance and R² than given ones.

    Of such sets it is one with much of both; the given ones, if no other is found. The
    other parameters are those of `more_predictive`.

    Raises
    ------
    NotAffordable
        Saying what was too short to look for one.
    """
    try:
        if not deadline.loads(load, *KERNELS):
            raise OutOfTime
        search = Prediction(cov, sparsities, disjoint, deadline, memory, spare=False)
        vectors, starts = _begun(search, search.lasso_sets(), given)
        enclosed = _enclosed(search, vectors, starts, given)
    except OutOfTime:
        raise NotAffordable("the time was up; pass a longer limit") from None
    if not enclosed:
        raise NotAffordable(
            "the features of a set are too many for the memory; pass a larger "
            "limits.memory"
        )
    named = search.measure(starts[0])
    above = (named.adjusted, named.predicted)
    goal = Goal(USUAL, above=above, ceiling=search.ceiling())
    best = _best([search.raised(V, goal) for V in enclosed], goal)
    best = _held(search, search.grown(best, goal), goal, enclosed, named)
    return _in_order(cov, best.V, sparsities)


def _begun(
    search: Prediction, lasso: Sequence[FloatArray], given: FloatArray | None
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return directions, not cut, and the sets to begin with, a given one first."""
    vectors = [*search.directions(), *search.rotated_directions(), *lasso]
    starts = [search.cut(V) for V in vectors]
    if given is not None:
        starts.insert(0, search.cut(given))
    return vectors, starts


def _enclosed(
    search: Prediction,
    vectors: Sequence[FloatArray],
    starts: Sequence[FloatArray],
    given: FloatArray | None,
) -> list[FloatArray]:
    """Form the core, and return the sets that are within it."""
    likely = list(vectors)
    if given is not None:
        likely.append(search.timely(given.T).T)
    return search.enclose(likely, starts)


def _above(
    search: Prediction,
    best: Measured | None,
    free: Goal,
    starts: Sequence[FloatArray],
    lasso: Sequence[FloatArray],
    rng: np.random.Generator | None,
) -> Measured:
    """Return a set with no less than what predicts most of the lasso's has.

    That itself, if there is no best set, and no core to search on. Without `rng` there
    are no variations.
    """
    measured = [search.measure(V) for V in lasso]
    place = max(range(len(lasso)), key=lambda i: measured[i].predicted)
    named = measured[place]
    if best is None:
        return named
    goal = replace(
        free, above=(named.adjusted, named.predicted), ceiling=search.ceiling()
    )
    # No set has more of this goal than of the free one.
    if best.value(goal) < best.value(free) - MUCH:
        from_here = [best.V, *(V for V in starts if V is lasso[place])]
        best = _best([best, *(search.raised(V, goal) for V in from_here)], goal)
        if rng is not None or not goal.holds(best.adjusted, best.predicted):
            others = (V for V in starts if V is not lasso[place])
            best = _best([best, *(search.raised(V, goal) for V in others)], goal)
        best = search.grown(best, goal)
        if rng is not None:
            best = search.grown(search.searched(best, goal, rng), goal)
    return _held(search, best, goal, starts, named)


def _held(
    search: Prediction,
    best: Measured,
    goal: Goal,
    starts: Sequence[FloatArray],
    named: Measured,
) -> Measured:
    """Return the best, if it has what the named set has.

    Else the best set found that has it, or the named one.
    """
    if goal.holds(best.adjusted, best.predicted):
        return best
    # The named set is one of the best itself, and there is little to choose; or the
    # time is up. From the named set a hard bound is kept by every turn.
    strict = replace(goal, strict=True)
    ends = [search.raised(V, strict) for V in [best.V, *starts]]
    if any(V is named.V for V in starts):
        ends.append(search.raised(named.V, replace(strict, hard=True)))
    held = [one for one in ends if goal.holds(one.adjusted, one.predicted)]
    return _best(held or [named], replace(goal, above=None))


def _best(found: Sequence[Measured], goal: Goal) -> Measured:
    return max(found, key=lambda one: one.value(goal))


def _in_order(cov: Covariance, V: FloatArray, sparsities: Sequence[int]) -> FloatArray:
    """Return the set with those first that add most, unless each place has its k.

    As it is, where that adds up to more.
    """
    if len(set(sparsities)) > 1:
        return V
    scores = score_covariance(cov, V)
    scores = scores / power_of_two(float(np.abs(scores).max()))
    order = by_size(scores)
    kept = adjusted_variance(scores).sum()
    reached = adjusted_variance(scores[np.ix_(order, order)]).sum()
    return V if kept >= reached else V[order]
