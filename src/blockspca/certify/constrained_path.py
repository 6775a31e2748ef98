"""A path of constrained components: one walk where it can be, else one k at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..constraints import Constraints, checked
from ..covariance.covariance import Covariance
from ..limits import Budget
from ..result import Result, Status
from ..rules import Rules
from .constrained import solve_constrained, solve_part_of_all_k
from .options import ProofOptions
from .part_search import ChooseProver


def solve_constrained_path(
    cov: Covariance,
    k_max: int,
    constraints: Constraints | Rules,
    budget: Budget,
    options: ProofOptions,
    choose_prover: ChooseProver,
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
        options = replace(options, prover=choose_prover(cov, 1, k_max))
        return solve_part_of_all_k(cov, k_max, rules, budget.left(), options, start)
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
            choose_prover,
            start=support[:k],
        )
        budget.nodes += result.nodes
        found[k] = result
        if k >= len(start):
            support = result.support.tolist()
        if result.status is Status.INTERRUPTED:
            break
    return found
