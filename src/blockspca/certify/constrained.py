"""Sparse PCA under constraints, for one k or a path of them.

Parts of the problem are solved without constraints, and their bounds bound the whole.
`parts` says what a part is, `part_search` how parts are solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..bound_names import BoundName
from ..certificate import (
    WITH_CONSTRAINTS,
    Certificate,
    PartClaim,
    StepClaim,
    restated,
)
from ..constraint_rules import Rules
from ..constraints import Constraints, checked
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..numerics.linalg import OnSupport
from ..result import Result
from ..status import OPTIMAL_GAP, Status, status_of_gap
from .part_search import Run, claim_of, solve_parts
from .parts import Part, left_of, problem_of
from .provers import ProofOptions, choose_prover
from .results import certified_results
from .whole_groups import solve_whole_groups


def solve_constrained(
    cov: Covariance,
    k: int,
    rules: Rules,
    limits: Limits,
    options: ProofOptions,
    *,
    start: Sequence[int] = (),
    free: Result | None = None,
) -> Result:
    """Solve max x'Ax over k-sparse unit vectors that keep the rules.

    Parameters
    ----------
    rules : Rules
        Which allow a set of k features.
    options : ProofOptions
        Its prover and groups are left to the parts.
    start : sequence of int
        A support to start from; what is not allowed of it is left out.
    free : Result, optional
        Of the same problem without rules. If its component keeps them, all is done; its
        bound holds anyway.

    Returns
    -------
    Result
        Its certificate has the rules, and a claim for every part.
    """
    run = Run(cov, k, rules, Budget(limits), options)
    try:
        claims = _claims(run, start, free)
    except KeyboardInterrupt:  # between two searches, which end by themselves
        run.budget.end()
        claims = _claims(run, start, free)
        run.stopped = Status.INTERRUPTED
    assert run.best is not None
    result = _as_result(cov, k, rules, run.best, claims, run.budget, run.stopped)
    if run.stopped is Status.INTERRUPTED:  # also if proved: the caller may have more
        return restated(result, status=run.stopped)
    return result


def _claims(run: Run, start: Sequence[int], free: Result | None) -> list[PartClaim]:
    """Return claims of parts that bound the whole; `run` keeps the best component."""
    rules = run.rules
    claims: list[PartClaim] = []
    if free is not None and free.certificate is not None:
        run.offer(free.support)
        steps = free.certificate.steps
        claims = [PartClaim((), (), free.upper_bound, steps=steps)]
        if run.is_closed(free.upper_bound):
            return claims
    if rules.whole_groups:
        parts = solve_whole_groups(run, np.array(rules.include, dtype=np.intp))
    else:
        begun = _allowed_start(run.cov, run.k, rules, start)
        parts = solve_parts(run, Part.whole(rules), begun)
    bounds = [part.upper_bound for part in parts if not part.void]
    # A bound without rules holds under them, and parts that a limit has ended may prove
    # less.
    return parts if not claims or max(bounds) <= claims[0].upper_bound else claims


def solve_constrained_path(
    cov: Covariance,
    k_max: int,
    constraints: Constraints | Rules,
    budget: Budget,
    options: ProofOptions,
    start: Sequence[int],
) -> dict[int, Result]:
    """Solve every k from the number of features to include up to k_max.

    Features to exclude and limits of groups are the same for all k, and what is proved
    for one k helps the next. Features to include have a level of their own for each k,
    as have signs and overlaps; there each k starts from the support of the last.
    """
    rules = checked(constraints, cov.n_features, cov.feature_names, k_max)
    same = isinstance(constraints, Rules) or constraints.overlap_with is None
    same = same and not rules.beside
    if same and not rules.include and not rules.nonnegative and not rules.whole_groups:
        prover = choose_prover(cov, 1, k_max, options.settings)
        options = replace(options, prover=prover)
        return _solve_in_one_walk(cov, k_max, rules, budget.left(), options, start)
    first = max(1, len(rules.include))
    if not isinstance(constraints, Rules) and constraints.min_overlap:
        first = max(first, constraints.min_overlap)
    if rules.whole_groups and not rules.include:
        out = set(rules.exclude)
        first = min(len(g) for g in rules.groups if int(g[0]) not in out)
    found: dict[int, Result] = {}
    support = list(start)
    for k in range(first, k_max + 1):
        left = budget.left()
        if left.time is not None and k < k_max:
            left = replace(left, time=left.time / 2)  # as in a path without constraints
        result = solve_constrained(
            cov,
            k,
            checked(constraints, cov.n_features, cov.feature_names, k),
            left,
            options,
            start=support[:k],
        )
        budget.nodes += result.nodes
        found[k] = result
        if k >= len(start):
            support = result.support.tolist()
        if result.status is Status.INTERRUPTED:
            break
    return found


def _solve_in_one_walk(
    cov: Covariance,
    k_max: int,
    rules: Rules,
    limits: Limits,
    options: ProofOptions,
    start: Sequence[int],
) -> dict[int, Result]:
    """Solve k = 1, …, k_max in one walk, for rules without include and signs.

    Their part is one problem for all k, with limits of groups.
    """
    part = Part.whole(rules)
    problem = problem_of(cov, k_max, rules, part, None, limited=True)
    kept = _allowed_start(cov, k_max, rules, start)
    at = np.searchsorted(problem.rest, kept).tolist()
    # What is kept of a start may have fewer features: it is one for a smaller k.
    begun = {len(at): at} if at else {}
    options = replace(options, groups=problem.groups)
    ks = range(1, k_max + 1)
    results = certified_results(problem.cov, ks, limits, begun, options)
    found = {}
    for k, inner in results.items():
        best = OnSupport(
            problem.rest[inner.support], inner.x[inner.support], inner.objective
        )
        stopped = None if inner.status is Status.OPTIMAL else inner.status
        budget = Budget(limits)
        budget.nodes = inner.nodes
        claims = [claim_of(part, None, inner)]
        made = _as_result(cov, k, rules, best, claims, budget, stopped)
        found[k] = replace(made, time=inner.time, timings=inner.timings)
    return found


def _allowed_start(
    cov: Covariance, k: int, rules: Rules, start: Sequence[int]
) -> NDArray[np.intp]:
    """What can be kept of a support, with what must be included."""
    rest, places, groups = left_of(
        cov.n_features, k, rules, Part.whole(rules), limited=True
    )
    given = np.array([i for i in start if i in set(rest.tolist())], dtype=np.intp)
    if groups is not None:
        at = np.searchsorted(rest, given)
        given = rest[groups.first(at, places)]
    kept = [*rules.include, *given[:places].tolist()]
    return np.unique(np.array(kept, dtype=np.intp))


def _as_result(
    cov: Covariance,
    k: int,
    rules: Rules,
    best: OnSupport,
    claims: list[PartClaim],
    budget: Budget,
    stopped: Status | None,
) -> Result:
    """Put a component and the claims of all parts together."""
    limits = budget.limits
    bounds = [claim.upper_bound for claim in claims if not claim.void]
    # A bound may be below the objective by rounding; void parts have no component.
    upper = max(best.objective, *bounds)
    status = status_of_gap(best.objective, upper, limits.gap, stopped)
    step = StepClaim(k, upper, BoundName.CONSTRAINED)
    certificate = Certificate(
        k=k,
        n_features=cov.n_features,
        support=tuple(best.support.tolist()),
        loadings=tuple(best.loadings.tolist()),
        objective=best.objective,
        upper_bound=upper,
        status=status,
        tolerance=OPTIMAL_GAP * abs(best.objective),
        steps=(step,),
        gap=limits.gap,
        version=WITH_CONSTRAINTS,
        constraints=rules,
        parts=tuple(claims),
    )
    return certificate.as_result(
        nodes=budget.nodes,
        time=budget.elapsed(),
        timings={"proof": budget.elapsed()},
        solver="certified path",
        feature_names=cov.feature_names,
    )
