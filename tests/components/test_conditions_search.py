"""Bounds under linear conditions hold against brute force, and are attained."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockspca.components.conditions import best_orthogonal
from blockspca.components.conditions_search import (
    Better,
    Conditions,
    ConstrainedSearch,
)
from blockspca.limits import Deadline
from blockspca.search.reference import NodeCapReached, Undecided


def problem(seed: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """A, and conditions of kinds that occur: sparse, dense, dependent, unit vectors."""
    rng = np.random.default_rng(seed)
    A = np.cov((rng.normal(size=(d + 3, d)) * rng.gamma(2.0, size=d)).T)
    if seed % 3 == 0:
        A = A - 0.5 * np.cov(rng.normal(size=(d, d)).T)  # indefinite
    W = rng.normal(size=(d, m))
    if seed % 2:
        W[rng.permutation(d)[: d // 2]] = 0.0
    if seed % 5 == 0 and m > 1:
        W[:, 1] = 2 * W[:, 0]
    if seed % 7 == 0:
        W[:, 0] = np.eye(d)[0]
    return A, W / np.linalg.norm(W, axis=0)


def exhaustive(A: np.ndarray, W: np.ndarray, k: int) -> float:
    values = [
        found[1]
        for s in combinations(range(len(A)), k)
        if (found := best_orthogonal(A[np.ix_(s, s)], W[list(s)])) is not None
    ]
    return max(values, default=-np.inf)


def search(A, W, k, tau, **options) -> int:
    given = {"entry_error": 0.0, "max_nodes": 10**6, "deadline": Deadline(None)}
    upper = np.full(k, np.inf)
    asked = given | options
    return ConstrainedSearch(A, Conditions(W, 0.0), k, tau, upper, **asked).run()


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(("d", "m", "k"), [(8, 1, 3), (9, 2, 4), (9, 3, 5), (7, 2, 3)])
def test_proofs_are_those_of_brute_force(seed, d, m, k):
    A, W = problem(seed, d, m)
    best = exhaustive(A, W, k)
    scale = max(abs(best), float(np.abs(A).max()))
    assert search(A, W, k, best + 1e-8 * scale) >= 1
    with pytest.raises(Better) as found:
        search(A, W, k, best - 1e-6 * scale)
    s = found.value.support
    assert best_orthogonal(A[np.ix_(s, s)], W[s])[1] > best - 1e-6 * scale


@pytest.mark.parametrize("seed", range(20))
def test_the_ceiling_of_a_set_is_above_every_vector(seed):
    A, W = problem(seed, 8, 3)
    rng = np.random.default_rng(seed)
    for k in (2, 3, 4, 6):
        s = np.sort(rng.permutation(8)[:k])
        ceiling = Conditions(W, 0.0).ceiling(A[np.ix_(s, s)], s)
        found = best_orthogonal(A[np.ix_(s, s)], W[s])
        if found is not None:
            assert ceiling >= found[1]
            assert ceiling <= found[1] + 1e-7 * np.abs(A).max()


def test_what_is_not_known_of_the_conditions_is_allowed_for():
    """Vectors that fulfil other conditions, as near as the error says, are bounded."""
    rng = np.random.default_rng(0)
    A, W = problem(1, 8, 2)
    s = np.arange(5)
    error = 1e-3
    ceiling = Conditions(W, error).ceiling(A[:5, :5], s)
    for _ in range(200):
        off = rng.normal(size=W.shape)
        other = W + error * off / np.linalg.norm(off)
        assert best_orthogonal(A[:5, :5], other[:5])[1] <= ceiling


def test_conditions_that_nearly_depend_are_left_undecided():
    """On which side of 1e-9 a condition is, no bound depends."""
    rng = np.random.default_rng(0)
    A, W = problem(1, 8, 2)
    W[:, 1] = W[:, 0] + 1e-9 * rng.normal(size=8)
    best, looser = exhaustive(A, W, 3), exhaustive(A, W[:, :1], 3)
    assert best < looser - 1e-3
    assert search(A, W, 3, looser * (1 + 1e-8)) >= 1
    with pytest.raises(Undecided):
        search(A, W, 3, (best + looser) / 2)


def test_no_vector_is_left():
    W = np.eye(4)[:, :3]
    assert Conditions(W, 0.0).ceiling(np.eye(3), np.arange(3)) == -np.inf
    assert Conditions(W, 0.0).ceiling(np.eye(2), np.array([2, 3])) >= 1.0


def test_limits_end_a_search():
    A, W = problem(1, 9, 2)
    with pytest.raises(NodeCapReached):
        search(A, W, 4, exhaustive(A, W, 4) * 1.0001, max_nodes=1)
    with pytest.raises(NodeCapReached):
        search(A, W, 4, exhaustive(A, W, 4) * 1.0001, deadline=Deadline(0.0))
