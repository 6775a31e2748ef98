"""The restricted isometry constant, against all sets of columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockspca as bs


def by_brute_force(Phi: np.ndarray, k: int) -> float:
    C = Phi / np.linalg.norm(Phi, axis=0)
    A = C.T @ C
    spectra = [
        np.linalg.eigvalsh(A[np.ix_(s, s)])
        for s in map(list, itertools.combinations(range(len(A)), k))
    ]
    return max(max(s[-1] - 1, 1 - s[0]) for s in spectra)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_against_all_sets(seed: int, k: int) -> None:
    Phi = np.random.default_rng(seed).normal(size=(7, 10))
    found = bs.restricted_isometry(Phi, k)
    expected = by_brute_force(Phi, k)
    assert found.lower <= expected + 1e-10
    assert found.upper >= expected - 1e-10
    if found.proved:
        assert found.delta == pytest.approx(expected, abs=1e-8)


def test_bad_columns() -> None:
    with pytest.raises(ValueError, match="column of zeros, 1"):
        bs.restricted_isometry([[1.0, 0.0], [0.0, 0.0]], 1)


def test_two_hundred_by_six_hundred() -> None:
    """Flat matrices: sets are grown at once, not after proofs of coarser gaps."""
    Phi = np.random.default_rng(1).standard_normal((200, 600))
    found = bs.restricted_isometry(Phi, 5, limits=bs.Limits())
    assert found.proved
    assert found.largest.nodes + found.smallest.nodes < 200_000


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_units_of_columns_do_not_matter(size: float) -> None:
    """Also where squares of entries overflow, or have few digits, or none."""
    Phi = np.random.default_rng(0).normal(size=(6, 5))
    expected = by_brute_force(Phi, 2)
    Phi[:, ::2] *= size
    found = bs.restricted_isometry(Phi, 2)
    assert found.proved
    assert found.lower == pytest.approx(expected, abs=1e-8)
    assert found.upper >= expected - 1e-12


def test_products_that_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="divide Phi by a constant"):
        bs.restricted_isometry(1e200 * np.eye(3), 1, normalise=False)
