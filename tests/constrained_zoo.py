"""Constrained problems drawn by seed, and the brute force that judges them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

import blockspca as bs
import zoo
from blockspca.constraints import Rules, checked

KINDS = ("include", "exclude", "groups", "nonnegative", "overlap")


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
    """The optimum over every allowed set, from below, in long doubles."""
    best = -np.inf
    d = len(A)
    exact = A.astype(np.longdouble)
    for size in range(1, k + 1):
        for support in itertools.combinations(range(d), size):
            at = np.array(support)
            if rules.objection(at, k):
                continue
            within = A[np.ix_(at, at)].astype(float)
            scale = float(np.abs(within).max()) or 1.0
            _, vectors = np.linalg.eigh(within / scale)
            x = vectors[:, -1]
            if rules.nonnegative:
                x = x * (1 if x.sum() >= 0 else -1)
                x = np.maximum(x, 0.0)
            x = x.astype(np.longdouble)
            best = max(best, float(x @ exact[np.ix_(at, at)] @ x / (x @ x)))
    return best
