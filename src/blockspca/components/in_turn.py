"""Solve the problems of several components within the limits of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import Argument, Subject
from .._validation import FloatArray
from ..bounds.closed_form import ObviousBounds
from ..certificate import restated
from ..constraints import Constraints, checked
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..limits import Budget, Deadline, Limits
from ..numerics.linalg import on_support, with_sign
from ..pipeline import AT_NO_COST, solve
from ..progress import Listener, of_component
from ..result import Result
from ..status import Status, status_of_gap
from .earlier import with_earlier_bound
from .prediction_search import more_predictive
from .rewrite import renumbered, tidied, with_component
from .scheme import RESIDUAL, BaseScheme, NoComponent, SolveOne, uses_closed
from .variance import adjusted_variance, score_covariance

HALF = 0.5  # of what is left, for each pass over the components but the last


@dataclass(frozen=True)
class SolveWithin:
    """Solves the problems of one component, of which a scheme may have several.

    `deadline` is that of the component: what one problem has used, the next has not.
    `start` are its loadings so far, where it is solved again.
    """

    limits: Limits
    deadline: Deadline
    tell: Listener
    options: Mapping[str, Any]
    start: FloatArray | None = None

    def __call__(
        self, problem: Covariance, k: int, *, certify: bool = True, share: float = 1.0
    ) -> Result:
        left = self.deadline.remaining()
        limits = replace(self.limits, time=None if left is None else share * left)
        chosen = {
            **self.options,
            "certify": certify and self.options.get("certify", True),
        }
        return solve(problem, k, limits=limits, progress=self.tell, **chosen)

    def without(self, problem: Covariance, used: NDArray[np.intp], k: int) -> Result:
        """Solve a problem without the features that are used."""
        d, names = problem.n_features, problem.feature_names
        constraints = self.options.get("constraints")
        if constraints is not None:
            rules = checked(constraints, d, names, None if k > d else k).without(used)
            if np.isin(rules.include, used).any():
                one = Argument("n_components", 1)
                raise NoComponent(
                    "include: no component with these features has a positive "
                    "variance, so that further ones would repeat the first; pass "
                    f"{one}.",
                    one,
                )
            wanted, k = k, min(k, rules.most_features())
            overlaps = isinstance(constraints, Constraints) and (
                constraints.overlap_with is not None
            )
            if k < wanted and overlaps:
                raise NoComponent(
                    f"min_overlap and disjoint supports leave room for {k} of {wanted} "
                    "features of a further component, as earlier ones use those to "
                    f"overlap with; pass fewer components or {RESIDUAL}, or solve one "
                    "component after the other, each with an overlap_with of its own.",
                    RESIDUAL,
                )
            if k == 0:
                raise NoComponent(
                    "constraints and disjoint supports leave no feature for a further "
                    f"component; pass fewer components, or {RESIDUAL}.",
                    RESIDUAL,
                )
            options = {**self.options, "constraints": rules}
            options["start"] = _but(self.options.get("start"), used)
            result = replace(self, options=options)(problem, k)
            # Its price is against a component that may use them, which is the first.
            return replace(result, price=None) if len(used) else result
        keep = np.setdiff1d(np.arange(d, dtype=np.intp), used)
        if not len(keep):
            raise NoComponent(
                f"n_components: the components found so far use all {d} features and "
                "leave no positive variance, so that there is no further one; pass "
                "fewer components.",
                Subject("n_components"),
            )
        options = dict(self.options)
        if options.get("start") is not None:
            kept = _but(options["start"], used)
            options["start"] = np.searchsorted(keep, kept).tolist()
        apart = replace(self, options=options)
        result = apart(restricted(problem, keep), min(k, len(keep)))
        return renumbered(result, keep, names, d)


def _but(start: Sequence[int] | None, used: NDArray[np.intp]) -> list[int]:
    """A support without the features that are used."""
    out = set(used.tolist())
    return [i for i in start or () if i not in out]


def shared_out(budget: Budget, to_go: int, part: float) -> Limits:
    """Return an equal share, for the solves to go, of a part of what is left."""
    left = budget.left()
    time, nodes = left.time, left.nodes
    return replace(
        left,
        time=None if time is None else part * time / to_go,
        # None at all would be a component without any search.
        nodes=None if nodes is None else max(1, int(part * nodes) // to_go),
    )


@dataclass
class Call:
    """What one call of `solve_components` solves, with what is left of its limits.

    Called, it solves for one component of a set again, as `sweeps.swept` asks.
    """

    cov: Covariance
    scheme: BaseScheme
    sparsities: Sequence[int]
    budget: Budget
    tell: Listener
    options: Mapping[str, Any]
    interrupted: bool = False

    def listener(self, index: int) -> Listener:
        """Return who is told of the proof of one component."""
        number = index + 1 if len(self.sparsities) > 1 else 0
        return of_component(self.tell, number)

    def __call__(
        self, index: int, given: tuple[Result, ...], x: FloatArray, last: bool
    ) -> Result:
        share = shared_out(
            self.budget, len(self.sparsities) - index, 1.0 if last else HALF
        )
        if self.interrupted:  # no more than what is known at once
            share = replace(share, time=0.0)
        solve_one = SolveWithin(
            share, Deadline(share.time), self.listener(index), self.options, x
        )
        k = self.sparsities[index]
        result = self.scheme.solve(self.cov, given, k, solve_one)
        result = tidied(result, partial(self.scheme.problem, self.cov, given))
        self.budget.nodes += result.nodes
        self.interrupted = self.interrupted or result.status is Status.INTERRUPTED
        return result


def next_component(
    cov: Covariance,
    earlier: tuple[Result, ...],
    k: int,
    scheme: BaseScheme,
    solve_one: SolveOne,
    free: bool,
) -> Result:
    """Solve for the component after the earlier ones; `free` is without constraints.

    Bounds of earlier components hold for this one too where the scheme says so, but not
    those of components that had to keep constraints.
    """
    result = scheme.solve(cov, earlier, k, solve_one)
    result = tidied(result, partial(scheme.problem, cov, earlier))
    return with_earlier_bound(result, cov, earlier, scheme) if free else result


def in_turn(
    call: Call,
    starts: Sequence[Sequence[int]],
    part: float,
    chosen: FloatArray | None = None,
) -> list[Result]:
    """Solve for each component after the earlier ones, in a part of what is left.

    Where components are chosen already, the solves give their bounds; one that was
    left nothing to choose from, adds nothing, or has features closed to it, is the one
    found.
    """
    results: list[Result] = []
    for j, k in enumerate(call.sparsities):
        share = shared_out(call.budget, len(call.sparsities) - j, part)
        options = {**call.options, "start": starts[j]} if starts else call.options
        solve_one = SolveWithin(share, Deadline(share.time), call.listener(j), options)
        free = "constraints" not in options
        earlier = tuple(results)
        try:
            found = next_component(call.cov, earlier, k, call.scheme, solve_one, free)
        except KeyboardInterrupt:  # a scheme's own search was under way
            if not results:
                raise
            results[-1] = restated(results[-1], status=Status.INTERRUPTED)
            break
        call.budget.nodes += found.nodes
        x = np.zeros(0) if chosen is None else chosen[j]
        if x.any() and not uses_closed(call.scheme, call.cov, earlier, x):
            problem = call.scheme.problem(call.cov, earlier)
            named = with_component(found, x, problem, reconsider=True)
            found = named if named.objective > 0 else found
        results.append(found)
        if found.status is Status.INTERRUPTED:
            break
    return results


def _loaded(cov: Covariance, supports: Sequence[Sequence[int]]) -> FloatArray:
    """Return the vector of most variance on each support; 0 on an empty one."""
    rows = np.zeros((len(supports), cov.n_features))
    for row, support in zip(rows, supports, strict=True):
        if support:
            row[:] = on_support(cov, support)[0]
    return rows


def _without_proof(
    call: Call, chosen: FloatArray, deadline: Deadline
) -> list[Result] | None:
    """Return chosen components as they are; None if one of them adds nothing.

    What is obvious of A bounds them all: A_j ⪯ A if every score adds something.
    """
    cov, limits = call.cov, call.budget.limits
    added = adjusted_variance(score_covariance(cov, chosen))
    if not (added > 0).all():
        return None
    obvious, results = ObviousBounds(cov, AT_NO_COST), []
    stopped = Status.TIME_LIMIT if deadline.passed() else None
    for x, objective, k in zip(chosen, added.tolist(), call.sparsities, strict=True):
        bound, name = obvious.least(k)
        bound = max(bound, objective)
        found = Result(
            x=x,
            support=np.flatnonzero(x),
            objective=objective,
            upper_bound=bound,
            status=status_of_gap(
                objective, bound, limits.gap, stopped, keep_interrupt=True
            ),
            k=k,
            n_features=cov.n_features,
            bound_name=name,
            time=call.budget.elapsed(),
            feature_names=cov.feature_names,
        )
        results.append(found)
    return results


def chosen_together(call: Call, starts: list[list[int]]) -> list[Result]:
    """Return components of which some adjusted variance is given for prediction.

    Each is certified for its problem after the earlier ones, as if it had been found
    for that. Without proofs they are what is found at once.
    """
    prove = bool(call.options.get("certify", True))
    share = shared_out(call.budget, 1, HALF if prove else 1.0)
    deadline = Deadline(share.time)
    try:
        chosen = more_predictive(
            call.cov,
            _loaded(call.cov, starts) if starts else None,
            call.sparsities,
            call.scheme,
            deadline,
            call.options.get("rng"),
            share.memory,
            variations=prove,
        )
    except KeyboardInterrupt:  # the first component, as far as it is known at once
        at_once = replace(call, budget=Budget(Limits(time=0.0)))
        found = in_turn(at_once, starts, 1.0)[0]
        return [restated(found, status=Status.INTERRUPTED)]
    if chosen is None:  # no time, or nothing to begin with
        return in_turn(call, starts, 1.0)
    return bounded(call, chosen, deadline)


def bounded(call: Call, chosen: FloatArray, deadline: Deadline) -> list[Result]:
    """Return chosen components, each with a bound for its problem, or an obvious one.

    With certify=False the bounds are those in closed form, and the status is
    TIME_LIMIT once the deadline has passed.
    """
    chosen = np.array([with_sign(x) for x in chosen])
    if not call.options.get("certify", True):
        results = _without_proof(call, chosen, deadline)
        if results is not None:
            return results
    supports = [np.flatnonzero(x).tolist() for x in chosen]
    return in_turn(call, supports, 1.0, chosen)
