"""A formed once from many samples: exact entries, when it is done, what it saves."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import blockspca.covariance.formed as formed_module
import blockspca.covariance.input_kinds as kinds_module
import blockspca.covariance.sources as sources_module
from blockspca import Covariance
from blockspca._kernels import sparse_gram
from blockspca.covariance.formed import arrays_of
from blockspca.covariance.rounding import (
    BLOCK,
    EPS,
    additions_by_levels,
    column_sums,
)
from blockspca.limits import Deadline
from exact_covariance import exact_covariance, hard_columns, worst_error


def counts(n: int, d: int, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 1.0, d) * (1 + 3 * (rng.integers(0, 3, (n, 1)) == 0))
    return sp.csr_array(np.log1p(rng.poisson(0.3 * rates)))


def as_kind(X: np.ndarray, kind: str, tmp_path, **options) -> Covariance:
    if kind == "sparse":
        X = sp.csr_array(X)
    if kind == "mapped":
        file = tmp_path / "X.npy"
        np.save(file, X)
        X = np.load(file, mmap_mode="r")
    with warnings.catch_warnings():  # sparse data with large means
        warnings.simplefilter("ignore")
        return Covariance.from_data(X, **options)


@pytest.mark.parametrize("kind", ["dense", "sparse", "mapped"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_entries_are_exact_to_within_entry_error(
    kind, scale, seed, tmp_path, monkeypatch
) -> None:
    """In blocks of a few samples, so that there are several."""
    monkeypatch.setattr(kinds_module, "MAP_FROM", 0)
    monkeypatch.setattr(sources_module, "PART_BYTES", 200)
    monkeypatch.setattr(formed_module, "block_size", lambda n: 3)
    monkeypatch.setattr(formed_module, "_FEATURES_AT_ONCE", 2)
    rng = np.random.default_rng(seed)
    columns = hard_columns(rng, n=13)
    chosen = rng.choice(sorted(columns), 4, replace=False)
    X = np.stack([*(columns[name] for name in chosen), rng.normal(size=13)], axis=1)
    X[rng.random(X.shape) < 0.3] = 0.0
    cov = as_kind(X, kind, tmp_path, scale=scale)
    formed = cov.formed()
    assert formed.in_memory
    assert formed.known_psd
    A = formed.submatrix(slice(None))
    assert (A == A.T).all()
    assert worst_error(A, exact_covariance(X, scale=scale)) <= formed.entry_error
    assert formed.entry_error <= cov.entry_error


def test_the_kernel_equals_its_python_source() -> None:
    X = counts(40, 7).tocsc()
    by_sample = X.tocsr()
    given = (*arrays_of(by_sample), *arrays_of(X))
    dense = X.toarray()
    for function in (sparse_gram.add_rows, sparse_gram.add_rows.py_func):
        for block in (1, 3, 100):
            out = np.zeros((7, 7))
            function(2, 6, block, *given, np.ones(7), np.ones(7), out)
            expected = np.triu(dense.T @ dense)
            expected[:2] = expected[6:] = 0.0
            np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_rounding_of_sparse_data_does_not_grow_with_the_samples() -> None:
    """Where the sum of many thirds, one after the other, loses digits."""
    errors = []
    for n in (2_000, 200_000):
        X = sp.csr_array(np.column_stack([np.arange(n) % 3 / 3, np.arange(n) % 2]))
        cov = Covariance.from_data(X)
        errors.append(cov.formed().entry_error)
        residues = np.arange(6)
        one, other = residues % 3 / 3, residues % 2.0
        # n is no multiple of 6, so the samples of each residue are counted.
        times = [len(range(r, n, 6)) for r in range(6)]
        means = [sum(map(Fraction, v * times)) / n for v in (one, other)]
        exact = sum(
            t * (Fraction(a) - means[0]) * (Fraction(b) - means[1])
            for t, a, b in zip(times, one, other, strict=True)
        ) / (n - 1)
        found = Fraction(float(cov.formed().submatrix([0, 1])[0, 1]))
        assert abs(found - exact) <= errors[-1]
    assert errors[1] < 2 * errors[0] < 1e-12


def test_sums_by_levels() -> None:
    rng = np.random.default_rng(0)
    lengths = [0, 1, BLOCK, BLOCK + 1, 5000, 0, BLOCK**2 + 1]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.normal(size=starts[-1]) * 10.0 ** rng.integers(-8, 8, starts[-1])
    sums = column_sums(values, starts)
    for j, (low, high) in enumerate(itertools.pairwise(starts)):
        exact = math.fsum(values[low:high])
        size = math.fsum(np.abs(values[low:high]))
        assert abs(sums[j] - exact) <= additions_by_levels(lengths[j]) * EPS / 2 * size
    assert column_sums(np.zeros(0), np.zeros(4, dtype=int)).tolist() == [0.0] * 3


def test_when_it_is_formed(tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    tall, wide = rng.normal(size=(50, 20)), rng.normal(size=(20, 50))
    assert not Covariance.from_data(wide).formed().in_memory
    cov = Covariance.from_data(tall)
    assert cov.formed(memory=2 * 8 * 20 * 20 - 1) is cov
    assert cov.formed(Deadline(0.0)) is cov
    formed = cov.formed(Deadline(5.0), memory=2 * 8 * 20 * 20)
    assert formed.in_memory
    assert cov.formed() is formed  # kept
    assert pickle.loads(pickle.dumps(cov))._formed is None
    assert formed.formed() is formed
    assert formed.feature_names is cov.feature_names
    assert "more samples than features" in repr(formed)
    tall[0, 0] = np.nan
    with_gaps = Covariance.from_data(tall, missing="pairwise").formed()
    assert with_gaps.in_memory
    assert not with_gaps.known_psd
    wide[0, 0] = np.nan
    assert not Covariance.from_data(wide, missing="pairwise").formed().in_memory


@pytest.mark.parametrize("scheme", [None, bs.ResidualDeflation(), bs.Orthogonalised()])
def test_components_of_many_sparse_samples_are_proved_and_verified(scheme) -> None:
    """The rounding of 20,000 samples, added up one by one, hid the proof."""
    cov = Covariance.from_data(counts(20_000, 30))
    found = bs.solve_components(cov, 5, 2, scheme=scheme)
    assert {status.value for status in found.statuses} == {"optimal"}
    assert all(check.complete for check in found.verify(cov))
    again = bs.solve_components(cov.submatrix(slice(None)), 5, 2, scheme=scheme)
    np.testing.assert_allclose(
        found.explained_variance, again.explained_variance, rtol=1e-9
    )


def test_a_large_k_of_many_samples_is_proved_by_the_factor_of_the_matrix() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 80)) * np.exp(0.4 * rng.normal(size=80))
    X[:, :40] += rng.normal(size=(3000, 1))
    result = bs.solve(Covariance.from_data(X), 35)
    assert result.status is bs.Status.OPTIMAL
    assert bs.verify(result, Covariance.from_data(X)).complete


def test_columns_that_are_centred_again_are_accounted_for() -> None:
    """Their sums of squares are longer, as they are prepared apart from the others."""
    n, d = 400_000, 64
    X = np.zeros((n, d))
    X[:, 0] = X[:, 1] = np.where(np.arange(n) % 2, -0.9, 0.9) * 2.0**-450
    cov = Covariance.from_data(X, scale=True, constant="ignore").formed()
    # A is exactly 1 between the two
    assert abs(float(cov.submatrix([0, 1])[0, 1]) - 1) <= cov.entry_error
    assert bs.solve(cov, 1).upper_bound >= 1
