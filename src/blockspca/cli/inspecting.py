"""Alternatives, stability and importance of features, for the report, on request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .constraining import ConstraintOptions
from .declaring import fraction, option, whole
from .display import Display
from .options import Missing, ReadOptions, SolveOptions
from .solving import Fit

SECONDS = 60.0  # for each of them, where --time does not say
_option = partial(option, panel="How sure the selection is")


@dataclass(frozen=True)
class InspectOptions:
    """Alternatives, stability and feature importance; each has --time for itself."""

    alternatives: float | None = _option(
        "List all sets within this share of the first component's variance; 0.01 is "
        "1 %.",
        None,
        **fraction("SHARE"),
    )
    stability: int | None = _option(
        "Resample the data this many times and count how often features are selected.",
        None,
        **whole(2),
    )
    importance: bool = _option(
        "Solve again without each feature, to find what it adds.", False
    )

    def check(self, reading: ReadOptions, constraining: ConstraintOptions) -> None:
        """Refuse options that do not go together, before the work begins."""
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
        Fields of `Report`, as far as Ctrl-C has let them come.
    bool
        Whether it was stopped.
    """
    from ..inspection.alternatives import alternatives
    from ..inspection.importance import feature_importance
    from ..inspection.stability import stability

    fields: dict[str, Any] = {}
    components, loaded, n_jobs = found.components, found.loaded, solving.jobs
    cov, ks = loaded.cov, [result.k for result in components.results]
    limits = solving.limits()
    time = SECONDS if solving.time is None else solving.time
    limits = replace(limits, time=time)
    try:
        if options.alternatives is not None:
            with display.working("Listing alternatives"):
                listed = alternatives(
                    cov, ks[0], options.alternatives, limits=limits, n_jobs=n_jobs
                )
                fields["alternatives"] = listed
            if listed.interrupted:
                return fields, True
        if options.stability is not None:
            with display.working("Drawing the samples again"):
                drawn = stability(
                    loaded.table.values,
                    ks[0] if len(set(ks)) == 1 else ks,
                    options.stability,
                    n_components=len(components),
                    scheme=found.scheme.value,
                    center=not loaded.options.no_center,
                    scale=loaded.options.scale,
                    constraints=constraining.read(loaded),
                    limits=limits,
                    n_jobs=n_jobs,
                )
                fields["stability"] = replace(drawn, feature_names=cov.feature_names)
            if drawn.interrupted:
                return fields, True
        if options.importance:
            with display.working("Solving without each feature"):
                each = replace(limits, time=time / len(components))
                for j, result in enumerate(components.results):
                    problem = components.problem(j, cov)
                    worth = feature_importance(
                        problem, result, limits=each, n_jobs=n_jobs
                    )
                    fields["importance"] = (*fields.get("importance", ()), worth)
                    if worth.interrupted:
                        return fields, True
    except KeyboardInterrupt:
        return fields, True
    return fields, False
