"""What a call promises about its result, checked by brute force.

`holds` takes a case (a problem and what was asked) and an answer of any public call,
and raises `WrongClaim` for the first promise that is broken.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

import judge
import zoo
from zoo import EPS, Array, Problem, to_longdouble

if os.environ.get("BLOCKSPCA_BASE"):
    import base_adaptor as bs
else:
    import blockspca as bs  # type: ignore[no-redef]

OPTIMAL_GAP = 1e-6
SAME = 1e-6  # relative, for other forms of the same problem
DERIVED = 1e-9  # relative, for problems whose judge works in float64


class WrongClaim(AssertionError):
    """A promise that does not hold; nothing else that goes wrong is one."""


@dataclass(frozen=True)
class Case:
    """A problem, what is asked about it, and the limits of the call."""

    problem: Problem
    k: int = 1
    rules: dict[str, Any] = field(default_factory=dict)
    limits: Any = None
    m: int = 2  # components
    weight: float | None = None  # of a background, if the matrix is a contrast
    share: float = 0.01  # of the best, for alternatives

    @cached_property
    def cov(self) -> Any:
        cov = self.problem.covariance(bs.Covariance)
        if self.weight is None:
            return cov
        background = self.background.covariance(bs.Covariance)
        return bs.contrastive(cov, background, self.weight)

    @property
    def background(self) -> Problem:
        return replace(self.problem, seed=self.problem.seed + 1)

    @cached_property
    def fractions(self) -> Array:
        A = self.problem.fractions
        if self.weight is None:
            return A
        return A - Fraction(self.weight) * self.background.fractions

    @cached_property
    def exact(self) -> Array:
        return to_longdouble(self.fractions)

    @property
    def constraints(self) -> Any:
        return bs.Constraints(**self.rules) if self.rules else None

    @property
    def scale(self) -> float:
        return float(np.abs(self.exact).max(initial=0.0))

    def varied(self, variant: str) -> Case:
        problem = self.problem.varied(variant)
        rules = judge.renumbered(self.rules, problem.order)
        return replace(self, problem=problem, rules=rules)


def require(condition: Any, text: str) -> None:
    if not condition:
        raise WrongClaim(text)


# -- one component ---------------------------------------------------------------------


def component(
    case: Case,
    result: Any,
    *,
    exact: Array | None = None,
    k: int | None = None,
    rules: dict[str, Any] | None = None,
    reached: float | None = None,
    near: float = 0.0,
    where: str = "",
) -> None:
    """Check one result: feasible, objective, bound, gap and status."""
    A = case.exact if exact is None else exact
    k = min(case.k if k is None else k, len(A))
    rules = case.rules if rules is None else rules
    x, support = np.asarray(result.x), np.asarray(result.support)
    objective, bound = float(result.objective), float(result.upper_bound)
    used = np.flatnonzero(x)
    require(np.isfinite(x).all(), f"{where}x is not finite")
    require(abs(np.linalg.norm(x) - 1) < 64 * EPS, f"{where}‖x‖ = {np.linalg.norm(x)}")
    require(np.isin(used, support).all(), f"{where}x is not 0 outside its support")
    require(len(support) <= k, f"{where}{len(support)} features, k = {k}")
    require(
        judge.keeps(support, len(A), k, {**rules, "nonnegative": False}),
        f"{where}the support {support} breaks the rules {rules}",
    )
    if rules.get("nonnegative"):
        require((x >= 0).all(), f"{where}a loading is negative: {x[used]}")
    terms = np.abs(A[np.ix_(used, used)] * np.outer(x[used], x[used])).sum()
    error = 32 * (k + 1) * EPS * float(terms) + k * entry_error(case) + near
    error += len(used) ** 2 * 2.0**-1074  # of products that underflow
    value = judge.quotient_below(A, x) if used.size else 0.0
    off = abs(value - objective)
    require(off <= error, f"{where}the objective is {value!r}, not {objective!r}")
    if reached is None:
        reached = judge.best(A, k, rules)[0]
    require(bound >= reached, f"{where}the bound is {bound!r}, reached is {reached!r}")
    status_as_defined(result, case.limits, where)


def entry_error(case: Case) -> float:
    """Return how far entries of the covariance may be from the exact ones."""
    if not case.problem.from_samples and case.weight is None:
        return 0.0
    return float(case.cov.entry_error)


def status_as_defined(result: Any, limits: Any, where: str = "") -> None:
    objective, bound = float(result.objective), float(result.upper_bound)
    status, difference = str(result.status.value), max(bound - objective, 0.0)
    scale = abs(objective)
    gap = difference / scale if scale else (math.inf if difference else 0.0)
    told = float(result.gap)
    right = told == gap or abs(told - gap) <= 1e-8 + 1e-6 * gap
    require(right, f"{where}the gap is {gap!r}, not {told!r}")
    optimal = gap <= OPTIMAL_GAP
    if status == "optimal":
        require(gap <= OPTIMAL_GAP * (1 + 1e-9), f"{where}optimal, gap {gap:.3g}")
    elif status.startswith("gap"):  # "gap_limit" at BASE
        asked = getattr(limits, "gap", None) or 0.0
        require(gap <= asked * (1 + 1e-9), f"{where}gap {gap:.3g}, asked {asked:.3g}")
    elif not getattr(bs, "IS_BASE", False):
        require(not optimal, f"{where}{status}, although the gap is {gap:.3g}")


def same(first: Any, second: Any, factor: float) -> None:
    """Compare results for the same problem in two forms, if both are proved."""
    if "optimal" == first.status.value == second.status.value:
        for name in ("objective", "upper_bound"):
            one, other = factor * getattr(first, name), getattr(second, name)
            require(
                abs(one - other) <= 2 * SAME * abs(one),
                f"{name} {one!r} became {other!r} in another form",
            )


# -- evidence --------------------------------------------------------------------------


def evidence(case: Case, result: Any, pick: int = 0) -> None:
    """Check that `verify` accepts the result, and refuses false ones.

    `pick` chooses a leaf of the evidence to change.
    """
    if "verify" not in bs.__all__ or getattr(result, "certificate", 0) is None:
        return  # BASE has no certificate if a call is stopped in its blocks
    reached, best_x = judge.best(case.exact, case.k, case.rules)
    try:
        bs.verify(result, case.cov)
    except bs.VerificationError as error:
        raise WrongClaim(f"verify refuses what holds: {error}") from error
    lower = reached - max(1e-6 * abs(reached), 1e-9 * case.scale)
    x = np.zeros(len(best_x))
    x[int(np.diagonal(case.exact).argmin())] = 1.0  # a poor x, to be below the bound
    objective = float(judge.quotient_below(case.exact, x))
    if objective <= lower < reached and not case.rules:
        poor = restated(result, x, objective, lower)
        require(refused(poor, case), f"verify accepts {lower!r}, reached {reached!r}")
    if hasattr(result, "bound"):  # BASE has no evidence to change
        record = zoo.altered(result.bound.evidence, pick)
        changed = replace(result, bound=replace(result.bound, evidence=record))
        value = float(changed.upper_bound)
        require(
            value >= reached or refused(changed, case),
            f"verify accepts {value!r} on changed evidence, reached {reached!r}",
        )


def restated(result: Any, x: Array, objective: float, upper_bound: float) -> Any:
    """Return the result with another component and another bound."""
    if hasattr(bs, "restated"):
        return bs.restated(result, x, objective, upper_bound)
    bound = replace(result.bound, value=upper_bound)
    support = np.flatnonzero(x)
    return replace(result, x=x, support=support, objective=objective, bound=bound)


def refused(result: Any, case: Case) -> bool:
    try:
        check = bs.verify(result, case.cov)
    except (bs.VerificationError, ValueError, TypeError, IndexError):
        return True
    return bool(check.unchecked)


# -- other answers ---------------------------------------------------------------------


def path(case: Case, results: Any) -> None:
    """Check every k of a path, and that the objective does not fall."""
    before = -math.inf
    for k in sorted(results):
        result = results[k]
        component(case, result, k=k, where=f"k = {k}: ")
        falls = before - float(result.objective)
        rounding = k * (entry_error(case) + 8 * EPS * case.scale)
        allowed = 1e-9 * abs(before) + rounding
        require(falls <= allowed, f"k = {k} has less than k − 1, by {falls!r}")
        before = float(result.objective)


SCHEMES = {
    # name: closes used features, deflates, adds up
    "residual": (False, True, "adjusted"),
    "disjoint": (True, False, "disjoint"),
    "residual-disjoint": (True, True, "adjusted"),
    "predictive": (False, True, "adjusted"),
    "orthogonal": (False, False, "orthogonal"),
    "uncorrelated": (False, False, "adjusted"),
}


def components(case: Case, found: Any, scheme: str, swept: bool = False) -> None:
    """Check each component for what the others leave, and the joint bound."""
    closes, deflates, kind = SCHEMES[scheme]
    V = np.asarray(found.components)
    A = case.exact.astype(np.float64)
    slack = DERIVED * (case.scale + 1e3 * entry_error(case))
    for j, result in enumerate(found.results):
        others = np.delete(V, j, axis=0) if swept else V[:j]
        where = f"component {j + 1}: "
        rules = dict(case.rules)
        if closes and len(others):
            closed = np.flatnonzero(others.any(axis=0)).tolist()
            rules["exclude"] = sorted({*closed, *rules.get("exclude", ())})
        left = judge.residual(case.fractions, others) if deflates else case.exact
        k = min(case.k, len(A) - len(rules.get("exclude", ())))
        if left is None or not len(judge.allowed(len(A), k, rules)):
            continue  # a score has no variance left: A_V is not determined
        reached, near = None, slack if len(others) else 0.0
        if scheme in ("orthogonal", "uncorrelated") and len(others):
            W = others if scheme == "orthogonal" else others @ A
            reached = judge.best_conditioned(A, k, W) - slack
            off = np.abs(W @ np.asarray(result.x)).max()
            size = np.linalg.norm(W, axis=1).max() + case.scale * 1e-3
            require(off <= 1e-7 * size, f"{where}W'x = {off:.3g}, not 0")
        elif case.problem.standardised and len(others):  # not exact in fractions
            reached = judge.best(left, k, rules)[0] - slack
        asked = {"exact": left, "k": k, "rules": rules, "reached": reached}
        component(case, result, **asked, near=near, where=where)
    plain = np.asarray(found.explained_variance)
    near = 1e-7 * case.scale + 1e3 * entry_error(case)
    require(np.abs((V @ A * V).sum(axis=1) - plain).max() <= near, "variances")
    told = np.asarray(found.adjusted_explained_variance)
    if np.linalg.cond(V @ A @ V.T) < 1e8:
        require(np.abs(judge.adjusted(A, V) - told).max() <= near, f"adjusted: {told}")
    joint = float(found.joint_upper_bound)
    reached = judge.total(A, V, kind)
    if len(V) == case.m and not case.rules:
        reached = max(reached, judge.best_joint(A, (case.k,) * case.m, kind))
    require(
        joint >= reached - slack * case.m,
        f"the joint bound is {joint!r}, reached {reached!r}",
    )


def shared(case: Case, found: Any) -> None:
    V, support = np.asarray(found.components), np.asarray(found.support)
    A = case.exact.astype(np.float64)
    require(np.abs(V @ V.T - np.eye(case.m)).max() < 1e-10, "not orthonormal")
    require(set(np.flatnonzero(V.any(axis=0))) <= set(support), "not in the support")
    require(judge.keeps(support, len(A), case.k, case.rules), f"{support}: rules")
    value, near = float((V @ A * V).sum()), 1e-12 * case.scale + 1e2 * entry_error(case)
    require(abs(value - found.objective) <= near, f"{found.objective!r}, not {value!r}")
    reached = judge.best_shared(case.exact, case.k, case.m, case.rules)
    bound = float(found.upper_bound)
    require(bound >= reached, f"the bound is {bound!r}, reached is {reached!r}")
    status_as_defined(found, case.limits)


def alternatives(case: Case, found: Any) -> None:
    """Check a list of sets: each within a share of the best, and all if it says so."""
    component(case, found.best, where="best: ")
    if found.best.objective <= 0:  # nothing is within a share of it
        return
    sets = judge.allowed(len(case.exact), case.k)
    values, error = judge.values_of(case.exact, sets)
    floor = (1 - case.share) * float(found.best.objective)
    edge = 2e-9 * abs(floor) + error + 2 * case.k * entry_error(case)
    listed = {tuple(map(int, support)) for support in found.supports}
    by_set = {tuple(s.tolist()): v for s, v in zip(sets, values, strict=True)}
    for support, told in zip(found.supports, found.objectives, strict=True):
        value = by_set[tuple(map(int, support))]
        require(abs(value - told) <= edge, f"{support} has {value!r}, not {told!r}")
        require(value >= floor - edge, f"{support} is not within {case.share}")
    if found.complete:
        missing = {s for s, v in by_set.items() if v >= floor + edge} - listed
        require(not missing, f"{missing} are not listed")


def importance(case: Case, found: Any) -> None:
    component(case, found.result, where="all: ")
    for feature, value, result in zip(
        found.features, found.objectives, found.results, strict=True
    ):
        rules = {
            **case.rules,
            "exclude": [int(feature), *case.rules.get("exclude", ())],
        }
        k = min(case.k, len(case.exact) - len(set(rules["exclude"])))
        component(case, result, k=k, rules=rules, where=f"without {feature}: ")
        require(value == result.objective, f"{value!r} is not {result.objective!r}")


def stability(case: Case, found: Any) -> None:
    frequency = np.asarray(found.frequency)
    counts = np.zeros(len(frequency))
    for support in found.supports:
        counts[np.asarray(support, dtype=int)] += 1
    require(np.allclose(frequency, counts / max(1, len(found.supports))), "frequency")
    require(0 <= found.proved <= 1, f"proved = {found.proved}")


def covariance(case: Case, cov: Any) -> None:
    """Check entries against the error that the covariance states."""
    A = np.asarray(cov.submatrix(np.arange(cov.n_features)))
    error = np.abs(A - case.exact)
    allowed = entry_error(case) + 2**-60 * np.abs(case.exact)
    require((error <= allowed).all(), f"entries err by {error.max():.3g}")
