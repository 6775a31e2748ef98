"""One contract for all forms of data: entries of A, their error, their identity."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from blockspca.call import one_call
from blockspca.covariance import Covariance, DataChangedError
from blockspca.covariance import tables as tables_module
from exact import exact_covariance, hard_columns, worst_error


def memmap(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


FORMS = {
    "dense": lambda X, folder: X,
    "fortran": lambda X, folder: np.asfortranarray(X),
    "list": lambda X, folder: X.tolist(),
    "float32": lambda X, folder: X.astype(np.float32),
    "csr": lambda X, folder: sp.csr_array(X),
    "csc": lambda X, folder: sp.csc_matrix(X),
    "csr32": lambda X, folder: sp.csr_array(X.astype(np.float32)),
    "memmap": memmap,
    "pandas": lambda X, folder: pd.DataFrame(X).add_prefix("x"),
    "polars": lambda X, folder: pl.DataFrame(X),
}


@pytest.fixture(params=list(FORMS))
def form(request, tmp_path, monkeypatch):
    """Return a function X → the same numbers in another form, in several blocks."""
    monkeypatch.setattr(tables_module, "ENTRIES", 12)
    monkeypatch.setattr(tables_module, "STORED", 5)
    convert = FORMS[request.param]
    return SimpleNamespace(
        name=request.param, make=lambda X: convert(np.array(X), tmp_path)
    )


def quietly(make, *args, **options):
    """Call without the warning of sparse data with large means."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **options)


def small(seed=0, n=9, d=5):
    """Data of float32 numbers, so that all forms hold the same ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    return (X + 1.5 * (np.arange(d) == 2)).astype(np.float32).astype(float)


@pytest.mark.parametrize("shape", [(9, 5), (4, 7)])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_all_forms_have_the_entries_of_the_exact_covariance(form, shape, center, scale):
    X = small(1, *shape)
    options = {"center": center, "scale": scale, "constant": "ignore"}
    cov = Covariance.from_data(form.make(X), **options)
    exact = exact_covariance(X, center=center, scale=scale)
    A = np.array([[float(v) for v in row] for row in exact])
    d, error = len(A), cov.entry_error
    assert error <= 1e-11 * A.max()
    assert worst_error(cov.submatrix(slice(None)), exact) <= error
    assert np.abs(cov.diagonal() - A.diagonal()).max() <= error
    assert np.abs(cov.block([3, 0], [1, 3]) - A[[3, 0]][:, [1, 3]]).max() <= error
    assert np.abs(cov.block([3, 0], slice(None)) - A[[3, 0]]).max() <= error
    assert np.abs(cov.block(slice(1, 3), slice(2, 4)) - A[1:3, 2:4]).max() <= error
    for x in (np.arange(d) - 1.5, np.eye(d)[:, :2]):
        np.testing.assert_allclose(cov.matvec(x), A @ x, atol=1e-12)
    C = cov.factor.columns(np.arange(d))
    assert C.shape == (cov.factor.n, d)
    np.testing.assert_allclose(C.T @ C, A, atol=1e-12)
    weights = np.arange(d, dtype=float)
    np.testing.assert_allclose(cov.factor.gram(weights), C * weights @ C.T, atol=1e-12)
    np.testing.assert_allclose(cov.factor.image(weights), C @ weights, atol=1e-12)
    assert cov.known_psd
    assert cov.n_samples == shape[0]
    assert cov.trace == pytest.approx(A.trace())
    with one_call(n_jobs=2) as run:
        formed = cov.formed(run)
        assert (formed is cov) == (shape[0] <= shape[1])
        assert formed.formed(run) is formed
        assert worst_error(formed.submatrix(slice(None)), exact) <= formed.entry_error
    part = cov.subset([3, 1])
    assert np.abs(part.submatrix([0, 1]) - A[[3, 1]][:, [3, 1]]).max() <= error


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@pytest.mark.parametrize("name", ["dense", "csr", "float32"])
def test_errors_of_hard_columns_are_within_the_bound(name, seed, scale, center):
    rng = np.random.default_rng(seed)
    X = hard_columns(rng, n=int(rng.integers(3, 14)))
    X = X[:, rng.permutation(X.shape[1])[: rng.integers(2, 7)]]
    if not np.ptp(X, axis=0).any():
        return
    data = FORMS[name](X, None)
    if name == "float32":
        X = X.astype(np.float32).astype(float)
        if not np.ptp(X, axis=0).any():
            return
    weights = rng.integers(0, 4, size=len(X)) if seed % 2 else None
    options = {"scale": scale, "center": center}
    if weights is not None:
        weights[:2] += 1
        if not np.ptp(X[weights > 0], axis=0).any():
            return
    options["sample_weight" if name else ""] = weights
    cov = quietly(Covariance.from_data, data, constant="ignore", **options)
    exact = exact_covariance(X, center=center, scale=scale, weights=weights)
    assert worst_error(cov.submatrix(slice(None)), exact) <= cov.entry_error
    diagonal = [[exact[j][j]] for j in range(X.shape[1])]
    assert all(
        abs(float(value[0]) - entry) <= cov.entry_error * (1 + 1e-9)
        for entry, value in zip(cov.diagonal(), diagonal, strict=True)
    )
    with one_call(n_jobs=1) as run:
        formed = cov.formed(run)
    assert worst_error(formed.submatrix(slice(None)), exact) <= formed.entry_error


def test_large_means_cost_no_digits_of_dense_data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 3)) * 2**20) / 2**20
    A = Covariance.from_data(X)
    shifted = Covariance.from_data(X + 2.0**30)  # the same deviations, exactly
    assert shifted.entry_error <= 2 * A.entry_error
    difference = np.abs(A.submatrix(slice(None)) - shifted.submatrix(slice(None)))
    assert difference.max() <= 2 * A.entry_error


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("ddof", [0, 1])
def test_weight_two_is_the_sample_twice(form, scale, ddof):
    X, w = small(2), np.array([2, 1, 0, 1, 3, 1, 1, 2, 1])
    options = {"scale": scale, "ddof": ddof, "constant": "ignore"}
    weighted = Covariance.from_data(form.make(X), sample_weight=w, **options)
    repeated = Covariance.from_data(np.repeat(X, w, axis=0), **options)
    everything = slice(None)
    A, B = weighted.submatrix(everything), repeated.submatrix(everything)
    assert np.abs(A - B).max() <= weighted.entry_error + repeated.entry_error
    np.testing.assert_allclose(weighted.diagonal(), repeated.diagonal(), rtol=1e-13)
    x = np.arange(5) - 1.0
    np.testing.assert_allclose(weighted.matvec(x), B @ x, atol=1e-12)
    C = weighted.factor.columns(np.arange(5))
    np.testing.assert_allclose(C.T @ C, B, atol=1e-12)
    with one_call(n_jobs=1) as run:
        formed = weighted.formed(run)
    assert np.abs(formed.submatrix(everything) - B).max() <= 2 * formed.entry_error


@pytest.mark.parametrize(
    "weights", [[0.5] * 9, [-1] + [1] * 8, [0] * 9, [1] * 8, ["a"] * 9, [np.nan] * 9]
)
def test_weights_that_are_no_frequencies_are_refused(weights):
    with pytest.raises(ValueError, match=r"sample_weight.*; use"):
        Covariance.from_data(small(), sample_weight=weights)


def test_identity_is_the_same_in_all_forms_and_names_the_data(form):
    X = small(3)
    cov = Covariance.from_data(form.make(X), scale=True)
    dense = Covariance.from_data(X)
    assert (cov.identity.marks == dense.identity.marks).all()
    assert cov.identity.sha256(form.make(X)) == dense.identity.sha256(X)
    cov.check_unchanged()
    X[2, 1] += 1
    with pytest.raises(DataChangedError, match=r"1 feature.*being 1"):
        cov.identity.sha256(form.make(X))
    with pytest.raises(DataChangedError, match="shape"):
        cov.identity.sha256(X[1:])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, np.float32])
def test_a_change_of_data_in_place_is_refused(kind):
    X = kind(small(4, 30, 4))
    cov = Covariance.from_data(X)
    cov.check_unchanged()
    values = X.data if sp.issparse(X) else X[3]
    values[1] += 1
    with pytest.raises(DataChangedError, match="X has changed"):
        cov.check_unchanged()
    with one_call() as run, pytest.raises(DataChangedError):
        cov.formed(run)


def test_data_that_change_while_they_are_read_are_refused(monkeypatch):
    X = small(5, 30, 4)
    take = tables_module.ArrayTable.block
    calls = []

    def block(table, rows, columns):
        calls.append(rows)
        if len(calls) == 2:
            X[0, 0] += 1
        return take(table, rows, columns)

    monkeypatch.setattr(tables_module.ArrayTable, "block", block)
    with pytest.raises(DataChangedError, match="while it was read"):
        Covariance.from_data(X)


def test_no_copy_of_tall_or_converted_data_is_kept():
    tall, wide = small(6, 30, 4), small(6, 3, 20)
    for X in (tall, np.float32(wide), sp.csr_array(tall)):
        table = Covariance.from_data(X)._source.table
        assert table.X is X


@pytest.mark.parametrize("scale", [1e-290, 1e-170, 1e150, 1e300])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_correlations_of_numbers_of_any_size(kind, scale):
    X = small(7)
    units = np.where(np.arange(5) % 2, scale, 1.0)
    A = Covariance.from_data(kind(X * units), scale=True)
    expected = np.corrcoef((X * units / units).T)
    np.testing.assert_allclose(A.submatrix(slice(None)), expected, atol=1e-13)
    np.testing.assert_allclose(A.mean / units, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(A.scale / units, X.std(axis=0, ddof=1), rtol=1e-12)
