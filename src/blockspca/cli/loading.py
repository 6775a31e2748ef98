"""A file and its options as a table and its covariance, with progress."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import Display
from .errors import as_option
from .options import ReadOptions

if TYPE_CHECKING:
    from ..covariance.covariance import Covariance
    from ..io import Table


@dataclass(frozen=True)
class Loaded:
    """A file that was read, with its covariance."""

    file: Path
    options: ReadOptions
    table: Table
    cov: Covariance

    def scores(self, loadings: Any) -> Any:
        """Return the samples × components scores, or None for a matrix."""
        options = self.options
        return self.table.scores(
            loadings, center=not options.no_center, scale=options.scale
        )


def read_for_proof(file: Path, options: ReadOptions, display: Display) -> Table:
    """Read the table that a proof is about, into memory.

    Columns of text are left out without being asked: a proof does not note what fit has
    left out, and its hash of the numbers tells whether it was these columns.
    """
    with display.reading(file.name) as tick:
        from ..io.table import may_hold_text

        if may_hold_text(file):
            options = replace(options, numeric_only=True)
        table = read_file(file, options, tick)
        if hasattr(table.values, "to_memory"):  # a large h5ad or Zarr file
            table = replace(table, values=table.values.to_memory())
        return table


def load(file: Path, options: ReadOptions, display: Display) -> Loaded:
    """Read a file and make its covariance; anything wrong with it is a ReadError."""
    with display.reading(file.name) as tick:
        # Imported under the bar: NumPy takes longer to load than the bar to appear.
        from ..covariance.covariance import refuse_constant
        from ..io import ReadError

        table = read_file(file, options, tick)
    with display.working("Computing variances"):
        _check(table, file, options)
        try:
            cov = _covariance(table, options)
            refuse_constant(cov)
            if options.background is not None:
                cov = _less_background(cov, options)
        except (ValueError, TypeError) as error:
            named = getattr(error, "arguments", ())
            raise ReadError(_about_file(file, str(error)), *named) from error
    if not table.is_matrix and _looks_like_a_matrix(table.values):
        display.note(
            f"{file} is square and symmetric; add --covariance if it is a covariance "
            "matrix and not data."
        )
    return Loaded(file, options, table, cov)


def read_file(file: Path, options: ReadOptions, tick: Any = None) -> Table:
    """Read a file as the options say."""
    from ..io import ReadError, read_table
    from ..io.errors import Argument

    more = {} if tick is None else {"tick": tick}
    try:
        table = read_table(file, **options.as_keywords(), **more)
    except ReadError as error:
        for at in error.arguments if options.covariance else ():
            if at.name == "index" and at.value is not None:
                # Of the ways out of a column of text, a matrix has this one.
                raise ReadError(
                    f"{file}: column {at.value!r} holds text, and a matrix has numbers "
                    f"only; add {at} if it names the rows.",
                    at,
                ) from None
        raise
    if options.transpose and options.label is not None:
        asked = Argument("label", options.label)
        raise ReadError(
            f"{file}: {asked} names a column, and with --transpose columns are "
            "samples; leave one of the two out.",
            asked,
        )
    if options.transpose:
        table = table.transposed()
    if options.names is not None:
        table = table.named(_read_names(options.names))
    if options.covariance:
        table = replace(table, is_matrix=True)
    return table


def _less_background(cov: Covariance, options: ReadOptions) -> Covariance:
    """Subtract the covariance of the background, read as the target was."""
    from ..covariance.contrast import contrastive

    assert options.background is not None
    table = read_file(options.background, options)
    _check(table, options.background, options)
    return contrastive(cov, _covariance(table, options), options.weight)


def _covariance(table: Table, options: ReadOptions) -> Covariance:
    return table.covariance(
        center=not options.no_center,
        scale=options.scale,
        missing=options.missing.value,
        constant=options.constant.value,
    )


def _about_file(file: Path, said: str) -> str:
    """The library speaks of its argument X or A, the user of a file."""
    said = said.replace("rescale X", "rescale it").replace(
        "or data (rows are samples) to Covariance.from_data",
        "or leave --covariance out if its rows are samples",
    )
    return f"{file}{said[1:]}" if said[:2] == "X " else f"{file}: {said}"


def _check(table: Table, file: Path, options: ReadOptions) -> None:
    """Refuse a table that has no covariance, in terms of files and options."""
    import numpy as np

    from .._messages import count
    from ..io import ReadError

    n, d = table.shape
    if table.is_matrix:
        for word in options.as_arguments():
            if word in ("--scale", "--no-center", "--missing", "--constant"):
                raise ReadError(
                    f"{file} holds a matrix, which {word} does not apply to; leave it "
                    "out."
                )
        if n != d:
            names = table.feature_names
            first = ""
            if d == n + 1 and names:
                index = as_option("index", names[0])
                first = f"add {index} if its first column names the rows, or "
            raise ReadError(
                f"{file} is {n} × {d}, not a square matrix; {first}leave --covariance "
                "out if its rows are samples."
            )
        return
    if n < 2:
        raise ReadError(
            f"{file} has {count(n, 'sample')}; give at least two, one in each row "
            "(--transpose if they are columns)."
        )
    if isinstance(table.values, np.ndarray):
        empty = np.flatnonzero(np.isnan(table.values).all(axis=0))
        if len(empty):
            names = table.feature_names
            name = names[empty[0]] if names else str(empty[0])
            raise ReadError(
                f"{file}: column {name!r} has no values at all; leave it out with "
                f"--drop {name!r}."
            )


def _read_names(path: Path) -> list[str]:
    from ..io.errors import Argument
    from ..io.groups import text_lines

    lines = text_lines(path, Argument("names", str(path)))
    # Tables of genes have the name in the first of several columns.
    return [line.split("\t")[0] for line in lines]


def _looks_like_a_matrix(values: Any) -> bool:
    import numpy as np

    in_file = hasattr(values, "columns_of")
    if in_file or values.shape[0] != values.shape[1] or values.shape[0] < 2:
        return False
    if hasattr(values, "tocsr"):
        return abs(values - values.T).nnz == 0
    return bool(np.array_equal(values, values.T))
