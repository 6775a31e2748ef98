"""blockspca fit: components of a file, with their proofs in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback()
def blockspca() -> None:
    """Sparse PCA with a proof of how good the answer is."""


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="Samples × features: .csv or .npy.")],
    components: Annotated[int, typer.Option("--components", "-m")] = 2,
    k: Annotated[
        int | None,
        typer.Option("-k", help="Features of each component; 10, or all if fewer."),
    ] = None,
    scale: Annotated[bool, typer.Option(help="Solve for correlations.")] = False,
    time: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    proof: Annotated[
        Path | None, typer.Option(help="Write the proof to this file.")
    ] = None,
) -> None:
    """Find sparse components, prove how good they are, and print them."""
    from ..components import solve_components
    from ..covariance import Covariance
    from ..limits import Limits

    try:
        if proof is not None:
            check_proof(proof, data)
        X = read(data)
        cov = Covariance.from_data(X, scale=scale)
        limits = None if time is None else Limits(time=time)
        k = min(10, cov.n_features) if k is None else k
        solution = solve_components(cov, components, k, limits=limits)
        typer.echo(str(solution))
        if proof is not None:
            solution.write_proof(proof, X)
            typer.echo(f"Check it: python -m blockspca.checker {proof} {data}")
    except (ValueError, TypeError, OSError) as error:
        typer.echo(f"blockspca: {error}", err=True)
        raise typer.Exit(2) from None


@app.command("compile")
def compile_kernels() -> None:
    """Compile all kernels ahead of the first call."""
    from .._kernels.compilation import compile_all

    raise typer.Exit(min(compile_all(), 1))


def check_proof(proof: Path, data: Path) -> None:
    """Refuse a place for a proof before anything is solved for it."""
    if proof.exists() and data.exists() and proof.samefile(data):
        raise ValueError(
            f"--proof = {proof} cannot be the file of the data, which the proof would "
            "replace; use another file."
        )
    if proof.is_dir() or not proof.parent.is_dir():
        raise ValueError(
            f"--proof = {proof} must be a file in a folder that exists; use for "
            f"example --proof {data.with_suffix('.proof').name}."
        )


def read(path: Path) -> Any:
    """Return the table in a file; a .csv file has a header."""
    import numpy as np

    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".csv":
        import pandas

        table = pandas.read_csv(path)
        unnamed = [str(name) for name in table if str(name).startswith("Unnamed: ")]
        if unnamed:
            raise ValueError(
                f"{path} has a column without a name ({unnamed[0]}); write the file "
                "without row names, or name the column."
            )
        numbers = pandas.to_numeric(table.columns.to_series(), errors="coerce")
        if len(table.columns) and numbers.notna().all():
            raise ValueError(
                f"{path} must have names in its first line, not numbers; add a header."
            )
        return table
    raise ValueError(f"{path} must be a .csv or .npy file; convert it first.")


def main() -> None:
    """Run the command line."""
    app()
