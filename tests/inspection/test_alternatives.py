"""Every set within a share of the best, against all k-sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockspca as bs
import zoo


@pytest.mark.parametrize("seed", range(60))
def test_against_all_sets(seed: int) -> None:
    problem = zoo.problem(seed)
    rng = np.random.default_rng([seed, 3])
    k = int(rng.integers(1, min(problem.d, 6) + 1))
    within = float(rng.choice([0.0, 1e-3, 1e-2, 0.05, 0.2]))
    found = bs.alternatives(problem.cov, k, within=within)
    if found.best.status is not bs.Status.OPTIMAL or found.best.objective <= 0:
        assert not found.complete
        assert found.message
        return
    threshold = (1 - within) * found.best.objective
    values = {}
    for support in itertools.combinations(range(problem.d), k):
        at = np.array(support)
        values[support] = np.linalg.eigvalsh(problem.A[np.ix_(at, at)])[-1]
    size = float(np.abs(problem.A).max())
    edge = 1e-9 * threshold + 20 * problem.cov.entry_error + 1e-13 * size
    sure = {s for s, value in values.items() if value >= threshold + edge}
    possible = {s for s, value in values.items() if value >= threshold - edge}
    got = {tuple(support.tolist()) for support in found.supports}
    assert got <= possible
    assert not found.complete or sure <= got
    assert (np.diff(found.objectives) <= 0).all()


@pytest.fixture
def cov() -> bs.Covariance:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=(80, 60))
    return bs.Covariance.from_data(X, feature_names=[f"g{i}" for i in range(60)])


def test_what_is_in_all_and_in_some(cov: bs.Covariance) -> None:
    found = bs.alternatives(cov, 5, within=0.03)
    assert found.complete
    assert len(found) > 1
    sets = [set(support.tolist()) for support in found.supports]
    assert set(found.in_all.tolist()) == set.intersection(*sets)
    assert set(found.in_some.tolist()) == set.union(*sets) - set.intersection(*sets)
    total = len(found.in_all) + len(found.in_some) + len(found.in_none)
    assert total == cov.n_features
    assert found.supports[0].tolist() == found.best.support.tolist()
    assert "and no other" in str(found)
    assert str(found).startswith(f"{len(found)} sets of 5 features")
    alone = bs.alternatives(cov, 5, within=1e-6)
    assert str(alone).startswith("1 set of 5 features")
    assert found.to_rows()[0]["share"] == pytest.approx(1.0)


def test_a_wider_share_has_more_sets(cov: bs.Covariance) -> None:
    narrow = bs.alternatives(cov, 4, within=0.01)
    wide = bs.alternatives(cov, 4, within=0.04)
    few = {tuple(support.tolist()) for support in narrow.supports}
    assert few < {tuple(support.tolist()) for support in wide.supports}


def test_limits_keep_what_is_known(cov: bs.Covariance) -> None:
    few = bs.alternatives(cov, 5, within=0.05, max_sets=3)
    assert not few.complete
    assert "there are more" in few.message
    assert 1 <= len(few) <= 4
    stopped = bs.alternatives(cov, 5, within=0.05, limits=bs.Limits(time=0))
    assert not stopped.complete
    assert len(stopped) == 1


def test_k_minus_one_features_that_are_good_enough() -> None:
    """Then any feature makes an alternative, and all are listed."""
    A = np.diag([1.0, 1.0, 0.1, 0.1, 0.1])
    A[0, 1] = A[1, 0] = 0.9
    found = bs.alternatives(A, 3, within=0.01)
    assert found.complete
    assert [s.tolist() for s in found.supports] == [[0, 1, 2], [0, 1, 3], [0, 1, 4]]


@pytest.mark.parametrize(
    ("within", "said"), [(1.0, "not below 1"), (-0.1, "is negative")]
)
def test_bad_values(within: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bs.alternatives(np.eye(3), 2, within=within)


@pytest.mark.parametrize("within", [0.0, 1e-12, 0.01])
def test_exact_optima_are_listed(within: float) -> None:
    """x'Ax rounds above λmax: the best sets themselves fell below the threshold."""
    B = np.zeros((4, 4))
    B[:2, :2] = B[2:, 2:] = [[2.0, 1.0], [1.0, 2.0]]
    found = bs.alternatives(B, 2, within=within)
    assert found.complete
    assert sorted(s.tolist() for s in found.supports) == [[0, 1], [2, 3]]
    assert "0" in str(found)


def test_nothing_is_coupled() -> None:
    """No feature survives at the threshold, which opt(k − 1) reaches."""
    found = bs.alternatives(np.diag([3.0, 2.0, 1.0, 1.0]), 2, within=0)
    assert found.complete or found.message
    assert 0 in found.supports[0]


def test_sets_that_are_as_good_as_the_best_are_listed_one_by_one() -> None:
    """x'Ax of the best set is an ulp above that of the others, which are no less."""
    A = np.diag([-2.0, -2.0, 4.0, -2.0, 4.0])
    rows, columns = [0, 0, 0, 1, 1, 2, 2, 3], [1, 2, 4, 2, 4, 3, 4, 4]
    A[rows, columns] = A[columns, rows] = [1, 1, 1, -2, -2, 1, -1, 1]
    for size in (1.0, 1e100):
        found = bs.alternatives(size * A, 3, within=0)
        assert found.complete
        expected = [[0, 2, 4], [1, 2, 4], [2, 3, 4]]  # 2 and 4 reach 5 alone
        assert sorted(s.tolist() for s in found.supports) == expected
