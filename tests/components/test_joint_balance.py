"""Directions to split off: any give a bound, and balanced ones a lower one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca.components.joint_balance import balanced
from blockspca.components.joint_entries import joint_entries
from blockspca.components.joint_split import _directions
from blockspca.limits import Deadline
from component_problems import correlated, matrix

FOREVER = Deadline(None)


def exact_bound(A: np.ndarray, B: np.ndarray, k: int, m: int) -> float:
    """m opt(k; A − BB') + ‖B‖², by brute force."""
    left = A - B @ B.T
    sets = combinations(range(len(A)), k)
    best = max(np.linalg.eigvalsh(left[np.ix_(s, s)])[-1] for s in sets)
    return float(m * best + (B * B).sum())


def start(A: np.ndarray, k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    cov = bs.Covariance.from_matrix(A)
    scheme = bs.Orthogonalised()
    found = bs.solve_components(cov, k, m, scheme=scheme, certify=False)
    target = float(found.explained_variance.sum())
    return _directions(cov, joint_entries(cov, k, m, target, FOREVER)), found.components


@pytest.mark.parametrize("seed", range(4))
def test_they_bound_what_components_have_and_are_no_worse(seed):
    A = matrix(seed, 8)
    first, components = start(A, 3, 2)
    B = balanced(A, first, components, 3, FOREVER)
    bound = exact_bound(A, B, 3, 2)
    reached = sum(float(x @ A @ x) for x in components)
    assert reached <= bound * (1 + 1e-12)
    assert bound <= exact_bound(A, first, 3, 2) * (1 + 1e-9)


def test_they_are_better_where_components_compete():
    A = correlated()[:12, :12]
    first, components = start(A, 4, 2)
    B = balanced(A, first, components, 4, FOREVER)
    assert B.shape == first.shape
    assert exact_bound(A, B, 4, 2) < exact_bound(A, first, 4, 2) * (1 - 1e-4)


def test_without_time_they_stay():
    A = matrix(0, 8)
    first, components = start(A, 3, 2)
    np.testing.assert_array_equal(
        balanced(A, first, components, 3, Deadline(0.0)), first
    )
