"""Upper bounds on largest eigenvalues, with rounding included."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..limits import Deadline
from . import cost as _cost
from .linalg import leading_eigenpairs
from .rounding import EPS, power_of_two

AGREED = 1e-10  # relative: by how much bounds may differ between LAPACK libraries
_ESTIMATED = 1e-7  # relative error of an estimate, at the best


def eigenvalue_ceiling(
    B: FloatArray, estimate: float | None = None, error: float = _ESTIMATED
) -> float:
    """Return a number that is at least λmax(B), and very near it.

    An estimate of λmax, with its relative error, saves computing eigenvalues. Neither
    is trusted: the result is a bound in any case, too large by up to eight times the
    error.

    Notes
    -----
    If the Cholesky factorization of sI − B runs to completion in floating point, then
    λmin(sI − B) ≥ −γ tr(sI − B) with γ = (n + 2) eps (Rump 2006, with room to spare),
    so that λmax(B) ≤ s + γ tr(sI − B). If s is too small, the factorization fails.

    References
    ----------
    Rump (2006), Verification of positive definiteness, BIT 46.
    """
    n = len(B)
    if n == 0:
        return 0.0
    size = float(np.abs(B).max())
    if not np.isfinite(size):
        return float("inf")  # not NaN, which comparisons would ignore
    if size == 0:
        return 0.0
    scale = power_of_two(size)
    B = B / scale
    if estimate is None or not np.isfinite(estimate / scale):
        top, relative = float(leading_eigenpairs(B, 1)[0][-1]), 8 * n * EPS
    else:
        top, relative = estimate / scale, error
    slack = relative * max(abs(top), 1.0)
    while True:
        s = top + slack
        test = -B
        test[np.diag_indices(n)] += s
        if _has_factor(test):
            trace = n * abs(s) + float(np.abs(np.diagonal(B)).sum())
            return float((s + (n + 4) * EPS * trace) * scale)
        slack *= 8


def ky_fan_ceiling(B: FloatArray, r: int) -> float:
    """Return a number that is at least the sum of the r largest eigenvalues of B.

    Notes
    -----
    For any V with columns v_1, …, v_r and d_l ≥ 0, with L = Σ d_l v_l v_l',

        (the sum of r) of B ≤ r λmax(B − L) + Σ d_l ‖v_l‖²,

    because the sum of r is at most r λmax of one term and the trace of the other, which
    is positive semidefinite. With eigenvectors and d_l = λ_l − λ_{r+1} both sides are
    equal; they need not be trusted. L is computed to (r + 3) eps Σ d_l ‖v_l‖² in the
    Frobenius norm, and the difference to eps of the norms of both.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.numerics.upper_eigenvalues import ky_fan_ceiling
    >>> 5.0 <= ky_fan_ceiling(np.diag([3.0, 2.0, 1.0]), 2) <= 5.0 + 1e-12
    True
    """
    n = len(B)
    if n <= r:  # all of them; entries of the diagonal are summed
        total = float(np.trace(B))
        return total + 2 * n * EPS * float(np.abs(np.diagonal(B)).sum())
    if r == 1 or not np.isfinite(B).all():
        return eigenvalue_ceiling(B) * (1 if r == 1 else r)
    values, V = leading_eigenpairs(B, r + 1)
    above = np.maximum(values[1:] - values[0], 0.0)
    V = V[:, 1:]
    lengths = np.einsum("ij,ij->j", V, V)
    trace = float(above @ lengths) * (1 + 4 * (n + r) * EPS)
    L = (V * above) @ V.T
    L = (L + L.T) / 2
    rounding = (r + 4) * EPS * trace
    rounding += 2 * EPS * (float(np.linalg.norm(B)) + trace)
    top = eigenvalue_ceiling(B - L) + rounding
    total = r * top + trace
    return total + 4 * EPS * (r * abs(top) + trace)  # the last sums and products


def is_below(B: FloatArray, t: float) -> bool:
    """Tell whether λmax(B) ≤ t is proved, by one Cholesky factorization."""
    if not (np.isfinite(t) and np.isfinite(B).all()):  # LAPACK may not notice
        return False
    trace = len(B) * abs(t) + float(np.abs(np.diagonal(B)).sum())
    test = -B
    test[np.diag_indices(len(B))] += t - 2 * (len(B) + 4) * EPS * trace
    return _has_factor(test)


def psd_shift(A: FloatArray, deadline: Deadline | None = None) -> float:
    """Return δ ≥ 0, as small as rounding allows, such that A + δI is PSD.

    It is about n eps tr(A) if A is PSD, and slightly above −λmin(A) if not. As x'x = 1,
    opt(A) = opt(A + δI) − δ, so that bounds for PSD matrices carry over to any.
    Infinite if the time up to the deadline does not suffice.
    """
    n = len(A)
    deadline = deadline or Deadline(None)
    if not deadline.affords(_cost.cholesky(n)):
        return float("inf")
    if np.isfinite(shift := rounding_shift(A)):
        return shift
    if not deadline.affords(_cost.eigenvalues(n) + 2 * _cost.cholesky(n)):
        return float("inf")
    return max(eigenvalue_ceiling(-A), 0.0)


def rounding_shift(A: FloatArray) -> float:
    """As `psd_shift` if A is PSD up to rounding, otherwise infinite.

    By one Cholesky factorization of A + δ/2 I, whose own rounding is below δ/2.
    """
    n = len(A)
    slack = 4 * (n + 4) * EPS * float(np.abs(np.diagonal(A)).sum())
    test = A.copy()
    test[np.diag_indices(n)] += slack
    return 2 * slack if _has_factor(test) else float("inf")


def _has_factor(A: FloatArray) -> bool:
    """Tell whether a Cholesky factorization of A ends; it overwrites A."""
    # Imported here because importing the package should not import SciPy.
    from scipy.linalg import LinAlgError, cholesky

    try:
        cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
