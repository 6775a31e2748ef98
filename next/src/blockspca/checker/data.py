"""Reads the data of a proof, and hashes them: docs/proof-format.md, section 2."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .reading import DataError

MOST_ENTRIES = 2**32  # of an array that is made from sparse data: 32 GiB
BLOCK = 2**22  # entries that are hashed at a time
KINDS = ".npy, .npz (array X or A, or a sparse matrix of SciPy), .csv, .mtx"


def read_data(path: str | Path) -> np.ndarray:
    """Return the array Y of a file, as float64."""
    path = Path(path)
    readers = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".mtx": _mtx}
    if path.suffix.lower() not in readers:
        raise DataError(f"data = {str(path)!r} must be one of {KINDS}")
    try:
        Y = np.asarray(readers[path.suffix.lower()](path))
    except OSError as error:
        raise DataError(f"data = {str(path)!r} cannot be read ({error})") from None
    except (ValueError, KeyError, IndexError, BadZipFile, EOFError) as error:
        raise DataError(f"data = {str(path)!r} are damaged ({error})") from None
    if Y.ndim != 2 or Y.dtype.kind not in "biuf" or not Y.size:
        raise DataError(f"data = {str(path)!r} must be a table of numbers")
    Y = Y.astype(np.float64)
    if not np.isfinite(Y).all():
        raise DataError(f"data = {str(path)!r} must be finite numbers")
    return Y


def sha256(Y: np.ndarray) -> str:
    """Return the hash of an array, whichever way it is stored."""
    n, d = Y.shape
    total = hashlib.sha256(f"blockspca-data-1 {n} {d}\n".encode("ascii"))
    rows = max(1, BLOCK // d)
    for start in range(0, n, rows):
        block = np.asarray(Y[start : start + rows], dtype="<f8") + 0.0  # no −0.0
        total.update(np.ascontiguousarray(block).data)
    return total.hexdigest()


def _npy(path: Path) -> Any:
    return np.load(path, allow_pickle=False)


def _npz(path: Path) -> Any:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        for name in ("X", "A"):
            if name in arrays:
                return arrays[name]
        if "format" not in arrays:
            raise DataError(f"data = {str(path)!r} must have an array X or A")
        kind = arrays["format"].item().decode("ascii")
        shape = tuple(arrays["shape"].tolist())
        values = arrays["data"]
        if kind == "coo":
            return _dense(shape, arrays["row"], arrays["col"], values)
        if kind not in ("csr", "csc"):
            raise DataError(f"sparse format = {kind!r} must be csr, csc or coo")
        starts, minor = arrays["indptr"], arrays["indices"]
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        places = (major, minor) if kind == "csr" else (minor, major)
        return _dense(shape, places[0], places[1], values)


def _dense(shape: Any, rows: np.ndarray, columns: np.ndarray, values: Any) -> Any:
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] > MOST_ENTRIES:
        raise DataError(f"sparse data of shape {shape} cannot be held")
    if len(rows) != len(values) or len(columns) != len(values):
        raise ValueError("indices and values differ in number")
    if len(values) and min(rows.min(), columns.min()) < 0:
        raise ValueError("a negative index")
    Y = np.zeros(shape)
    np.add.at(Y, (rows, columns), values)
    return Y


def _csv(path: Path) -> Any:
    """Read a table with a header; a first column of names is left out."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        _, *rows = [row for row in csv.reader(file) if row]
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        return np.array([row[1:] for row in rows], dtype=np.float64)


def _mtx(path: Path) -> Any:
    """Read Matrix Market coordinates."""
    with path.open(encoding="ascii") as file:
        words = file.readline().lower().split()
        if words[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
            raise DataError(f"data = {str(path)!r} must have coordinates")
        lines = [line.split() for line in file if line[0] != "%" and line.strip()]
    if words[3] not in ("real", "integer") or words[4] not in ("general", "symmetric"):
        raise DataError(f"data = {str(path)!r}: {' '.join(words[3:])} cannot be read")
    shape = (int(lines[0][0]), int(lines[0][1]))
    entries = np.array(lines[1:], dtype=np.float64).reshape(len(lines) - 1, 3)
    rows, columns = entries[:, :2].astype(np.int64).T - 1
    Y = _dense(shape, rows, columns, entries[:, 2])
    if words[4] == "symmetric":
        Y += np.where(np.eye(len(Y), dtype=bool), 0.0, Y).T
    return Y
