"""Tables in HDF5 and Zarr files, dense and sparse: read in blocks, same covariance."""

from __future__ import annotations

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import blockspca as bs
import blockspca.covariance.input_kinds as kinds_module
import blockspca.covariance.sources as sources_module
import blockspca.covariance.stored as stored_module
from blockspca import Covariance
from blockspca.covariance.stored import StoredRows, StoredSparse, as_stored
from exact_covariance import exact_covariance, worst_error

KINDS = ("csr", "csc", "dense")


def counts(n: int = 60, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.log1p(rng.poisson(0.3 + 0.4 * rng.gamma(1, 1, d), (n, d)).astype(float))
    X[:, :3] += (rng.integers(0, 2, (n, 1)) * rng.poisson(2, (n, 3))).astype(float)
    X[:, 5] += 1.0  # a column without zeros
    return X


def written(X: np.ndarray, kind: str, place, library: str):
    """X of a backed AnnData, or the group or array of a Zarr store."""
    make = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": np.asarray}[kind]
    adata = anndata.AnnData(make(X))
    if library == "h5ad":
        adata.write_h5ad(place / "x.h5ad")
        return anndata.read_h5ad(place / "x.h5ad", backed="r").X
    adata.write_zarr(place / "x.zarr")
    return zarr.open(str(place / "x.zarr"), mode="r")["X"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Nothing is read into memory as a whole, and there are several blocks."""
    monkeypatch.setattr(kinds_module, "MAP_FROM", 0)
    monkeypatch.setattr(sources_module, "PART_BYTES", 8 * 12 * 7)
    monkeypatch.setattr(stored_module, "ENTRIES_AT_ONCE", 50)
    monkeypatch.setattr(stored_module, "ENTRIES_BY_COLUMN", 120)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("library", ["h5ad", "zarr"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [False, True])
def test_entries_of_files(small_blocks, tmp_path, library, kind, scale) -> None:
    X = counts()
    cov = Covariance.from_data(written(X, kind, tmp_path, library), scale=scale)
    exact = exact_covariance(X, scale=scale)
    everything = slice(None)
    formed = cov.formed()
    assert not cov.in_memory
    assert formed.in_memory
    for A, error in (
        (cov.submatrix(everything), cov.entry_error),
        (cov.rows(np.array([3, 1])), cov.entry_error),
        (formed.submatrix(everything), formed.entry_error),
    ):
        chosen = exact if len(A) == 12 else [exact[3], exact[1]]
        assert worst_error(A, chosen) <= error < 1e-12
    np.testing.assert_allclose(
        cov.columns(np.array([4, 2]), 3, 40).T @ cov.columns(np.array([4, 2]), 3, 40),
        Covariance.from_data(X, scale=scale).columns(np.array([4, 2]), 3, 40).T
        @ Covariance.from_data(X, scale=scale).columns(np.array([4, 2]), 3, 40),
        atol=1e-12,
    )
    x = np.random.default_rng(1).normal(size=(12, 2))
    np.testing.assert_allclose(
        cov.matvec(x), formed.submatrix(everything) @ x, atol=1e-12
    )
    result = bs.solve(cov, 3, limits=bs.Limits(memory=10**6))
    assert result.status is bs.Status.OPTIMAL
    assert bs.verify(result, cov).complete
    assert result.support.tolist() == bs.solve(formed, 3).support.tolist()
    assert "disk" in repr(cov)


def test_small_files_are_read_into_memory(tmp_path) -> None:
    X = counts()
    cov = Covariance.from_data(written(X, "csr", tmp_path, "h5ad"))
    assert cov.sparse_data() is not None


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_file_that_changes_is_noticed(small_blocks, tmp_path, kind) -> None:
    make = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    anndata.AnnData(make(counts())).write_h5ad(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as file:
        cov = Covariance.from_data(file["X"])
        cov.check_unchanged()
        file["X/data"][7] += 1.0
        with pytest.raises(bs.DataChangedError, match="1 feature"):
            bs.solve(cov, 3)


def test_blocks_of_rows_are_what_the_file_holds(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(stored_module, "ENTRIES_AT_ONCE", 9)
    monkeypatch.setattr(stored_module, "ENTRIES_BY_COLUMN", 15)
    X = counts(20, 6)
    X[4:9] = 0.0  # rows without entries
    for kind in ("csr", "csc"):
        (tmp_path / kind).mkdir()
        table = as_stored(written(X, kind, tmp_path / kind, "h5ad"))
        assert isinstance(table, StoredSparse)
        bounds = table.bounds()
        assert bounds[0].start == 0
        assert bounds[-1].stop == 20
        assert len(bounds) > 2
        blocks = [block.toarray() for _, block in table.parts()]
        np.testing.assert_array_equal(np.concatenate(blocks), X)
        np.testing.assert_array_equal(table.columns_of(np.array([3, 0])), X[:, [3, 0]])


def test_dense_rows_come_in_any_order_of_columns(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sources_module, "PART_BYTES", 100)
    X = counts(20, 6)
    table = as_stored(written(X, "dense", tmp_path, "h5ad"))
    assert isinstance(table, StoredRows)
    np.testing.assert_array_equal(table[2:15, np.array([4, 0])], X[2:15, [4, 0]])
    np.testing.assert_array_equal(table[3], X[3])
    np.testing.assert_array_equal(table.columns_of(np.array([5, 1])), X[:, [5, 1]])


def test_values_that_are_not_finite_are_refused(small_blocks, tmp_path) -> None:
    X = counts()
    X[2, 0] = np.nan
    with pytest.raises(ValueError, match=r"1 NaN or infinite value\(s\)"):
        Covariance.from_data(written(X, "csr", tmp_path, "h5ad"))


def test_dense_files_with_gaps(small_blocks, tmp_path) -> None:
    X = counts()
    X[2, 0] = np.nan
    stored = written(X, "dense", tmp_path, "h5ad")
    with pytest.raises(ValueError, match="missing='pairwise'"):
        Covariance.from_data(stored)
    cov = Covariance.from_data(stored, missing="pairwise")
    here = Covariance.from_data(X, missing="pairwise")
    np.testing.assert_array_equal(cov.submatrix([0, 3]), here.submatrix([0, 3]))


def test_progress_tells_of_the_blocks(small_blocks, tmp_path) -> None:
    seen: list[bs.Event] = []
    cov = Covariance.from_data(written(counts(), "csr", tmp_path, "h5ad"))
    bs.solve(cov, 3, progress=seen.append)
    read = [event for event in seen if event.stage == "scan" and event.k == 0]
    assert len(read) > 3
    assert (read[-1].done, read[-1].total) == (read[-1].total, read[-1].total)
