"""What the variances alone say: a run that was stopped before A was read."""

from __future__ import annotations

import numpy as np

from ..covariance import Covariance
from ..result import Status
from ..vectors import leading_eigenvector, rayleigh, with_sign
from .records import TOLERANCE, CertifiedStep

_EVERY_UP_TO = 40  # k for which each component is computed
_NEXT = 1.25  # above it, times the last k that was


def steps_from_variances(
    cov: Covariance, k_max: int, status: Status
) -> list[CertifiedStep]:
    """Stopped before the pass over A ended: the variances are all there is.

    Of large k a component is computed for some only, each a quarter above the one
    before. It is one for those in between as well, with a loading of 0 for the features
    that they have besides. All of them would take the fourth power of k_max.
    """
    diagonal = cov.diagonal()
    order = np.argsort(-diagonal, kind="stable")[:k_max]
    block = cov.submatrix(order)
    sums = np.cumsum(diagonal[order])
    largest = float(np.abs(diagonal).max())
    error, entry = cov.entry_error, None
    if not cov.known_psd and cov.in_memory and k_max > 1:
        entry = cov.max_abs()
    steps: list[CertifiedStep] = []
    size = 1
    for k in range(1, k_max + 1):
        if k <= _EVERY_UP_TO or k == k_max or k >= _NEXT * size:
            size = k
            leading = leading_eigenvector(block[:k, :k])
            objective = rayleigh(block[:k, :k], leading)
        ascending = np.argsort(order[:k])
        x = np.zeros(k)
        x[:size] = leading
        upper, name = float(diagonal[order[0]]), "variances"
        if k > 1 and cov.known_psd:
            upper = float(sums[k - 1]) * (1 + 1e-12) + k * error
        elif entry is not None and k > 1:  # every entry as large as the largest
            upper, name = upper + (k - 1) * entry * (1 + 1e-12), "row sums"
        elif k > 1:
            upper, name = np.inf, "none"
        steps.append(
            CertifiedStep(
                k=k,
                n_features=cov.n_features,
                support=order[:k][ascending].astype(np.intp),
                loadings=with_sign(x[ascending]),
                objective=objective,
                upper_bound=max(upper, objective),
                bound_name=name,
                status=Status.OPTIMAL if k == 1 else status,
                source="variances",
                tolerance=TOLERANCE * largest,
            )
        )
    return steps
