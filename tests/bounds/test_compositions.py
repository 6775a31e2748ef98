"""Bounds by how many features come from each part, against every set."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import zoo
from blockspca import Covariance
from blockspca.bounds import compositions
from blockspca.bounds.compositions import Compositions, best_level, parts_above
from blockspca.limits import Deadline
from blockspca.numerics.rounding import power_of_two


def some_parts(
    d: int, rng: np.random.Generator, with_rest: bool
) -> tuple[list[np.ndarray], np.ndarray]:
    """Two or three parts of d features, and those that are in none."""
    label = rng.integers(0, 3, d)
    parts = [np.flatnonzero(label == g) for g in range(3)]
    rest = parts.pop() if with_rest else np.empty(0, np.intp)
    return [part for part in parts if len(part)], rest


@pytest.mark.parametrize("seed", range(60))
def test_no_set_exceeds_the_bound_of_its_composition(seed: int) -> None:
    problem = zoo.problem(seed)
    rng = np.random.default_rng([1, seed])
    parts, rest = some_parts(problem.d, rng, with_rest=bool(seed % 2))
    if not parts:
        parts, rest = [np.arange(problem.d)], np.empty(0, np.intp)
    reference = zoo.Reference(problem.exact)
    sizes = np.abs(problem.A[np.ix_(rest, rest)])
    np.fill_diagonal(sizes, 0.0)
    unit = power_of_two(float(np.abs(problem.A).max()))
    k = int(rng.integers(1, problem.d + 1))
    level = float(sizes.max(initial=0.0))
    table = Compositions(problem.cov, k, parts, level, unit)
    for q in range(1, k + 1):
        off = q * problem.cov.entry_error
        assert table.upper[q] * unit + off >= reference.reached[q]
    tau = float(np.median(reference.eigenvalues[k])) / unit
    found = table.above(tau, 10**6, table.k, Deadline(None))
    assert found is not None
    bounds = {
        composition.counts: composition.bound for composition in found.compositions
    }
    for S, value in zip(
        zoo.supports(problem.d, k), reference.eigenvalues[k], strict=True
    ):
        counts = tuple(int(np.isin(S, part).sum()) for part in table.parts)
        known = bounds.get(counts, tau) * unit + k * problem.cov.entry_error
        assert known >= value


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "bound",
    [
        compositions._row_sums,
        lambda A, most: compositions._with_squares(*compositions._leading(A), most),
    ],
    ids=["row sums", "leading"],
)
def test_each_bound_within_a_part_holds_by_itself(
    seed: int, bound: Callable[[np.ndarray, int], np.ndarray]
) -> None:
    problem = zoo.problem(seed)
    unit = power_of_two(float(np.abs(problem.A).max()))
    reference = zoo.Reference(problem.A)
    found = bound(problem.A / unit, problem.d) * unit
    for k in range(1, problem.d + 1):
        assert found[k - 1] >= reference.reached[k]


def test_the_bound_of_modules_is_near_the_optimum() -> None:
    A = zoo.modules([5, 5, 5])
    cov = Covariance.from_matrix(A)
    table = Compositions(cov, 7, [np.arange(5 * g, 5 * g + 5) for g in range(3)], 0, 1)
    best = zoo.Reference(A, sizes=[7]).reached[7]
    assert best <= table.upper[7] <= 1.01 * best


def test_compositions_of_fewer_features() -> None:
    cov = Covariance.from_matrix(zoo.modules([4, 4]))
    parts = [np.arange(4), np.arange(4, 8)]
    longer = Compositions(cov, 6, parts, 0.0, 1.0)
    shorter = Compositions(cov, 4, parts, 0.0, 1.0)
    found, same = (t.above(0.5, 50, 4, Deadline(None)) for t in (longer, shorter))
    assert found is not None
    assert same is not None
    assert found.beginnings == same.beginnings
    ordered = [c.bound for c in found.largest_first()]
    assert ordered == sorted(ordered, reverse=True)
    assert longer.above(0.5, 1, 6, Deadline(None)) is None


def test_parts_leave_no_entry_above_the_level_between_others() -> None:
    A = zoo.modules([3, 4, 1, 1])
    parts = parts_above(Covariance.from_matrix(A), 0.1)
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5, 6]]


def test_the_best_level_is_that_of_the_modules() -> None:
    cov = Covariance.from_matrix(zoo.modules([6, 6, 6, 6]))
    found = best_level(cov, 8, 0.2, 0.25, Deadline(None))
    assert found is not None
    assert found[1].sizes == [6, 6, 6, 6]


def test_no_level_without_time_or_with_one_part_only() -> None:
    cov = Covariance.from_matrix(zoo.modules([6, 6]))
    assert best_level(cov, 8, 0.2, 0.25, Deadline(0.0)) is None
    whole = Covariance.from_matrix(zoo.modules([12]))
    assert best_level(whole, 8, 0.2, 0.25, Deadline(None)) is None


def test_tables_keep_to_the_memory_that_they_say_they_need() -> None:
    cov = Covariance.from_matrix(zoo.modules([60, 60, 60, *(1,) * 120]))
    parts, k = parts_above(cov, 0.1), 70
    tracemalloc.start()
    Compositions(cov, k, parts, 0.1, 0.25)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Compositions.is_affordable(cov, k, parts)
    assert not Compositions.is_affordable(cov, k, parts, peak)
    assert Compositions.is_affordable(cov, k, parts, 4 * peak)
    assert best_level(cov, k, 0.2, 0.25, Deadline(None), peak) is None


@pytest.mark.filterwarnings("error")
def test_very_negative_variances_are_scaled_without_a_warning() -> None:
    A = zoo.modules([3, 3, 1])
    parts, unit = [np.arange(3), np.arange(3, 6)], 2.0**-100
    A[0, 0] = A[6, 6] = -1e300
    upper = Compositions(Covariance.from_matrix(A), 4, parts, 0.1, unit).upper * unit
    assert zoo.Reference(A[1:6, 1:6], sizes=[4]).reached[4] <= upper[4] < 2


@pytest.mark.filterwarnings("error")
def test_entries_out_of_range_leave_no_bound() -> None:
    A = zoo.modules([3, 3])
    A[0, 4] = A[4, 0] = 1e300
    parts = [np.arange(3), np.arange(3, 6)]
    table = Compositions(Covariance.from_matrix(A), 4, parts, 0.1, 2.0**-100)
    assert table.upper[4] == np.inf


def test_a_bound_in_full_is_rounded_up() -> None:
    X = np.random.default_rng(0).normal(size=(30, 8))
    cov = Covariance.from_data(X).formed(Deadline(None))
    table = Compositions(cov, 3, [np.arange(4), np.arange(4, 8)], 0.0, 0.25)
    for value in np.random.default_rng(1).uniform(1, 8, 50).tolist():
        exact = Fraction(value) / 4 + 3 * Fraction(cov.entry_error)
        assert Fraction(table.in_full(value)) >= exact


def test_products_that_vanish_are_rounded_up() -> None:
    assert compositions._product(1e-200, 1e-200) > 0
    assert compositions._product(0.0, 1e-200) == 0


def test_nothing_is_looked_for_after_the_deadline() -> None:
    cov = Covariance.from_matrix(zoo.modules([4, 4]))
    table = Compositions(cov, 6, [np.arange(4), np.arange(4, 8)], 0.0, 1.0)
    assert table.above(0.5, 50, table.k, Deadline(0.0)) is None
    assert table.above(0.5, 50, table.k, Deadline(None)) is not None
