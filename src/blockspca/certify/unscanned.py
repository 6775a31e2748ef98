"""What the variances alone say: a run that was stopped before A was read."""

from __future__ import annotations

import numpy as np

from ..bounds.closed_form import ObviousBounds
from ..covariance.covariance import Covariance
from ..numerics.linalg import leading_eigenvector, rayleigh, with_sign
from ..result import Status
from ..rules import GroupLimits
from ..stopping import status_of_gap
from .records import CertifiedStep

_EVERY_UP_TO = 40  # k for which each component is computed
_NEXT = 1.25  # above it, times the last k that was


def steps_from_variances(
    cov: Covariance, k_max: int, status: Status, groups: GroupLimits | None
) -> dict[int, CertifiedStep]:
    """Stopped before the pass over A ended: the variances are all there is.

    Of large k a component is computed for some only, each a quarter above the one
    before. It is one for those in between as well, with a loading of 0 for the features
    that they have besides. All of them would take the fourth power of k_max.
    """
    diagonal = cov.diagonal()
    order = np.argsort(-diagonal, kind="stable")
    order = order[:k_max] if groups is None else groups.first(order, k_max)
    block = cov.submatrix(order)
    obvious = ObviousBounds(cov)
    steps: dict[int, CertifiedStep] = {}
    size = 1
    for k in range(1, k_max + 1):
        if k <= _EVERY_UP_TO or k == k_max or k >= _NEXT * size:
            size = k
            leading = leading_eigenvector(block[:k, :k])
            objective = rayleigh(block[:k, :k], leading)
        ascending = np.argsort(order[:k])
        x = np.zeros(k)
        x[:size] = leading
        upper, name = obvious.least(k)
        upper = max(upper, objective)
        steps[k] = CertifiedStep(
            k=k,
            n_features=cov.n_features,
            support=order[:k][ascending].astype(np.intp),
            loadings=with_sign(x[ascending]),
            objective=objective,
            upper_bound=upper,
            bound_name=name,
            status=status_of_gap(objective, upper, None, status),
            source="variances",
        )
    return steps
