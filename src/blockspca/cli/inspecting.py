"""How sure a selection is, for the report: what is computed only when asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .constraining import ConstraintOptions
from .display import Display
from .options import Missing, ReadOptions, SolveOptions, whole
from .solving import Fit

if TYPE_CHECKING:
    from ..limits import Limits

_PANEL = "How sure the selection is"
SECONDS = 60.0  # for each of them, where --time does not say


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


def _parse_share(text: Any) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if 0 < share < 1:
        return share
    raise typer.BadParameter(f"{text!r} is not between 0 and 1; 0.01 is 1 %.")


@dataclass(frozen=True)
class InspectOptions:
    """Alternatives, stability and feature importance; each has --time for itself."""

    alternatives: Annotated[
        float | None,
        _option(
            "List all sets within this share of the first component; 0.01 is 1 %.",
            "--alternatives",
            parser=_parse_share,
            metavar="SHARE",
        ),
    ] = None
    stability: Annotated[
        int | None,
        _option(
            "Draw the samples again so many times, and count what is selected.",
            "--stability",
            **whole(2),
        ),
    ] = None
    importance: Annotated[
        bool,
        _option("Solve again without each feature of the components.", "--importance"),
    ] = False

    def check(self, reading: ReadOptions, constraining: ConstraintOptions) -> None:
        """Refuse, before the work begins, what is not offered together."""
        if self.alternatives is not None and constraining != ConstraintOptions():
            raise ValueError(
                "--alternatives lists sets without constraints; leave one of the two "
                "out."
            )
        if self.stability is None:
            return
        for given, word in (
            (reading.covariance, "--covariance"),
            (reading.background is not None, "--background"),
            (reading.missing is Missing.PAIRWISE, "--missing pairwise"),
        ):
            if given:
                raise ValueError(
                    f"--stability needs complete samples to draw from, which {word} "
                    "does not have; leave one of the two out."
                )


def inspect(
    found: Fit,
    options: InspectOptions,
    solving: SolveOptions,
    constraining: ConstraintOptions,
    display: Display,
) -> tuple[dict[str, Any], bool]:
    """Compute what was asked for.

    Returns
    -------
    dict
        Fields of `Report`; without what Ctrl-C has stopped.
    bool
        Whether it was stopped.
    """
    fields: dict[str, Any] = {}
    limits = solving.limits()
    if limits.time is None:
        limits = replace(limits, time=SECONDS)
    try:
        if options.alternatives is not None:
            with display.working("Listing alternatives"):
                fields["alternatives"] = _alternatives(found, options, solving, limits)
        if options.stability is not None:
            with display.working("Drawing the samples again"):
                fields["stability"] = _stability(
                    found, options.stability, solving, constraining, limits
                )
        if options.importance:
            with display.working("Solving without each feature"):
                fields["importance"] = _importance(found, solving, limits)
    except KeyboardInterrupt:
        return fields, True
    return fields, False


def _alternatives(
    found: Fit, options: InspectOptions, solving: SolveOptions, limits: Limits
) -> Any:
    from ..inspection.alternatives import alternatives

    assert options.alternatives is not None
    return alternatives(
        found.loaded.cov,
        found.components.results[0].k,
        options.alternatives,
        limits=limits,
        n_jobs=solving.jobs,
    )


def _stability(
    found: Fit,
    n_resamples: int,
    solving: SolveOptions,
    constraining: ConstraintOptions,
    limits: Limits,
) -> Any:
    from ..inspection.stability import stability

    ks = {result.k for result in found.components.results}
    if len(ks) > 1:
        raise ValueError(
            f"--stability needs one number of features for all components, and -k has "
            f"{', '.join(map(str, sorted(ks)))}; give one."
        )
    loaded = found.loaded
    drawn = stability(
        loaded.table.values,
        ks.pop(),
        n_resamples,
        n_components=len(found.components),
        scheme=found.scheme.value,
        center=not loaded.options.no_center,
        scale=loaded.options.scale,
        constraints=constraining.read(loaded),
        limits=limits,
        n_jobs=solving.jobs,
    )
    return replace(drawn, feature_names=loaded.cov.feature_names)


def _importance(found: Fit, solving: SolveOptions, limits: Limits) -> Any:
    from ..inspection.importance import feature_importance

    components, cov = found.components, found.loaded.cov
    share = None if limits.time is None else limits.time / len(components)
    return tuple(
        feature_importance(
            components.problem(j, cov),
            result,
            limits=replace(limits, time=share),
            n_jobs=solving.jobs,
        )
        for j, result in enumerate(components.results)
    )
