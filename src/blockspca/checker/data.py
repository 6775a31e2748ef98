"""Reads the data and hashes them: docs/proof-format.md, section 1.

The hash is taken of the numbers that are then used. A file that is read wrongly has
another hash, so that reading need not be trusted.
"""

from __future__ import annotations

import hashlib
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from .fields import ProofError, Unreadable


def read_data(path: str | Path) -> np.ndarray:
    """Return the n × d array of a file, in float64, −0.0 replaced by 0.0.

    Read are `.npy`; `.npz` with `X`, `A`, a single two-dimensional array or a sparse
    matrix as SciPy writes it; and numbers in text, separated by commas (`.csv`), tabs
    (`.tsv`) or blanks (`.txt`), with at most one line of names. Columns of a text whose
    first row holds no number, such as dates and names of samples, are left out.
    """
    path = Path(path)
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
        elif path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                found = _from_archive(dict(archive))
        elif path.suffix in (".csv", ".tsv", ".txt"):
            separator = {".csv": ",", ".tsv": "\t", ".txt": None}[path.suffix]
            found = _from_text(path, separator)
        else:
            raise Unreadable(f"{path.name}: .npy, .npz, .csv, .tsv or .txt is needed")
    except (ValueError, IndexError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise Unreadable(f"{path.name} cannot be read: {error}") from None
    return as_data(found)


def as_data(found: np.ndarray) -> np.ndarray:
    """Return numbers as a finite float64 array of two dimensions."""
    if found.dtype.kind not in "buif" or found.dtype.itemsize > 8:
        raise ProofError(f"data of type {found.dtype} are no real numbers of 64 bits")
    if found.ndim != 2 or 0 in found.shape:
        raise ProofError(f"data must be n x d with n, d > 0, and not {found.shape}")
    Y = np.ascontiguousarray(found, dtype=np.float64) + 0.0
    if not (np.isfinite(Y.min()) and np.isfinite(Y.max())):  # NaN is in both
        raise ProofError("data must be finite")
    return Y


def data_hash(Y: np.ndarray) -> str:
    """Return the SHA-256 of an array that `as_data` has made."""
    digest = hashlib.sha256(b"blockspca-data-1 %d %d\n" % Y.shape)
    rows = max(1, 2**22 // Y.shape[1])
    for start in range(0, len(Y), rows):
        digest.update(Y[start : start + rows].astype("<f8").tobytes())
    return digest.hexdigest()


def _from_archive(arrays: dict[str, np.ndarray]) -> np.ndarray:
    if "format" in arrays:
        return _from_sparse(arrays)
    for name in ("X", "A"):
        if name in arrays:
            return arrays[name]
    two = [array for array in arrays.values() if array.ndim == 2]
    if len(two) != 1:
        raise Unreadable("the .npz needs an array X or A, or one array of rows")
    return two[0]


def _from_sparse(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the dense array of SciPy's csr, csc or coo format."""
    form = arrays["format"].item()
    form = form.decode() if isinstance(form, bytes) else form
    needed = {"coo": {"row", "col"}}.get(form, {"indices", "indptr"})
    if form not in ("csr", "csc", "coo") or not needed | {"shape", "data"} <= {*arrays}:
        raise Unreadable(f"sparse data of format {form!r} are not known or not whole")
    if form == "coo":
        row, col = arrays["row"], arrays["col"]
    else:
        lengths = np.diff(arrays["indptr"])
        row, col = np.repeat(np.arange(len(lengths)), lengths), arrays["indices"]
        row, col = (row, col) if form == "csr" else (col, row)
    n, d = map(int, arrays["shape"])
    if min(row.min(initial=0), col.min(initial=0)) < 0 or len(
        np.unique(row.astype(np.int64) * d + col)
    ) != len(row):
        raise Unreadable("sparse data with negative or repeated places are refused")
    dense = np.zeros((n, d))
    dense[row, col] = as_data(arrays["data"][None])[0] if len(row) else 0.0
    return dense


def _from_text(path: Path, separator: str | None) -> np.ndarray:
    with path.open(encoding="utf-8-sig") as file:
        first, second = (_numbers(file.readline().split(separator)) for _ in range(2))
    # A line of names has no number where the rows of data have some.
    skip = int(not first or (bool(second) and not {*second} <= {*first}))
    columns = second if skip else first
    if not columns:
        raise Unreadable(f"{path.name} has no column of numbers")
    return np.loadtxt(
        path,
        delimiter=separator,
        skiprows=skip,
        usecols=columns,
        ndmin=2,
        comments=None,
        encoding="utf-8-sig",
    )


def _numbers(words: list[str]) -> list[int]:
    """The places of the words that are numbers: 1_2, a number in Python, is a name."""
    found = []
    for place, word in enumerate(words):
        if "_" in word or not word.isascii():
            continue
        with suppress(ValueError):
            float(word)
            found.append(place)
    return found
