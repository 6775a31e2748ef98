"""A bound below what is reached is never handed out, whatever made it."""

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.certify import path as module
from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.certify.alarms import Subsets, has_alarm, is_below_objective
from blockspca.search.portfolio import Portfolio
from blockspca.status import Status


def covariance(d: int = 9, seed: int = 0) -> np.ndarray:
    return np.cov(np.random.default_rng(seed).normal(size=(2 * d, d)).T)


def test_values_of_subsets_are_rayleigh_quotients():
    A = covariance()
    x = np.linalg.eigh(A)[1][:, -1]
    positions = np.arange(len(A))
    subsets = Subsets(A, positions[None], x[None])
    (values,), (rounding,) = subsets.values, subsets.rounding()
    for k in range(1, len(A) + 1):
        kept = np.argsort(-np.abs(x), kind="stable")[:k]
        y = x[kept]
        expected = y @ A[np.ix_(kept, kept)] @ y / (y @ y)
        assert values[k - 1] == pytest.approx(expected, rel=1e-13)
        assert abs(values[k - 1] - expected) <= rounding[k - 1]


def test_contradictions():
    bounds = np.array([0.999, -np.inf, np.nan, 1.0 - 1e-13, np.inf])
    rounding = np.array([1e-12, 1e-12, 1e-12, 1e-12, 0.0])
    below = is_below_objective(bounds, np.ones(5), rounding)
    assert below.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("wrong_k", [2, 4, 6])
def test_a_wrong_bound_is_reported_and_nothing_is_claimed(wrong_k, monkeypatch):
    A = covariance()
    true = AdaptiveScreening.bounds

    def wrong(self, k, upper):
        found = true(self, k, upper)
        return [*found, (0.5, BoundName.ROW_SUMS)] if k == wrong_k else found

    # As a proof that closes too early would, one k hands on half of what is reached.
    monkeypatch.setattr(AdaptiveScreening, "bounds", wrong)
    monkeypatch.setattr(module.PathProver, "prove_quickly", lambda self, k: False)
    monkeypatch.setattr(module.PathProver, "prove", lambda self, k: None)
    with pytest.warns(RuntimeWarning, match=f"internal error.*k = {wrong_k}.*report"):
        path = bs.solve_path(A, 6)
    for k in range(1, 7):
        assert path[k].status is Status.FEASIBLE
        assert path[k].upper_bound == np.inf
        assert "internal error" in path[k].message
        assert has_alarm(path[k])
        assert path[k].objective > 0


def test_a_walk_that_a_limit_ends_has_no_alarm():
    for limits in (bs.Limits(), bs.Limits(nodes=1), bs.Limits(time=0.0)):
        assert not has_alarm(bs.solve(covariance(), 3, limits=limits))


def test_a_lost_set_is_noticed_by_a_larger_support(monkeypatch):
    """A search that always ends without a find, on a poor start, is contradicted."""
    A = np.eye(8)
    A[0, 1] = A[1, 0] = 0.1
    A[5:, 5:] += 0.9 - 0.9 * np.eye(3)  # 5, 6, 7 are the best pair and triple

    def nothing_found(self, matrix, tau, rounds=None, groups=None):
        from blockspca.search.schur_tree import Outcome

        return Outcome(True, None)

    def poor_start(self, k):
        positions = self.pool.positions(np.array([5, 6, 7] if k == 3 else range(k)))
        matrix = self.pool.within(positions)
        values, vectors = np.linalg.eigh(matrix)
        self._starts = [(positions, "poor")]
        self._keep_better(k, positions, float(values[-1]), vectors[:, -1], "poor")

    monkeypatch.setattr(Portfolio, "search", nothing_found)
    monkeypatch.setattr(module.Incumbents, "start", poor_start)
    monkeypatch.setattr(module.Incumbents, "improve", lambda self, k: None)
    monkeypatch.setattr(module.Incumbents, "admit", lambda self, k, features: False)
    with pytest.warns(RuntimeWarning, match="a part of the component of 3 features"):
        path = bs.solve_path(A, 3)
    assert path[2].status is Status.FEASIBLE


def test_a_bound_below_that_of_fewer_features_is_refused():
    """Kernels rely on τ ≥ upper[k − 1]."""
    from blockspca.certify.steps import TreeStatistics
    from blockspca.limits import Budget

    proof = Portfolio(
        2,
        [np.inf, 2.0, np.inf],
        TreeStatistics(),
        Budget(bs.Limits()),
        1,
        lambda survivors: None,
    )
    with pytest.raises(AssertionError):
        proof.search(np.eye(3), 1.5)


def test_the_message_of_an_alarm_reaches_who_called_solve(monkeypatch):
    """Beside what is said of the blocks, which it must not give way to."""
    bounds = AdaptiveScreening.bounds

    def wrong(self, k, upper):
        found = bounds(self, k, upper)
        return [*found, (0.5, BoundName.ROW_SUMS)] if k == 3 else found

    monkeypatch.setattr(AdaptiveScreening, "bounds", wrong)
    monkeypatch.setattr(module.PathProver, "prove_quickly", lambda self, k: False)
    monkeypatch.setattr(module.PathProver, "prove", lambda self, k: None)
    with pytest.warns(RuntimeWarning, match="internal error"):
        result = bs.solve(covariance(), 3)
    assert result.status is Status.FEASIBLE
    assert "internal error" in result.message
