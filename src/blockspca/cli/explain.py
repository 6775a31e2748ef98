"""`blockspca explain`: a proof for a reader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .display import Display
from .options import Force, ReadOptions, ShowOptions


def explain(
    proof: Annotated[
        Path,
        typer.Argument(
            help="A proof that fit --proof has written.", show_default=False
        ),
    ],
    reading: ReadOptions,
    show: ShowOptions,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The data file, for the names of features.", show_default=False
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="An .html file to write, with every step."),
    ] = None,
    force: Force = False,
) -> None:
    """Show what a proof says: its bounds, when features were excluded, and its trees.

    Nothing is checked; `blockspca verify PROOF DATA` does that.
    """
    from ..checker.proof_file import ProofError, read_proof
    from ..io.writing import check_output, write_file
    from ..report.proof_page import proof_lines, proof_page

    check_output("--html", html, force, ".html")
    display = Display(show)
    names = None
    if file is not None:
        from .loading import read_for_proof

        names = read_for_proof(file, reading, display).feature_names
    try:
        sections = read_proof(proof)
    except (ProofError, OSError) as error:
        raise ValueError(f"{proof} is not a proof: {error}.") from None
    for line in proof_lines(sections, names):
        display.say(line)
    if file is None:
        display.note("features are numbered from 0; add the data for their names.")
    if html is not None:
        write_file(html, proof_page(sections, names), force=force)
        display.say(f"Written: {html}")
