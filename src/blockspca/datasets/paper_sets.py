"""Loads the paper's data sets from a local folder.

Nothing is downloaded unless asked for, as the terms of the data's owners differ (see
download.py). If a file is missing, the error says where to get it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import (
    VARIABLE,
    DataSetNotFound,
    PaperSet,
    array_sha256,
    data_folder,
    paper_set,
)
from .download import download_paper_set

if TYPE_CHECKING:
    from ..covariance.covariance import Covariance


def load_paper_set(
    name: str | PaperSet, folder: str | Path | None = None, *, download: bool = False
) -> Covariance:
    """Return the matrix A of one of the paper's data sets.

    Parameters
    ----------
    name : str
        One of `PAPER_SETS`, such as "CovColonCov".
    folder : str or Path, optional
        Where the files are; by default the folder named by BLOCKSPCA_DATA, or the
        folder `blockspca` of the user's cache.
    download : bool
        Get an absent file from its public source (extra `data`), as
        `download_paper_set` does.

    Returns
    -------
    Covariance
        Data are centred and divided by n − 1, as by `numpy.cov`; nothing is scaled.

    Raises
    ------
    DataSetNotFound
        If its file is not there; the message says where to get it.

    Warns
    -----
    UserWarning
        If the numbers are not those with which the paper's values were reproduced.

    Examples
    --------
    >>> from blockspca.datasets import PAPER_SETS, load_paper_set
    >>> PAPER_SETS["LeukemiaCov"].shape
    (72, 3571)
    >>> load_paper_set("LeukemiaCov", folder="nowhere")
    Traceback (most recent call last):
    blockspca.datasets.catalogue.DataSetNotFound: LeukemiaCov needs ...
    """
    from ..io import ReadError, read_table

    chosen = paper_set(name) if isinstance(name, str) else name
    where = data_folder(folder)
    path = where / chosen.file
    if download:
        download_paper_set(chosen, where)
    if not path.is_file():
        raise DataSetNotFound(
            f"{chosen.name} needs {path}, which is not there. Its source: "
            f"{chosen.where}. Save it under that name, name another folder (folder= or "
            f"{VARIABLE}), or download it (download=True)."
        )
    table = read_table(path)
    expected = chosen.shape if chosen.sha256 else (table.shape[0], chosen.n_features)
    if table.shape != expected:
        raise ReadError(
            f"{path} is {table.shape[0]} × {table.shape[1]}; {chosen.name} is "
            f"{chosen.shape[0]} × {chosen.shape[1]}. Its source: {chosen.where}."
        )
    if chosen.sha256 and array_sha256(table.values) != chosen.sha256:
        warnings.warn(
            f"{path} holds other numbers than the copy of {chosen.name} with which "
            "the paper's values were reproduced.",
            stacklevel=2,
        )
    return table.covariance(center=True, scale=False, missing="raise")
