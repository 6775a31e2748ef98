"""The entry dual against brute force, and against what would make it wrong."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from blockspca.bounds.entry_dual.bound import EntryBound, entry_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.covariance.covariance import Covariance


def bound_of(problem: zoo.Problem, k: int, support: np.ndarray, steps: int = 12):
    return entry_bound(problem.cov, k, support, time_limit=60.0, iterations=steps)


def assert_bounds(problem: zoo.Problem, sizes: range | None = None) -> None:
    known = zoo.Reference(problem.exact)
    for k in sizes or range(2, problem.d + 1):
        found = bound_of(problem, k, known.best[k])
        assert found.value >= known.reached[k], (problem.kind, k)
        if found.record is not None:
            again = checked_value(problem.cov, k, found.record)
            assert again <= found.value, (problem.kind, k)
            assert again >= known.reached[k], (problem.kind, k)


@pytest.mark.parametrize("seed", range(120))
def test_no_set_of_the_zoo_is_above_the_bound(seed):
    assert_bounds(zoo.problem(seed))


@pytest.mark.parametrize("kind", zoo.EVERY_KIND)
def test_no_set_of_any_kind_is_above_the_bound(kind):
    A = zoo.symmetric_matrix(kind, 8, np.random.default_rng(0))
    assert_bounds(zoo.from_matrix(A, kind))


@pytest.mark.parametrize("diagonal", ["constant", "varied", "zero", "negative"])
def test_twelve_features_and_every_k(diagonal):
    rng = np.random.default_rng(1)
    A = np.corrcoef(rng.normal(size=(9, 12)), rowvar=False)
    own = {"constant": 1.0, "varied": rng.gamma(2.0, size=12), "zero": 0.0}
    np.fill_diagonal(A, own.get(diagonal, -1.0))
    assert_bounds(zoo.from_matrix(A))


def test_the_bound_is_tight_where_the_relaxation_is():
    A = np.full((12, 12), 0.1) + 0.9 * np.eye(12)
    A[:4, :4] += 0.6 * (1 - np.eye(4))
    found = entry_bound(Covariance.from_matrix(A), 4, range(4))
    assert found.value == pytest.approx(1 + 3 * 0.7, rel=1e-6)
    assert found.value >= 1 + 3 * 0.7


@pytest.mark.parametrize("exponent", [-500, -498, 4, 498])
def test_a_power_of_four_changes_nothing(exponent):
    A = zoo.correlation(10, np.random.default_rng(5))
    scaled = Covariance.from_matrix(A * 2.0**exponent)
    support = zoo.Reference(A).best[4]
    first = entry_bound(Covariance.from_matrix(A), 4, support, iterations=20)
    other = entry_bound(scaled, 4, support, iterations=20)
    assert other.value == pytest.approx(first.value * 2.0**exponent, rel=1e-12)


def test_a_useless_variance_costs_nothing():
    A = zoo.correlation(10, np.random.default_rng(5))
    support = zoo.Reference(A).best[4]
    inside = np.isin(np.arange(10), support)
    first = entry_bound(Covariance.from_matrix(A), 4, support)
    A[~inside, ~inside] = -1e12
    found = entry_bound(Covariance.from_matrix(A), 4, support)
    assert found.value <= first.value * (1 + 1e-6)
    assert found.value >= zoo.brute_force(A, 4)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", zoo.SAMPLES)
def test_data(kind, scale):
    X = zoo.samples(kind, np.random.default_rng(2))
    assert_bounds(zoo.from_data(X, kind, scale), range(2, 6))


def test_many_features_are_bounded_by_rows_beside_the_core():
    """Some hundred features in groups, of which brute force knows the best."""
    rng = np.random.default_rng(3)
    groups, d = np.repeat(np.arange(60), 6), 360
    same = groups[:, None] == groups
    X = rng.normal(size=(40, 60))[:, groups] + rng.normal(size=(40, d))
    A = np.where(same, np.corrcoef(X, rowvar=False), 0.0)
    best = max(
        (zoo.brute_force(A[np.ix_(group, group)], 4), tuple(group))
        for group in np.split(np.arange(d), 60)
    )
    known = zoo.Reference(A[np.ix_(best[1], best[1])], sizes=(4,))
    support = np.array(best[1])[known.best[4]]
    found = entry_bound(Covariance.from_matrix(A), 4, support, iterations=30)
    assert best[0] <= found.value <= 1.1 * best[0]


def test_a_diagonal_in_u_is_refused():
    """With U_ii = w_i² the price would be k w_i², and the bound is wrong without it."""
    shares = np.zeros((3, 3), np.int16)
    np.fill_diagonal(shares, 2**14)
    record = EntryRecord(np.ones(3, np.float32), 1.0, np.arange(3), shares)
    with pytest.raises(ValueError, match="diagonal"):
        checked_value(Covariance.from_matrix(np.eye(3)), 2, record)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": 2.0}, "power of four"),
        ({"weights": -np.ones(3, np.float32)}, "negative"),
        ({"weights": np.full(3, np.nan, np.float32)}, "not a number"),
        ({"core": np.array([0, 2, 1])}, "ascend"),
        ({"core": np.array([0, 1, 3])}, "ascend"),
        ({"shares": np.full((3, 3), 2**14 + 1, np.int16)}, "between"),
        ({"shares": np.array([[0, 9, 0], [0, 0, 0], [0, 0, 0]])}, "symmetric"),
    ],
)
def test_a_record_that_bounds_nothing_is_refused(change, said):
    parts = {
        "weights": np.ones(3, np.float32),
        "unit": 1.0,
        "core": np.arange(3),
        "shares": np.zeros((3, 3), np.int16),
    }
    with pytest.raises(ValueError, match=said):
        EntryRecord(**{**parts, **change}).check()


@pytest.mark.parametrize("seed", range(40))
def test_any_record_bounds(seed):
    """Whatever weights and shares a record has, what it proves holds."""
    problem = zoo.problem(seed)
    rng, d = np.random.default_rng(seed), problem.d
    known = zoo.Reference(problem.exact)
    largest = float(np.abs(problem.A).max()) or 1.0
    unit = 4.0 ** np.floor(np.log2(largest) / 2)
    core = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    shares = rng.choice([-1.0, -0.3, 0.0, 0.6, 1.0], size=(len(core),) * 2)
    weights = np.sqrt(rng.gamma(1.0, size=d))
    record = EntryRecord.of(weights, unit, core, np.triu(shares, 1))
    for k in range(1, d + 1):
        assert checked_value(problem.cov, k, record) >= known.reached[k]


def test_a_record_is_read_as_it_was_written():
    rng = np.random.default_rng(0)
    shares = rng.uniform(-1, 1, (5, 5))
    record = EntryRecord.of(rng.random(9), 4.0, np.arange(0, 9, 2), shares)
    other = EntryRecord.from_text(record.to_text(), 9)
    assert other.unit == record.unit
    for name in ("weights", "core", "shares"):
        np.testing.assert_array_equal(getattr(other, name), getattr(record, name))


@pytest.mark.parametrize("text", ["", "no", "AAAA", "!"])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(ValueError, match="entry dual"):
        EntryRecord.from_text(text, 3)


def test_no_time_no_bound():
    cov = Covariance.from_matrix(np.eye(3) + 1.0)
    found = entry_bound(cov, 2, [0, 1], time_limit=0.0)
    assert isinstance(found, EntryBound)
    assert found.value >= 3.0


def test_an_ascent_with_little_memory_ends():
    """A first core larger than memory allows was never slow enough, without a clock."""
    B = np.random.default_rng(0).normal(size=(13, 13))
    A = -(B @ B.T) - np.eye(13)
    bound = entry_bound(
        Covariance.from_matrix(A),
        5,
        [0, 1, 2, 3, 4],
        time_limit=np.inf,
        iterations=60,
        memory=1000,
    )
    assert zoo.brute_force(A, 5) <= bound.value < np.inf


def test_slopes_near_the_least_number_are_no_error():
    """Steps along them overflowed, and LAPACK was given a matrix of no numbers."""
    t = 1e-157
    A = np.array(
        [
            [3, 2 * t, -t, -t, 2, -t, -1, 0],
            [2 * t, 10 * t, 0, 2 * t, -t, 2 * t, -t, t],
            [-t, 0, 7 * t, t, 0, -t, 0, 2 * t],
            [-t, 2 * t, t, 9 * t, -t, 2 * t, 0, -t],
            [2, -t, 0, -t, 2, 2 * t, t, 2 * t],
            [-t, 2 * t, -t, 2 * t, 2 * t, 11 * t, 2 * t, t],
            [-1, -t, 0, 0, t, 2 * t, 1, t],
            [0, t, 2 * t, -t, 2 * t, t, t, 8 * t],
        ]
    )
    cov = Covariance.from_matrix(A)
    found = entry_bound(cov, 6, range(6), time_limit=60.0, nodes=3)
    assert found.value >= 3.0
