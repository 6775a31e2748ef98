"""`blockspca compile`: compile the kernels, or those needed before a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .display import Display
from .options import ShowOptions, SolveOptions

if TYPE_CHECKING:
    from ..covariance.covariance import Covariance


def compile(show: ShowOptions) -> None:
    """Compile all kernels now, so that no later call has to, as in container images.

    Compiled kernels are kept beside the package, or where NUMBA_CACHE_DIR points.
    """
    display = Display(show)
    from .._kernels.loading import OTHERS, PROVING, SCANNING, load

    names = (*PROVING, *SCANNING, *OTHERS)
    for place, name in enumerate(names, 1):
        with display.working(f"Compiling {place} of {len(names)}"):
            load(name)
    display.say("Everything is compiled.")


def compile_before(
    solving: SolveOptions,
    cov: Covariance,
    display: Display,
    proof: bool = False,
    further: Sequence[str] = (),
) -> None:
    """Compile the kernels of a solve, or of a proof, before a time limit starts.

    `further` kernels are those of a scheme.
    """
    if solving.time is None:  # what is needed is compiled when it is
        return
    from .._kernels.loading import PROVING, RECORDED_BY, load
    from ..scan.lists import scan_kernels

    more = RECORDED_BY if proof else ()

    with display.working("Loading the solver (the first time, it is compiled)"):
        load(*PROVING, *scan_kernels(cov), *more, *further)
