"""A joint bound for several components, by the features that they use together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..covariance.covariance import Covariance
from ..limits import Budget
from ..numerics import cost as _cost
from ..result import Result
from .shared_support import SharedSupport, bound_shared

NODES = 100  # of a branch and bound, up to 60 features
STEPS = 100  # of an ascent, as many as it takes
# More than this many seconds of a fit are for who asks for them: with `solve_shared`.
MOST_SECONDS = 5.0


def joint_proof(
    cov: Covariance, results: Sequence[Result], budget: Budget
) -> SharedSupport | None:
    """Bound opt_m(Σ k_j), or return None where that is not worth its time.

    That is so for one component, and if an ascent of the dual takes more than
    `MOST_SECONDS` by its size, on any machine, or more than the time that is left.
    """
    m, d = len(results), cov.n_features
    k = min(d, sum(result.k for result in results))
    if m < 2 or k <= m or k >= d:
        return None
    n = min(cov.n_samples or d, d) if cov.has_columns else d
    step = _cost.product(n, d, n) + _cost.eigenvalues(n)
    if STEPS * step > MOST_SECONDS or not budget.affords(STEPS * step):
        return None
    start = np.unique(np.concatenate([result.support for result in results]))
    return bound_shared(cov, k, m, start[:k], budget, NODES)
