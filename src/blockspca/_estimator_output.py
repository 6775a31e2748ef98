"""What `SparsePCA` says after a fit: its attributes, and a warning if it stopped."""

from __future__ import annotations

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
from .status import PROVED, Status

LONG = 20.0  # seconds of a fit, from which on a minute is not clearly more
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
    """Say what was not proved, because of a limit, Ctrl-C or rounding.

    `by_choice` where components are not meant to be optimal, only bounded; `seconds`
    are those that the fit took.
    """
    enough = (*PROVED, Status.FEASIBLE) if by_choice else PROVED
    stopped = [result for result in results if result.status not in enough]
    if not stopped:
        return
    reason, advice = _why(stopped, by_default, seconds)
    widest = max(result.gap for result in stopped)
    gap = f"{widest:.2%}" if widest > 5e-5 else f"{widest:.2g}"  # or it reads 0.00 %
    missing = ""
    if len(results) < wanted:
        missing = f" Only {len(results)} of {wanted} components were found."
    warn_caller(
        f"{len(stopped)} of {len(results)} component(s) are not proved optimal: "
        f"{reason} with a gap of {gap}.{missing} {advice}",
        ConvergenceWarning,
    )


def _why(
    stopped: Sequence[Result], by_default: bool, seconds: float
) -> tuple[str, str]:
    """Return what has kept these from being proved, and what to do about it."""
    last = stopped[-1].status
    _, limit = what_stopped(last)
    reason = f"the fit was stopped ({last.value})"
    if by_default and limit == "time":
        reason = f"the default limit of {DEFAULT_LIMITS.time:g} s was reached"
    elif by_default and limit == "nodes":
        reason = f"the default limit of {DEFAULT_LIMITS.nodes:,} nodes was reached"
        reason += f", after {seconds:.0f} s," if seconds >= LONG else ""
    elif last is Status.FEASIBLE:
        reason = "the proof ended"
    enough = "say with limits=Limits(gap=0.01) which gap is good enough"
    if any(result.status is not Status.FEASIBLE for result in stopped):
        if limit in ("memory", "nodes") and not by_default:
            return reason, f"Raise limits.{limit}, or {enough}."
        if seconds < LONG:
            more = "Give the proof more time, for example limits=Limits(time=60)"
            return reason, f"{more}, or {enough}."
        # a minute may be less than it had
        how = (
            "or with limits=Limits(time=…) how many seconds it may take, more or fewer"
        )
        return reason, f"S{enough[1:]}, {how}."
    why = "rounding, or the end of what can be tried, is in the way"
    if all(is_left_by_rounding(result) for result in stopped):
        reason = "the proof ended within rounding,"
        why = (
            "no better set was found, and the gap is what rounding may amount to "
            "where earlier components have left little of the variance"
        )
    return reason, (
        f"More time does not help: {why}. Say with limits=Limits(gap=1e-6), or more, "
        "which gap is good enough."
    )


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
