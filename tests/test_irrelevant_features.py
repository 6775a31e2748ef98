"""What no component can use has no say in what "optimal" means."""

import numpy as np
import pytest

import blockspca as bs
from blockspca.status import OPTIMAL_GAP, Status
from zoo import brute_force


def beside(A: np.ndarray, diagonal: float, coupling: np.ndarray) -> np.ndarray:
    """A with one more feature, whose variance is `diagonal`."""
    d = len(A)
    larger = np.zeros((d + 1, d + 1))
    larger[:d, :d] = A
    larger[d, :d] = larger[:d, d] = coupling
    larger[d, d] = diagonal
    return larger


def assert_honest(result: bs.Result, best: float) -> None:
    """best is right to 1e-12, relative."""
    assert result.objective <= best * (1 + 1e-12)
    assert result.upper_bound >= best * (1 - 1e-12)
    if result.status is Status.OPTIMAL:
        assert result.upper_bound - result.objective <= OPTIMAL_GAP * result.objective
        assert result.gap <= 1e-8


@pytest.mark.data
def test_a_large_negative_variance_beside_pitprops(data_dir):
    A = np.load(data_dir / "pitprops.npz")["A"].astype(float)
    larger = beside(A, -1e9, np.zeros(13))
    for k in range(1, 7):
        result = bs.solve(larger, k)
        assert_honest(result, brute_force(A, k))
        assert result.status is Status.OPTIMAL
        assert bs.verify(result, larger).complete


@pytest.mark.parametrize("exponent", [0, 2, 6, 9, 12, 15, 30, 100, 200, 290])
@pytest.mark.parametrize("coupled", [0.0, 1e-3, 1.0])
def test_large_negative_variances(exponent, coupled):
    rng = np.random.default_rng(exponent)
    A = np.cov(rng.normal(size=(12, 7)).T)
    larger = beside(A, -(10.0**exponent), coupled * rng.normal(size=7))
    path = bs.solve_path(larger, 5)
    for k in range(1, 6):
        result = path[k]
        # LAPACK errs by eps times the largest entry: leave the feature out, unless
        # it may matter.
        best = brute_force(larger if exponent < 3 else A, k)
        slack = 0.0 if exponent < 3 else 7 * coupled**2 * 10.0 ** (1 - exponent)
        assert result.objective <= best + slack + 1e-12
        assert result.upper_bound >= best - 1e-12
        assert result.status is Status.OPTIMAL
        assert result.gap <= OPTIMAL_GAP


@pytest.mark.parametrize("weak", [1e-9, 1e-30, 1e-150, 1e-200])
def test_a_strong_pair_of_negative_features_does_not_hide_weak_ones(weak):
    """The unit is that of what can be chosen, not of the largest entry."""
    A = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    A[0, 1] = A[1, 0] = 0.5 + 0.1
    larger = beside(A * weak, -1.0 / weak, np.full(4, weak / 100))
    for k in range(1, 4):
        result = bs.solve(larger, k)
        assert_honest(result, brute_force(A, k) * weak)
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("penalty", [1.0, 1e3, 1e9])
@pytest.mark.data
def test_a_penalty_makes_nothing_optimal(penalty, data_dir):
    A = np.load(data_dir / "pitprops.npz")["A"].astype(float)
    found = bs.solve_components(
        A, k=5, n_components=3, scheme=bs.Orthogonalised(penalty=penalty)
    )
    for result in found.results:
        assert result.status is not Status.OPTIMAL or result.gap <= OPTIMAL_GAP


def test_an_optimum_of_zero_is_not_called_optimal_for_the_size_of_the_entries():
    A = -np.ones((5, 5))
    result = bs.solve(A, 3)
    assert abs(result.objective) <= 1e-15
    assert 0 <= result.upper_bound <= 1e-12
    assert result.status is not Status.OPTIMAL or result.gap <= 1e-8


def test_a_bound_sets_aside_a_share_of_itself_not_of_what_is_reached_so_far():
    """The first support tried reaches 0, and the bound of all is 1e-12."""
    A = np.zeros((6, 6))
    A[3, 4] = A[4, 3] = 1e-12
    path = bs.solve_path(A, 6)
    for k in range(2, 7):
        assert path[k].status is Status.OPTIMAL
        assert bs.verify(path[k], A).complete
