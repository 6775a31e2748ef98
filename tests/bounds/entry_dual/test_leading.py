"""Leading eigenpairs that are followed from one matrix to the next."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.bounds.entry_dual.leading import BLOCK, LeadingPairs
from blockspca.bounds.entry_dual.matrix import DualMatrix
from blockspca.bounds.entry_dual.pairs import Pairs


def near_equal(d: int, count: int, seed: int = 0) -> np.ndarray:
    """A matrix with that many eigenvalues near 1, the others below 0.5."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = rng.uniform(0.0, 0.5, size=d)
    values[:count] = 1.0 - 1e-3 * np.arange(count)
    return (Q * values) @ Q.T


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_values_and_vectors_are_those_of_the_matrix(kind) -> None:
    A = near_equal(300, 4)
    M = A.astype(kind)
    values, vectors = LeadingPairs(300).of(lambda X: M @ X, 1e-4, kind)
    exact = np.linalg.eigvalsh(A)[-4:]
    assert values.dtype == vectors.dtype == np.float64
    assert values[-4:] == pytest.approx(exact, abs=1e-4)
    assert vectors.T @ vectors == pytest.approx(np.eye(BLOCK), abs=1e-5)
    assert values[-1] <= exact[-1] + 1e-6


def test_more_directions_are_followed_once_it_is_asked() -> None:
    A = near_equal(300, 12)
    leading = LeadingPairs(300)
    assert len(leading.of(lambda X: A @ X, 1e-6)[0]) == BLOCK
    leading.widen()
    values, vectors = leading.of(lambda X: A @ X, 1e-6)
    assert len(values) == vectors.shape[1] == 12
    assert values == pytest.approx(np.linalg.eigvalsh(A)[-12:], abs=5e-3)
    for _ in range(5):
        leading.widen()
    assert leading.block == 24
    small = LeadingPairs(5)
    small.widen()
    assert small.block == 5


def test_a_density_of_high_rank_widens_what_is_followed() -> None:
    """With twenty equal eigenvalues eight are not the density; with two they are."""
    d = 200
    for count, wider in ((20, True), (2, False)):
        A = near_equal(d, count)
        no_pairs = Pairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
        matrix = DualMatrix(
            np.diagonal(A).copy(), np.ones(d), np.arange(d), A, no_pairs, np.zeros(d)
        )
        for _ in range(4):
            matrix.slope(np.zeros(d), np.zeros((d, d)), 0.02)
        assert (matrix.leading.block > BLOCK) is wider
