"""Sweeps: every component is solved again, given all the others, while that helps.

Components that are found one after the other are each the best after the earlier ones,
and need not be a good set. A sweep takes one component at a time, and solves for it
again with all the others as if they were earlier ones. The new component is kept if the
goal of the set rises by more than `GAIN` of it, the old one if not; a set on which a
whole sweep changes nothing is the best in each of its components while the others stay.

The goal is what the scheme's problems make up, each with the others as they are:

- the sum of the plain variances x_j'Ax_j where components are disjoint or orthogonal
  (`adds_variances` of the scheme);
- the product of the adjusted variances for residual deflation
  (`multiplies_variances`; `generalised_variance` has the proof), unless their
  sum, which is reported, falls with that;
- then, and for other schemes, the sum of the adjusted variances. It depends on the
  order of components, so that a larger objective need not be a larger sum: a gap may
  remain.

Between sweeps the product is raised on the supports as they are, by loadings alone:
then proofs are asked what features can add, not for the last digits of loadings.

What is certified: component j for the scheme's problem after all *other* components,
which count by their plain variance where the scheme uses one. Whoever was solved before
another one changed is solved again at the end, as it is, so that every certificate is
about the set that is returned.

Of a matrix with negative variances, or with fewer directions than components, a scheme
may close the features of a component that adds nothing to all others. One that uses
such a feature is none that its problem allows, given the others: `NotAmongTheOthers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import is_

import numpy as np

from .._validation import FloatArray
from ..certificate import restated
from ..covariance.covariance import Covariance
from ..result import Result
from ..status import SEARCH_GAP, Status
from .generalised_variance import log_volume, raised_loadings
from .rewrite import with_component
from .scheme import BaseScheme, NoComponent, uses_closed
from .variance import adjusted_variance, by_size, score_covariance

GAIN = SEARCH_GAP  # of the goal: less is within what searches leave open

#: Solve for component `index` after the given ones, from its present loadings.
SolveAgain = Callable[[int, tuple[Result, ...], FloatArray, bool], Result]


class NotAmongTheOthers(Exception):
    """A component has features that the others close to it, or none is left for it.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C came before.
    """

    def __init__(self, interrupted: bool = False) -> None:
        super().__init__()
        self.interrupted = interrupted


def others(
    cov: Covariance, results: Sequence[Result], index: int
) -> tuple[Result, ...]:
    """Return all results but one, each with its variance x'Ax as objective.

    So that they depend on the components alone, and not on how those were found.
    """
    return tuple(
        replace(
            result,
            objective=(variance := _variance(cov, result)),
            upper_bound=max(variance, result.upper_bound),
            status=Status.FEASIBLE,
            certificate=None,
        )
        for i, result in enumerate(results)
        if i != index
    )


def total(cov: Covariance, results: Sequence[Result], scheme: BaseScheme) -> float:
    """Return the variances of components in their order, those that are reported."""
    return _total(score_covariance(cov, _rows(results)), scheme)


def _total(scores: FloatArray, scheme: BaseScheme) -> float:
    if scheme.adds_variances:
        return float(np.trace(scores))
    return float(adjusted_variance(scores).sum())


@dataclass(frozen=True)
class SweepGoal:
    """What sweeps raise."""

    scheme: BaseScheme
    #: of the adjusted variances, in the place of the sum of what the scheme adds up
    product: bool = False
    #: loadings may have any sign, so that the product can be raised by them alone
    free_loadings: bool = True
    stop: Callable[[], bool] = lambda: False  #: whether time is up

    def rises(
        self, cov: Covariance, new: Sequence[Result], old: Sequence[Result]
    ) -> bool:
        """Tell whether the goal is more than rounding higher."""
        after, before = (score_covariance(cov, _rows(one)) for one in (new, old))
        if self.product:
            return log_volume(after) > log_volume(before) + GAIN
        least = _total(before, self.scheme)
        return _total(after, self.scheme) > least + GAIN * abs(least)

    def begun(self, cov: Covariance, results: list[Result]) -> list[Result]:
        """Return the components with which a sweep begins."""
        if not (self.product and self.free_loadings):
            return results
        raised = _with_raised_loadings(cov, results, self.stop)
        return _ordered(cov, raised, self.scheme)


def swept(
    cov: Covariance,
    results: Sequence[Result],
    goal: SweepGoal,
    sweeps: int,
    solve_again: SolveAgain,
    on_the_way: Callable[[list[Result]], None] = lambda current: None,
) -> tuple[Result, ...]:
    """Return the components after at most so many sweeps, each certified.

    Parameters
    ----------
    results : sequence of Result
        One component after the other. Where all have the same k, they are put in the
        order of their variances, or of what they add to the earlier ones.
    goal : SweepGoal
    sweeps : int
        In which components may change. Those whose proof was for others than the last
        ones are then proved again.
    solve_again : callable (index, given, x, last) -> Result
        Solves the problem of component `index`; x are its present loadings, and `last`
        says that no sweep follows.
    on_the_way : callable
        Is shown each set that is better than the one before, not yet proved.

    Raises
    ------
    NotAmongTheOthers
        See the module.
    """
    scheme = goal.scheme
    current = _ordered(cov, list(results), scheme)
    proved_for: dict[int, list[FloatArray]] = {}  # by the identity of x: the others
    stopped = False

    def given(j: int) -> tuple[Result, ...]:
        earlier = others(cov, current, j)
        if uses_closed(scheme, cov, earlier, current[j].x):
            raise NotAmongTheOthers(stopped)
        return earlier

    def solved(j: int, x: FloatArray, last: bool) -> Result:
        try:
            return solve_again(j, given(j), x, last)
        except NoComponent:  # those found in turn are a set, and stay
            raise NotAmongTheOthers(stopped) from None

    def is_up_to_date(j: int) -> bool:
        now = _vectors(current, j)
        then = proved_for.get(id(current[j].x), [])
        return len(now) == len(then) and all(map(is_, now, then))

    for _ in range(sweeps):
        current, changed = goal.begun(cov, current), False
        for x in [result.x for result in current]:
            j = next(i for i, result in enumerate(current) if result.x is x)
            if is_up_to_date(j):
                continue
            new = solved(j, x, False)
            stopped = new.status is Status.INTERRUPTED
            trial = [*current[:j], new, *current[j + 1 :]]
            if goal.rises(cov, trial, current):
                proved_for[id(new.x)] = _vectors(current, j)
                current, changed = _ordered(cov, trial, scheme), True
                on_the_way(current)
            else:
                current[j] = _with_old(cov, current, j, new, scheme)
                proved_for[id(x)] = _vectors(current, j)
            if stopped or goal.stop():
                break
        if stopped or not changed or goal.stop():
            break
    for j in range(len(current)):
        if not is_up_to_date(j):
            new = solved(j, current[j].x, True)
            stopped = stopped or new.status is Status.INTERRUPTED
            current[j] = _with_old(cov, current, j, new, scheme)
    if stopped:
        current = [restated(r, status=Status.INTERRUPTED) for r in current]
    return tuple(current)


def _with_old(
    cov: Covariance, current: Sequence[Result], j: int, new: Result, scheme: BaseScheme
) -> Result:
    """Return what was found for a problem, with the component that stays."""
    old = current[j].x
    if np.array_equal(new.x, old):
        return replace(new, x=old)
    problem = scheme.problem(cov, others(cov, current, j))
    kept = with_component(new, old, problem, reconsider=True)
    # not divided by its norm a second time
    return restated(kept, loadings=tuple(old[kept.support].tolist()))


def _variance(cov: Covariance, result: Result) -> float:
    used = np.flatnonzero(result.x)
    loadings = result.x[used]
    return float(loadings @ cov.submatrix(used) @ loadings)


def _vectors(results: Sequence[Result], j: int) -> list[FloatArray]:
    return [result.x for i, result in enumerate(results) if i != j]


def _rows(results: Sequence[Result]) -> FloatArray:
    return np.array([result.x for result in results])


def _with_raised_loadings(
    cov: Covariance, results: list[Result], stop: Callable[[], bool]
) -> list[Result]:
    """Return the components on the same features, with the loadings that go together.

    Those that change are not proved any more.
    """
    rows = _rows(results)
    raised = raised_loadings(cov, rows, stop)
    before, after = (log_volume(score_covariance(cov, one)) for one in (rows, raised))
    if not after > before + GAIN:
        return results
    return [unproved(r, x, cov) for r, x in zip(results, raised, strict=True)]


def unproved(result: Result, x: FloatArray, cov: Covariance) -> Result:
    """Return component x in the place of a result, with nothing known about it."""
    bare = replace(result, upper_bound=np.inf, certificate=None, status=Status.FEASIBLE)
    return with_component(bare, x, cov)


def _ordered(
    cov: Covariance, results: list[Result], scheme: BaseScheme
) -> list[Result]:
    """Return the components with those that add most first.

    As they are, where the total is larger.
    """
    if len({result.k for result in results}) > 1:  # a place has its k
        return results
    scores = score_covariance(cov, _rows(results))
    if scheme.adds_variances:  # the same in any order
        order = sorted(range(len(results)), key=lambda i: -scores[i, i])
        return [results[i] for i in order]
    order = by_size(scores)
    ordered = _total(scores[np.ix_(order, order)], scheme)
    if not ordered > _total(scores, scheme):
        return results
    return [results[i] for i in order]
