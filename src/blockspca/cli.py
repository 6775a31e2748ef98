"""The command line: `blockspca demo` shows the library on built-in examples."""

from __future__ import annotations

import typer

from . import __version__

app = typer.Typer(
    name="blockspca",
    help="Sparse PCA by block-diagonalization, with a proof of how good the answer is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"blockspca {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show it, end."
    ),
) -> None:
    """Sparse PCA by block-diagonalization, with a proof of how good the answer is."""


@app.command()
def demo(
    seed: int = typer.Option(0, min=0, help="Seed of the synthetic example."),
) -> None:
    """Solve the paper's introductory example and one real data set."""
    from .demo import run

    run(seed)


def main() -> None:
    """Entry point of the `blockspca` script."""
    app()
