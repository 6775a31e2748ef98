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
    k: Annotated[int, typer.Option("-k", help="Features of each component.")] = 10,
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
        X = read(data)
        cov = Covariance.from_data(X, scale=scale)
        limits = None if time is None else Limits(time=time)
        solution = solve_components(
            cov, components, min(k, cov.n_features), limits=limits
        )
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


def read(path: Path) -> Any:
    """Return the numbers of a file, with the names of a header."""
    import numpy as np

    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".csv":
        import pandas

        return pandas.read_csv(path)
    raise ValueError(f"{path} must be a .csv or .npy file; convert it first.")


def main() -> None:
    """Run the command line."""
    app()
