"""Public addresses of the paper's data sets, and readers of their files.

Addresses on GitHub name a commit, so that what is there cannot change. Every reader
takes the downloaded files and returns the numbers in the form that `load_paper_set`
reads: the covariance matrix itself, or data with a row for each sample.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .catalogue import array_sha256

#: Of the raw intensities of Golub et al., 72 × 7129.
GOLUB_SHA256 = "30d957ff96841bae772f9e54fe8f56e805304490a9b93c46ddfb6e9869444578"

Reader = Callable[[Sequence[Path], tuple[int, int]], Any]


@dataclass(frozen=True)
class Source:
    """The files of a data set, how they are read, and the key of the array.

    If the array is `computed`, its last bits depend on the machine, and the reader
    checks the numbers that it is computed from instead.
    """

    urls: tuple[str, ...]
    read: Reader
    key: str = "X"
    computed: bool = False


def matlab(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """The array of the right shape in a MATLAB file."""
    from scipy.io import loadmat

    for value in loadmat(paths[0]).values():
        if getattr(value, "shape", None) == shape:
            return np.asarray(value, dtype=float)
    raise ValueError(f"no array of shape {shape} in {paths[0].name}")


def zipped_text(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """Numbers in a text file, the only one in an archive."""
    with zipfile.ZipFile(paths[0]) as archive:
        names = [n for n in archive.namelist() if not n.startswith("__MACOSX")]
        text = archive.read(names[0]).decode()
    return np.array(text.replace(",", " ").split(), dtype=float).reshape(shape)


def r_list(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """The matrix `x` of the first list in an R data file."""
    import rdata

    lists = rdata.read_rda(str(paths[0]))
    return np.asarray(next(iter(lists.values()))["x"], dtype=float)


def golub(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """Golub et al. by the recipe of Dettling (2004), see `dettling`."""
    import rdata

    raw = np.asarray(rdata.read_rda(str(paths[0]))["golub"]["x"])
    if array_sha256(raw) != GOLUB_SHA256:
        raise ValueError("the raw numbers are not those that were recorded")
    return dettling(raw)


def dettling(raw: Any) -> Any:
    """Clip, keep genes that vary, take logarithms, standardise each sample.

    Values to [100, 16000]; genes with max/min > 5 and max − min > 500; log10; each row
    to mean 0 and standard deviation 1, with divisor n − 1.
    """
    clipped = np.clip(np.asarray(raw, dtype=float), 100, 16000)
    low, high = clipped.min(axis=0), clipped.max(axis=0)
    logs = np.log10(clipped[:, (high / low > 5) & (high - low > 500)])
    centred = logs - logs.mean(axis=1, keepdims=True)
    return centred / logs.std(axis=1, ddof=1, keepdims=True)


def index_lists(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """Binary data: a line lists the features, from 1, that a sample has."""
    from scipy.sparse import csr_matrix

    lines = paths[0].read_text().splitlines()
    rows = [np.array(line.split(), dtype=np.int64) - 1 for line in lines if line]
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.concatenate(rows)
    data = np.ones(len(indices), dtype=np.uint8)
    matrix = csr_matrix((data, indices, pointers), shape=(len(rows), shape[1]))
    matrix.sort_indices()
    return matrix


def text_tables(paths: Sequence[Path], shape: tuple[int, int]) -> Any:
    """Tables of numbers, one below the other."""
    return np.concatenate([np.loadtxt(path, ndmin=2) for path in paths])


_RAW = "https://raw.githubusercontent.com"
_PATHSPCA = (
    f"{_RAW}/ying-hui-he/Robust_mean_estimation/"
    "373a77cb464d7e68d8518f5ea2a4996db78cd25c/PathSPCA"
)
_SPLS = f"{_RAW}/cran/spls/767d4912e11abb6e017c1789a9d77e16b26875c6/data"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_ASU = "https://jundongl.github.io/scikit-feature"

#: By the name of the data set. Reddit1500 is not public.
SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "CovColonCov": Source((f"{_PATHSPCA}/CovColon.mat",), matlab, "A"),
        "LymphomaCov1": Source((f"{_PATHSPCA}/LymphomaCov.mat",), matlab, "A"),
        "Reddit2000": Source(
            (
                f"{_RAW}/yongchunli-13/Sparse-PCA/"
                "b002c0c534586707f8ed7b5de386d370e785d698/"
                "datasets/Matrix_Reddit_2000_txt.zip",
            ),
            zipped_text,
            "A",
        ),
        "LeukemiaCov": Source(
            (
                f"{_RAW}/ramhiser/datamicroarray/"
                "45810be1718c30272058fb09a8fa53e6ae87ae56/data/golub.RData",
            ),
            golub,
            computed=True,
        ),
        "LymphomaCov2": Source((f"{_SPLS}/lymphoma.RData",), r_list),
        "ProstateCov": Source((f"{_SPLS}/prostate.RData",), r_list),
        "ArceneCov": Source(
            tuple(
                f"{_UCI}/arcene/ARCENE/arcene_{part}.data"
                for part in ("train", "valid", "test")
            ),
            text_tables,
        ),
        "GLI85Cov": Source((f"{_ASU}/files/datasets/GLI_85.mat",), matlab),
        "GLABRA180Cov": Source((f"{_ASU}/OLD/datasets/GLA-BRA-180.mat",), matlab),
        "DorotheaCov": Source(
            (f"{_UCI}/dorothea/DOROTHEA/dorothea_train.data",), index_lists
        ),
    }
)
