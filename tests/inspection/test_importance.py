"""The best without each feature, against all k-sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockspca as bs


def best_without(A: np.ndarray, k: int, out: int) -> float:
    kept = [i for i in range(len(A)) if i != out]
    sets = itertools.combinations(kept, k)
    return max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in map(list, sets))


@pytest.mark.parametrize("form", ["matrix", "data"])
def test_against_all_sets(form: str) -> None:
    X = np.random.default_rng(4).normal(size=(20, 9)) * np.linspace(1, 2, 9)
    A = np.cov(X.T)
    cov = A if form == "matrix" else bs.Covariance.from_data(X)
    result = bs.solve(cov, 3)
    found = bs.feature_importance(cov, result)
    assert found.complete
    assert set(found.features.tolist()) == set(result.support.tolist())
    for i, value in zip(found.features, found.objectives, strict=True):
        assert value == pytest.approx(best_without(A, 3, int(i)), rel=1e-9)
    assert (np.diff(found.costs) <= 0).all()
    assert (found.least_costs <= found.costs + 1e-12).all()
    rows = found.to_rows()
    assert rows[0]["share"] == pytest.approx(found.costs[0] / result.objective)
    for one in found.results:
        assert bs.verify(one, cov).complete


def test_under_constraints() -> None:
    X = np.random.default_rng(5).normal(size=(30, 8))
    A = np.cov(X.T)
    result = bs.solve(A, 3, constraints=bs.Constraints(include=[1], exclude=[0]))
    found = bs.feature_importance(A, result)
    for i, one in zip(found.features, found.results, strict=True):
        assert not {0, int(i)} & set(one.support.tolist())
        assert 1 in one.support or i == 1


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="pass what solve has returned"):
        bs.feature_importance(np.eye(3), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cov has 4"):
        bs.feature_importance(np.eye(4), bs.solve(np.eye(3), 1))


def test_a_whole_group_is_left_out_as_one() -> None:
    A = np.cov(np.random.default_rng(2).normal(size=(30, 6)).T)
    rules = bs.Constraints(groups=[0, 0, 1, 1, 2, 2], whole_groups=True, include=[0])
    found = bs.feature_importance(A, bs.solve(A, 2, constraints=rules))
    others = bs.Constraints(groups=[0, 0, 1, 1, 2, 2], whole_groups=True, exclude=[0])
    best = bs.solve(A, 2, constraints=others)
    assert found.objectives == pytest.approx([best.objective] * 2)


def test_a_feature_without_which_nothing_is_allowed() -> None:
    A = np.cov(np.random.default_rng(2).normal(size=(30, 6)).T)
    rules = bs.Constraints(groups=[0] * 6, whole_groups=True)
    result = bs.solve(A, 6, constraints=rules)
    with pytest.raises(ValueError, match="cannot be left out"):
        bs.feature_importance(A, result)
