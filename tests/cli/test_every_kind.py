"""The whole way of a user, for every kind of file that is read."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from blockspca.checker.__main__ import main as check
from blockspca.cli.main import run
from blockspca.io import FORMATS

rng = np.random.default_rng(7)
X = rng.normal(size=(40, 6)) + rng.normal(size=(40, 1)) * [2, 2, 2, 0, 0, 0]
X = (X * (rng.random(X.shape) < 0.9)).round(3)
NAMES = [f"gene {j}" for j in range(6)]
#: Formats that the checker reads by itself.
CHECKED = (".npy", ".npz", ".csv", ".tsv", ".txt")


def text(path: Path, separator: str) -> None:
    rows = [NAMES, *(map(repr, row) for row in X.tolist())]
    content = "\n".join(separator.join(row) for row in rows)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        file.write(content)


def blanks(path: Path) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        np.savetxt(file, X, header=" ".join(n.replace(" ", "_") for n in NAMES))


def parquet(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(X, columns=NAMES).to_parquet(path)


def market(path: Path) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        scipy.io.mmwrite(file, scipy.sparse.coo_array(X), precision=17)


def annotated(path: Path, sparse: bool = False) -> None:
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("h5py" if path.suffix == ".h5ad" else "zarr")
    data = anndata.AnnData(scipy.sparse.csr_matrix(X) if sparse else X)
    data.var_names = NAMES
    getattr(data, f"write_{path.suffix[1:]}")(path)


def sparse_archive(path: Path) -> None:
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(X))


KINDS: dict[str, Callable[[Path], None]] = {
    "x.csv": lambda path: text(path, ","),
    "x.csv.gz": lambda path: text(path, ","),
    "x.tsv": lambda path: text(path, "\t"),
    "x.tsv.gz": lambda path: text(path, "\t"),
    "x.txt": lambda path: text(path, "\t"),
    "x.txt.gz": lambda path: text(path, "\t"),
    "x.parquet": parquet,
    "x.npy": lambda path: np.save(path, X),
    "x.npz": lambda path: np.savez(path, X=X, feature_names=NAMES),
    "sparse.npz": sparse_archive,
    "matrix.npz": lambda path: np.savez(path, A=np.cov(X.T)),
    "x.mtx": market,
    "x.mtx.gz": market,
    "x.h5ad": annotated,
    "sparse.h5ad": lambda path: annotated(path, sparse=True),
    "x.zarr": annotated,
    "sparse.zarr": lambda path: annotated(path, sparse=True),
}


def test_every_format_is_walked():
    assert {name[name.index(".") :] for name in KINDS} == {*FORMATS}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "large"),
    [
        *((name, False) for name in KINDS),
        *((name, True) for name in ("x.npy", "x.h5ad", "x.zarr")),
    ],
)
def test_fit_verify_prove_check_report_explain(
    name, large, tmp_path, monkeypatch, capsys
):
    """Each step takes the file and nothing else that the step before has not written.

    `large` files stay on disk if their format allows it; sparse ones have no proofs.
    """
    if large:
        monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
    monkeypatch.chdir(tmp_path)
    KINDS[name](Path(name))

    def output_of(command: str) -> str:
        code = run(command.split())
        printed = capsys.readouterr()
        assert code == 0, f"{command}: {printed.err}"
        return printed.out

    output_of(f"fit {name} -k 3 -n 2 -o results --proof p.proof")
    assert "Every claim holds." in output_of(f"verify results {name}")
    assert "The proof holds." in output_of(f"verify p.proof {name}")
    assert "optimal" in output_of(f"explain p.proof {name}")
    if name.endswith(CHECKED):
        assert check(["p.proof", name]) == 0, capsys.readouterr().out
    output_of(f"report {name} -k 3 -n 2 -o page.html")
    assert "<html" in Path("page.html").read_text()
