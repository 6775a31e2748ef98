"""`blockspca compile`: have the kernels ready before anybody waits for them."""

from __future__ import annotations

from .display import Display
from .options import ShowOptions, SolveOptions


def compile(show: ShowOptions) -> None:
    """Compile everything once, so that no later call does: for images and clusters.

    Kernels are kept beside the package, or where NUMBA_CACHE_DIR points.
    """
    display = Display(show)
    from .._kernels.loading import OTHERS, SOLVING, load

    for place, name in enumerate((*SOLVING, *OTHERS), 1):
        with display.working(f"Compiling {place} of {len(SOLVING) + len(OTHERS)}"):
            load(name)
    display.say("Everything is compiled.")


def compile_before(solving: SolveOptions, display: Display) -> None:
    """Compile what solving needs before a limit on time begins to count."""
    if solving.time is None:  # what is needed is compiled when it is
        return
    from .._kernels.loading import SOLVING, load

    with display.working("Loading the solver (the first time, it is compiled)"):
        load(*SOLVING)
