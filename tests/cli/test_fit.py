"""Where `fit` writes: h5ad files, and what is left and said when a disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import blockspca as bs
from blockspca.cli.main import run

X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 1, 1, 2, 1, 1]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    Path("data.csv").write_text("a,b,c,d,e,f\n" + rows + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("fit data.csv -k 2 -n 2 -o out", "out/"),
        ("fit data.csv -k 2 -o new/out", "new/out/"),
        ("report data.csv -k 2 -n 2 -o page.html", "page.html"),
        ("path data.csv --k-max 3 -o path.csv", "path.csv"),
    ],
)
@pytest.mark.parametrize("nth", [1, 3])
def test_a_full_disk_leaves_nothing_and_the_components_are_printed(
    here, monkeypatch, capsys, command, file, nth
):
    calls = []
    fsync = os.fsync

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) >= nth or not command.startswith("fit"):
            raise FULL
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    before = sorted(here.iterdir())
    assert run(command.split()) == 2
    assert sorted(here.iterdir()) == before
    out, err = capsys.readouterr()
    assert f"blockspca: {file}" in err
    assert "cannot be written: No space left on device; nothing of it is left" in err
    assert "  +" in out or "objective" in out


def test_files_appear_together_or_not_at_all(here, monkeypatch):
    link = os.link
    placed = []

    def fails(source, target):
        placed.append(target)
        if len(placed) == 3:
            raise FileExistsError(errno.EEXIST, "exists")
        link(source, target)

    monkeypatch.setattr(os, "link", fails)
    assert run(["fit", "data.csv", "-k", "2", "-o", "out"]) == 2
    assert not Path("out").exists()


@pytest.fixture
def cells(here):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(X)
    adata.var_names = list("abcdef")
    adata.obs["kind"] = ["x", "y", "z"] * 10
    adata.obsm["other"] = X[:, :1]
    adata.write_h5ad("cells.h5ad")
    return anndata


def test_genes_that_are_marked(cells, capsys):
    adata = cells.read_h5ad("cells.h5ad")
    adata.var["highly_variable"] = [False, True, True, True, True, False]
    adata.write_h5ad("cells.h5ad")
    assert run(["fit", "cells.h5ad", "-k", "2"]) == 0
    said = capsys.readouterr().err
    assert "marks 4 of 6 genes" in said
    assert "add --mask-var highly_variable to choose among those" in said
    masked = ["--mask-var", "highly_variable"]
    assert run(["fit", "cells.h5ad", "-k", "4", *masked, "-o", "out"]) == 0
    assert "4 features" in capsys.readouterr().out
    assert run(["verify", "out", "cells.h5ad"]) == 0
    assert run(["fit", "cells.h5ad", "-k", "4", *masked, "-o", "out.h5ad"]) == 0
    assert not cells.read_h5ad("out.h5ad").varm["sPCs"][[0, 5]].any()


def test_results_go_into_an_h5ad_file(cells, capsys):
    assert (
        run(
            ["fit", "cells.h5ad", "-k", "2", "-n", "2", "--drop", "a", "-o", "out.h5ad"]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "Written to out.h5ad: obsm['X_spca'], varm['sPCs'], uns['spca']" in said
    adata = cells.read_h5ad("out.h5ad")
    np.testing.assert_array_equal(adata.X, X)
    assert adata.obs["kind"].tolist() == ["x", "y", "z"] * 10
    assert "other" in adata.obsm
    loadings = adata.varm["sPCs"]
    assert loadings.shape == (6, 2)
    assert not loadings[0].any()
    np.testing.assert_allclose(
        adata.obsm["X_spca"], (X - X.mean(axis=0)) @ loadings, atol=1e-12
    )
    certificate = bs.Certificate.from_json(str(adata.uns["spca"]["certificates"][0]))
    assert bs.verify(certificate, bs.Covariance.from_data(X[:, 1:])).complete
    assert list(adata.uns["spca"]["status"]) == ["optimal", "optimal"]
    bs.tl.sparse_pca(adata, n_comps=2, k=2, key_added="again")
    assert set(adata.uns["again"]) == set(adata.uns["spca"])


def test_nothing_is_added_to_files_of_older_anndata(tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = np.eye(3)
        file["var"] = np.array([(b"a",), (b"b",), (b"c",)], dtype=[("index", "S1")])
    target = tmp_path / "new.h5ad"
    assert run(["fit", str(tmp_path / "old.h5ad"), "-k", "1", "-o", str(target)]) == 2
    assert "the layout of AnnData before 0.7" in capsys.readouterr().err
    assert not target.exists()


def test_an_h5ad_file_is_written_back_only_with_force(cells, capsys):
    before = Path("cells.h5ad").read_bytes()
    assert run(["fit", "cells.h5ad", "-k", "2", "-o", "cells.h5ad"]) == 2
    assert Path("cells.h5ad").read_bytes() == before
    for k in ("2", "3"):
        assert run(["fit", "cells.h5ad", "-k", k, "-o", "cells.h5ad", "--force"]) == 0
    adata = cells.read_h5ad("cells.h5ad")
    assert np.count_nonzero(adata.varm["sPCs"], axis=0).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit data.csv -k 2 -o x.h5ad", "data.csv is not an h5ad file"),
        ("fit cells.h5ad -k 2 --transpose -o x.h5ad", "--transpose does not go with"),
    ],
)
def test_what_cannot_be_an_h5ad_file(cells, capsys, command, words):
    assert run(command.split()) == 2
    assert words in capsys.readouterr().err
    assert not Path("x.h5ad").exists()
