"""A file as a table of numbers with names, and the table as a covariance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._feature_names import meant
from .errors import Argument, ReadError, no_column, tell
from .lines import STANDARD_INPUT
from .request import TABLES, TEXT, Request

if TYPE_CHECKING:
    from .._validation import FloatArray
    from ..covariance.covariance import Covariance

# How a name ends, and the function that reads such a file: fn(path, request). They are
# imported when asked for, so that pyarrow or h5py is needed for their formats only.
_READERS = {
    ".csv": "delimited:read_delimited",
    ".csv.gz": "delimited:read_delimited",
    ".tsv": "delimited:read_delimited",
    ".tsv.gz": "delimited:read_delimited",
    ".txt": "delimited:read_delimited",
    ".txt.gz": "delimited:read_delimited",
    ".parquet": "columnar:read_parquet",
    ".h5ad": "columnar:read_h5ad",
    ".zarr": "columnar:read_zarr",
    ".npy": "arrays:read_npy",
    ".npz": "arrays:read_npz",
    ".mtx": "arrays:read_mtx",
    ".mtx.gz": "arrays:read_mtx",
}

#: Formats whose labels are in `obs`, beside the features.
IN_OBS = (".h5ad", ".zarr")

#: The endings that are understood.
FORMATS = tuple(_READERS)


@dataclass(frozen=True)
class Table:
    """Numbers from a file: samples × features, or a symmetric matrix.

    Attributes
    ----------
    values : array or scipy sparse matrix of shape (n, d)
        Of a large h5ad or Zarr file, what reads it in blocks of rows.
    feature_names, sample_names : tuple of str or None
        Names of the columns and of the rows, where the file has them.
    is_matrix : bool
        True if the values are a symmetric matrix A, and not data X.
    source : str
        Where it came from.
    labels : tuple of str or None
        For each sample what the column that was asked for says; "" where it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.io import Table
    >>> Table(np.eye(3), ("a", "b", "c")).without(["b"]).feature_names
    ('a', 'c')
    """

    values: Any
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    is_matrix: bool = False
    source: str = ""
    labels: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    def transposed(self) -> Table:
        """Swap samples and features."""
        return replace(
            self,
            values=_in_memory(self.values).T,
            feature_names=self.sample_names,
            sample_names=self.feature_names,
            labels=None,
        )

    def named(self, names: Sequence[str]) -> Table:
        """Give the features other names."""
        if len(names) != self.shape[1]:
            raise ReadError(
                f"there are {len(names)} names for {self.shape[1]} features in "
                f"{self.source}; give one name for each feature."
            )
        return replace(self, feature_names=tuple(names))

    def without(self, columns: Iterable[str]) -> Table:
        """Leave out features by name."""
        columns = list(columns)
        names = self.feature_names or tuple(str(j) for j in range(self.shape[1]))
        unknown = [name for name in columns if name not in names]
        if unknown:
            asked = Argument("drop", unknown[0])
            raise no_column(self.source, "column", asked, names)
        keep = [j for j, name in enumerate(names) if name not in set(columns)]
        if not keep:
            raise ReadError(f"no column of {self.source} is left; drop fewer.")
        return self.kept(keep)

    def kept(self, keep: list[int]) -> Table:
        """Keep some features, by their places, which name them if nothing else does."""
        names = self.feature_names or tuple(str(j) for j in range(self.shape[1]))
        values = _in_memory(self.values)
        values = values.tocsr() if hasattr(values, "tocsr") else values
        values = values[:, keep]
        if self.is_matrix:
            values = values[keep]
        return replace(self, values=values, feature_names=tuple(names[j] for j in keep))

    def covariance(
        self,
        *,
        center: bool = True,
        scale: bool = False,
        missing: Literal["raise", "pairwise"] = "raise",
        constant: Literal["warn", "ignore", "raise"] = "warn",
    ) -> Covariance:
        """Return A: the matrix itself, or the covariance of the data."""
        from ..covariance.covariance import Covariance

        if self.is_matrix:
            return Covariance.from_matrix(self.values, feature_names=self.feature_names)
        return Covariance.from_data(
            self.values,
            center=center,
            scale=scale,
            missing=missing,
            constant=constant,
            feature_names=self.feature_names,
        )

    def scores(
        self, loadings: FloatArray, *, center: bool = True, scale: bool = False
    ) -> FloatArray | None:
        """Return (X − μ) D x for each component, or None for a matrix.

        D divides by the standard deviation where `scale` is True. A missing value
        counts as its column's mean: it adds nothing.

        Parameters
        ----------
        loadings : array of shape (n_components, d)
        """
        from .._samples import projected, standard_deviations

        if self.is_matrix:
            return None
        support = np.flatnonzero(loadings.any(axis=0))
        values = self.values
        if hasattr(values, "columns_of"):  # of a file
            X = values.columns_of(support)
        elif hasattr(values, "tocsc"):
            X = values.tocsc()[:, support].toarray().astype(np.float64)
        else:
            X = np.array(values[:, support], dtype=np.float64)
        mean = np.nanmean(X, axis=0) if center else np.zeros(len(support))
        weights = loadings[:, support]
        if scale:
            weights = weights / standard_deviations(X, mean)
        return projected(X, mean, weights.T)


def read_table(path: str | Path, **wanted: Any) -> Table:
    """Read a file by what its name ends with; see `FORMATS`.

    Parameters
    ----------
    path : str or Path
        "-" is standard input, as text.
    **wanted
        See `Request`: key, index, drop, header, tick, label, decimal, encoding, na,
        numeric_only, mask_var.

    Raises
    ------
    ReadError
        With one sentence that says what is wrong and what to do.

    Warns
    -----
    ReadNote
        Where a column is taken for names, or seems to number the samples.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from blockspca.io import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "prices.csv"
    ...     _ = path.write_text("a;b\\n1,5;-\\n2,5;3\\n")
    ...     read_table(path, decimal=",", na=["-"]).values
    array([[1.5, nan],
           [2.5, 3. ]])
    """
    known = [at.name for at in fields(Request)]
    for name in wanted:
        if name not in known:
            raise TypeError(
                f"read_table has no argument {name!r}; {meant(name, known)}"
            )
    path, request = Path(path), Request(**wanted)
    piped = path == STANDARD_INPUT
    ending = ".csv" if piped else _ending(path)
    request.check_applies(str(path), ending)
    if not piped and path.stat().st_size == 0:
        raise ReadError(f"{path} is empty; give a file with numbers.")
    module, name = _READERS[ending].split(":")
    reader = getattr(import_module(f".{module}", __package__), name)
    try:
        table: Table = reader(path, request)
    except PermissionError:
        raise ReadError(
            f"{path} cannot be opened; its permissions forbid it."
        ) from None
    if not piped:
        size = path.stat().st_size
        request.tick(size, size)
    left_out, label = list(request.drop), request.label
    # Labels of an h5ad file are in obs, and a column of names is no feature already.
    if (
        label is not None
        and ending not in IN_OBS
        and label in (table.feature_names or ())
    ):
        left_out.append(label)
    table = table.without(left_out) if left_out else table
    tell_of_numbering(table)
    if ending.startswith(TEXT):
        tell_of_codes(table)
    return table


def may_hold_text(path: Path) -> bool:
    """Tell whether a file is of a kind whose columns may hold text."""
    return path == STANDARD_INPUT or _ending(path).startswith(TABLES)


def _ending(path: Path) -> str:
    """Return the ending of a file's name, or refuse an unknown one."""
    if path.is_dir() and not _ends(path, ".zarr"):
        raise ReadError(f"{path} is a directory; give a file.")
    if not path.exists():
        raise ReadError(f"{path} does not exist; check the name.")
    # The longest first: .csv.gz is not .gz.
    ending = next((e for e in sorted(_READERS, key=len)[::-1] if _ends(path, e)), None)
    if ending is None:
        what = f"ends with {path.suffix!r}" if path.suffix else "has no ending"
        raise ReadError(
            f"{path} {what}; files are recognised by one of these endings: "
            f"{', '.join(FORMATS)}."
        )
    return ending


_NUMBERING = re.compile(r"(.*[ _.-])?(id|ids|idx|index|nr|no|number|row|rowid)", re.I)
_ROWS = 5  # fewer that count up by one may well be measured


def tell_of_numbering(table: Table) -> None:
    """Warn if columns of whole numbers seem to number the samples.

    They count up by one, or are called so and have no number twice.
    """
    values, names = table.values, table.feature_names
    n, d = table.shape
    in_file = hasattr(values, "columns_of")  # to be read in blocks, if at all
    if names is None or in_file or hasattr(values, "tocsr") or n < 3 or d < 2:
        return
    # A few rows rule out nearly all columns; only what is left is read as a whole.
    first = np.asarray(values[:_ROWS])
    counts_up = np.all(np.diff(first, axis=0) == 1, axis=0)
    found = []
    for j, name in enumerate(names):
        called_so = _NUMBERING.fullmatch(name) is not None
        if not (counts_up[j] or called_so):
            continue
        column = np.asarray(values[:, j])
        if np.all(np.diff(column) == 1):
            suspect = called_so or n >= _ROWS
        else:
            distinct = len(np.unique(column)) == n and not np.any(column % 1)
            suspect = called_so and distinct
        if suspect:
            found.append(name)
    if found and len(found) < d:
        drop, index = Argument("drop", found), Argument("index", found[0])
        one = len(found) == 1
        said = "column {} seems" if one else "columns {} seem"
        tell(
            f"{table.source}: {said.format(', '.join(map(repr, found[:5])))} to number "
            f"the samples, and {'is a feature' if one else 'are features'} like any "
            f"other; leave {'it' if one else 'them'} out with {drop}, or use {index}.",
            drop,
            index,
        )


_CODES = (-99, -999, -9999, 99, 999, 9999)


def tell_of_codes(table: Table) -> None:
    """Warn if numbers such as -99 seem to stand for missing values.

    They do if they are farther from all others of their column than those are from one
    another.
    """
    values = np.asarray(table.values)
    # A code lies outside of what was measured: where it is no extreme, it is a number.
    extremes = (np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
    for code in _CODES:
        suspects = np.flatnonzero((extremes[0] == code) | (extremes[1] == code))
        count, columns = 0, []
        for j in suspects:
            marked = values[:, j] == code
            others = values[~marked & ~np.isnan(values[:, j]), j]
            if len(others) > 1 and np.abs(others - code).min() > np.ptp(others) > 0:
                count += int(marked.sum())
                columns.append((table.feature_names or range(values.shape[1]))[j])
        if count > 1:
            na, gaps = Argument("na", [str(code)]), Argument("missing", "pairwise")
            more = ", …" if len(columns) > 3 else ""
            tell(
                f"{table.source}: {code} is {count} times a value, in column(s) "
                f"{', '.join(map(repr, columns[:3]))}{more}, and far from all others; "
                f"if it stands for what is missing, add {na} and {gaps}.",
                na,
                gaps,
            )


def _in_memory(values: Any) -> Any:
    """Read values that are still in their file."""
    return values.to_memory() if hasattr(values, "to_memory") else values


def _ends(path: Path, ending: str) -> bool:
    return path.name.lower().endswith(ending)
