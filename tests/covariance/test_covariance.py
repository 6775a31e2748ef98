"""Every way into a covariance gives the same numbers as the dense computation."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca import Covariance
from blockspca.covariance.covariance import as_covariance


def assert_same_matrix(cov: Covariance, A: np.ndarray, atol: float = 1e-13) -> None:
    """Check the five doors of a covariance against the dense matrix."""
    d = len(A)
    some = np.array([d - 1, 0, d // 2])
    close = {"rtol": 1e-12, "atol": atol * max(1, np.abs(A).max())}
    assert cov.n_features == d
    np.testing.assert_allclose(cov.diagonal(), np.diag(A), **close)
    np.testing.assert_allclose(cov.rows(some), A[some], **close)
    np.testing.assert_allclose(cov.submatrix(some), A[np.ix_(some, some)], **close)
    np.testing.assert_allclose(
        cov.submatrix(some, [0, 1]), A[np.ix_(some, [0, 1])], **close
    )
    x = np.linspace(-1, 1, d)
    np.testing.assert_allclose(cov.matvec(x), A @ x, **close)
    block = np.stack([x, x**2], axis=1)
    np.testing.assert_allclose(cov.matvec(block), A @ block, **close)
    seen = np.full((d, d), np.nan)
    for i0, i1, j0, j1, tile in cov.tiles(tile_size=4):
        assert i0 <= j0
        seen[i0:i1, j0:j1] = tile
        seen[j0:j1, i0:i1] = tile.T
    np.testing.assert_allclose(seen, A, **close)
    assert cov.max_abs() == pytest.approx(np.abs(A).max(), rel=1e-12)


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 9)) * rng.exponential(size=9) + 3
    X[rng.random(X.shape) < 0.5] = 0
    return X


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.coo_array])
def test_data(X, center, scale, ddof, container):
    centred = X - X.mean(axis=0) if center else X
    expected = centred.T @ centred / (len(X) - ddof)
    if scale:
        deviation = np.sqrt(np.diag(expected))
        expected = expected / np.outer(deviation, deviation)
    cov = Covariance.from_data(container(X), center=center, scale=scale, ddof=ddof)
    assert_same_matrix(cov, expected)
    assert cov.known_psd
    weights = np.linspace(0, 1, 9)
    if scale:
        centred = centred / np.sqrt((centred**2).sum(axis=0) / (len(X) - ddof))
    np.testing.assert_allclose(
        cov.gram(weights),
        (centred * weights) @ centred.T / (len(X) - ddof),
        atol=1e-12,
    )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, pd.DataFrame])
def test_matrix(X, container):
    A = np.cov(X.T)
    cov = Covariance.from_matrix(container(A))
    assert_same_matrix(cov, A)
    assert not cov.known_psd
    assert cov.n_samples is None


def test_numpy_cov_is_reproduced(X):
    cov = Covariance.from_data(X)
    np.testing.assert_allclose(cov.rows(slice(None)), np.cov(X.T), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, bool])
def test_integers_are_cast_before_arithmetic(dtype):
    X = np.random.default_rng(0).integers(0, 250, size=(7, 4)).astype(dtype)
    expected = np.cov(X.astype(float).T)
    assert_same_matrix(Covariance.from_data(X), expected)
    assert_same_matrix(Covariance.from_data(sp.csr_array(X)), expected)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("ddof", [0, 1])
def test_pairwise_equals_pandas(scale, ddof):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 6)) + 100
    X[rng.random(X.shape) < 0.2] = np.nan
    cov = Covariance.from_data(X, missing="pairwise", scale=scale, ddof=ddof)
    expected = pd.DataFrame(X).cov().to_numpy()  # pandas has ddof = 1 with gaps
    shared = (~np.isnan(X)).astype(float).T @ ~np.isnan(X)
    expected = expected * (shared - 1) / (shared - ddof)
    if scale:
        deviation = np.sqrt(np.diag(expected))
        expected = expected / np.outer(deviation, deviation)
    assert_same_matrix(cov, expected, atol=1e-11)
    assert not cov.known_psd


def test_pairwise_without_gaps_is_the_ordinary_covariance(X):
    assert Covariance.from_data(X, missing="pairwise").known_psd


def test_uncentred_pairwise():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 5.0], [2.0, np.nan]])
    cov = Covariance.from_data(X, missing="pairwise", center=False, ddof=0)
    assert cov.submatrix([0, 1])[0, 1] == pytest.approx((1 * 2 + 3 * 5) / 2)


def test_names_are_kept_from_pandas_and_polars(X):
    names = [f"gene {i}" for i in range(9)]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        cov = Covariance.from_data(frame)
        assert cov.feature_names == tuple(names)
        assert cov.names_of([2, 0]) == ["gene 2", "gene 0"]
        np.testing.assert_allclose(cov.rows(slice(None)), np.cov(X.T), rtol=1e-12)


def test_nulls_of_a_frame_count_as_missing():
    frame = pl.DataFrame({"a": [1.0, None, 3.0, 5.0], "b": [1, 2, 4, 9]})
    with pytest.raises(ValueError, match=r"'a'.*missing='pairwise'"):
        Covariance.from_data(frame)
    cov = Covariance.from_data(frame, missing="pairwise")
    assert cov.diagonal()[0] == pytest.approx(4.0)
    nullable = pd.DataFrame({"a": pd.array([1, None, 3, 5], dtype="Int64")})
    cov = Covariance.from_data(nullable, missing="pairwise")
    assert cov.diagonal()[0] == pytest.approx(4.0)


def test_masked_entries_are_missing():
    X = np.ma.masked_greater(np.array([[1.0, 2], [2, 9], [4, 1], [7, 1e6]]), 1e5)
    cov = Covariance.from_data(X, missing="pairwise")
    assert cov.diagonal()[1] == pytest.approx(np.var([2, 9, 1], ddof=1))


def test_sparse_entries_stored_twice_are_added():
    X = sp.csr_matrix(([1.0, 2, 3, 4], [0, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    assert_same_matrix(Covariance.from_data(X), np.cov(X.toarray().T))


def test_sparse_data_with_large_means_is_warned_about():
    X = np.random.default_rng(0).normal(size=(100_000, 3)) + 1e8
    np.fill_diagonal(X, 0)  # one zero in each column, so that none is full
    with pytest.warns(UserWarning, match="Pass X as a dense array"):
        cov = Covariance.from_data(sp.csr_array(X))
    result = bs.solve(cov, 2, threshold=0.0)
    exact = bs.solve(Covariance.from_data(X), 2)
    assert exact.status is bs.Status.OPTIMAL
    assert result.upper_bound >= exact.objective


def test_decimal_columns():
    from decimal import Decimal

    values = [Decimal("1.5"), Decimal("2.5"), Decimal("4.5")]
    frame = pl.DataFrame({"a": values, "b": [1.0, 2.0, 2.0]})
    assert Covariance.from_data(frame).diagonal()[0] == pytest.approx(7 / 3)


def test_constant_column_has_exactly_zero_covariance():
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    for data in (X, sp.csr_array(X)):
        cov = Covariance.from_data(data)
        assert np.abs(cov.rows([0])).max() < 1e-16


def test_a_rounding_asymmetry_is_averaged():
    A = np.array([[1.0, 0.3], [0.3 + 1e-16, 1.0]])
    np.testing.assert_array_equal(
        Covariance.from_matrix(A).rows(slice(None)), (A + A.T) / 2
    )


@pytest.mark.parametrize("d", [7, 600])  # one tile, and several
@pytest.mark.parametrize("layout", ["rows", "columns", "every other"])
def test_any_layout_of_a_matrix_is_copied(d, layout):
    """By rows in our own memory; an error names the entries as they were passed in."""
    given = np.cov(np.random.default_rng(d).normal(size=(5, d)).T)
    given = (given + given.T) / 2
    if layout == "columns":
        given = np.asfortranarray(given)
    if layout == "every other":
        given = np.repeat(np.repeat(given, 2, axis=0), 2, axis=1)[::2, ::2]
    before = given.copy()
    cov = Covariance.from_matrix(given)
    given[3, 5] += 1.0
    rows = cov.rows(slice(None))
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, before)
    entries = re.escape(f"A[3, 5] = {given[3, 5]} but A[5, 3] = {given[5, 3]}")
    with pytest.raises(ValueError, match=entries):
        Covariance.from_matrix(given)


def test_diagonal_is_read_only(X):
    with pytest.raises(ValueError, match="read-only"):
        Covariance.from_data(X).diagonal()[0] = 1


def test_as_covariance_passes_a_covariance_through(X):
    cov = Covariance.from_data(X)
    assert as_covariance(cov) is cov
    assert "dense data" in repr(cov)


def test_sparse_data_is_not_densified_as_a_whole():
    n, d = 50, 200_000  # dense, this would be 80 MB and its covariance 320 GB
    X = sp.random_array((n, d), density=1e-4, random_state=np.random.default_rng(0))
    cov = Covariance.from_data(X)
    assert cov.rows([5]).shape == (1, d)
    assert cov.submatrix([1, 2, d - 1]).shape == (3, 3)
    assert cov.matvec(np.ones(d)).shape == (d,)


@pytest.mark.data
@pytest.mark.parametrize("name", ["BASEHOCK"])
def test_real_sparse_data(data_dir, name):
    X = sp.load_npz(data_dir / f"{name}.npz")
    dense = np.cov(X.toarray().astype(float).T)
    some = np.random.default_rng(0).choice(X.shape[1], 300, replace=False)
    cov = Covariance.from_data(X)
    np.testing.assert_allclose(
        cov.submatrix(some), dense[np.ix_(some, some)], atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_memory_mapped_data_stays_on_disk(tmp_path, monkeypatch, dtype, scale, center):
    import blockspca.covariance.sources as sources

    monkeypatch.setattr(sources, "PART_BYTES", 8 * 9 * 5)
    monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
    X = (10 * np.random.default_rng(0).normal(size=(23, 9))).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    cov = Covariance.from_data(mapped, scale=scale, center=center)
    assert repr(cov) == "Covariance(n_features=9, from data on disk)"
    dense = Covariance.from_data(X, scale=scale, center=center)
    assert_same_matrix(cov, dense.rows(slice(None)))
    weights = np.linspace(0, 1, 9)
    np.testing.assert_allclose(cov.gram(weights), dense.gram(weights), atol=1e-12)
    assert cov.entry_error < 1e-11


def test_memory_mapped_data_with_gaps_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
    X = np.random.default_rng(0).normal(size=(23, 9))
    X[3, 4] = np.nan
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="missing"):
        Covariance.from_data(mapped)
    cov = Covariance.from_data(mapped, missing="pairwise")
    assert_same_matrix(cov, pd.DataFrame(X).cov().to_numpy())


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_chunks_of_rows(X, container, scale, center):
    X = X + 1e6 * (container is np.asarray)  # a mean that would cost digits
    chunks = (container(X[i : i + 5]) for i in range(0, len(X), 5))
    cov = Covariance.from_chunks(chunks, scale=scale, center=center)
    dense = Covariance.from_data(X, scale=scale, center=center)
    expected = dense.rows(slice(None))
    error = cov.entry_error + dense.entry_error
    np.testing.assert_allclose(cov.rows(slice(None)), expected, rtol=0, atol=error)
    if not center or container is not np.asarray:
        assert_same_matrix(cov, expected)
    assert cov.known_psd
    assert cov.in_memory


@pytest.mark.parametrize("kind", ["dense", "sparse", "gaps", "disk", "chunks", "dask"])
def test_ignored_constants_have_zero_rows(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    expected = np.zeros((8, 8))
    others = [0, 1, 3, 4, 6, 7]
    expected[np.ix_(others, others)] = np.corrcoef(X.T)
    X = np.insert(X, [2, 4], [0.1, 123.456], axis=1)
    options = {"scale": True, "constant": "ignore"}
    if kind == "chunks":
        cov = Covariance.from_chunks((X[:9], X[9:]), **options)
    else:
        data = X
        if kind == "sparse":
            data = sp.csr_array(X)
        elif kind == "gaps":
            data = np.vstack([X, np.where(np.arange(8) == 2, np.nan, X[0])])
            options["missing"] = "pairwise"
        elif kind == "disk":
            monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
            np.save(tmp_path / "X.npy", X)
            data = np.load(tmp_path / "X.npy", mmap_mode="r")
        elif kind == "dask":
            data = pytest.importorskip("dask.array").from_array(X, chunks=(7, 3))
        cov = Covariance.from_data(data, **options)
    A = cov.submatrix(slice(None))
    assert not A[[2, 5]].any()
    assert not cov.diagonal()[[2, 5]].any()
    np.testing.assert_array_equal(cov.diagonal() > 0, np.isin(np.arange(8), others))
    if kind != "gaps":
        np.testing.assert_allclose(A, expected, atol=1e-12)
    assert 2 not in bs.solve(cov, 6).support


def test_chunks_keep_constant_columns_exact():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 2] = 0.1
    cov = Covariance.from_chunks(np.split(X, 3))
    assert (cov.rows([2]) == 0).all()
    with pytest.raises(ValueError, match="constant"):
        Covariance.from_chunks(np.split(X, 3), scale=True, constant="raise")


def test_chunks_that_do_not_fit():
    X = np.zeros((4, 3))
    with pytest.raises(MemoryError, match="raise it"):
        Covariance.from_chunks([X], memory_limit=100)
    with pytest.raises(ValueError, match="chunk 1 has 2 columns"):
        Covariance.from_chunks([X, X[:, :2]])
    with pytest.raises(ValueError, match="too few"):
        Covariance.from_chunks([])
    with pytest.raises(ValueError, match="missing or infinite"):
        Covariance.from_chunks([X + np.nan])


def test_whole_rows_of_sparse_data_are_those_of_parts_and_pickled_once():
    X = sp.random(40, 30, density=0.3, random_state=0, format="csr")
    cov = bs.Covariance.from_data(X, scale=True)
    every = np.arange(30)
    before = len(pickle.dumps(cov))
    whole = cov.rows(slice(3, 9))
    np.testing.assert_array_equal(whole, cov.submatrix(np.arange(3, 9), every))
    assert len(pickle.dumps(cov)) == before
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(cov)).rows(slice(3, 9)), whole
    )
