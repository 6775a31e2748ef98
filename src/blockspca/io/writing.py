"""Files out: whole or not at all, and never over an existing one unless told to."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
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


def check_output(option: str, path: Path | None, force: bool, *endings: str) -> None:
    """Refuse a file that could not be written, or does not end with one of these.

    Without a path there is nothing to refuse.
    """
    if path is None:
        return
    if path.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise WriteError(
            f"{option} {path} must end with {known if endings[1:] else endings[0]}."
        )
    check_free([path], force)


def check_directory(option: str, path: Path, names: Iterable[str], force: bool) -> None:
    """Refuse a directory that could not hold these files."""
    if path.exists() and not path.is_dir():
        raise WriteError(f"{option} {path} is a file; give a directory.")
    check_free((path / name for name in names), force)


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
    return write_files(path.parent, {path.name: content}, force=force)[0]


def write_files(
    directory: str | Path, files: Mapping[str, str | bytes], *, force: bool = False
) -> list[Path]:
    """Write several files into a directory, all of them or none.

    Each is written whole under a name of its own before the first gets its place, so
    that a disk that is full leaves nothing that looks complete.
    """
    paths = [Path(directory) / name for name in files]
    check_free(paths, force)
    with ExitStack() as stack:
        drafts = [stack.enter_context(draft(path)) for path in paths]
        for path, name, content in zip(paths, drafts, files.values(), strict=True):
            with naming(path), open(name, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        put_in_place(list(zip(drafts, paths, strict=True)), force)
    return paths


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in errors of writing, such as a full disk."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(
            f"{path} cannot be written: {reason}; nothing of it is left. Give another "
            "place."
        ) from None


@contextmanager
def draft(path: Path) -> Iterator[str]:
    """Give a temporary name beside a file; what is left there is deleted.

    Missing folders are made, and deleted again if they stay empty.
    """
    made = [p for p in (path.parent, *path.parent.parents) if not p.exists()]
    try:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".blockspca.")
            os.close(handle)
        try:
            yield name
        finally:
            if os.path.exists(name):
                os.unlink(name)
    finally:
        for folder in made:
            with suppress(OSError):  # it holds something
                folder.rmdir()


def put_in_place(drafts: Sequence[tuple[str, Path]], force: bool) -> None:
    """Rename all drafts to their files, or none."""
    placed: list[Path] = []
    try:
        for name, path in drafts:
            with naming(path):
                os.chmod(name, 0o666 & ~_umask())
                _put_in_place(name, path, force)
            placed.append(path)
    except BaseException:
        if not force:  # they were not there before
            for path in placed:
                path.unlink(missing_ok=True)
        raise


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


def loadings_csv(loadings: Iterable[Mapping[str, float]]) -> str:
    """Return a row for each loading of each component, numbered from 1."""
    rows = ((j, *pair) for j, one in enumerate(loadings, 1) for pair in one.items())
    return to_csv(["component", "feature", "loading"], rows)


def scores_csv(
    scores: Any,
    names: Sequence[str] | None,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """Return a row for each sample: its name, or number, further columns, its scores.

    A further column that is called as one of ours is written as "sample (label)".
    """
    ours = ["sample", *(f"component_{j + 1}" for j in range(scores.shape[1]))]
    columns = columns or {}
    further = [f"{name} (label)" if name in ours else name for name in columns]
    rows = zip(names or range(len(scores)), *columns.values(), scores, strict=True)
    header = [ours[0], *further, *ours[1:]]
    return to_csv(header, ((*first, *row) for *first, row in rows))


def _cell(value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    return repr(value) if isinstance(value, float) else value
