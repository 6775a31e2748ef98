"""Constrained problems drawn by seed, and the brute force that judges them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

import blockspca as bs
import zoo
from blockspca.constraint_rules import Rules
from blockspca.constraints import checked

KINDS = ("include", "exclude", "groups", "nonnegative", "overlap", "whole")


@dataclass(frozen=True)
class Drawn:
    """A problem, its k and its constraints."""

    problem: zoo.Problem
    k: int
    constraints: bs.Constraints
    rules: Rules
    kinds: tuple[str, ...]


def drawn(seed: int, largest: int = 9) -> Drawn:
    """Return the problem of a seed; contradictory draws are drawn again."""
    problem = zoo.problem(seed, 3, largest)
    rng = np.random.default_rng([seed, 18])
    d = problem.d
    while True:
        k = int(rng.integers(1, min(d, 6) + 1))
        chosen = rng.choice(len(KINDS), size=int(rng.integers(1, 3)), replace=False)
        kinds = tuple(KINDS[i] for i in chosen)
        given: dict = {}
        order = rng.permutation(d).tolist()
        if "include" in kinds:
            given["include"] = order[: int(rng.integers(1, k + 1))]
        if "exclude" in kinds:
            given["exclude"] = order[-int(rng.integers(1, d)) :]
        if "groups" in kinds:
            given["groups"] = rng.integers(0, int(rng.integers(1, 5)), size=d)
            given["max_per_group"] = int(rng.integers(0, 4))
        if "whole" in kinds:
            given["groups"] = rng.integers(0, max(2, d // 2), size=d)
            given["whole_groups"] = True
        if "nonnegative" in kinds:
            given["nonnegative"] = True
        if "overlap" in kinds:
            given["overlap_with"] = rng.permutation(d)[:k].tolist()
            given["min_overlap"] = int(rng.integers(0, k + 1))
        try:
            constraints = bs.Constraints(**given)
            rules = checked(constraints, d, None, k)
        except ValueError:
            continue
        return Drawn(problem, k, constraints, rules, kinds)


def best_allowed(A: np.ndarray, k: int, rules: Rules) -> float:
    """The optimum over every allowed set, from below, in long doubles.

    λmax grows with the set, so that sets of k features suffice where signs are free and
    groups are not whole.
    """
    best = -np.inf
    d = len(A)
    exact = A.astype(np.longdouble)
    plain = A.astype(float)
    least = 1 if rules.nonnegative or rules.whole_groups else k
    for size in range(least, k + 1):
        for support in itertools.combinations(range(d), size):
            at = np.array(support)
            if rules.objection(at, k):
                continue
            within = plain[np.ix_(at, at)]
            scale = float(np.abs(within).max()) or 1.0
            x = np.linalg.eigh(within / scale)[1][:, -1]
            if rules.nonnegative:
                x = np.maximum(x * (1 if x.sum() >= 0 else -1), 0.0)
            x = x.astype(np.longdouble)
            best = max(best, float(x @ exact[np.ix_(at, at)] @ x / (x @ x)))
    return best


def faults(drawn: Drawn, result: bs.Result) -> list[str]:
    """Say what is wrong with a result; nothing if no allowed set contradicts it."""
    said = []
    exact = drawn.problem.exact
    best = best_allowed(exact, drawn.k, drawn.rules)
    broken = drawn.rules.objection(np.flatnonzero(result.x), drawn.k)
    if broken:
        said.append(f"breaks a rule: {broken}")
    if drawn.rules.nonnegative and result.x.min() < 0:
        said.append("has a negative loading")
    x = result.x.astype(np.longdouble)
    reached = float(x @ exact @ x)
    weight = float(np.abs(x) @ np.abs(exact) @ np.abs(x))
    rounding = 1e-13 * weight + drawn.k * drawn.problem.cov.entry_error
    if abs(reached - result.objective) > rounding:
        said.append(f"objective {result.objective}, in truth {reached}")
    if abs(float(x @ x) - 1) > 1e-12:
        said.append("not a unit vector")
    if result.upper_bound < best - 1e-14 * abs(best):
        said.append(f"bound {result.upper_bound} below {best}")
    slack = 1.1e-9 * abs(best) + rounding
    if result.status is bs.Status.OPTIMAL and result.objective < best - slack:
        said.append(f"called optimal at {result.objective}, but {best} is reached")
    return said
