"""Algorithms 1 and 2, largest block size, intrinsic dimension, ε-approximation."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings

import blockspca as bs
from strategies import thresholded_problems


@given(thresholded_problems())
@settings(deadline=None)
def test_denoise_is_algorithm_1(problem):
    A, _, epsilon = problem
    denoised = bs.denoise(A, epsilon)
    for i, j in itertools.product(range(len(A)), repeat=2):
        assert denoised[i, j] == (A[i, j] if abs(A[i, j]) > epsilon else 0)
    assert bs.is_epsilon_approximation(A, denoised, epsilon)
    smaller = np.nextafter(np.abs(A - denoised).max(), -1)
    if smaller >= 0:
        assert not bs.is_epsilon_approximation(A, denoised, smaller)


@given(thresholded_problems())
@settings(deadline=None)
def test_blocks_of_the_denoised_matrix(problem):
    A, _, epsilon = problem
    denoised = bs.denoise(A, epsilon)
    assert bs.largest_block_size(denoised) == bs.intrinsic_dimension(A, epsilon)
    blocks = bs.partition(A, epsilon)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(A)))
    assert [b.tolist() for b in blocks] == [
        b.tolist() for b in bs.partition(denoised, 0.0)
    ]


@given(thresholded_problems(max_features=6))
@settings(deadline=None, max_examples=50)
def test_lemma_1_no_approximation_has_smaller_blocks(problem):
    A, _, epsilon = problem
    rng = np.random.default_rng(0)
    dimension = bs.intrinsic_dimension(A, epsilon)
    for _ in range(20):
        noise = rng.uniform(-epsilon, epsilon, size=A.shape)
        B = A + np.triu(noise) + np.triu(noise, 1).T
        sharpest = np.where(np.abs(A) <= epsilon, 0.0, B)
        assert bs.largest_block_size(B) >= dimension
        assert bs.largest_block_size(sharpest) >= dimension
