"""The eleven data sets of the paper: names, shapes, sources and the data folder.

The data are not part of the package. `where` of each set says where it comes from.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

VARIABLE = "BLOCKSPCA_DATA"


@dataclass(frozen=True)
class PaperSet:
    """One data set: its file, its contents, and where it comes from.

    The array `A` in the file is the matrix itself; `X`, or a scipy sparse matrix, are
    data whose covariance, with divisor n − 1, is the matrix.
    """

    name: str  #: as in the paper
    file: str  #: its name in the folder
    #: of that array; the number of samples is not checked where there is no `sha256`
    shape: tuple[int, int]
    where: str  #: the source, and what was done to it
    #: of the numbers that reproduced the paper's objectives; empty if there was no copy
    sha256: str = ""

    @property
    def n_features(self) -> int:
        return self.shape[1]


class DataSetNotFound(FileNotFoundError):
    """A data set is not in the folder; the message says where to get it."""


_DETTLING = "Dettling (2004), as in the data of the R package spls (CRAN)"
_NIPS = "NIPS 2003 feature selection challenge (Guyon et al.), UCI repository"
_ASU = "feature selection repository of Arizona State University (scikit-feature)"

_ALL = (
    PaperSet(
        "CovColonCov",
        "CovColon.npz",
        (500, 500),
        "covariance distributed with PathSPCA (CovColon.mat), of Alon et al. (1999)",
        "c872f21d6b92956bfe85775f0aa9367cfe91857f66b2320efba1dc2603858127",
    ),
    PaperSet(
        "LymphomaCov1",
        "LymphomaCov1.npz",
        (500, 500),
        "covariance distributed with PathSPCA (LymphomaCov.mat), of Alizadeh et al.",
        "fe9fde7e2b00270417ef52d8e072770c5bcb28687f1a34353f39a65ec09854b7",
    ),
    PaperSet(
        "Reddit1500",
        "Reddit1500.npz",
        (1500, 1500),
        "covariance of Dey, Mazumder and Wang (2022); ask its authors. It is not a "
        "part of Reddit2000",
    ),
    PaperSet(
        "Reddit2000",
        "Reddit2000.npz",
        (2000, 2000),
        "covariance of Dey, Mazumder and Wang (2022), in the history of the "
        "repository yongchunli-13/Sparse-PCA (Matrix_Reddit_2000_txt.zip)",
        "01f99a2d48b1bc0f639f19c2df6b9cea80d45c9e9af100547b28d21485463135",
    ),
    PaperSet(
        "LeukemiaCov",
        "Leukemia.npz",
        (72, 3571),
        "Golub et al. (1999) with the recipe of Dettling (2004): values clipped to "
        "[100, 16000], genes with max/min > 5 and max − min > 500, log10, each sample "
        "standardised with ddof 1; raw values are in the R package datamicroarray",
        "538b0e7f1a8f9964df56b982f6e888420633e90d85088f95b12adf6effae67d5",
    ),
    PaperSet(
        "LymphomaCov2",
        "Lymphoma2.npz",
        (62, 4026),
        f"Alizadeh et al. (2000); {_DETTLING}",
        "80b745d982de8d53fadea355bab93b5f04bf67d69c8de39058d437b1318aa952",
    ),
    PaperSet(
        "ProstateCov",
        "Prostate.npz",
        (102, 6033),
        f"Singh et al. (2002); {_DETTLING}",
        "1b86d6b5e46c72c2243ddacba80a1119254d2c00f7820e9207037680452b87b0",
    ),
    PaperSet(
        "ArceneCov",
        "Arcene.npz",
        (900, 10000),
        f"{_NIPS}; the paper's objectives need the 700 samples of the test split, "
        "alone or with the other 200, which could not be tried",
    ),
    PaperSet("GLI85Cov", "GLI_85.npz", (85, 22283), f"GLI_85 of the {_ASU}"),
    PaperSet(
        "GLABRA180Cov", "GLA-BRA-180.npz", (180, 49151), f"GLA-BRA-180 of the {_ASU}"
    ),
    PaperSet(
        "DorotheaCov",
        "Dorothea_train.npz",
        (800, 100000),
        f"{_NIPS}: the 800 samples for training, as a scipy sparse matrix",
        "db7ff7828eabcc24dba56936065e42300bbf24926f0c85e1f0f5e77ade73d694",
    ),
)

#: The data sets of the paper, in its order.
PAPER_SETS: Mapping[str, PaperSet] = MappingProxyType({s.name: s for s in _ALL})

#: Two of Arcene's three splits: another matrix than the paper's, of the same kind.
ARCENE_PART = PaperSet(
    "Arcene, 200 of 900 samples",
    "Arcene_train_valid.npz",
    (200, 10000),
    f"{_NIPS}: the splits for training and validation",
    "61a96cbed80e421be5cdb9b9cb26df5303a9a4567aa5f90a93eee943ff1cf633",
)


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the data: the argument, BLOCKSPCA_DATA, or a cache folder.

    The cache folder is `blockspca` in XDG_CACHE_HOME, or in `.cache` at home.

    Examples
    --------
    >>> from blockspca.datasets import data_folder
    >>> data_folder("sets").name
    'sets'
    """
    if folder is not None:
        return Path(folder)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "blockspca"


def paper_set(name: str) -> PaperSet:
    """Return the description of a data set; ValueError lists the names."""
    if name not in PAPER_SETS:
        raise ValueError(
            f"name = {name!r} is not a data set of the paper; there are "
            f"{', '.join(PAPER_SETS)}."
        )
    return PAPER_SETS[name]


def is_present(chosen: PaperSet, folder: str | Path | None = None) -> bool:
    """Tell whether the file of a data set is in the folder."""
    return (data_folder(folder) / chosen.file).is_file()


def array_sha256(values: Any) -> str:
    """Return the SHA-256 of an array's numbers as float64, however they are stored."""
    digest = hashlib.sha256()
    if hasattr(values, "tocsr"):
        matrix = values.tocsr(copy=True)
        matrix.sum_duplicates()
        parts = [
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data.astype(float),
        ]
    else:
        parts = [np.ascontiguousarray(values, dtype=float)]
    for part in parts:
        digest.update(part.tobytes())
    return digest.hexdigest()
