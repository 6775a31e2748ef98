"""The restricted isometry constant of a matrix, exactly, by two sparse PCA problems.

δ_k is the least δ with (1 − δ) ‖x‖² ≤ ‖Φx‖² ≤ (1 + δ) ‖x‖² for every x with at most k
nonzeros (Candès and Tao 2005). With A = Φ'Φ, the right side asks for the largest
eigenvalue of a k × k principal submatrix, opt_k(A), the left side for the smallest,
−opt_k(−A):

    δ_k = max(opt_k(A) − 1, 1 + opt_k(−A)).

An entry of A, a sum of n products, errs by (n + 1) u ‖φ_i‖ ‖φ_j‖ at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._messages import interruption
from .._validation import check_flag, check_n_jobs, check_sparsity, numeric_array
from .._warnings import is_nested_call, warn_caller
from ..certificate import restated
from ..covariance.derived import DerivedCovariance
from ..covariance.rounding import EPS, SMALLEST, column_exponents
from ..covariance.sources import MomentSource
from ..limits import Budget, Limits, as_limits
from ..numerics.rounding import sum_above
from ..numerics.threads import allowed_threads
from ..pipeline import solve
from ..result import Result
from ..status import Status


@dataclass(frozen=True, eq=False)
class RestrictedIsometry:
    """δ_k of a matrix, from below and from above.

    Attributes
    ----------
    k : int
    lower, upper : float
        δ_k is between them; equal up to rounding where both problems are proved.
    largest, smallest : Result
        The k columns with the largest, and the smallest, eigenvalue of A = Φ'Φ; the
        objective of `smallest` is minus that eigenvalue.

    Examples
    --------
    >>> import blockspca as bs
    >>> found = bs.restricted_isometry([[1.0, 0.6], [0.0, 0.8]], 2)
    >>> round(found.largest.objective, 6), round(-found.smallest.objective, 6)
    (1.6, 0.4)
    """

    k: int
    lower: float
    upper: float
    largest: Result
    smallest: Result

    @property
    def delta(self) -> float:
        """δ_k: what is reached; see `proved`."""
        return self.lower

    @property
    def proved(self) -> bool:
        return all(r.status is Status.OPTIMAL for r in (self.largest, self.smallest))


def restricted_isometry(
    Phi: Any,
    k: int,
    *,
    normalise: bool = True,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
) -> RestrictedIsometry:
    """Return the restricted isometry constant δ_k of a matrix, with a proof.

    Parameters
    ----------
    Phi : array of shape (n, d)
    k : int
    normalise : bool
        Divide each column by its norm first.
    limits : Limits, optional
        For both problems together; each has half of the time.
    n_jobs : int, optional

    Returns
    -------
    RestrictedIsometry
        After Ctrl-C, what is known of both problems, with a warning.

    References
    ----------
    E. Candès, T. Tao, "Decoding by linear programming", IEEE Trans. Inf. Theory 2005.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> found = bs.restricted_isometry([[1.0, 0.6], [0.0, 0.8]], 2)
    >>> round(found.delta, 6), found.proved
    (0.6, True)
    """
    C = numeric_array(Phi, "Phi")
    if not np.isfinite(C).all():
        raise ValueError("Phi has entries that are not finite; pass numbers.")
    n, d = C.shape
    k = check_sparsity(k, d)
    if check_flag(normalise, "normalise"):
        largest_entries = np.abs(C).max(axis=0)
        if not largest_entries.all():
            zero = int(np.flatnonzero(largest_entries == 0)[0])
            raise ValueError(
                f"Phi has a column of zeros, {zero}, which has no direction; leave it "
                "out, or pass normalise=False."
            )
        # In units of a power of two no square overflows, or vanishes beside the others.
        C = np.ldexp(C, -column_exponents(largest_entries))
        C = C / np.linalg.norm(C, axis=0)
    n_jobs = check_n_jobs(n_jobs)
    with np.errstate(over="ignore", invalid="ignore"), allowed_threads(n_jobs):
        A = C.T @ C
    if not np.isfinite(A).all():
        raise ValueError(
            "Phi has entries so large that products of columns overflow; divide Phi by "
            "a constant, or pass normalise=True."
        )
    A = (A + A.T) / 2
    error = (n + 3) * EPS * float(np.diagonal(A).max()) + n * SMALLEST
    budget = Budget(as_limits(limits))
    found: list[Result] = []
    for sign, share in ((1.0, 0.5), (-1.0, 1.0)):
        source = MomentSource(sign * A, error, psd=sign > 0)
        cov = DerivedCovariance(source, None, "inner products of columns")
        left = budget.left(share)
        stopped = bool(found) and found[0].status is Status.INTERRUPTED
        if stopped:  # what is known at once, and no more
            left = replace(left, time=0.0)
        result = solve(cov, k, limits=left, n_jobs=n_jobs)
        found.append(restated(result, status=Status.INTERRUPTED) if stopped else result)
        budget.nodes += result.nodes
    largest, smallest = found
    if smallest.status is Status.INTERRUPTED and not is_nested_call():
        warn_caller(interruption("restricted_isometry", found, 2))
    return RestrictedIsometry(
        k,
        max(largest.objective - 1, 1 + smallest.objective, 0.0),
        max(
            sum_above([largest.upper_bound, -1.0]),
            sum_above([smallest.upper_bound, 1.0]),
            0.0,
        ),
        largest,
        smallest,
    )
