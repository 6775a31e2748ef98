"""Closed forms: bounds on opt(k) = max x'Ax, ‖x‖₂ = 1, ‖x‖₀ ≤ k, without a search.

They hold for the exact matrix once `proof.evidence.margin` is added, which pays for
rounding and for the error of entries. `docs/proof-format.md` has the proofs:

- **variance**: opt(1) is the largest A_ii; if A is positive semidefinite, opt(k) is at
  most the sum of the k largest, because the largest eigenvalue is at most the trace;
- **row sums**: opt(k) ≤ max_i A_ii + the k − 1 largest |A_ij|, by Gershgorin;
- **average**: opt(m) ≤ u, 2 ≤ m < k, and A_ii ≥ a give opt(k) ≤ a + (u − a) (k − 1) /
  (m − 1), and if A is positive semidefinite, opt(m) ≤ u gives opt(k) ≤ u k / m.
"""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray


def variance_bound(diagonal: FloatArray, k: int, is_psd: bool) -> float:
    """Return the sum of the k largest A_ii, infinite if that is no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.bounds.closed_form import variance_bound
    >>> variance_bound(np.array([3.0, 1.0, 2.0]), 2, True)
    5.0
    """
    if k == 1:
        return float(diagonal.max())
    if not is_psd:
        return math.inf
    smaller = len(diagonal) - k
    if smaller > 0:
        diagonal = np.partition(diagonal, smaller)[smaller:]
    return float(diagonal.sum())


def average_bound(
    k: int, upper: FloatArray, lowest: float, is_psd: bool
) -> tuple[float, int]:
    """Return the least bound on opt(k) by bounds of smaller sets, and their m.

    Parameters
    ----------
    upper : (k,) array
        upper[m] ≥ opt(m) for m = 1, …, k − 1; infinite where there is no bound.
    lowest : float
        At most every A_ii.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.bounds.closed_form import average_bound
    >>> average_bound(4, np.array([0, 1.0, 2.0, 3.0]), 1.0, False)
    (4.0, 2)
    """
    bounds = np.full(k, np.inf)
    sizes = np.arange(k)
    u = upper[2:k]
    bounds[2:] = np.where(
        u >= lowest, lowest + (u - lowest) * (k - 1) / (sizes[2:] - 1), np.inf
    )
    if is_psd and k > 1:
        bounds[1:] = np.minimum(bounds[1:], upper[1:k] * (k / sizes[1:]))
    m = int(bounds.argmin()) if k > 1 else 0
    return float(bounds[m]) if k > 1 else math.inf, m
