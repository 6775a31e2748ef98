"""Constraints of a shared set: optima by brute force, and what cannot be asked."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca.constraints import checked

GROUPS = [0, 0, 0, 1, 1, 2, 2, 2]
CHOICES = {
    "out": {"exclude": [0, 6]},
    "in and out": {"include": [1, 4], "exclude": [2]},
    "groups": {"groups": GROUPS, "max_per_group": 2},
    "one of each": {"groups": {0: "a", 1: "a", 2: "a", 3: "a"}, "max_per_group": 1},
    "groups, in": {"groups": GROUPS, "max_per_group": 2, "include": [5, 6]},
    "groups, out": {"groups": GROUPS, "max_per_group": {0: 1}, "exclude": [3]},
    "overlap": {"overlap_with": [0, 1, 2], "min_overlap": 2},
}


def matrix(seed: int, d: int = 8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d + 3, d)) * rng.gamma(2.0, size=d)
    A = np.cov(X.T)
    return A - 0.5 * np.cov(rng.normal(size=(d, d)).T) if seed % 3 == 2 else A


def exhaustive(A: np.ndarray, k: int, r: int, constraints: bs.Constraints) -> float:
    rules = checked(constraints, len(A), None, k)
    return max(
        float(np.linalg.eigvalsh(A[np.ix_(s, s)])[::-1][:r].sum())
        for s in combinations(range(len(A)), k)
        if rules.allows_support(np.array(s), k) and set(rules.include) <= set(s)
    )


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_by_brute_force(name, seed):
    A = matrix(seed)
    constraints = bs.Constraints(**CHOICES[name])
    for k, r in ((3, 2), (4, 3), (5, 1)):
        best = exhaustive(A, k, r, constraints)
        found = bs.solve_shared(A, k, r, constraints=constraints)
        assert found.status is bs.Status.OPTIMAL
        assert found.objective == pytest.approx(best, rel=1e-9)
        assert found.upper_bound >= best * (1 - 1e-14)
        assert found.verify(A).complete
        kept = bs.Constraints(include=found.include)
        if best < exhaustive(A, k, r, kept) * (1 - 1e-6):
            with pytest.raises(bs.VerificationError):
                replace(found, rules=None).verify(A)


def data() -> np.ndarray:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 150))
    for j in range(3):
        X[:, 20 * j : 20 * j + 30] += (2 - 0.3 * j) * rng.normal(size=(30, 1))
    return X


def test_larger_problems_keep_constraints_and_are_checked():
    names = [f"gene {i}" for i in range(150)]
    cov = bs.Covariance.from_data(data(), feature_names=names)
    constraints = bs.Constraints(
        include=["gene 149"],
        exclude=["gene 3", "gene 4"],
        groups=[i // 30 for i in range(150)],
        max_per_group=9,
    )
    found = bs.solve_shared(cov, 30, 3, constraints=constraints)
    assert "gene 149" in found.features
    assert not {"gene 3", "gene 4"} & set(found.features)
    assert np.bincount(found.support // 30).max() <= 9
    assert np.isfinite(found.upper_bound)
    assert found.verify(cov).complete
    worse = found.support.copy()
    worse[0] = 3
    with pytest.raises(bs.VerificationError):
        replace(found, support=worse).verify(cov)
    of_another = replace(found, rules=replace(found.rules, exclude=(5, 149)))
    with pytest.raises(bs.VerificationError):
        of_another.verify(cov)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nonnegative": True}, "only one can have loadings of one sign"),
        ({"groups": [0, 0, 1, 1, 2, 2], "whole_groups": True}, "whole_groups"),
        ({"exclude": [0, 1, 2, 3]}, "leave room for 2"),
        ({"include": [0], "exclude": [0]}, "both have"),
    ],
)
def test_what_cannot_be_asked(given, message):
    with pytest.raises(ValueError, match=message):
        bs.solve_shared(np.eye(6), 3, 2, constraints=bs.Constraints(**given))


def test_include_twice():
    with pytest.raises(ValueError, match="both given"):
        bs.solve_shared(
            np.eye(6), 3, 2, include=[1], constraints=bs.Constraints(exclude=[0])
        )
