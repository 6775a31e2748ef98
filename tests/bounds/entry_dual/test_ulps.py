"""The entry dual within an ulp of its inequalities, and at the ends of the range."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import zoo
from blockspca import Covariance
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.pairs import strong_pairs
from blockspca.bounds.entry_dual.record import EntryRecord

EPS = np.finfo(float).eps


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ulps", [-2, -1, 0, 1, 2])
def test_pairs_at_the_product_of_their_levels(seed: int, ulps: int) -> None:
    """All entries are within two ulps of w_i w_j: whichever are listed, the bound
    holds, and none above is left out."""
    rng = np.random.default_rng(seed)
    d = 7
    w = np.sqrt(rng.gamma(2.0, 0.2, size=d)).astype(np.float32).astype(float)
    A = w[:, None] * w
    for _ in range(abs(ulps)):
        A = np.nextafter(A, np.inf if ulps > 0 else 0.0)
    A *= np.where(rng.random((d, d)) < 0.5, -1.0, 1.0)
    A = np.triu(A, 1) + np.triu(A, 1).T + np.eye(d)
    cov = Covariance.from_matrix(A)
    pairs = strong_pairs(cov, w)
    exact = np.abs(A) > w[:, None] * w
    assert len(pairs) == np.triu(exact, 1).sum()
    known = zoo.Reference(A)
    core = np.sort(rng.permutation(d)[: int(rng.integers(0, d))])
    shares = np.sign(A[np.ix_(core, core)])
    np.fill_diagonal(shares, 0.0)
    record = EntryRecord.of(w, 1.0, core, shares)
    for k in range(2, d):
        assert checked_value(cov, k, record) >= known.reached[k]


@pytest.mark.parametrize("seed", range(6))
def test_targets_within_ulps_of_the_optimum(seed: int) -> None:
    """No search proves less than the optimum, however close its target is."""
    problem = zoo.problem(seed + 3000, 6, 9)
    known = zoo.Reference(problem.exact)
    for k in (2, problem.d // 2):
        for j in (-2, 0, 1, 3, 50):
            target = float(known.reached[k])
            target -= j * EPS * abs(target)
            found = entry_bound(
                problem.cov, k, known.best[k], target=target, time_limit=30.0, nodes=30
            )
            assert found.value >= known.reached[k], (problem.kind, k, j)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-295])
def test_an_objective_without_digits_has_no_bound(scale: float) -> None:
    A = np.eye(6)
    A[:2, :2] = np.array([[1.0, 0.5], [0.5, 1.0]]) * scale
    found = entry_bound(Covariance.from_matrix(A), 2, [0, 1], time_limit=5.0)
    assert found.value == np.inf


def test_entries_beyond_the_range_of_the_objective_have_no_bound() -> None:
    A = np.eye(6)
    A[2, 3] = A[3, 2] = 1e200
    A[:2, :2] *= 1e-100
    found = entry_bound(Covariance.from_matrix(A), 2, [0, 1], time_limit=5.0)
    assert found.value == np.inf


def test_nothing_is_divided_by_zero_where_the_target_is_zero() -> None:
    A = np.full((5, 5), -1.0) + np.eye(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = entry_bound(Covariance.from_matrix(A), 2, [0, 1], target=0.0)
    assert found.value >= 1.0
