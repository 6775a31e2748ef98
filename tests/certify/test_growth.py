"""Growing good sets refutes what is not reached, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca._kernels import growth as kernel
from blockspca.certify import growth
from blockspca.certify.growth import refute
from strategies import KINDS, symmetric_matrix

Optimum = Callable[[np.ndarray, int], float]


def noise(d: int, seed: int) -> np.ndarray:
    E = np.random.default_rng(seed).normal(scale=0.1, size=(d, d))
    return np.eye(d) + E + E.T


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    d=st.integers(4, 10),
    k=st.integers(1, 7),
    seed=st.integers(0, 2**32 - 1),
)
def test_refutes_above_the_optimum_and_finds_a_set_below(
    kind: str, d: int, k: int, seed: int, brute_force: Optimum
) -> None:
    A = symmetric_matrix(kind, d, np.random.default_rng(seed))
    k = min(k, d)
    optimum = brute_force(A, k)
    size = max(np.abs(A).max(), 1e-12)
    assert refute(A, k, optimum + 1e-7 * size).refuted
    below = refute(A, k, optimum - 1e-7 * size)
    assert not below.refuted
    assert below.support is not None
    assert 1 <= len(below.support) <= k
    inner = A[np.ix_(below.support, below.support)]
    assert np.linalg.eigvalsh(inner)[-1] >= optimum - 2e-7 * size


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_scale_does_not_matter(scale: float, brute_force: Optimum) -> None:
    A = noise(10, 0)
    optimum = brute_force(A, 4)
    one = refute(A, 4, 1.001 * optimum)
    other = refute(A * scale, 4, 1.001 * optimum * scale)
    assert one.refuted
    assert other.refuted
    assert one.sets == other.sets


def test_order_and_signs_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    A = noise(40, 1)
    signs = rng.choice([-1.0, 1.0], size=40)
    order = rng.permutation(40)
    B = (A * signs * signs[:, None])[np.ix_(order, order)]
    one, other = refute(A, 5, 1.6), refute(B, 5, 1.6)
    assert one.refuted == other.refuted
    if one.refuted:
        assert one.sets == other.sets


def test_limits_are_honoured_and_claim_nothing() -> None:
    A = noise(200, 2)
    stopped = refute(A, 8, 1.5, set_limit=1000)
    assert not stopped.refuted or stopped.sets < 1000
    at_once = refute(A, 8, 2.2, time_limit=0.0)
    assert not at_once.refuted
    assert at_once.support is None


def test_more_strong_sets_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    monkeypatch.setattr(growth, "_CAPACITY", 1)
    monkeypatch.setattr(growth, "_STRONG_PAIR", 100.0)
    rng = np.random.default_rng(3)
    for kind in KINDS:
        A = symmetric_matrix(kind, 9, rng)
        optimum = brute_force(A, 5)
        size = max(np.abs(A).max(), 1e-12)
        assert refute(A, 5, optimum + 1e-7 * size).refuted
        assert not refute(A, 5, optimum - 1e-7 * size).refuted


def test_block_smaller_than_k_and_duplicates() -> None:
    A = np.kron(np.eye(4), np.ones((2, 2)))  # opt(k) = 2 for every k ≥ 2
    assert refute(A, 5, 2.0 + 1e-6).refuted
    assert not refute(A, 5, 2.0).refuted
    assert refute(np.zeros((4, 4)), 2, 1e-9).refuted
    assert not refute(np.zeros((4, 4)), 2, 0.0).refuted


def test_kernel_equals_its_python_source() -> None:
    rng = np.random.default_rng(4)
    d, m = 9, 4
    N = rng.uniform(-0.4, 0.4, size=(d, d))
    N = (N + N.T) / 2
    np.fill_diagonal(N, 0.0)
    N[2, 5] = N[5, 2] = np.nan
    results = []
    for function in (kernel.grow, kernel.grow.py_func):
        state = np.zeros(kernel.N_STATE, dtype=np.int64)
        sets = np.zeros((m + 1, m + 1), dtype=np.int64)
        candidates = np.zeros((m + 1, d), dtype=np.int64)
        candidates[0] = np.arange(d)
        position = np.zeros((m + 1, 2), dtype=np.int64)
        position[0, 1] = d
        counts = np.zeros(m + 1, dtype=np.int64)
        strong = np.full((5, m + 1), -1, dtype=np.int64)
        outcomes = []
        while not outcomes or outcomes[-1] == kernel.PAUSED:
            outcomes.append(
                function(
                    N, m, 1e-12, 7, state, sets, candidates, position, counts, strong
                )
            )
        results.append((outcomes, counts.tolist(), strong.tolist(), state.tolist()))
    assert results[0] == results[1]
    assert len(kernel.grow.signatures) == 1


def test_inclusion_kernel_equals_its_python_source() -> None:
    rng = np.random.default_rng(5)
    N = noise(8, 5)
    np.fill_diagonal(N, 0.0)
    N[1, 6] = N[6, 1] = np.nan
    kept = np.array([0, 1, 3, 6, 7])
    coupling = rng.normal(size=(2, 5))
    scale = rng.uniform(1, 2, size=5)
    outputs = []
    for function in (kernel.include, kernel.include.py_func):
        reduced = np.empty((5, 5))
        largest = function(N, kept, coupling, scale, reduced)
        outputs.append((largest, reduced))
    np.testing.assert_allclose(outputs[0][1], outputs[1][1], rtol=1e-14)
    assert outputs[0][0] == pytest.approx(outputs[1][0], rel=1e-14)
    expected = (N[np.ix_(kept, kept)] + coupling.T @ coupling) * np.outer(scale, scale)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(outputs[0][1], expected, rtol=1e-12)
    assert outputs[0][0] == pytest.approx(np.nanmax(np.abs(expected)))
    assert len(kernel.include.signatures) == 1
