"""Constraints against brute force, and what they refuse."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca import Constraints, Covariance, solve, solve_path
from blockspca.constraints.nonnegative import nonnegative_pair

NAMES = ("RPL3", "RPL10", "MT-CO1", "MT-ND1", "ACTB", "GAPDH", "CD3E")


def matrix(seed: int, d: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        G = rng.normal(size=(d, d))
        return np.round(G + G.T)
    X = rng.normal(size=(d + 3, d)) * rng.gamma(2.0, size=d)
    return np.cov(X.T)


def best(A, k, keeps) -> float:
    every = combinations(range(len(A)), k)
    return max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] for S in every if keeps(set(S)))


RULES = [
    ({"include": [5]}, lambda S, k: 5 in S),
    ({"include": [0, 6], "exclude": [2]}, lambda S, k: {0, 6} <= S and 2 not in S),
    ({"exclude": ["RPL*", "MT-CO1"]}, lambda S, k: not S & {0, 1, 2}),
    (
        {"groups": [0, 0, 0, 1, 1, None, None], "max_per_group": 1},
        lambda S, k: len(S & {0, 1, 2}) <= 1 and len(S & {3, 4}) <= 1,
    ),
    (
        {"groups": {"MT-*": "m", "RPL*": "r"}, "max_per_group": {"m": 0, "r": 1}},
        lambda S, k: not S & {2, 3} and len(S & {0, 1}) <= 1,
    ),
    (
        {"groups": {"a": [0, 1, 2, 3]}, "max_per_group": 2, "include": [1]},
        lambda S, k: len(S & {0, 1, 2, 3}) <= 2 and 1 in S,
    ),
    (
        {"overlap_with": [4, 5, 6], "min_overlap": 2},
        lambda S, k: len(S & {4, 5, 6}) >= 2,
    ),
    (
        {"overlap_with": [4, 5, 6], "min_overlap": 2, "include": [0]},
        lambda S, k: len(S & {4, 5, 6}) >= 2 and 0 in S,
    ),
]


@pytest.mark.parametrize(("rules", "keeps"), RULES)
def test_constraints_against_brute_force(rules, keeps):
    for seed in range(12):
        A = matrix(seed)
        cov = Covariance.from_matrix(A, feature_names=NAMES)
        for k in (3, 4):
            result = solve(cov, k, constraints=Constraints(**rules))
            optimum = best(A, k, lambda S, k=k: keeps(S, k))
            size = np.abs(A).max()
            assert keeps(set(result.support.tolist()), k)
            assert len(result.support) == k
            assert result.objective == pytest.approx(optimum, abs=1e-9 * size)
            assert result.upper_bound >= optimum - 1e-14 * size
            assert result.status is bs.Status.OPTIMAL
            bs.verify(result, cov)


def test_a_path_begins_with_the_features_to_include():
    A = matrix(1)
    path = solve_path(A, 5, constraints=Constraints(include=[3, 6]))
    assert list(path) == [2, 3, 4, 5]
    for k, result in path.items():
        optimum = best(A, k, lambda S: {3, 6} <= S)
        assert result.objective == pytest.approx(optimum)
        assert result.status is bs.Status.OPTIMAL
    with pytest.raises(KeyError, match="must be one of 2, …, 5"):
        path[1]


def best_nonnegative(A, k) -> float:
    """Return the largest x'Ax for x ≥ 0: on some set, an eigenvector of one sign."""
    optimum = -np.inf
    for q in range(1, k + 1):
        for S in combinations(range(len(A)), q):
            values, vectors = np.linalg.eigh(A[np.ix_(S, S)])
            for value, x in zip(values, vectors.T, strict=True):
                if (x > -1e-12).all() or (x < 1e-12).all():
                    optimum = max(optimum, value)
    return optimum


def test_nonnegative_loadings_have_a_bound_that_holds():
    proved = 0
    for seed in range(30):
        A, k = matrix(seed), 3
        result = solve(A, k, constraints=Constraints(nonnegative=True))
        optimum, size = best_nonnegative(A, k), np.abs(A).max()
        assert (result.x >= 0).all()
        assert result.objective <= optimum + 1e-12 * size
        assert result.upper_bound >= optimum - 1e-12 * size
        assert result.objective == pytest.approx(
            result.x @ A @ result.x, abs=1e-12 * size
        )
        proved += result.status is bs.Status.OPTIMAL
    assert proved >= 15


REFUSED = [
    ({"exclude": ["RPX*"]}, "pattern 'RPX\\*', which matches no feature"),
    ({"include": ["GAPDX"]}, "use 'GAPDH'"),
    ({"include": [9]}, "index 9, which must be from 0 to 6"),
    ({"include": [0], "exclude": ["RPL*"]}, "cannot both have 'RPL3'"),
    ({"include": [0, 1, 2, 3]}, "must have at most k = 3"),
    ({"exclude": [0, 1, 2, 3, 4]}, "k = 3 must be at most 2"),
    ({"groups": [0] * 7, "max_per_group": 2}, "k = 3 must be at most 2"),
    ({"groups": [0] * 7}, "must come with max_per_group"),
    ({"min_overlap": 2}, "must come with overlap_with"),
    (
        {
            "groups": [0] * 7,
            "max_per_group": 3,
            "overlap_with": [1],
            "min_overlap": 1,
        },
        "cannot be combined with min_overlap",
    ),
    ({"groups": [0, 1], "max_per_group": 1}, "has 2 labels and must have 7"),
    (
        {"groups": ["a"] * 7, "max_per_group": {"b": 1}},
        "max_per_group has 'b', which is no group",
    ),
    (
        {"groups": [0, 0] + [None] * 5, "max_per_group": 1, "include": [0, 1]},
        "allows 1 of their group",
    ),
    ({"overlap_with": [0, 1], "min_overlap": 3}, "must be at most 2"),
    (
        {"groups": {"RPL*": 0, "RPL3": 1}, "max_per_group": 1},
        "cannot have 'RPL3' in both 0 and 1",
    ),
]


@pytest.mark.parametrize(("rules", "words"), REFUSED)
def test_what_cannot_be_is_refused_with_the_fix(rules, words):
    cov = Covariance.from_matrix(matrix(1), feature_names=NAMES)
    with pytest.raises(ValueError, match=words):
        solve(cov, 3, constraints=Constraints(**rules))


def test_only_constraints_that_are_used_are_blamed():
    with pytest.raises(ValueError, match=r"^exclude cannot leave no feature") as error:
        solve(np.eye(3), 1, constraints=Constraints(exclude=[0, 1, 2]))
    assert "max_per_group" not in str(error.value)
    with pytest.raises(
        ValueError, match="at most 1, because of exclude; use a smaller"
    ):
        solve(np.eye(3), 2, constraints=Constraints(exclude=[0, 1]))


def test_wrong_types_are_refused():
    A = matrix(1)
    for rules in ({"include": 3}, {"include": "a"}, {"include": [True] * 7}):
        with pytest.raises(TypeError, match="must be a list"):
            solve(A, 3, constraints=Constraints(**rules))
    with pytest.raises(TypeError, match="must be Constraints"):
        solve(A, 3, constraints={"include": [0]})
    with pytest.raises(ValueError, match="the features have no names"):
        solve(A, 3, constraints=Constraints(include=["a"]))
    rules = Constraints(overlap_with=[0, 1], min_overlap=1)
    with pytest.raises(ValueError, match="min_overlap cannot be combined with a path"):
        solve_path(A, 3, constraints=rules)


def test_groups_of_a_series_go_by_name():
    pandas = pytest.importorskip("pandas")
    groups = pandas.Series(
        ["m", "m", "other", None], index=["MT-CO1", "MT-ND1", "unmeasured", "ACTB"]
    )
    cov = Covariance.from_matrix(matrix(1), feature_names=NAMES)
    rules = Constraints(groups=groups, max_per_group=1)
    result = solve(cov, 6, constraints=rules)
    assert {2, 3} - set(result.support.tolist())


@pytest.mark.parametrize("size", [1.0, 1e-160, 2.0**-1060, 0.0])
def test_a_nonnegative_pair_has_length_one_for_entries_of_any_size(size):
    A = np.array([[1.0, 0.25], [0.25, 1.0]]) * size
    value, x = nonnegative_pair(A)
    assert np.linalg.norm(x) == pytest.approx(1.0, rel=1e-15)
    assert value == pytest.approx(1.25 * size, rel=1e-12, abs=0.0)
