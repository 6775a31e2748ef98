"""Data with gaps: what rounding does to each entry, and that proofs close."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import blockspca as bs
import blockspca.covariance.pairwise as pairwise_module
from blockspca import Covariance
from exact_covariance import exact_covariance, hard_columns, worst_error


def with_gaps(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    gaps = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gaps, np.nan, X)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.8])
def test_a_table_of_mixed_units_is_proved_and_verified(scale, share) -> None:
    X = with_gaps(load_breast_cancer().data, share)
    cov = Covariance.from_data(X, missing="pairwise", scale=scale)
    assert cov.entry_error <= 2e-12 * cov.diagonal().max()
    result = bs.solve(cov, 10)
    assert result.status is bs.Status.OPTIMAL
    assert bs.verify(result, cov).complete


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("center", [False, True])
def test_the_sharp_error_holds_against_exact_arithmetic(seed, center) -> None:
    """Few common samples, outliers outside of them, large means."""
    rng = np.random.default_rng(seed)
    n = 16
    columns = hard_columns(rng, n)
    chosen = rng.choice(sorted(columns), 4, replace=False)
    X = np.stack([columns[name] for name in chosen], axis=1)
    X *= 10.0 ** rng.integers(-3, 4, 4)
    X[rng.random(X.shape) < 0.35] = np.nan
    X[:3] = np.where(np.isnan(X[:3]), 1.0, X[:3])  # every pair shares three
    scale = bool(rng.integers(2))
    options = {"center": center, "scale": scale}
    cov = Covariance.from_data(X, missing="pairwise", constant="ignore", **options)
    source = cov._source
    assert isinstance(source, pairwise_module.PairwiseSource)
    exact = exact_covariance(X, **options)
    worst = max(
        worst_error(cov.submatrix(slice(None)), exact),
        worst_error(cov.formed().submatrix(slice(None)), exact),
    )
    assert worst <= source.sharp_error()
    assert worst <= source.rough_error()
    assert worst <= cov.entry_error


def test_the_sharp_error_is_the_same_in_any_stretch_of_rows(monkeypatch) -> None:
    X = with_gaps(np.random.default_rng(1).normal(size=(40, 7)), 0.4)
    source = Covariance.from_data(X, missing="pairwise", scale=True)._source
    assert isinstance(source, pairwise_module.PairwiseSource)
    whole = source.sharp_error()
    monkeypatch.setattr(pairwise_module, "ENTRIES_AT_ONCE", 4 * 7 * 2)
    np.testing.assert_allclose(source.sharp_error(), whole, rtol=1e-12)


def test_the_second_shift_counts_where_it_is_large() -> None:
    """The rounding of x − a is of the size of b where a is a poor mean."""
    X = np.array([[1e16, 0.0], [-1e16, 1.0], [3.0, 2.0], [1.0, 5.0], [2.0, np.nan]])
    X[:2, 1] = np.nan
    cov = Covariance.from_data(X, missing="pairwise")
    exact = exact_covariance(X)
    assert worst_error(cov.submatrix(slice(None)), exact) <= cov.entry_error


def test_complete_enough_data_are_spared_the_closer_look(monkeypatch) -> None:
    def refuse(self: object) -> float:
        raise AssertionError("a pass over all pairs that nothing needs")

    monkeypatch.setattr(pairwise_module.PairwiseSource, "sharp_error", refuse)
    X = with_gaps(np.random.default_rng(1).normal(size=(60, 20)), 0.05)
    assert Covariance.from_data(X, missing="pairwise").entry_error < 1e-12
