"""Files out: whole or not at all, and never over an existing one unless told to."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import Argument, WriteError

_FORCE = Argument("force", True)


def check_free(paths: Iterable[str | Path], force: bool = False) -> None:
    """Raise before the work starts if its results could not be written."""
    for path in map(Path, paths):
        if path.is_dir():
            raise WriteError(f"{path} is a directory; give the name of a file.")
        if path.exists() and not force:
            raise WriteError(
                f"{path} exists; add {_FORCE} to replace it, or give another name.",
                _FORCE,
            )
        parent = next(p for p in path.absolute().parents if p.exists())
        if not parent.is_dir():
            raise WriteError(f"{parent} is a file, so {path} cannot be put below it.")
        if not os.access(parent, os.W_OK):
            raise WriteError(f"{parent} is not writable; give another place.")


def write_file(path: str | Path, content: str | bytes, *, force: bool = False) -> Path:
    """Write a file in one step: a reader sees all of it or nothing.

    Parameters
    ----------
    path : str or Path
        Folders that are missing are made.
    content : str or bytes
        Text is written as UTF-8.
    force : bool
        Replace a file that exists. Without it such a file is an error.
    """
    path = Path(path)
    check_free([path], force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".blockspca.")
    except OSError as error:
        raise WriteError(
            f"{path} cannot be written: {error.strerror}; give another place."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        _put_in_place(name, path, force)
    finally:
        if os.path.exists(name):
            os.unlink(name)
    return path


def write_files(
    directory: str | Path, files: Mapping[str, str], *, force: bool = False
) -> list[Path]:
    """Write several text files into a directory, each whole or not at all."""
    directory = Path(directory)
    check_free((directory / name for name in files), force)
    return [
        write_file(directory / name, text, force=force) for name, text in files.items()
    ]


def _put_in_place(name: str, path: Path, force: bool) -> None:
    if not force:
        try:
            os.link(name, path)  # unlike replace, it fails where a file has appeared
        except FileExistsError:
            raise WriteError(
                f"{path} exists; add {_FORCE} to replace it.", _FORCE
            ) from None
        except OSError:
            os.replace(name, path)  # a file system without links
    else:
        os.replace(name, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to_json(content: Any) -> str:
    """Return strict JSON: numbers that are not finite become null."""
    return json.dumps(_finite(content), indent=2, ensure_ascii=False) + "\n"


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    if hasattr(content, "item") and not isinstance(content, str):
        content = content.tolist()  # NumPy's numbers and arrays
        return _finite(content)
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV with every digit of its numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    return repr(value) if isinstance(value, float) else value
