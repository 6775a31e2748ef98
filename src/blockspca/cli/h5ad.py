"""Results of `fit` in an h5ad file, beside the data that they are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .options import ReadOptions

if TYPE_CHECKING:
    from .solving import Fit


def refuse_other_than_h5ad(file: Path, reading: ReadOptions) -> None:
    """Refuse an h5ad output if the input is not one, or its features are changed."""
    from importlib.util import find_spec

    from ..io import ReadError
    from ..io.columnar import is_older

    if file.suffix.lower() != ".h5ad":
        raise ReadError(
            f"{file} is not an h5ad file, so --output cannot be one; give a directory."
        )
    for word in reading.as_arguments():
        if word in ("--transpose", "--names", "--covariance", "--background"):
            raise ReadError(
                f"{word} does not go with an h5ad file as --output; give a directory."
            )
    if is_older(file):
        raise ReadError(
            f"{file} has the layout of AnnData before 0.7, which cannot be extended; "
            "read and write it with anndata first, or give a directory as --output."
        )
    if find_spec("anndata") is None:
        raise ImportError(
            "an h5ad file as --output needs anndata; pip install 'blockspca[anndata]'."
        )


def write_h5ad(found: Fit, output: Path, force: bool) -> str:
    """Write the data with the results; return a line that says where."""
    import numpy as np

    from ..io.anndata_entries import entries_of, write_into
    from ..io.columnar import h5_names

    loaded = found.loaded
    every = np.array(h5_names(loaded.file, "var") or range(loaded.table.shape[1]))
    used = loaded.table.feature_names or every
    scores = loaded.scores(found.components.components)
    entries = entries_of(
        found.components,
        scores,
        np.isin(every, used),
        {
            "layer": loaded.options.key or "X",
            "scheme": found.scheme.value,
            "reading": " ".join(loaded.options.as_arguments()),
        },
    )
    write_into(loaded.file, output, entries, force=force)
    return (
        f"Written to {output}: obsm['{entries.obsm}'], varm['{entries.varm}'], "
        f"uns['{entries.key}']"
    )
