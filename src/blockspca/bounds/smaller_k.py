"""A bound on opt(k) from bounds on opt(m), m < k: averages over subsets.

**Theorem.** Let x be a unit vector on k features S, and opt(m) ≤ u for some m ≤ k.

(a) If m ≥ 2 and A_ii ≥ a for all i in S: x'Ax ≤ a + r (u − a), r = (k − 1)/(m − 1).

(b) If A is positive semidefinite, then x'Ax ≤ (k/m) u.

*Proof.* (a) Add up x_T'Ax_T ≤ u ‖x_T‖² over the m-subsets T of S, x_T being x on T. A
feature is in C(k − 1, m − 1) of them and a pair in C(k − 2, m − 2); their ratio is r.
With D the diagonal of A,

    (x'Ax − x'Dx) / r + x'Dx ≤ u,  so  x'Ax ≤ r u − (r − 1) x'Dx ≤ r u − (r − 1) a.

(b) Let A_SS = C'C, λ its largest eigenvalue and y = Cx/‖Cx‖ for its eigenvector x. Then
λ = Σ (c_i'y)² over S, and the m largest terms, on T say, are at least (m/k) λ in sum.
They are at most ‖C_T'y‖² ≤ λmax(C_T'C_T) ≤ u. ∎

So the part of a chain that was proved bounds all that comes after it. Both are
equations for a matrix of ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..numerics.rounding import EPS


def bound_from_smaller_k(
    k: int, upper: Sequence[float], lowest: float, *, is_psd: bool
) -> float:
    """Return the least bound on opt(k) that those on opt(1), …, opt(k − 1) entail.

    Parameters
    ----------
    upper : sequence of float
        upper[m] ≥ opt(m) for m = 1, …, k − 1; infinite where nothing is known.
    lowest : float
        At most every A_ii.
    is_psd : bool
        Whether A is known to be positive semidefinite.

    Notes
    -----
    Each value takes six roundings, of numbers that are no larger than r (|u| + |a|) in
    (a) and (k/m) |u| in (b), so that it errs by at most 6 eps of those sizes and terms
    of second order; 8 are added.

    Examples
    --------
    >>> from blockspca.bounds.smaller_k import bound_from_smaller_k
    >>> round(bound_from_smaller_k(4, [0, 1, 2, 3], 1.0, is_psd=True), 6)
    4.0
    """
    least = np.inf
    if k == 1:
        return least
    u = np.array(upper[1:k], dtype=np.float64)
    u[~np.isfinite(u)] = np.inf  # and so is what it entails
    if k > 2:
        ratio, above = (k - 1) / np.arange(1, k - 1), u[1:]
        values = lowest + ratio * (above - lowest)
        rounding = 8 * EPS * ratio * (np.abs(above) + abs(lowest))
        least = float((values + rounding).min())
    if is_psd:
        values = k / np.arange(1, k) * u
        least = min(least, float((values + 8 * EPS * np.abs(values)).min()))
    return least
