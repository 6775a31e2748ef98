"""What `SparsePCA` says after a fit: its attributes, and a warning if it stopped."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from .components import Components
from .limits import DEFAULT_LIMITS
from .result import Result, Status


def publish(estimator: Any, found: Components) -> None:
    """Set the attributes that the components determine."""
    estimator.results_ = found.results
    estimator.components_ = found.components
    estimator.supports_ = list(found.supports)
    estimator.k_ = [result.k for result in found.results]
    estimator.explained_variance_ = found.adjusted_explained_variance
    estimator.explained_variance_ratio_ = found.explained_variance_ratio
    estimator.r2_ = found.r2
    estimator.upper_bound_ = found.upper_bounds
    estimator.joint_upper_bound_ = found.joint_upper_bound
    estimator.joint_gap_ = found.joint_gap
    estimator.gap_ = found.gaps
    estimator.status_ = [status.value for status in found.statuses]


#: What a result may end with where a proof was asked for, without a warning.
PROVED = (Status.OPTIMAL, Status.GAP_LIMIT)


def warn_if_not_proved(
    results: Sequence[Result], wanted: int, *, by_default: bool
) -> None:
    """Say what was not proved, because of a limit, Ctrl-C or rounding."""
    stopped = [result for result in results if result.status not in PROVED]
    if not stopped:
        return
    reason = f"the fit was stopped ({stopped[-1].status.value})"
    if by_default and stopped[-1].status is Status.NODE_LIMIT:
        reason = f"the default limit of {DEFAULT_LIMITS.nodes:,} nodes was reached"
    elif stopped[-1].status is Status.FEASIBLE:
        reason = "the proof ended"
    widest = max(result.gap for result in stopped)
    missing = ""
    if len(results) < wanted:
        missing = f" Only {len(results)} of {wanted} components were found."
    warnings.warn(
        f"{len(stopped)} of {len(results)} component(s) are not proved optimal: "
        f"{reason} with a gap of {widest:.2%}.{missing} Give the proof more time, for "
        "example limits=Limits(time=60), or say with limits=Limits(gap=0.01) which gap "
        "is good enough.",
        ConvergenceWarning,
        stacklevel=4,  # fit is wrapped by scikit-learn
    )
