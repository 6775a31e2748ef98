"""Components by power steps alone, with which those that predict begin."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.components import first_steps
from blockspca.components.first_steps import by_steps
from blockspca.components.variance import adjusted_variance, score_covariance
from blockspca.limits import Deadline
from blockspca.result import Solution
from component_problems import overlapping_factors

FOREVER = Deadline(None)


@pytest.mark.parametrize("disjoint", [False, True])
def test_they_are_those_of_residual_deflation(disjoint):
    cov = bs.Covariance.from_data(overlapping_factors())
    scheme = bs.ResidualDeflation(disjoint=disjoint)
    best = bs.solve_components(cov, 5, 3, scheme=scheme)
    rows = by_steps(cov, [5, 5, 5], disjoint, [], FOREVER)
    found = adjusted_variance(score_covariance(cov, rows))
    np.testing.assert_allclose(found, best.adjusted_explained_variance, rtol=1e-6)
    assert disjoint == (np.count_nonzero(rows, axis=0).max() == 1)


def test_a_contrast_without_a_positive_variance_has_other_features_each_time():
    A = np.diag([-3.0, -1.0, -4.0, -2.0])
    rows = by_steps(bs.Covariance.from_matrix(A), [1, 1, 1], False, [], FOREVER)
    assert np.argmax(np.abs(rows), axis=1).tolist() == [1, 3, 0]


def test_supports_to_start_from_count(monkeypatch):
    poor = Solution(np.eye(30)[29], status=bs.Status.FEASIBLE)
    monkeypatch.setattr(first_steps, "truncated_power", lambda *a, **o: poor)
    cov = bs.Covariance.from_data(overlapping_factors())
    starts = [[4, 5, 6], [8, 9, 10]]
    rows = by_steps(cov, [3, 3], False, starts, FOREVER)
    assert [np.flatnonzero(x).tolist() for x in rows] == starts


def test_an_interrupt_leaves_the_first_component(monkeypatch):
    stopped = Solution(np.eye(30)[29], status=bs.Status.INTERRUPTED)
    monkeypatch.setattr(first_steps, "truncated_power", lambda *a, **o: stopped)
    found = bs.solve_components(overlapping_factors_matrix(), 3, 2, scheme="predictive")
    assert found.statuses == (bs.Status.INTERRUPTED,)
    assert found[0].objective <= found[0].upper_bound < np.inf


def overlapping_factors_matrix() -> np.ndarray:
    return np.cov(overlapping_factors().T)
