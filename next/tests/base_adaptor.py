"""The public names of 1.0 on the old package, for one run of the claims on BASE.

Only limits on time and gap are passed on. Used if BLOCKSPCA_BASE is set; it goes with
the old package.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from blockspca import (
    Constraints,
    Covariance,
    SparsePCA,
    Status,
    VerificationError,
    alternatives,
    contrastive,
    solve_components,
    solve_shared,
    stability,
    verify,
)
from blockspca import Limits as _Limits
from blockspca import feature_importance as feature_importance
from blockspca import solve as solve
from blockspca import solve_path as solve_path

IS_BASE = True
__all__ = [
    "Constraints",
    "Covariance",
    "Limits",
    "SparsePCA",
    "VerificationError",
    "alternatives",
    "contrastive",
    "feature_importance",
    "solve",
    "solve_blocks",
    "solve_components",
    "solve_path",
    "solve_shared",
    "stability",
    "verify",
]


def Limits(
    time: Any = None, gap: Any = None, work: Any = None, memory: Any = None
) -> Any:
    return _Limits(time=time, gap=gap)


def solve_blocks(cov: Any, k: int, *, solver: Any = None, threshold: Any = None) -> Any:
    return solve(cov, k, solver=solver, threshold=threshold, certify=False)


def restated(result: Any, x: Any, objective: float, upper_bound: float) -> Any:
    """Return a result, and its certificate, with another component and bound."""
    support = np.flatnonzero(x)
    status = Status.FEASIBLE
    *steps, last = result.certificate.steps or (None,)
    if last is not None:
        steps.append(replace(last, upper_bound=upper_bound))
    certificate = replace(
        result.certificate,
        support=tuple(support.tolist()),
        loadings=tuple(x[support].tolist()),
        objective=objective,
        upper_bound=upper_bound,
        status=status,
        steps=tuple(steps),
    )
    return replace(
        result,
        x=x,
        support=support,
        objective=objective,
        upper_bound=upper_bound,
        status=status,
        certificate=certificate,
    )
