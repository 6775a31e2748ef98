"""A and A² on a core of features, and turns there."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bounds.entry_dual.pairs import OutOfTime
from blockspca.components import prediction_core as module
from blockspca.components.prediction import Prediction
from blockspca.components.prediction_core import Core
from blockspca.components.prediction_goal import Goal
from blockspca.limits import Budget, Deadline
from component_problems import overlapping_factors

ENTRIES = Budget().max_entries
X = overlapping_factors(25, 30)
KINDS = {
    "matrix": lambda: bs.Covariance.from_matrix(np.cov(X.T)),
    "data": lambda: bs.Covariance.from_data(X),
    "long": lambda: bs.Covariance.from_data(overlapping_factors(60, 30)),
    "sparse": lambda: bs.Covariance.from_data(sp.csr_array(X * (np.abs(X) > 0.5))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [2**22, 50])
def test_a_core_that_grows_has_both_matrices(kind, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    cov = KINDS[kind]()
    A = cov.submatrix(slice(None))
    core = Core(cov, 2.0, Deadline(None), ENTRIES)
    for new in ([3, 8], [1, 3, 20, 29], [0]):
        assert core.extend(np.array(new))
    assert not core.extend(np.array([8, 0]))
    F = core.features
    assert sorted(F) == [0, 1, 3, 8, 20, 29]
    np.testing.assert_allclose(core.A, A[np.ix_(F, F)] / 2, atol=1e-12)
    np.testing.assert_allclose(core.square, (A @ A)[np.ix_(F, F)] / 4, atol=1e-11)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("above", [None, (3.0, 9.0)])
@pytest.mark.parametrize("seed", range(3))
def test_turns_raise_what_is_measured(disjoint, above, seed):
    cov = bs.Covariance.from_data(X)
    search = Prediction(cov, [4, 4, 4], disjoint, Deadline(None))
    search.core.extend(np.arange(30))
    goal = Goal(2.0, above, 12.0)
    rng = np.random.default_rng(seed)
    before = search.measure(search.cut(rng.normal(size=(3, 30))))
    after = search.raised(before.V, goal)
    again = search.measure(after.V)
    assert after.adjusted == pytest.approx(again.adjusted, rel=1e-9)
    assert after.predicted == pytest.approx(again.predicted, rel=1e-9)
    assert after.value(goal) > before.value(goal)
    assert (np.count_nonzero(after.V, axis=1) == 4).all()
    np.testing.assert_allclose(np.linalg.norm(after.V, axis=1), 1.0)
    if disjoint:
        assert (np.count_nonzero(after.V, axis=0) <= 1).all()


def test_few_turns_at_a_time_are_the_same(monkeypatch):
    cov = bs.Covariance.from_data(X)
    goal, found = Goal(2.0), []
    for work in (module.WORK, 1):
        monkeypatch.setattr(module, "WORK", work)
        search = Prediction(cov, [4, 4, 4], False, Deadline(None))
        search.core.extend(np.arange(30))
        start = search.cut(np.random.default_rng(0).normal(size=(3, 30)))
        found.append(search.raised(start, goal).value(goal))
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_turns_of_a_call_are_counted_with_their_exchanges():
    """Those of 150 features took a second between two looks at the clock."""
    core = Core(bs.Covariance.from_data(X), 1.0, Deadline(None), ENTRIES)
    core.features = np.arange(1500)
    turns, exchanges, steps = core._at_once(5, 150)
    assert turns == 1
    assert 1 < exchanges < module.EXCHANGES
    assert 1 < steps < module.STEPS
    core.features = np.arange(4096)  # the largest core, of components of ten
    assert core._at_once(5, 10)[1:] == (module.EXCHANGES, module.STEPS)


@pytest.mark.parametrize("kind", ["data", "matrix", "sparse"])
def test_a_core_without_time_to_grow_is_as_it_was(kind):
    core = Core(KINDS[kind](), 1.0, Deadline(None), ENTRIES)
    core.extend(np.array([3, 8]))
    before = core.A.copy(), core.square.copy()
    core.deadline = Deadline(0.0)
    with pytest.raises(OutOfTime):
        core.extend(np.array([1]))
    assert core.features.tolist() == [3, 8]
    np.testing.assert_array_equal(core.A, before[0])
    np.testing.assert_array_equal(core.square, before[1])


def test_samples_by_samples_are_not_formed_where_they_are_too_many(monkeypatch):
    cov = KINDS["data"]()

    def gram(self, weights):
        raise AssertionError("25 × 25 numbers")

    monkeypatch.setattr(bs.Covariance, "gram", gram)
    core = Core(cov, 1.0, Deadline(None), 4 * 25**2 - 1)
    core.extend(np.array([3, 8]))
    A = cov.submatrix(slice(None))
    np.testing.assert_allclose(core.square, (A @ A)[np.ix_([3, 8], [3, 8])])
