"""What each feature of a component is worth: the best that can be had without it.

For a feature i of the support the problem is solved again, with a proof, on all other
features. Without a feature that is not in the support the best is what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import interruption
from .._validation import FloatArray, check_n_jobs, names_of
from .._warnings import is_nested_call, warn_caller
from ..certify.constrained import solve_constrained
from ..certify.provers import ProofOptions
from ..constraint_rules import Rules
from ..covariance.covariance import Covariance, as_covariance
from ..limits import Budget, Limits, as_limits
from ..numerics.threads import allowed_threads
from ..pipeline import SETTINGS
from ..result import Result
from ..status import Status


@dataclass(frozen=True, eq=False)
class FeatureImportance:
    """The best objective without each feature of a component, proved.

    Attributes
    ----------
    result : Result
        The component.
    features : array of int
        Its support, the feature that costs most first. After Ctrl-C those that were
        reached.
    objectives, upper_bounds : arrays
        Without each of them: what is reached, and what is proved.
    results : tuple of Result
        The components without each of them.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]]
    >>> print(bs.feature_importance(A, bs.solve(A, k=2)))
    without a feature of 3:
      1: 2.5, 16.667% less, optimal
      0: 2.51926, 16.025% less, optimal
    """

    result: Result
    features: NDArray[np.intp]
    objectives: FloatArray
    upper_bounds: FloatArray
    results: tuple[Result, ...]

    @property
    def costs(self) -> FloatArray:
        """What the objective loses without each feature."""
        return self.result.objective - self.objectives

    @property
    def least_costs(self) -> FloatArray:
        """Proved: without the feature the optimum falls by at least this."""
        return np.maximum(self.result.objective - self.upper_bounds, 0.0)

    @property
    def complete(self) -> bool:
        """Whether every one of them is proved optimal."""
        return all(result.status is Status.OPTIMAL for result in self.results)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return any(result.status is Status.INTERRUPTED for result in self.results)

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict for each feature, for tables and files."""
        names = names_of(self.features, self.result.feature_names)
        best = abs(self.result.objective) or 1.0
        return [
            {
                "feature": name,
                "loading": float(self.result.x[i]),
                "objective_without": float(value),
                "upper_bound_without": float(bound),
                "cost": float(cost),
                "share": float(cost) / best,
                "status": result.status.value,
                "instead": result.features,
            }
            for i, name, value, bound, cost, result in zip(
                self.features,
                names,
                self.objectives,
                self.upper_bounds,
                self.costs,
                self.results,
                strict=True,
            )
        ]

    def __str__(self) -> str:
        lines = [f"without a feature of {self.result.objective:.6g}:"]
        lines += [
            f"  {row['feature']}: {row['objective_without']:.6g}, "
            f"{row['share']:.3%} less, {row['status']}"
            for row in self.to_rows()
        ]
        return "\n".join(lines)


def feature_importance(
    cov: Covariance | Any,
    result: Result,
    *,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
) -> FeatureImportance:
    """Return the best objective without each feature of a component, proved.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
        The matrix that the result is for.
    result : Result
        Of `solve`, with constraints or without. Features that must be included are
        left out like the others.
    limits : Limits, optional
        For all features together; each gets an equal share of the time that is left.
    n_jobs : int, optional
        As in `solve`.

    Returns
    -------
    FeatureImportance

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]]
    >>> found = bs.feature_importance(A, bs.solve(A, k=2))
    >>> found.features, found.objectives.round(4)
    (array([1, 0]), array([2.5   , 2.5193]))
    """
    cov = as_covariance(cov)
    if not isinstance(result, Result):
        raise TypeError(
            f"result is of type {type(result).__name__}; pass what solve has returned."
        )
    if result.n_features != cov.n_features:
        raise ValueError(
            f"result is for {result.n_features} features, cov has {cov.n_features}; "
            "pass the matrix that was solved."
        )
    budget = Budget(as_limits(limits))
    rules = None if result.certificate is None else result.certificate.constraints
    rules = Rules(cov.n_features) if rules is None else rules
    found: list[Result] = []
    support = np.flatnonzero(result.x)
    with allowed_threads(check_n_jobs(n_jobs)), budget.ending():
        with budget.reading() as reading:
            cov = cov.formed(reading, reading.limits.memory)
        for number, i in enumerate(support.tolist()):
            without = _without(rules, i)
            k = min(result.k, without.most_features())
            try:
                without.refuse_infeasible(max(k, 1))
            except ValueError as error:
                raise ValueError(
                    f"feature {cov.names_of(np.array([i]))[0]} cannot be left out, "
                    f"nothing else is allowed: {error}"
                ) from None
            # What one feature does not use of its share is there for those after it.
            part = Budget(budget.left(1 / (len(support) - number)))
            with part.ending() as inside:
                one = solve_constrained(
                    cov,
                    k,
                    without,
                    inside.limits,
                    ProofOptions(settings=SETTINGS, n_jobs=n_jobs),
                    start=[j for j in support.tolist() if j != i],
                )
            budget.nodes += one.nodes
            found.append(one)
            if one.status is Status.INTERRUPTED:  # which is meant for all of them
                break
    if one.status is Status.INTERRUPTED and not is_nested_call():
        warn_caller(interruption("feature_importance", found, len(support)))
    values = np.array([one.objective for one in found])
    order = np.argsort(values, kind="stable")
    return FeatureImportance(
        result,
        support[order],
        values[order],
        np.array([found[j].upper_bound for j in order]),
        tuple(found[j] for j in order),
    )


def _without(rules: Rules, i: int) -> Rules:
    """The same rules without a feature, which need not be included any more."""
    gone = rules.group_of(i) if rules.whole_groups else {i}
    kept = replace(rules, include=tuple(j for j in rules.include if j not in gone))
    return kept.without([i])
