"""The spectral bound never loses a set above τ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blockspca.search.spectral import directions, eliminate, spectral_fixing


@pytest.mark.parametrize("p", [1, 2, 3])
def test_sets_above_tau_are_kept(p: int) -> None:
    rng = np.random.default_rng(p)
    for case in range(150):
        n = int(rng.integers(2, 9))
        k = int(rng.integers(1, n + 1))
        X = rng.standard_normal((n, n))
        A = X + X.T if case % 2 else X[:2].T @ X[:2]
        values = {
            support: np.linalg.eigvalsh(A[np.ix_(support, support)])[-1]
            for support in itertools.combinations(range(n), k)
        }
        best = max(values.values())
        for tau in (0.95 * best, best - 1e-6, best + 1e-6, best + 0.1 * abs(best)):
            left = spectral_fixing(A, k, tau, p)
            for support, value in values.items():
                if value > tau:
                    assert set(left.fixed_in) <= set(support) <= set(left.candidates)


def test_rank_one_is_exact() -> None:
    u = np.array([0.8, 0.5, 0.3, 0.1])
    A = np.outer(u, u)
    best = float((u[:2] ** 2).sum())
    assert spectral_fixing(A, 2, best + 1e-9, p=1).candidates.size == 0
    assert set(spectral_fixing(A, 2, best - 1e-9, p=1).candidates) >= {0, 1}


@pytest.mark.parametrize("p", [2, 3])
def test_directions_cover_the_sphere(p: int) -> None:
    corners, inflation = directions(p)
    z = np.random.default_rng(0).standard_normal((2000, p))
    z /= np.linalg.norm(z, axis=1)[:, None]
    nearest = np.abs(z @ corners.T).max(axis=1)
    assert (nearest**2 * inflation >= 1).all()


def test_elimination_is_the_schur_complement() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 6))
    A = X.T @ X
    chosen, rest = np.array([1, 4]), np.array([0, 2, 3, 5])
    tau = 1.01 * np.linalg.eigvalsh(A[np.ix_(chosen, chosen)])[-1]
    B = eliminate(A, chosen, rest, tau)
    assert B is not None
    for size in range(1, 5):
        for subset in itertools.combinations(range(4), size):
            union = np.concatenate([chosen, rest[list(subset)]])
            above = np.linalg.eigvalsh(A[np.ix_(union, union)])[-1] > tau
            assert above == (np.linalg.eigvalsh(B[np.ix_(subset, subset)])[-1] > tau)
    low = 0.9 * np.linalg.eigvalsh(A[np.ix_(chosen, chosen)])[-1]
    assert eliminate(A, chosen, rest, low) is None
