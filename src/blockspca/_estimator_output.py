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
    estimator.upper_bound_ = found.upper_bounds
    estimator.joint_upper_bound_ = found.joint_upper_bound
    estimator.gap_ = found.gaps
    estimator.status_ = [status.value for status in found.statuses]


def warn_if_stopped(results: Sequence[Result]) -> None:
    """Say that the default limit, which nobody has asked for, was reached."""
    stopped = [result for result in results if result.status is Status.NODE_LIMIT]
    if not stopped:
        return
    widest = max(result.gap for result in stopped)
    warnings.warn(
        f"{len(stopped)} of {len(results)} component(s) are not proved optimal: the "
        f"default limit of {DEFAULT_LIMITS.nodes:,} nodes was reached with a gap of "
        f"{widest:.2%}; pass limits=Limits() to prove them, or limits=Limits(gap=...) "
        "for a gap that is good enough.",
        ConvergenceWarning,
        stacklevel=4,  # fit is wrapped by scikit-learn
    )
