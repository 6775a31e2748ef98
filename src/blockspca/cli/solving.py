"""Components from a loaded file: the one place where a command calls the solver."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ..scheme_defaults import DEFAULT_COMPONENTS, DEFAULT_K, DEFAULT_SCHEME, SchemeName
from .compile import compile_before
from .constraining import ConstraintOptions
from .display import Display
from .errors import ExitCode, in_options
from .loading import Loaded
from .options import NComponents, SchemeOption, SolveOptions, Sparsity

if TYPE_CHECKING:
    from ..components import Components
    from ..limits import Budget
    from ..model_selection.choose_each_k import Chosen
    from ..result import Result
    from ..sparsity_path import SparsityPath


@dataclass(frozen=True)
class ComponentOptions:
    """Which components are wanted."""

    k: Sparsity = str(DEFAULT_K)
    n_components: NComponents = DEFAULT_COMPONENTS
    scheme: SchemeOption = DEFAULT_SCHEME

    def sparsity(self) -> int | float | list[int | float] | None:
        """Return k as numbers, and auto as None."""
        return parse_sparsity(self.k, self.n_components)


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


def scheme_called(name: str) -> SchemeName | None:
    """Return the scheme that certificates call so."""
    from ..components.scheme_names import as_scheme
    from ..components.schemes import scheme_name

    known = {scheme_name(as_scheme(scheme.value)): scheme for scheme in SchemeName}
    return known.get(name)


AUTO = "auto"


def parse_sparsity(
    text: str, n_components: int
) -> int | float | list[int | float] | None:
    """Return '5' as 5, '5,4' as [5, 4], '0.05' as a share, and 'auto' as None."""
    if text == AUTO:
        return None
    try:
        values = [_number(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"-k {text} is not a number of features; give a whole number (5), a share "
            "below 1 (0.05), one number for each component (5,4), or auto."
        ) from None
    if len(values) == 1:
        return values[0]
    if len(values) != n_components:
        raise ValueError(
            f"-k {text} has {len(values)} values for --n-components {n_components}; "
            "give one value, or one for each component."
        )
    return values


def _number(text: str) -> int | float:
    share = float(text)
    return share if 0 < share < 1 else int(text)


def fit_components(
    loaded: Loaded,
    asked: ComponentOptions,
    solving: SolveOptions,
    display: Display,
    constraining: ConstraintOptions,
    *,
    proof: bool = False,
) -> Fit:
    """Solve for the components, with a log on terminals; None chooses k."""
    k, n_components, scheme = asked.sparsity(), asked.n_components, asked.scheme
    constraints = constraining.read(loaded)
    with display.working("Loading the solver"):
        from ..components import solve_components
        from ..components.prediction_search import KERNELS
        from ..components.requests import as_many_as_vary, features_wanted
        from ..components.scheme_names import IN_TURN, as_scheme
        from ..covariance.pca import pca_variances
        from ..limits import Budget
    n_components = as_many_as_vary(n_components, loaded.cov)
    if isinstance(k, list):  # one for each component that was asked for
        k = k[:n_components]
    start = constraining.starts(loaded, n_components)
    further = KERNELS if scheme not in IN_TURN and n_components > 1 else ()
    compile_before(solving, loaded.cov, display, proof, further)
    budget = Budget(solving.limits(proof))
    if k is None:
        asked = replace(asked, n_components=n_components)
        chosen = _choose(loaded, asked, budget, solving.jobs, display)
        k = [*chosen.ks]
        if start is None and constraints is None:
            start = [*chosen.supports]
    else:
        k = features_wanted(k, n_components, as_scheme(scheme.value), loaded.cov)
    with display.solving() as progress:
        components = solve_components(
            loaded.cov,
            k,
            n_components,
            scheme=scheme.value,
            limits=budget.left(),
            n_jobs=solving.jobs,
            progress=progress,
            constraints=constraints,
            start=start,
            proof=proof,
        )
        try:
            _ = components.joint_upper_bound  # computed when it is read
        except KeyboardInterrupt:
            from ..components.solve import interrupted_jointly

            components = interrupted_jointly(components)
    seconds = budget.elapsed()
    pca = None
    if not was_interrupted(components.results):
        with display.working("Comparing with PCA"), suppress(KeyboardInterrupt):
            pca = pca_variances(loaded.cov, len(components))
    if scheme is SchemeName.AUTO and components.in_turn is None:
        scheme = SchemeName.RESIDUAL
    found = Fit(loaded, components, scheme, n_components, pca, seconds)
    if found.interrupted:
        say_interrupted(display, len(components), n_components)
    return found


def write_proof(
    solved: Components | SparsityPath, target: Path, display: Display
) -> None:
    """Write the proof, and say where it proves less than the result."""
    from ..certify.refusals import NoTimeToRecord

    assert solved.proof is not None
    try:
        with display.working("Writing the proof"):
            target.parent.mkdir(parents=True, exist_ok=True)  # as for all other files
            solved.write_proof(target)
    except NoTimeToRecord as reason:
        display.note(f"Not written: {target}: {reason}")
        return
    except KeyboardInterrupt:
        display.note(f"Not written: {target}: interrupted.")
        return
    if solved.proof.message:
        display.note(solved.proof.message)
    display.note(f"Written: {target}")


def was_interrupted(results: Iterable[Result]) -> bool:
    """Whether Ctrl-C has stopped one of them."""
    from ..status import Status

    return any(result.status is Status.INTERRUPTED for result in results)


def say_interrupted(display: Display, done: int = 1, asked: int = 1) -> None:
    """Say that the run was interrupted, and how many components are known."""
    display.note("interrupted; writing what is known")
    if done < asked:
        display.note(f"{done} of {asked} components")


def end(
    results: Iterable[Result],
    display: Display,
    solving: SolveOptions,
    interrupted: bool = False,
    by_choice: bool = False,
) -> NoReturn:
    """End a command with the exit code of its results; say what stopped it.

    `by_choice` where components are not meant to be optimal, only bounded.
    """
    from ..status import PROVED, Status

    results = list(results)
    if by_choice:
        results = [one for one in results if one.status is not Status.FEASIBLE]
    statuses = {result.status for result in results}
    for said in why_not_proved(results, solving):
        display.note(said)
    if interrupted or Status.INTERRUPTED in statuses:
        raise typer.Exit(ExitCode.INTERRUPTED)
    proved = statuses <= {*PROVED}
    raise typer.Exit(ExitCode.OK if proved else ExitCode.NOT_PROVED)


def end_of(
    found: Fit, display: Display, solving: SolveOptions, interrupted: bool = False
) -> NoReturn:
    """End a command that has fitted components."""
    from ..components.requests import is_chosen_together

    components = found.components
    end(
        components.results,
        display,
        solving,
        interrupted or found.interrupted,
        by_choice=is_chosen_together(components),
    )


def why_not_proved(results: list[Result], solving: SolveOptions) -> list[str]:
    """Return for each limit that ended proofs a sentence, with what to do about it.

    A limit is for all results together, and each has a share of it: a share may be
    used up, while the limit is not reached.
    """
    from .._messages import gap_in_percent, what_stopped
    from ..certificate import is_left_by_rounding
    from ..status import Status

    said = []
    limits = solving.limits()
    for status, unit in ((Status.TIME_LIMIT, "s"), (Status.NODE_LIMIT, "nodes")):
        stopped = [result for result in results if result.status is status]
        if not stopped:
            continue
        name = what_stopped(status)[1]  # of the option and of the field, too
        most = getattr(limits, name) or 0
        limit = f"{most:{',' if isinstance(most, int) else 'g'}} {unit}"
        if getattr(solving, name) is None:
            limit = f"the default of {limit}"
        what = f"the limit, {limit}, was reached"
        reached = sum(getattr(result, name) for result in results) >= most
        if not reached or len(stopped) < len(results):
            used = f"{len(stopped)} of {len(results)} used up"
            what = f"{used} their share of the limit, {limit}"
        said.append(f"{what}; raise --{name}, or ask for less with --gap.")
    if any(result.status is Status.MEMORY_LIMIT for result in results):
        said.append(
            "a proof needs more memory than it may use; ask for less with --gap, or a "
            "smaller k."
        )
    ended = [result for result in results if result.status is Status.FEASIBLE]
    if ended:
        widest = max(result.gap for result in ended)
        rounding = all(is_left_by_rounding(result) for result in ended)
        why = ", which is what rounding may amount to" if rounding else ""
        said.append(
            f"{len(ended)} of {len(results)} proofs ended by themselves, with a "
            f"gap of up to {gap_in_percent(widest)}{why}; --gap accepts one."
        )
    return said


def _choose(
    loaded: Loaded,
    asked: ComponentOptions,
    budget: Budget,
    n_jobs: int | None,
    display: Display,
) -> Chosen:
    """Choose a k for each component by the library's rule, and say why."""
    from .._arguments import Argument
    from .._validation import as_rows
    from ..components.scheme_names import as_scheme
    from ..model_selection.choose_each_k import choose_each_k

    table, options = loaded.table, loaded.options
    if options.background is not None:
        raise ValueError("-k auto with --background is not offered; give a k.")
    in_file = hasattr(table.values, "columns_of")  # permuting takes it into memory
    has_data = not (table.is_matrix or options.no_center or in_file)
    with display.working("Choosing k"):
        found = choose_each_k(
            loaded.cov,
            as_rows(table.values) if has_data else None,
            asked.n_components,
            as_scheme(asked.scheme.value),
            how={"scale": options.scale, "missing": options.missing.value},
            budget=budget,
            n_jobs=n_jobs,
        )
    for j, choice in enumerate(found.choices):
        which = f"component {j + 1}: " if asked.n_components > 1 else ""
        display.note(in_options(which + choice.reason, Argument("scale", True)))
    if found.cap:
        display.note(found.cap)
    return found
