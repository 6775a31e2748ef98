"""`blockspca demo`: the library on built-in examples."""

from __future__ import annotations

from typing import Annotated

import typer

from .declaring import whole


def demo(
    seed: Annotated[
        int, typer.Option(help="Seed of the synthetic example.", **whole(0))
    ] = 0,
) -> None:
    """Solve the paper's introductory example and one real data set."""
    from .demonstration import run

    run(seed)
