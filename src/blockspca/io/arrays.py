"""NPY, NPZ and Matrix Market files; arrays are never unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Argument, ReadError, unreadable
from .request import Request
from .table import Table

_SPARSE_KEYS = {"format", "shape", "data"}
_KEY = Argument("key")
_NAME_KEYS = ("feature_names", "names", "columns")


def read_npy(path: Path, request: Request) -> Table:
    """Read one array; it is memory-mapped, so a large one starts at once."""
    _check_magic(path, (b"\x93NUMPY",), "NPY")
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _about(path, error, "NPY") from None
    return Table(values=_two_dimensional(values, path), source=str(path))


def read_npz(path: Path, request: Request) -> Table:
    """Read an archive: a scipy sparse matrix, or an array X (data) or A (matrix)."""
    _check_magic(path, (b"PK\x03\x04", b"PK\x05\x06"), "NPZ")
    try:
        with np.load(path, allow_pickle=False) as archive:
            table = _from_archive(archive, path, request.key)
    except ReadError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise _about(path, error, "NPZ") from None
    return table


def _from_archive(archive: Any, path: Path, key: str | None) -> Table:
    if key is None and set(archive.files) >= _SPARSE_KEYS:
        from scipy.sparse import load_npz

        return Table(values=load_npz(path), source=str(path))
    names = None
    for name_key in _NAME_KEYS:
        if name_key in archive.files:
            names = tuple(str(name) for name in archive[name_key].tolist())
    arrays = [name for name in archive.files if name not in _NAME_KEYS]
    if key is None:
        key = next((name for name in ("X", "A") if name in arrays), None)
    if key is None and len(arrays) == 1:
        key = arrays[0]
    holds = ", ".join(arrays[:8]) or "nothing"
    holds += ", ..." if len(arrays) > 8 else ""
    if key is None:
        raise ReadError(
            f"{path} holds {holds}; choose an array with {_KEY}, or call it X (data) "
            "or A (symmetric matrix).",
            _KEY,
        )
    if key not in arrays:
        raise ReadError(
            f"{path} has no array {key!r} for {_KEY}; it holds {holds}.", _KEY
        )
    values = _two_dimensional(archive[key], path)
    table = Table(values=values, is_matrix=key == "A", source=str(path))
    return table if names is None else table.named(names)


def read_mtx(path: Path, request: Request) -> Table:
    """Read a Matrix Market file; coordinates stay sparse."""
    from scipy.io import mmread

    try:
        values = mmread(path)
    except Exception as error:
        raise _about(path, error, "Matrix Market") from None
    return Table(values=_two_dimensional(values, path), source=str(path))


def _check_magic(path: Path, magic: tuple[bytes, ...], kind: str) -> None:
    # NumPy takes any other file for a pickle, and its message for granted.
    with open(path, "rb") as file:
        if not file.read(8).startswith(magic):
            raise ReadError(f"{path} is not an {kind} file, whatever its name says.")


def _two_dimensional(values: Any, path: Path) -> Any:
    if values.ndim != 2:
        raise ReadError(
            f"{path} holds an array of shape {values.shape}; a table of samples × "
            "features is needed."
        )
    if values.dtype.kind not in "fiub":
        raise ReadError(
            f"{path} holds {values.dtype} values; save it as numbers (float64)."
        )
    return values


def _about(path: Path, error: Exception, kind: str) -> ReadError:
    if "pickle" in str(error) or "Python objects" in str(error):
        return ReadError(
            f"{path} is not a plain {kind} file of numbers: it holds Python objects, "
            "which are not loaded; save it as a float array."
        )
    return unreadable(path, f"{kind} file", error)
