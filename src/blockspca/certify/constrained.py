"""Sparse PCA under constraints: parts are solved without them, and bound the whole.

See `parts` for what a part is, and `part_search` for how they are solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..certificate import WITH_CONSTRAINTS, BoundName, Certificate, PartClaim, StepClaim
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..result import OPTIMAL_GAP, Result, Status
from ..rules import Rules
from ..stopping import status_of_gap
from .options import ProofOptions
from .part_search import Best, ChooseProver, Run, claim_of, solve_parts
from .parts import Part, left_of, problem_of
from .results import certified_results
from .whole_groups import solve_whole_groups


def solve_constrained(
    cov: Covariance,
    k: int,
    rules: Rules,
    limits: Limits,
    options: ProofOptions,
    choose_prover: ChooseProver,
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
    choose_prover : callable
        Takes a covariance and the least and largest k.
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
    run = Run(cov, k, rules, Budget(limits), options, choose_prover)
    claims: list[PartClaim] = []
    if free is not None and free.certificate is not None:
        run.offer(free.support)
        steps = free.certificate.steps
        claims = [PartClaim((), (), free.upper_bound, steps=steps)]
    if not claims or not run.is_closed(claims[0].upper_bound):
        if rules.whole_groups:
            parts = solve_whole_groups(run, np.array(rules.include, dtype=np.intp))
        else:
            begun = _allowed_start(cov, k, rules, start)
            parts = solve_parts(run, Part.whole(rules), begun)
        bounds = [part.upper_bound for part in parts if not part.void]
        # A bound without rules holds under them, and parts that a limit has ended may
        # prove less.
        if not claims or max(bounds) <= claims[0].upper_bound:
            claims = parts
    return _as_result(run, claims)


def solve_part_of_all_k(
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
        best = Best(
            problem.rest[inner.support], inner.x[inner.support], inner.objective
        )
        stopped = None if inner.status is Status.OPTIMAL else inner.status
        budget = Budget(limits)
        budget.nodes = inner.nodes
        claims = [claim_of(part, None, inner)]
        made = _as_result_of(cov, k, rules, best, claims, budget, stopped)
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


def _as_result(run: Run, claims: list[PartClaim]) -> Result:
    assert run.best is not None
    return _as_result_of(
        run.cov, run.k, run.rules, run.best, claims, run.budget, run.stopped
    )


def _as_result_of(
    cov: Covariance,
    k: int,
    rules: Rules,
    best: Best,
    claims: list[PartClaim],
    budget: Budget,
    stopped: Status | None,
) -> Result:
    """Put a component and the claims of all parts together."""
    limits = budget.limits
    bounds = [claim.upper_bound for claim in claims if not claim.void]
    # A bound may be below the objective by rounding; void parts have no component.
    upper = max(best.value, *bounds)
    status = status_of_gap(best.value, upper, limits.gap, stopped)
    step = StepClaim(k, upper, BoundName.CONSTRAINED)
    certificate = Certificate(
        k=k,
        n_features=cov.n_features,
        support=tuple(best.support.tolist()),
        loadings=tuple(best.x.tolist()),
        objective=best.value,
        upper_bound=upper,
        status=status,
        tolerance=OPTIMAL_GAP * abs(best.value),
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
