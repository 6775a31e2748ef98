"""How sure a selection is, for the report: what is computed only when asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .constraining import ConstraintOptions
from .declaring import fraction, option, whole
from .display import Display
from .options import Missing, ReadOptions, SolveOptions
from .solving import Fit

if TYPE_CHECKING:
    from ..limits import Limits

SECONDS = 60.0  # for each of them, where --time does not say
_option = partial(option, panel="How sure the selection is")


@dataclass(frozen=True)
class InspectOptions:
    """Alternatives, stability and feature importance; each has --time for itself."""

    alternatives: float | None = _option(
        "List all sets within this share of the first component; 0.01 is 1 %.",
        None,
        **fraction("SHARE"),
    )
    stability: int | None = _option(
        "Draw the samples again so many times, and count what is selected.",
        None,
        **whole(2),
    )
    importance: bool = _option(
        "Solve again without each feature of the components.", False
    )

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

    ks = [result.k for result in found.components.results]
    loaded = found.loaded
    drawn = stability(
        loaded.table.values,
        ks[0] if len(set(ks)) == 1 else ks,
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
