"""Parquet, h5ad and Zarr files, where pyarrow, h5py and zarr are installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .errors import Argument, ReadError, no_column, tell, text_column, unreadable
from .request import Request
from .table import Table

#: The column that scanpy marks genes with, which `tl.sparse_pca` takes by default.
HIGHLY_VARIABLE = "highly_variable"


def needed(path: Path, module: str) -> Any:
    """Import the package that a format needs, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ReadError(f"{path} needs {package}; pip install {package}.") from None


def read_parquet(path: Path, request: Request) -> Table:
    """Read a Parquet table, one row group at a time."""
    pa, pq = needed(path, "pyarrow"), needed(path, "pyarrow.parquet")
    size = path.stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            groups = []
            for i in range(file.num_row_groups):
                groups.append(file.read_row_group(i))
                request.tick(size * (i + 1) // file.num_row_groups, size)
            arrow = pa.concat_tables(groups) if groups else file.read()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, "Parquet file", error) from None
    if arrow.num_rows == 0:
        raise ReadError(f"{path} has columns but no rows; give some numbers.")
    index, found = request.index, arrow.column_names
    if len({*found}) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ReadError(f"{path} has two columns {twice!r}; give each its own name.")
    named = [("drop", name) for name in request.drop]
    for argument, wanted in (("index", index), ("label", request.label), *named):
        if wanted is not None and wanted not in found:
            raise no_column(path, "column", Argument(argument, wanted), found)
    # pandas stores the names of the rows as a column, or as several
    about = arrow.schema.pandas_metadata or {}
    stored = [c for c in about.get("index_columns", ()) if c in found]
    if index is None and stored:
        index = stored[0]
    others = [c for c in stored if c != index and c not in request.left_out]
    if others:
        tell(f"{path}: {', '.join(map(repr, others))} of its index is not a feature.")
    names = [name for name in found if name != index and name not in others]
    if not names:
        raise ReadError(f"{path} has no column of numbers besides its names.")
    text = {
        name: str(arrow.schema.field(name).type)
        for name in names
        if name not in request.left_out and not _is_numeric(pa, arrow, name)
    }
    if text and not request.numeric_only:
        name, kind = next(iter(text.items()))
        raise text_column(f"{path}: column {name!r} holds {kind}, not numbers", name)
    if text:
        tell(f"{path}: columns that hold no numbers were left out: {', '.join(text)}.")
        names = [name for name in names if name not in text]
    if not names:
        raise ReadError(f"{path} has no column of numbers besides its names.")
    columns = [
        np.full(arrow.num_rows, np.nan)  # left out by the caller, whatever it holds
        if name in request.left_out
        else _column(arrow.column(name))
        for name in names
    ]
    return Table(
        values=np.column_stack(columns),
        feature_names=tuple(names),
        sample_names=_texts(arrow.column(index)) if index is not None else None,
        source=str(path),
        labels=_texts(arrow.column(request.label)) if request.label else None,
    )


def _is_numeric(pa: Any, arrow: Any, name: str) -> bool:
    kind, types = arrow.schema.field(name).type, pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _texts(column: Any) -> tuple[str, ...]:
    values = column.to_pylist()
    return tuple("" if value is None else str(value) for value in values)


def _column(column: Any) -> Any:
    import pyarrow as pa

    # Whole numbers beyond 2^53 are the nearest float64, as they are in any array.
    numbers = column.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(numbers, dtype=np.float64)


def read_h5ad(path: Path, request: Request) -> Table:
    """Read X, or the layer `key`, of an AnnData file; a large one stays in the file."""
    h5py = needed(path, "h5py")
    try:
        file = h5py.File(path, "r")
        table = _annotated(path, file, request)
        if not hasattr(table.values, "columns_of"):
            file.close()
    except (OSError, KeyError) as error:
        raise unreadable(path, "h5ad file", error) from None
    return table


def read_zarr(path: Path, request: Request) -> Table:
    """Read X, or the layer `key`, of an AnnData in a Zarr store, a folder."""
    zarr = needed(path, "zarr")
    try:
        root = zarr.open(str(path), mode="r")
    except (OSError, KeyError, ValueError) as error:
        raise unreadable(path, "Zarr store", error) from None
    return _annotated(path, root, request)


def _annotated(path: Path, root: Any, request: Request) -> Table:
    """The table of an AnnData whose file or store is open."""
    from ..covariance.input_kinds import opened

    key = request.key
    where = "X" if key is None else f"layers/{key}"
    if where not in root:
        layers = ", ".join(root.get("layers", ())) or "none"
        asked = Argument("key")
        raise ReadError(
            f"{path} has no {where}; its layers, for {asked}, are: {layers}.", asked
        )
    node = root[where]
    values = opened(node)  # in memory unless it is large
    if values is node:
        raise ReadError(f"{path} holds no table of numbers in {where}.")
    table = Table(
        values=values,
        feature_names=_names(root, "var"),
        sample_names=_names(root, "obs"),
        source=str(path),
        labels=_h5_labels(path, root, request.label),
    )
    return _masked(table, _annotations(root, "var"), request.mask_var)


def _masked(table: Table, columns: Any, name: str | None) -> Table:
    """Keep the features that a column of `var` marks; mention one that is not used."""
    names = table.feature_names or tuple(str(j) for j in range(table.shape[1]))
    asked = Argument("mask_var", name or HIGHLY_VARIABLE)
    if name is not None and name not in columns:
        raise no_column(table.source, "var column", asked, _column_names(columns))
    if name is None and HIGHLY_VARIABLE not in columns:
        return table
    marks = columns[name or HIGHLY_VARIABLE]
    kind = getattr(marks, "dtype", None)
    if kind is None or kind.kind != "b":
        if name is None:
            return table
        raise ReadError(f"{table.source}: {asked} is not a column of booleans.", asked)
    # By place: of two genes of one name one may be marked.
    keep = [j for j, (_, kept) in enumerate(zip(names, marks[:], strict=True)) if kept]
    if name is None:
        kept = len(keep)
        if 0 < kept < len(names):
            tell(
                f"{table.source} marks {kept} of {len(names)} genes as highly variable "
                f"and all are used; add {asked} to choose among those, as "
                "tl.sparse_pca does.",
                asked,
            )
        return table
    if not keep:
        raise ReadError(f"{table.source}: {asked} marks no feature.", asked)
    return table.kept(keep) if len(keep) < len(names) else table


def h5_names(path: Path, axis: str) -> tuple[str, ...] | None:
    """Return the names of `obs` or `var` of an AnnData file, if it has some."""
    with needed(path, "h5py").File(path, "r") as file:
        return _names(file, axis)


def is_older(path: Path) -> bool:
    """Whether an AnnData file has tables where files since 0.7 have groups."""
    try:
        with needed(path, "h5py").File(path, "r") as file:
            return not hasattr(file.get("var", {}), "keys")
    except OSError:  # reading the file reports what is wrong with it
        return False


def _names(root: Any, axis: str) -> tuple[str, ...] | None:
    columns = _annotations(root, axis)
    index = getattr(columns, "attrs", {}).get("_index")
    if index is None:  # the first column of a table
        index = next(iter(columns)) if isinstance(columns, dict) and columns else None
    return None if index is None else tuple(_h5_column(columns, index))


def _annotations(root: Any, axis: str) -> Any:
    """The columns of `obs` or `var`; files before AnnData 0.7 have a table of them."""
    found = root.get(axis, {})
    if hasattr(found, "keys"):
        return found
    table, uns = found[()], root.get("uns", {})
    columns: dict[str, Any] = {name: table[name] for name in table.dtype.names or ()}
    ending = "_categories"
    named = {name: uns[name + ending] for name in columns if name + ending in uns}
    return {**columns, "__categories": named}


def _h5_labels(path: Path, file: Any, name: str | None) -> tuple[str, ...] | None:
    """A column of `obs`; samples without a value have the label ""."""
    if name is None:
        return None
    columns = _annotations(file, "obs")
    if name not in columns:
        asked = Argument("label", name)
        raise no_column(path, "obs column", asked, _column_names(columns))
    return tuple(_h5_column(columns, name, absent=""))


def var_column(path: Path, name: str) -> list[str]:
    """Read a column of `var`, one text for each feature, of an AnnData file."""
    h5py = needed(path, "h5py")
    try:
        with h5py.File(path, "r") as file:
            columns = _annotations(file, "var")
            if name not in columns:
                asked = Argument("groups", name)
                raise no_column(path, "var column", asked, _column_names(columns))
            return _h5_column(columns, name)
    except (OSError, KeyError) as error:
        raise unreadable(path, "h5ad file", error) from None


def _column_names(columns: Any) -> list[str]:
    """The names of columns, without what AnnData keeps beside them."""
    return [name for name in columns if name not in ("_index", "__categories")]


def _h5_column(columns: Any, name: str, absent: str | None = None) -> list[str]:
    """Return a column as texts, from texts or categories, in either layout of AnnData.

    `absent` replaces missing values; if it is None, they are refused.
    """
    node, labels = columns[name], None
    if hasattr(node, "keys"):
        codes, labels = node["codes"][()], node["categories"][()]
    else:
        codes = node[()]
        if "__categories" in columns and name in columns["__categories"]:
            labels = columns["__categories"][name][()]
    if labels is None:
        values = list(codes)
    elif absent is None and (codes < 0).any():
        raise ReadError(
            f"var column {name!r} has {int((codes < 0).sum())} missing value(s); give "
            "each feature a label, its own if it belongs to nothing."
        )
    else:
        values = [absent if code < 0 else labels[code] for code in codes]
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]
