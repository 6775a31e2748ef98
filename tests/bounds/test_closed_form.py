"""Every bound is at least the optimum, on whatever symmetric matrix."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca.bound_names import BoundName
from blockspca.bounds.best import NamedBound, best_bound, is_sound
from blockspca.bounds.closed_form import (
    ObviousBounds,
    best_threshold_bound,
    largest_eigenvalue_bound,
    row_sum_bound,
    threshold_bound,
    trace_bound,
)
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling, psd_shift
from dual_problems import direction_bound
from strategies import KINDS, symmetric_matrix

Optimum = Callable[[np.ndarray, int], float]


def all_bounds(A: np.ndarray, k: int) -> dict[str, float]:
    off = np.abs(A - np.diag(np.diag(A)))
    epsilon = float(np.median(off))
    shift = psd_shift(A)
    return {
        "eigenvalue": largest_eigenvalue_bound(A),
        "trace": trace_bound(np.diag(A) + shift, k) - shift,
        "rows": row_sum_bound(A, k),
        "soft": threshold_bound(A, k, epsilon, Deadline(None)),
        "best soft": best_threshold_bound(A, k)[0],
        "direction": dual_bound(A, k, iterations=15).value,
        "direction search": dual_bound(A, k, iterations=8, nodes=7).value,
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_no_bound_is_below_the_optimum(
    kind: str, scale: float, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(len(kind))
    for d, k in [(4, 1), (6, 3), (7, 7)]:
        A = symmetric_matrix(kind, d, rng) * scale
        optimum = brute_force(A, k)
        for name, bound in all_bounds(A, k).items():
            assert bound >= optimum - 1e-12 * abs(optimum), (name, d, k)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    d=st.integers(4, 9),
    k=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_bounds_hold_on_random_matrices(
    kind: str, d: int, k: int, seed: int, brute_force: Optimum
) -> None:
    A = symmetric_matrix(kind, d, np.random.default_rng(seed))
    optimum = brute_force(A, k)
    size = 1e-12 * np.abs(A).max()
    for name, bound in all_bounds(A, k).items():
        assert bound >= optimum - size, name


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 8),
    d=st.integers(2, 9),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.01, 1.5),
)
def test_direction_bound_holds_for_any_multiplier_and_directions(
    n: int, d: int, seed: int, share: float, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((n, d))
    multiplier = share * float((C * C).sum(axis=0).max())
    near = C + 0.3 * rng.standard_normal((n, d))
    for k in range(1, min(d, 4) + 1):
        optimum = brute_force(C.T @ C, k)
        for directions in (None, near, rng.standard_normal((n, d))):
            bound = direction_bound(C, k, multiplier, directions)
            assert bound >= optimum * (1 - 1e-12)


def test_the_bounds_where_they_are_tight() -> None:
    ones = np.ones((6, 6))
    assert largest_eigenvalue_bound(ones) == pytest.approx(6.0)
    assert row_sum_bound(ones, 3) == pytest.approx(3.0)
    assert trace_bound(np.diag(ones), 3) == pytest.approx(3.0)
    assert dual_bound(ones, 3).value == pytest.approx(3.0, rel=1e-3)
    blocks = np.kron(np.eye(3), np.ones((2, 2)))
    assert threshold_bound(blocks, 4, 0.0, Deadline(None)) == pytest.approx(2.0)


def test_one_large_block_and_noise_below_the_threshold() -> None:
    rng = np.random.default_rng(2)
    noise = rng.uniform(-0.01, 0.01, size=(30, 30))
    A = np.eye(30) + (noise + noise.T) / 2
    A[:3, :3] += 2.0
    bound, epsilon = best_threshold_bound(A, 3)
    assert bound == pytest.approx(7.0, rel=0.01)
    assert epsilon <= 0.02


def test_ascent_improves_and_a_good_start_is_not_needed() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 60)) + np.outer(rng.standard_normal(20), np.ones(60))
    cov = Covariance.from_data(X)
    values = [dual_bound(cov, 10, iterations=i).value for i in (1, 5, 20, 100)]
    assert values == sorted(values, reverse=True)
    started = dual_bound(cov, 10, start=np.arange(10), iterations=100).value
    assert started == pytest.approx(values[-1], rel=1e-2)
    searched = dual_bound(cov, 10, nodes=7).value
    assert searched <= dual_bound(cov, 10).value * (1 + 1e-9)


def test_without_time_the_variances_are_the_bound() -> None:
    X = np.random.default_rng(7).standard_normal((9, 30))
    cov = Covariance.from_data(X)
    assert dual_bound(cov, 4, time_limit=-1.0).value == np.inf
    named = best_bound(cov, 4, np.arange(4), target=-np.inf, time_limit=0.0)
    assert named.name == "variances"
    assert named.value >= np.sort(cov.diagonal())[-4:].sum()


@settings(max_examples=12, deadline=None)
@given(kind=st.sampled_from(KINDS), k=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_best_bound_is_the_least(
    kind: str, k: int, seed: int, brute_force: Optimum
) -> None:
    A = symmetric_matrix(kind, 8, np.random.default_rng(seed))
    optimum = brute_force(A, k)
    cov = Covariance.from_matrix(A)
    named = best_bound(cov, k, np.arange(k), target=-np.inf, time_limit=10)
    size = max(np.abs(A).max(), abs(optimum))
    assert named.value >= optimum - 1e-12 * size
    assert named.value <= largest_eigenvalue_bound(A) + 1e-12 * size
    assert named.name in (
        "direction dual",
        "entry dual",
        "largest eigenvalue",
        "soft threshold",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalue_ceiling_is_above_and_near(kind: str) -> None:
    rng = np.random.default_rng(5)
    for d in (1, 2, 7, 40):
        for scale in (1e-200, 1.0, 1e200):
            A = symmetric_matrix(kind, max(d, 4), rng) * scale
            top = np.linalg.eigvalsh(A)[-1]
            size = np.abs(A).max()
            assert 0 <= eigenvalue_ceiling(A) - top <= 1e-9 * size
            shifted = A + psd_shift(A) * np.eye(len(A))
            assert np.linalg.eigvalsh(shifted)[0] >= -1e-12 * size
    assert eigenvalue_ceiling(np.zeros((3, 3))) == 0.0


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["CovColon", "Eisen2Cov", "pitprops", "Lymphoma2", "srbct_khan", "madelon"]
)
def test_bounds_are_above_the_proved_optima(
    name: str, load: Callable[[str], np.ndarray], oracle_dir: Path
) -> None:
    values = load(name)
    if values.shape[0] == values.shape[1] and np.array_equal(values, values.T):
        cov = Covariance.from_matrix(values)
    else:
        cov = Covariance.from_data(values)
    with (oracle_dir / "proved_optima.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    assert rows
    for row in rows:
        k, optimum = int(row["k"]), float(row["objective"])
        support = np.array(row["support"].split(), dtype=int)
        floor = optimum * (1 - 1e-9)
        dual = dual_bound(cov, k, start=support, time_limit=2, iterations=40)
        assert dual.value >= floor
        assert largest_eigenvalue_bound(cov) >= floor
        if cov.known_psd:
            assert trace_bound(cov.diagonal(), k) >= floor
        if cov.n_features <= 600:
            A = cov.submatrix(slice(None))
            assert row_sum_bound(A, k) >= floor
            assert (
                threshold_bound(A, k, float(np.median(np.abs(A))), Deadline(None))
                >= floor
            )


def test_a_bound_below_the_objective_is_said_to_be_a_defect() -> None:
    assert is_sound(NamedBound(2.0, "variances"), 2.0, 0.0)
    with pytest.warns(RuntimeWarning, match="1.9, is below the objective 2"):
        assert not is_sound(NamedBound(1.9, "variances"), 2.0, 1e-9)


def test_a_matrix_too_large_for_its_eigenvalues_has_an_obvious_bound() -> None:
    """It was infinite, and named after the eigenvalue that nobody computed."""
    A = np.eye(3200)
    A[0, 1] = A[1, 0] = 0.5
    value, name = ObviousBounds(Covariance.from_matrix(A)).least(3)
    assert name is BoundName.ROW_SUMS
    assert value == pytest.approx(2.0)
    nothing = ObviousBounds(Covariance.from_matrix(A), seconds=0.0).least(3)
    assert nothing == (np.inf, BoundName.NONE)
