"""What `SparsePCA` says after a fit: its attributes, and a warning if it stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ._estimator_input import Learnt, is_precomputed, learnt_from
from ._messages import what_stopped
from ._warnings import warn_caller
from .certificate import is_left_by_rounding
from .components import Components
from .components.shown import in_place_of
from .covariance.covariance import Covariance
from .limits import DEFAULT_LIMITS, as_limits
from .model_selection.choose_each_k import Chosen
from .numerics.linalg import rayleigh
from .result import Result
from .status import PROVED, STOPPED, Status

LONG = 20.0  # seconds of a fit, from which on they are said
SAME = 1e-6  # relative: data whose first component differs by more are others


def publish(
    estimator: Any,
    seen: Any,
    learnt: Learnt,
    chosen: Chosen | None,
    found: Components,
) -> None:
    """Set all attributes of a fit that has succeeded, in the place of an earlier one's.

    `seen` is a copy of the estimator that has seen the data.
    """
    sometimes = {
        "feature_names_in_": getattr(seen, "feature_names_in_", None),
        "covariance_estimator_": learnt.estimator,
        "choices_of_k_": None if chosen is None else chosen.choices,
        "choice_of_k_": None if chosen is None else chosen.choices[0],
    }
    for name, value in sometimes.items():
        if value is not None:
            setattr(estimator, name, value)
        elif hasattr(estimator, name):  # of an earlier fit
            delattr(estimator, name)
    for name in ("n_features_in_", "_data", "_labels", "_seconds"):
        setattr(estimator, name, getattr(seen, name))
    estimator.mean_, estimator.scale_ = learnt.mean, learnt.scale
    estimator.solution_ = found
    estimator.results_ = found.results
    estimator.components_ = found.components
    estimator.supports_ = list(found.supports)
    estimator.k_ = [result.k for result in found.results]
    estimator.explained_variance_ = found.adjusted_explained_variance
    estimator.explained_variance_ratio_ = found.explained_variance_ratio
    estimator.r2_ = found.r2
    estimator.upper_bound_ = found.upper_bounds
    estimator.gap_ = found.gaps
    estimator.status_ = [status.value for status in found.statuses]


def warn_if_chosen_together(found: Components) -> None:
    """Say that a set was taken of which less is proved, and how to have the other."""
    if found.in_turn is not None:
        warn_caller(in_place_of(found), ConvergenceWarning)


def warn_if_not_proved(
    results: Sequence[Result],
    wanted: int,
    *,
    by_default: bool,
    by_choice: bool = False,
    seconds: float = 0.0,
) -> None:
    """Say in a sentence what was not proved and why, and in another what to do.

    `by_choice` where components are not meant to be optimal, only bounded; `seconds`
    are those that the fit took.
    """
    enough = (*PROVED, Status.FEASIBLE) if by_choice else PROVED
    stopped = [result for result in results if result.status not in enough]
    if not stopped:
        return
    widest = max(result.gap for result in stopped)
    gap = f"{widest:.2%}" if widest > 5e-5 else f"{widest:.2g}"  # or it reads 0.00 %
    found = f"{len(stopped)} of {len(results)} component(s) are not proved optimal"
    if len(results) < wanted:
        found = f"only {len(results)} of {wanted} components were found, and {found}"
    reason, advice = _why(results, stopped, by_default, seconds)
    if 0 < widest < 0.9:
        accepted = f"{_rounded_up(widest):g}"
        how = f"limits=Limits(gap={accepted})" if by_default else f"gap={accepted}"
        advice = f"{advice}, or accept a gap" if advice else "Accept such a gap"
        advice += f", for example {how}"
    elif not advice:  # of k beyond the chain, whose searches end after a minute
        longer = max(600, 10 * math.ceil(seconds))
        advice = f"Pass a limit on time, for example limits=Limits(time={longer})"
    warn_caller(
        f"{found[0].upper()}{found[1:]}: {reason}, with a gap of {gap}. {advice}.",
        ConvergenceWarning,
    )


def _why(
    results: Sequence[Result],
    stopped: Sequence[Result],
    by_default: bool,
    seconds: float,
) -> tuple[str, str]:
    """Return what has kept these from being proved, and what may prove more, or ""."""
    statuses = {result.status for result in stopped}
    status = next((one for one in STOPPED if one in statuses), Status.FEASIBLE)
    if status is Status.FEASIBLE:
        within = all(is_left_by_rounding(result) for result in stopped)
        return f"the proof ended {'within rounding' if within else 'by itself'}", ""
    _, limit = what_stopped(status)
    most = getattr(DEFAULT_LIMITS, limit, None) if by_default else None
    if most is not None:
        shown = f"{most:,} nodes" if limit == "nodes" else f"{most:g} s"
        # Each component has a share of the limit, which others may leave unused.
        all_of_it = limit == "time" or sum(r.nodes for r in results) >= most
        reason = f"the default limit of {shown} was reached"
        if not all_of_it:
            reason = f"they used up their share of the default limit of {shown}"
        if limit == "nodes" and seconds >= LONG:
            reason += f", after {seconds:.0f} s"
        more = f"limits=Limits({limit}={10 * most:.0f})"
        return reason, f"Raise the limit, for example {more}"
    reason = f"the fit was stopped ({status.value})"
    return reason, f"Raise limits.{limit}" if limit else "Let the fit run longer"


def _rounded_up(gap: float) -> float:
    """Return the next larger number of one digit."""
    unit = 10.0 ** math.floor(math.log10(gap))
    return math.ceil(gap / unit * (1 + 1e-9)) * unit


def write_report(
    estimator: Any,
    path: str | Path,
    X: Any,
    color: Sequence[Any] | None,
    title: str,
    force: bool,
) -> Path:
    """Write the page of a fitted estimator; X is that of the fit, None if it is kept.

    Raises
    ------
    ValueError
        If there are no data, or data that the components do not belong to.
    """
    from .io.writing import check_free, write_file
    from .report.first_component import path_of
    from .report.page import build_report, report_of

    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"path = {str(path)!r} must end with .html.")
    check_free([path], force)
    data = estimator._data if X is None else X
    if data is None:
        raise ValueError(
            "the data are not part of a pickled model; pass them as report(path, X)."
        )
    cov = fitted_covariance(estimator, data)
    found: Components = estimator.solution_
    matrix = is_precomputed(estimator.covariance)
    index = getattr(data, "index", None)  # of a pandas DataFrame
    page = report_of(
        cov,
        found,
        type(data).__name__,
        {
            "matrix": matrix,
            "center": True,
            "scale": estimator.scale,
            "missing": estimator.missing,
            "constant": estimator.constant,
        },
        estimator.get_params(deep=False),
        path=path_of(
            cov,
            found,
            as_limits(estimator.limits),
            n_jobs=estimator.n_jobs,
            progress=False,
        ),
        scores=None if matrix else estimator.transform(data),
        sample_names=None if index is None else tuple(map(str, index)),
        title=title or "Sparse components",
        seconds=estimator._seconds,
        labels=None if color is None else tuple(map(str, color)),
        n_requested=estimator.n_components,
    )
    return write_file(path, build_report(page), force=force)


def fitted_covariance(estimator: Any, data: Any) -> Covariance:
    """The matrix that the components of a fit belong to, from the data of that fit."""
    first = estimator.results_[0]
    X = estimator._validated(data, reset=False)
    # What was to be said of constants has been.
    cov = learnt_from(estimator, X, first.feature_names, constant="ignore").cov
    value = rayleigh(cov.submatrix(first.support), first.x[first.support])
    if not np.isclose(value, first.objective, rtol=SAME, atol=0.0):
        raise ValueError(
            f"X is not what the model was fitted to: the first component has variance "
            f"{value:.6g} there, and had {first.objective:.6g}; pass the data of the "
            "fit."
        )
    return cov
