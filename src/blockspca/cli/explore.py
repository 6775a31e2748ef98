"""`blockspca explore`: a page with sliders in the browser, from this machine only."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..scheme_defaults import DEFAULT_SCHEME
from .constraining import Groups
from .declaring import option, real, whole
from .display import Display
from .fit import verify_words
from .options import File, NComponents, ReadOptions, SchemeOption, ShowOptions

if TYPE_CHECKING:
    from ..explore.dataset import Dataset
    from ..explore.state import State
    from .loading import Loaded


@dataclass(frozen=True)
class ExploreOptions:
    """How the page starts, and how it is served."""

    k: int = option("Number of features at the start.", 5, "-k", **whole(1))
    n_components: NComponents = 1
    scheme: SchemeOption = DEFAULT_SCHEME
    groups: Groups = None
    time: float = option("Seconds for each answer.", 10.0, **real(0.1))
    jobs: int | None = option(
        "Number of threads; -1 uses all cores.", 1, "--jobs", "-j"
    )
    port: int = option("Port of the page; 0 takes a free one.", 0, **whole(0))
    browser: bool = option(
        "Open the page in a browser.", True, "--browser/--no-browser"
    )
    keep: bool = option("Keep running when the last tab is closed.", False)


def explore(
    file: File, reading: ReadOptions, show: ShowOptions, asked: ExploreOptions
) -> None:
    """Open a page with sliders: components, bounds and samples as you move them.

    It is served to this machine only, under an address that holds a secret, and ends
    with Ctrl-C or when its tab is closed.
    """
    from ..explore.run import check_extra, make_server, run
    from ..explore.state import State

    check_extra()
    display = Display(show)
    from .loading import load

    loaded = load(file, reading, display)
    dataset = as_dataset(loaded, asked.groups)
    begun = {
        "k": min(asked.k, dataset.n_features),
        "n_components": asked.n_components,
        "scheme": asked.scheme.value,
        "scale": reading.scale,
        "seconds": asked.time,
        "weight": None if reading.background is None else reading.weight,
        "label": next(iter(dataset.labels), None),
    }
    server = make_server(
        dataset,
        State.checked(begun, dataset.n_features),
        port=asked.port,
        n_jobs=asked.jobs,
        ends_with_tab=not asked.keep,
    )

    def ready() -> None:
        display.say(f"Explore: {server.url}")
        display.note("Ctrl-C, or closing the tab, ends it.")
        if asked.browser:
            import webbrowser

            webbrowser.open(server.url)

    run(server, ready)


def as_dataset(loaded: Loaded, groups: str | None) -> Dataset:
    """Return the data of the page, with what it needs to write commands and scripts."""
    from ..explore.dataset import Dataset, Source
    from ..io.groups import read_groups
    from .loading import read_file

    options, background = loaded.options, loaded.options.background
    held = loaded.table.labels
    return Dataset(
        table=loaded.table,
        name=loaded.file.name,
        center=not options.no_center,
        missing=options.missing.value,
        constant=options.constant.value,
        background=None if background is None else read_file(background, options),
        groups=None
        if groups is None
        else read_groups(groups, loaded.file, loaded.cov.feature_names),
        labels={} if held is None else {options.label or "label": held},
        source=Source(
            file=str(loaded.file),
            background="" if background is None else str(background),
            reading=options.as_keywords(),
            commands=partial(commands, loaded.file, options, groups),
        ),
    )


def commands(
    file: Path,
    options: ReadOptions,
    groups: str | None,
    state: State,
    names: tuple[str, ...],
) -> list[str]:
    """The command that finds the components of a state, and those that check them."""
    back = None if state.weight is None else options.background
    weight = 1.0 if state.weight is None else state.weight
    reading = replace(options, scale=state.scale, background=back, weight=weight)
    words = ["blockspca", "fit", str(file), "-k", str(state.k)]
    words += ["--n-components", str(state.n_components), "--scheme", state.used_scheme]
    for flag, chosen in (("--include", state.include), ("--exclude", state.exclude)):
        words += [word for i in chosen for word in (flag, names[i])]
    if state.max_per_group is not None and groups is not None:
        words += ["--groups", groups, "--max-per-group", str(state.max_per_group)]
    words += ["--nonnegative"] if state.nonnegative else []
    words += ["--time", f"{state.seconds:g}", "--output", "components"]
    made = [shlex.join([*words, *reading.as_arguments()])]
    return [*made, *verify_words(file, reading, state.scheme, state.n_components)]
