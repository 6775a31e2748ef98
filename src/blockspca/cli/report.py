"""`blockspca report`: a page about a file, to open in a browser."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .constraining import ConstraintOptions
from .display import Display
from .fit import saying_instead
from .inspecting import InspectOptions, inspect
from .loading import Loaded
from .options import File, Force, ReadOptions, ShowOptions, SolveOptions
from .solving import (
    ComponentOptions,
    Fit,
    end_of,
    say_interrupted,
    was_interrupted,
)

if TYPE_CHECKING:
    from ..sparsity_path import SparsityPath


def report(
    file: File,
    asked: ComponentOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The .html file to write.", show_default=False
        ),
    ],
    reading: ReadOptions,
    solving: SolveOptions,
    show: ShowOptions,
    constraining: ConstraintOptions,
    inspecting: InspectOptions,
    force: Force = False,
) -> None:
    """Write one self-contained HTML page: components, blocks, path, certificate."""
    from ..io.writing import check_output, write_file
    from .solving import fit_components

    display = Display(show)
    asked.sparsity()  # what is wrong with it is said before the file is read
    check_output("--output", output, force, ".html", ".htm")
    inspecting.check(reading, constraining)
    if find_spec("jinja2") is None:
        raise ImportError("the report needs jinja2; pip install 'blockspca[report]'.")
    from .loading import load

    loaded = load(file, reading, display)
    found = fit_components(loaded, asked, _without_path(solving), display, constraining)
    path, interrupted = None, found.interrupted
    more: dict[str, Any] = {}
    if not interrupted:
        path = _path(found, solving, display)
        interrupted = was_interrupted(path.values())
        if not interrupted:
            more, interrupted = inspect(
                found, inspecting, solving, constraining, display
            )
        if interrupted:
            say_interrupted(display)
    with display.working("Drawing"):
        text = _page(found, path, asked, solving, more)
    with saying_instead(found, display):
        write_file(output, text, force=force)
    display.say(f"Written: {output}")
    end_of(found, display, solving, interrupted)


def _without_path(solving: SolveOptions) -> SolveOptions:
    """Return the limits of the components: the time less that of the path over k."""
    from ..report.first_component import PATH_SECONDS, PATH_SHARE

    if solving.time is None:
        return solving
    kept = min(PATH_SECONDS, PATH_SHARE * solving.time)
    return replace(solving, time=solving.time - kept)


def _path(found: Fit, solving: SolveOptions, display: Display) -> SparsityPath:
    from ..report.first_component import path_of

    with display.solving() as progress:
        return path_of(
            found.loaded.cov,
            found.components,
            solving.limits(),
            found.seconds,
            n_jobs=solving.jobs,
            progress=progress,
        )


def how_read(loaded: Loaded) -> dict[str, Any]:
    """Return what was done to the file before anything was solved."""
    options = loaded.options
    more = []
    left_out = [*(options.drop or ()), *([options.label] if options.label else [])]
    if left_out and not loaded.file.name.endswith(".h5ad"):
        more.append(f"Left out: {', '.join(left_out)}.")
    if options.background is not None:
        times = "" if options.weight == 1 else f", times {options.weight:g},"
        more.append(f"The covariance of {options.background.name}{times} is taken off.")
    return {
        "matrix": loaded.table.is_matrix,
        "center": not options.no_center,
        "scale": options.scale,
        "missing": options.missing.value,
        "constant": options.constant.value,
        "more": more,
    }


def _page(
    found: Fit,
    path: SparsityPath | None,
    asked: ComponentOptions,
    solving: SolveOptions,
    more: dict[str, Any],
) -> str:
    from ..report.page import build_report, report_of
    from .fit import verify_commands

    loaded = found.loaded
    page = report_of(
        loaded.cov,
        found.components,
        loaded.file.name,
        how_read(loaded),
        {
            "file": loaded.file.name,
            "reading": " ".join(loaded.options.as_arguments()) or "as data, centred",
            "k": asked.k,
            "components": asked.n_components,
            "scheme": asked.scheme.value,
            "time limit": solving.time,
            "gap limit": solving.gap,
            "node limit": solving.nodes,
            "threads": solving.jobs,
        },
        path=path,
        scores=loaded.scores(found.components.components),
        sample_names=loaded.table.sample_names,
        verify_commands=verify_commands(found),
        seconds=found.seconds,
        labels=loaded.table.labels,
        label_name=loaded.options.label or "label",
        n_requested=found.n_components,
        **more,
    )
    return build_report(page)
