"""One reading of all input: arrays, sparse matrices, frames, files, dask.

Libraries are recognised by the names of types, so that none of them is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..validation import describe
from .tables import ArrayTable, SparseTable, Table

REAL = "fiub"  # kinds of dtypes

#: how to turn arrays of other libraries into arrays of NumPy
CONVERSIONS = {
    "torch": "{}.numpy(force=True)",
    "tensorflow": "{}.numpy()",
    "jax": "numpy.asarray({})",
    "jaxlib": "numpy.asarray({})",
    "cupy": "{}.get()",
    "cupyx": "{}.get()",
}


def library_of(value: Any) -> str:
    """Return the top module of a type."""
    return type(value).__module__.split(".")[0]


def is_sparse(value: Any) -> bool:
    """Tell whether `value` is scipy sparse, without importing scipy."""
    modules = (kind.__module__ for kind in type(value).__mro__)
    return any(module.startswith("scipy.sparse") for module in modules)


def table_of(X: Any, argument: str) -> tuple[Table, tuple[str, ...] | None]:
    """Return the table that X is, and the names of its features if it has any."""
    library = library_of(X)
    names = None
    if library == "anndata" and hasattr(X, "var_names"):
        X, names = X.X, tuple(str(name) for name in X.var_names)
        if X is None:
            raise ValueError(
                f"{argument} is an AnnData whose X is None and cannot be read; use "
                "a layer, such as adata.layers['counts']."
            )
        library = library_of(X)
    elif library in ("pandas", "polars") and hasattr(X, "columns"):
        names = tuple(str(name) for name in X.columns)
    table: Table
    if is_sparse(X):
        table = SparseTable(sparse_matrix(X, argument))
    elif library in ("h5py", "zarr", "anndata"):
        from .files import file_table

        table = file_table(X, argument)
    elif library == "dask" and hasattr(X, "dask") and hasattr(X, "to_delayed"):
        from .dask_table import dask_table

        table = dask_table(X, argument)
    else:
        table = ArrayTable(dense_array(X, argument))
    return table, names


def sparse_matrix(X: Any, argument: str) -> Any:
    """Return X in CSR or CSC without duplicates; X itself if it is that already."""
    refuse_dtype(X.dtype, argument)
    refuse_shape(X.shape, argument)
    matrix = X if X.format in ("csr", "csc") else X.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def dense_array(X: Any, argument: str) -> Any:
    """Return X as a two-dimensional array of real numbers, of any dtype."""
    refuse_objects_of_libraries(X, argument)
    library = library_of(X)
    if library in ("pandas", "polars"):
        if not hasattr(X, "columns"):
            raise TypeError(
                f"{argument} is a {library} {type(X).__name__} and must have two "
                "dimensions; use a DataFrame."
            )
        array = frame_array(X, argument)
    elif isinstance(X, np.ma.MaskedArray):
        array = np.ma.filled(X.astype(float), np.nan)  # masked numbers are missing
    elif type(X) in (np.ndarray, np.memmap):
        array = X
    else:
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise ValueError(
                f"{argument} cannot be read as an array ({error}); use rows of equal "
                "length."
            ) from None
    refuse_dtype(array.dtype, argument)
    refuse_shape(array.shape, argument)
    return array


def frame_array(frame: Any, argument: str) -> Any:
    """Return the numbers of a pandas or polars frame."""
    if library_of(frame) == "pandas":
        from pandas.api.types import is_numeric_dtype as is_number
    else:

        def is_number(dtype: Any) -> bool:
            return bool(dtype.is_numeric()) or str(dtype) == "Boolean"

    columns = zip(frame.columns, frame.dtypes, strict=True)
    texts = [f"{name} ({dtype})" for name, dtype in columns if not is_number(dtype)]
    if texts:
        raise TypeError(
            f"{argument} has {len(texts)} column(s) that cannot be read as numbers: "
            f"{describe(texts)}; drop or encode them, or use {argument}.set_index(...) "
            "for names of samples."
        )
    array = frame.to_numpy()
    if array.dtype == object:  # nullable columns
        array = frame.to_numpy(dtype=float, na_value=np.nan)
    return array


def refuse_objects_of_libraries(X: Any, argument: str) -> None:
    """Refuse objects that are no tables, with the conversion to write."""
    library = library_of(X)
    if library in CONVERSIONS:
        raise TypeError(
            f"{argument} is a {type(X).__name__} of {library} and must be an array of "
            f"NumPy; use {CONVERSIONS[library].format(argument)}."
        )
    if isinstance(X, (str, bytes)) or hasattr(X, "__fspath__"):
        raise TypeError(
            f"{argument} = {X!r} is a text and must be numbers; read the file first, "
            "for example with pandas.read_csv."
        )
    if X is None or isinstance(X, (dict, set)) or type(X).__name__ == "Covariance":
        raise TypeError(
            f"{argument} is of type {type(X).__name__} and must be a table; use a "
            "two-dimensional array or a DataFrame."
        )


def refuse_dtype(dtype: Any, argument: str) -> None:
    """Refuse dtypes of complex numbers, texts and objects."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        raise TypeError(
            f"{argument} has complex dtype {dtype} and must be real; use "
            f"{argument}.real."
        )
    if kind not in REAL:
        raise TypeError(
            f"{argument} has dtype {dtype} and must hold real numbers; use "
            f"{argument}.astype(float), with nan for missing values."
        )


def refuse_shape(shape: Any, argument: str) -> None:
    """Refuse shapes that are not two-dimensional, or empty."""
    if len(shape) != 2:
        raise ValueError(
            f"{argument} has shape {tuple(shape)} and must have two dimensions, "
            f"samples × features; use for example {argument}.reshape(-1, 1)."
        )
    if 0 in shape:
        raise ValueError(
            f"{argument} has shape {tuple(shape)} and cannot be empty; use at "
            "least one row and one column."
        )
