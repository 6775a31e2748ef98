"""Downloads data sets from their public sources, checks them and keeps them.

Two checks. Where the paper's values were reproduced, the package has the SHA-256 of the
numbers, and other numbers are refused. And the SHA-256 of every downloaded file is
recorded in `downloads/SHA256SUMS` the first time; later downloads must have the same.
So only the first download of ArceneCov, GLI85Cov and GLABRA180Cov is trusted.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ..io.writing import draft, put_in_place, write_file
from .catalogue import DataSetNotFound, PaperSet, array_sha256, data_folder, paper_set
from .sources import SOURCES, Source

SECONDS = 10.0  # that a server may be silent
FOLDER = "downloads"
SUMS = "SHA256SUMS"


class DownloadError(DataSetNotFound):
    """A data set could not be had from its source; the message says why."""


def download_paper_set(
    name: str | PaperSet,
    folder: str | Path | None = None,
    *,
    timeout: float = SECONDS,
    source: Source | None = None,
) -> Path:
    """Download one of the paper's data sets into the folder, unless it is there.

    Parameters
    ----------
    name : str
        One of `PAPER_SETS`.
    folder : str or Path, optional
        As for `load_paper_set`. What was downloaded is kept in its `downloads`.
    timeout : float
        Seconds that a server may be silent.
    source : Source, optional
        Another source than the one in `SOURCES`.

    Returns
    -------
    Path
        The file that `load_paper_set` reads.

    Raises
    ------
    DownloadError
        Without a network, without a public source, or where the file is another one
        than it was; the message says where to get the data by hand.
    ImportError
        If pooch, or rdata where R wrote the file, is not installed (extra `data`).

    Examples
    --------
    >>> from blockspca.datasets import download_paper_set
    >>> download_paper_set("ArceneCov", "data")  # doctest: +SKIP
    """
    chosen = paper_set(name) if isinstance(name, str) else name
    where = data_folder(folder)
    path = where / chosen.file
    if path.is_file():
        return path
    source = source or SOURCES.get(chosen.name)
    if source is None:
        raise DownloadError(f"{chosen.name} is not public. {_by_hand(chosen, path)}")
    files = [_fetch(url, where / FOLDER, chosen, path, timeout) for url in source.urls]
    try:
        array = source.read(files, chosen.shape)
        _check(array, chosen, source.computed)
    except ImportError as error:
        raise ImportError(
            f"reading {files[0].name} needs {error.name}: "
            "pip install 'blockspca[data]'."
        ) from error
    except Exception as error:
        names = ", ".join(str(file) for file in files)
        raise DownloadError(
            f"{chosen.name}: {error}. Downloaded: {names}. {_by_hand(chosen, path)}"
        ) from error
    _save(path, array, source.key)
    return path


def _by_hand(chosen: PaperSet, path: Path) -> str:
    return f"Its source: {chosen.where}. Save it as {path}."


def _fetch(
    url: str, folder: Path, chosen: PaperSet, path: Path, timeout: float
) -> Path:
    """Return the file of a URL, downloaded once; its checksum must not change."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloading needs pooch: pip install 'blockspca[data]'."
        ) from error
    # Silence its message about each file, with the checksum that is recorded below.
    pooch.get_logger().setLevel(logging.WARNING)
    name = f"{chosen.name}-{url.rsplit('/', 1)[1]}"
    known = recorded_sums(folder)
    try:
        found = pooch.retrieve(
            url,
            known_hash=known.get(name) and f"sha256:{known[name]}",
            fname=name,
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=timeout),
        )
    except ValueError as error:  # of pooch: the checksum
        raise DownloadError(
            f"{chosen.name}: {url} is another file than at the first download "
            f"(its SHA-256 is not the one in {folder / SUMS}). If the change is known "
            f"to be good, delete that line. {_by_hand(chosen, path)}"
        ) from error
    except OSError as error:
        raise DownloadError(
            f"{chosen.name}: {url} could not be downloaded "
            f"({type(error).__name__}). {_by_hand(chosen, path)}"
        ) from error
    if name not in known:
        _record(folder, {**known, name: pooch.file_hash(found, alg="sha256")})
    return Path(found)


def recorded_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file as it was first downloaded."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    pairs = (line.split("  ", 1) for line in path.read_text().splitlines() if line)
    return {name: digest for digest, name in pairs}


def _record(folder: Path, sums: dict[str, str]) -> None:
    """Write the checksums as `sha256sum -c` reads them."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    write_file(folder / SUMS, text, force=True)


def _check(array: Any, chosen: PaperSet, computed: bool) -> None:
    if chosen.sha256 and array.shape != chosen.shape:
        raise ValueError(f"the array is {array.shape}, not {chosen.shape}")
    if array.shape[1] != chosen.n_features:
        raise ValueError(f"{array.shape[1]} features, not {chosen.n_features}")
    # The last bits of what is computed from the file depend on the machine.
    recorded = "" if computed else chosen.sha256
    if recorded and array_sha256(array) != recorded:
        raise ValueError(
            "the numbers are not those with which the paper's values were reproduced"
        )


def _save(path: Path, array: Any, key: str) -> None:
    from scipy.sparse import issparse, save_npz

    save: Any = save_npz  # takes files too, whatever its stubs say
    with draft(path) as name:
        with open(name, "wb") as file:
            if issparse(array):
                save(file, array)
            else:
                np.savez_compressed(file, **{key: array})
        put_in_place([(name, path)], force=True)
