"""`blockspca datasets`: data to try things on, written as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import UsageError, refuse_unknown
from .options import Force

if TYPE_CHECKING:
    from ..io import Table

# name: (loader in sklearn.datasets, what it is); all of them come with scikit-learn
_REAL = {
    "breast-cancer": ("load_breast_cancer", "569 tumours × 30 measurements"),
    "diabetes": ("load_diabetes", "442 patients × 10 measurements"),
    "digits": ("load_digits", "1797 images × 64 pixels"),
    "iris": ("load_iris", "150 flowers × 4 measurements"),
    "wine": ("load_wine", "178 wines × 13 measurements"),
}
_MODEL = "noisy-blocks"


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="The data set; without it, all are listed."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv file to write.")
    ] = None,
    force: Force = False,
) -> None:
    """List built-in data sets, or write one as a CSV file."""
    if name is None:
        for known, (_, text) in _REAL.items():
            typer.echo(f"  {known:<15}{text}")
        typer.echo(f"  {_MODEL:<15}Model 1 of the paper, 600 × 600 (--covariance)")
        typer.echo("Write one: blockspca datasets wine --output wine.csv")
        return
    refuse_unknown(name, "data set", [*_REAL, _MODEL])
    if output is None:
        raise UsageError(f"say where to write {name}: --output {name}.csv")
    from ..io.writing import check_output, to_csv, write_file

    check_output("--output", output, force, ".csv")
    table = _load(name)
    names = table.feature_names or tuple(f"f{j}" for j in range(table.shape[1]))
    write_file(output, to_csv(names, table.values.tolist()), force=force)
    typer.echo(f"Written: {output}, {table.shape[0]} × {table.shape[1]}")


def _load(name: str) -> Table:
    from ..io import Table

    if name == _MODEL:
        from ..datasets import noisy_blocks

        A, _ = noisy_blocks()
        return Table(values=A, is_matrix=True, source=name)
    import sklearn.datasets

    data = getattr(sklearn.datasets, _REAL[name][0])()
    names = tuple(str(feature) for feature in data.feature_names)
    return Table(values=data.data, feature_names=names, source=name)
