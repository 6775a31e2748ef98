"""Components from a loaded file: the one place where a command calls the solver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .constraining import ConstraintOptions
from .display import Display
from .errors import ExitCode, in_options
from .loading import Loaded
from .options import SolveOptions, whole

if TYPE_CHECKING:
    from ..components import Components, Scheme
    from ..result import Result


class SchemeName(str, Enum):
    """How a further component depends on the earlier ones."""

    DISJOINT = "disjoint"
    PROJECTION = "projection"
    ORTHOGONAL = "orthogonal"
    HOTELLING = "hotelling"
    RESIDUAL = "residual"
    RESIDUAL_DISJOINT = "residual-disjoint"
    UNCORRELATED = "uncorrelated"


DISJOINT_SCHEMES = (SchemeName.DISJOINT, SchemeName.RESIDUAL_DISJOINT)

NComponents = Annotated[
    int, typer.Option("--n-components", "-n", help="How many components.", **whole(1))
]
SchemeOption = Annotated[
    SchemeName,
    typer.Option("--scheme", help="How a component depends on the earlier ones."),
]


@dataclass(frozen=True)
class Fit:
    """Components of a file, and how long they took; `pca` is None after Ctrl-C."""

    loaded: Loaded
    components: Components
    scheme: SchemeName
    n_components: int  # that were asked for
    pca: Any
    seconds: float

    @property
    def interrupted(self) -> bool:
        return self.pca is None


def as_scheme(name: SchemeName) -> Scheme:
    """Return the library's object for a scheme."""
    from .. import components

    schemes: dict[SchemeName, Callable[[], Scheme]] = {
        SchemeName.DISJOINT: components.DisjointSupports,
        SchemeName.PROJECTION: components.ProjectionDeflation,
        SchemeName.ORTHOGONAL: components.Orthogonalised,
        SchemeName.HOTELLING: components.HotellingDeflation,
        SchemeName.RESIDUAL: components.ResidualDeflation,
        SchemeName.RESIDUAL_DISJOINT: partial(components.ResidualDeflation, True),
        SchemeName.UNCORRELATED: components.UncorrelatedScores,
    }
    return schemes[name]()


def scheme_called(name: str) -> SchemeName | None:
    """Return the scheme that certificates call so."""
    from ..components.schemes import scheme_name

    known = {scheme_name(as_scheme(scheme)): scheme for scheme in SchemeName}
    return known.get(name)


AUTO = "auto"


def parse_sparsity(text: str, n_components: int) -> int | list[int] | None:
    """Return '5' as 5, '5,4' as [5, 4], and 'auto' as None."""
    if text == AUTO:
        return None
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"-k {text} is not a whole number; give 5, one number for each "
            "component: 5,4, or auto."
        ) from None
    if len(values) == 1:
        return values[0]
    if len(values) != n_components:
        raise ValueError(
            f"-k {text} has {len(values)} values for --n-components {n_components}; "
            "give one value, or one for each component."
        )
    return values


def fit_components(
    loaded: Loaded,
    k: int | list[int] | None,
    n_components: int,
    scheme: SchemeName,
    solving: SolveOptions,
    display: Display,
    constraining: ConstraintOptions | None = None,
) -> Fit:
    """Solve for the components, with a log on terminals; None chooses k."""
    constraints = None if constraining is None else constraining.read(loaded)
    with display.working("Loading the solver"):
        from ..components import solve_components
        from ..covariance.pca import pca_variances
    started = time.perf_counter()
    if k is None:
        k = _choose(loaded, n_components, scheme, solving, display)
    with display.solving() as progress:
        components = solve_components(
            loaded.cov,
            k,
            n_components,
            scheme=as_scheme(scheme),
            limits=solving.limits(),
            n_jobs=solving.jobs,
            progress=progress,
            constraints=constraints,
        )
    seconds = time.perf_counter() - started
    pca = None
    if not was_interrupted(components.results):
        with display.working("Comparing with PCA"), suppress(KeyboardInterrupt):
            pca = pca_variances(loaded.cov, len(components))
    found = Fit(loaded, components, scheme, n_components, pca, seconds)
    if found.interrupted:
        say_interrupted(display, len(components), n_components)
    return found


def was_interrupted(results: Iterable[Result]) -> bool:
    """Whether Ctrl-C has stopped one of them."""
    from ..result import Status

    return any(result.status is Status.INTERRUPTED for result in results)


def say_interrupted(display: Display, done: int = 1, asked: int = 1) -> None:
    """Say at once that what follows is the end, and how far it came."""
    display.note("interrupted; writing what is known")
    if done < asked:
        display.note(f"{done} of {asked} components")


def end(
    results: Iterable[Result], display: Display, interrupted: bool = False
) -> NoReturn:
    """End a command with the code that its results amount to; say what stopped it."""
    from .._messages import advice
    from ..result import Status

    statuses = {result.status for result in results}
    for said in sorted({advice(status) for status in statuses} - {""}):
        display.note(in_options(said))
    if interrupted or Status.INTERRUPTED in statuses:
        raise typer.Exit(ExitCode.INTERRUPTED)
    proved = statuses <= {Status.OPTIMAL, Status.GAP_LIMIT}
    raise typer.Exit(ExitCode.OK if proved else ExitCode.NOT_PROVED)


def _choose(
    loaded: Loaded,
    n_components: int,
    scheme: SchemeName,
    solving: SolveOptions,
    display: Display,
) -> int:
    """Choose k by the library's rule, and say why."""
    from ..covariance.covariance import refuse_constant
    from ..model_selection.choose_k import K_MAX, choose_k

    d = refuse_constant(loaded.cov)  # features that vary
    k_max = min(K_MAX, d)
    if scheme in DISJOINT_SCHEMES:  # every component needs features of its own
        k_max = max(1, min(k_max, d // n_components))
    table, options = loaded.table, loaded.options
    if options.background is not None:
        raise ValueError("-k auto with --background is not offered; give a k.")
    in_file = hasattr(table.values, "columns_of")  # permuting takes it into memory
    by_fraction = table.is_matrix or options.no_center or in_file
    with display.working("Choosing k"):
        choice = choose_k(
            loaded.cov if by_fraction else table.values,
            k_max,
            scale=options.scale,
            missing=options.missing.value,
            constant=options.constant.value,
            feature_names=table.feature_names,
            n_jobs=solving.jobs,
        )
    display.note(in_options(choice.reason))
    return choice.k
