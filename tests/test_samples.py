"""`SparsePCA` and `tl.sparse_pca` of data that stay where they are."""

from __future__ import annotations

import anndata
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import blockspca.covariance.input_kinds as kinds_module
import blockspca.covariance.stored as stored_module
from device_stand_in import DeviceArray, DeviceSparse, use_stand_in


def samples() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (80, 9)).astype(float)
    X[:, :3] += rng.poisson(3, (80, 1))
    return X


def in_place(X: np.ndarray, kind: str, tmp_path, monkeypatch):
    monkeypatch.setattr(kinds_module, "MAP_FROM", 0)
    monkeypatch.setattr(stored_module, "ENTRIES_AT_ONCE", 100)
    if kind == "dask":
        return da.from_array(X, chunks=(30, 4))
    if kind == "dask of csr":
        return da.from_array(X, chunks=(30, 9)).map_blocks(sp.csr_matrix)
    if "gpu" in kind:
        use_stand_in(monkeypatch)
        make = DeviceSparse if "csr" in kind else DeviceArray
        if "dask" not in kind:
            return make(X)
        return da.from_array(X, chunks=(30, 9 if "csr" in kind else 4)).map_blocks(make)
    if kind == "npy":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    make = np.asarray if kind == "h5ad dense" else sp.csr_matrix
    anndata.AnnData(make(X)).write_h5ad(tmp_path / "x.h5ad")
    return anndata.read_h5ad(tmp_path / "x.h5ad", backed="r").X


KINDS = ("dask", "dask of csr", "npy", "h5ad dense", "h5ad sparse")
GPU_KINDS = ("gpu", "gpu csr", "dask of gpu", "dask of gpu csr")


@pytest.mark.parametrize("kind", KINDS + GPU_KINDS)
def test_fit_transform_and_score_are_those_of_the_array(
    kind, tmp_path, monkeypatch
) -> None:
    X = samples()
    here = bs.SparsePCA(2, k=3, scale=True).fit(X)
    stored = in_place(X, kind, tmp_path, monkeypatch)
    there = bs.SparsePCA(2, k=3, scale=True).fit(stored)
    assert there.status_ == ["optimal", "optimal"]
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-9)
    np.testing.assert_allclose(there.mean_, here.mean_, atol=1e-12)
    np.testing.assert_allclose(there.scale_, here.scale_, rtol=1e-12)
    np.testing.assert_allclose(there.transform(stored), here.transform(X), atol=1e-9)
    assert there.score(stored) == pytest.approx(here.score(X), rel=1e-9)
    assert bs.SparsePCA(1, k="auto").fit(stored).k_ is not None
    with pytest.raises(ValueError, match="expecting 9 features"):
        there.transform(stored[:, :4] if kind == "dask" else da.ones((5, 4)))


def test_a_backed_anndata(tmp_path, monkeypatch) -> None:
    X = samples()
    in_place(X, "h5ad sparse", tmp_path, monkeypatch)
    adata = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    bs.tl.sparse_pca(adata, n_comps=2, k=3)
    here = bs.SparsePCA(2, k=3).fit(X)
    np.testing.assert_allclose(adata.obsm["X_spca"], here.transform(X), atol=1e-9)
