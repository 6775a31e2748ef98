"""AnnData: what is written, backed and sparse data, masks, and scanpy's pictures."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs

# The file was written by an old AnnData, which says so at every turn.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def file() -> Path:
    """pbmc68k_reduced, 700 cells × 765 genes, as scanpy ships it."""
    found = importlib.util.find_spec("scanpy")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"


@pytest.fixture
def cells(file: Path) -> anndata.AnnData:
    return anndata.read_h5ad(file)


def test_what_is_written(cells: anndata.AnnData, tmp_path: Path) -> None:
    assert bs.tl.sparse_pca(cells, n_comps=3, k=8, mask_var=None) is None
    found = cells.uns["spca"]
    assert cells.obsm["X_spca"].shape == (700, 3)
    assert cells.varm["sPCs"].shape == (765, 3)
    assert list(found["status"]) == ["optimal"] * 3
    assert (np.count_nonzero(cells.varm["sPCs"], axis=0) == 8).all()
    X = cells.X - cells.X.mean(axis=0)
    scores = X @ cells.varm["sPCs"]
    np.testing.assert_allclose(cells.obsm["X_spca"], scores, atol=1e-4)
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), found["variance"], rtol=1e-5)
    np.testing.assert_allclose(found["objective"], found["upper_bound"], rtol=1e-8)
    assert (found["objective"] <= found["variance"] * (1 + 1e-9)).all()
    genes = found["genes"][0].split(", ")
    assert set(genes) == set(cells.var_names[cells.varm["sPCs"][:, 0] != 0])
    cells.write_h5ad(tmp_path / "out.h5ad")
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    certificate = bs.Certificate.from_json(str(again.uns["spca"]["certificates"][0]))
    assert bs.verify(certificate, bs.Covariance.from_data(cells.X)).complete


def test_scanpy_is_not_needed(file: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['scanpy'] = None\n"
        "import anndata, blockspca as bs\n"
        f"cells = anndata.read_h5ad({str(file)!r})\n"
        "bs.tl.sparse_pca(cells, n_comps=1, k=3)\n"
        "print(cells.obsm['X_spca'].shape)\n"
    )
    words = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(700, 1)"


def test_the_estimator_says_at_once_where_to_go(cells: anndata.AnnData) -> None:
    with pytest.raises(TypeError, match=r"call blockspca\.tl\.sparse_pca\(adata\)"):
        bs.SparsePCA(1, k=3).fit(cells)


def test_a_copy_leaves_the_original_alone(cells: anndata.AnnData) -> None:
    cells = cells[:, :200].copy()
    copied = bs.tl.sparse_pca(cells, n_comps=2, k=4, key_added="mine", copy=True)
    assert "mine" in copied.uns
    assert "mine" not in cells.uns
    assert copied.varm["mine_PCs"].shape == (200, 2)


def test_backed_and_sparse_data_give_the_same(
    cells: anndata.AnnData, tmp_path: Path
) -> None:
    cells = cells[:, :200].copy()
    expected = bs.tl.sparse_pca(cells, n_comps=2, k=5, copy=True)
    cells.X = sp.csr_matrix(cells.X)
    cells.write_h5ad(tmp_path / "sparse.h5ad")
    backed = anndata.read_h5ad(tmp_path / "sparse.h5ad", backed="r")
    for adata in (cells, backed):
        bs.tl.sparse_pca(adata, n_comps=2, k=5)
        for key in ("variance", "upper_bound"):
            np.testing.assert_allclose(
                adata.uns["spca"][key], expected.uns["spca"][key], rtol=1e-6
            )
        np.testing.assert_allclose(
            np.abs(adata.varm["sPCs"]), np.abs(expected.varm["sPCs"]), atol=1e-5
        )


def test_genes_are_masked(cells: anndata.AnnData) -> None:
    wanted = np.arange(765) % 2 == 0
    cells.var["even"] = wanted
    for mask in (wanted, "even"):
        bs.tl.sparse_pca(cells, n_comps=2, k=4, mask_var=mask, certify=False)
        assert not cells.varm["sPCs"][~wanted].any()
    cells.var["highly_variable"] = ~wanted
    bs.tl.sparse_pca(cells, n_comps=1, k=4, certify=False)
    assert not cells.varm["sPCs"][wanted].any()
    assert cells.uns["spca"]["params"]["mask_var"] == "highly_variable"
    bs.tl.sparse_pca(cells, n_comps=1, k=4, mask_var=None, certify=False)
    assert cells.uns["spca"]["params"]["mask_var"] == "all"


def test_a_layer_and_options(cells: anndata.AnnData) -> None:
    cells.layers["double"] = 2 * cells.X
    bs.tl.sparse_pca(cells, n_comps=1, k=4, key_added="one")
    bs.tl.sparse_pca(cells, n_comps=1, k=4, layer="double", limits=60)
    ratio = cells.uns["spca"]["variance"] / cells.uns["one"]["variance"]
    np.testing.assert_allclose(ratio, 4.0, rtol=1e-6)
    assert cells.uns["spca"]["params"]["limits"] == 60


def test_scanpy_draws_it(cells: anndata.AnnData) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import scanpy

    bs.tl.sparse_pca(cells, n_comps=2, k=5)
    axes = scanpy.pl.embedding(cells, "spca", color="bulk_labels", show=False)
    assert axes.get_xlabel() == "spca1"
    # pca_loadings reads varm["PCs"]; of any other key, what it calls does the same.
    scanpy.pl.ranking(cells, "varm", "sPCs", indices=[0, 1], n_points=5, show=False)
    drawn = [text.get_text() for ax in plt.gcf().axes for text in ax.texts]
    assert set(drawn) & set(cells.uns["spca"]["genes"][0].split(", "))
    cells.varm["PCs"] = cells.varm["sPCs"]
    scanpy.pl.pca_loadings(cells, components="1,2", n_points=5, show=False)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layer": "counts"}, KeyError, "layer = 'counts' is not among the layers"),
        ({"mask_var": "hvg"}, KeyError, "mask_var = 'hvg' is not a column"),
        ({"mask_var": [True]}, ValueError, r"has shape \(1,\) .*; pass 765 booleans"),
        ({"mask_var": np.zeros(765, bool)}, ValueError, "leaves no gene"),
        ({"mask_var": ["LYZ"]}, ValueError, r"of names, adata\.var_names\.isin"),
        ({"n_components": 2}, TypeError, "n_components is called n_comps here"),
        ({"copy": 1}, TypeError, "copy"),
    ],
)
def test_bad_values(cells, options, error, message) -> None:
    with pytest.raises(error, match=message):
        bs.tl.sparse_pca(cells, n_comps=1, k=2, **options)


def test_a_missing_value_is_told_by_its_gene(cells: anndata.AnnData) -> None:
    at = int(np.flatnonzero(cells.var["highly_variable"])[2])
    cells.X[3, at] = np.nan
    with pytest.raises(ValueError, match=f"in feature.s. '{cells.var_names[at]}'"):
        bs.tl.sparse_pca(cells, n_comps=1, k=2)


def test_other_things_are_told_where_to_go(cells: anndata.AnnData) -> None:
    with pytest.raises(TypeError, match=r"blockspca\.SparsePCA"):
        bs.tl.sparse_pca(np.eye(3))
    for call in (bs.SparsePCA(1, k=2).fit, bs.Covariance.from_data):
        with pytest.raises(TypeError, match=r"blockspca\.tl\.sparse_pca"):
            call(cells)
