"""Algorithm 4: the noise estimate, read literally and with other subsets."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import blockspca as bs
from blockspca.blocks import noise
from blockspca.datasets import noisy_blocks

# The framework of the paper, without the proof on the original matrix.
solve = functools.partial(bs.solve, certify=False)


@pytest.fixture(scope="module")
def model_1() -> np.ndarray:
    return noisy_blocks(n_blocks=30, block_size=20, sigma=0.1, rng=42)[0]


def test_literal_reading_on_model_1_is_biased_low(model_1):
    with pytest.warns(UserWarning, match=r"0\.85 entries.*biased low.*n_subsets"):
        estimate = bs.estimate_noise(model_1, C=1, alpha=0.7, u=1)
    assert estimate == pytest.approx(0.60, abs=0.01)


def test_fewer_subsets_on_model_1(model_1):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = bs.estimate_noise(model_1, n_subsets=352)
    assert estimate == pytest.approx(1.015, abs=0.015)


@pytest.mark.parametrize("d", [3, 17, 60])
@pytest.mark.parametrize("m", [1, 2, 7, 100])
def test_subsets_divide_the_upper_triangle_evenly(d, m, monkeypatch):
    monkeypatch.setattr(noise, "ENTRIES_AT_ONCE", 5 * d)  # several batches of rows
    A = np.arange(float(d * d)).reshape(d, d)
    A = A + A.T
    m = min(m, d * (d + 1) // 2)
    cov = bs.Covariance.from_matrix(A)
    sums, counts = noise._subset_sums(cov, m, 1.0, np.random.default_rng(0))
    assert sums.sum() == pytest.approx((np.triu(A) ** 2).sum())
    assert counts.sum() == d * (d + 1) / 2
    assert counts.min() >= (d * d + d) // (2 * m)
    assert counts.max() - counts.min() <= 1


def test_the_division_is_random_and_reproducible(model_1):
    first, again, other = (
        bs.estimate_noise(model_1, n_subsets=352, rng=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_pure_gaussian_noise_is_estimated_without_bias():
    E = np.random.default_rng(0).normal(scale=0.3, size=(400, 400))
    A = np.triu(E) + np.triu(E, 1).T
    expected = 2 * 0.3 * np.sqrt(3 * np.log(400))
    assert bs.estimate_noise(A, n_subsets=200) == pytest.approx(expected, rel=0.01)


def test_noise_threshold_solves_at_the_estimate(model_1):
    strategy = bs.NoiseThreshold(n_subsets=352)
    result = solve(model_1, 3, threshold=strategy)
    assert result.threshold == bs.estimate_noise(model_1, n_subsets=352)
    assert [visit.action for visit in result.visits] == ["solved"]


def test_model_1_has_the_stated_shape():
    A, noiseless = noisy_blocks(n_blocks=4, block_size=5, sigma=0.01, rng=3)
    assert A.shape == (20, 20)
    np.testing.assert_array_equal(A, A.T)
    assert bs.largest_block_size(noiseless) == 5
    assert 0.005 < np.std((A - noiseless)[np.triu_indices(20)]) < 0.015
