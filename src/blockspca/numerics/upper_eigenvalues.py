"""Largest eigenvalues bounded from above, with the rounding error accounted for."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..limits import Deadline
from . import cost as _cost
from .linalg import leading_eigenpairs
from .rounding import EPS, power_of_two

_ESTIMATED = 1e-7  # relative error of an estimate, at the best


def eigenvalue_ceiling(B: FloatArray, estimate: float | None = None) -> float:
    """Return a number that is at least λmax(B), and very near it.

    An estimate of λmax saves the eigenvalues. It need not be trusted, but the result is
    no less, and up to eight times its error above λmax.

    Notes
    -----
    If the Cholesky factorization of sI − B runs to completion in floating point, then
    λmin(sI − B) ≥ −γ tr(sI − B) with γ = (n + 2) eps (Rump 2006, with room to spare),
    so that λmax(B) ≤ s + γ tr(sI − B). The estimate of λmax that s is taken from need
    not be trusted: an s that is too small makes the factorization fail.

    References
    ----------
    Rump (2006), Verification of positive definiteness, BIT 46.
    """
    n = len(B)
    if n == 0:
        return 0.0
    size = float(np.abs(B).max())
    if size == 0 or not np.isfinite(size):
        return size
    scale = power_of_two(size)
    B = B / scale
    if estimate is None or not np.isfinite(estimate / scale):
        top, relative = float(leading_eigenpairs(B, 1)[0][-1]), 8 * n * EPS
    else:
        top, relative = estimate / scale, _ESTIMATED
    slack = relative * max(abs(top), 1.0)
    while True:
        s = top + slack
        test = -B
        test[np.diag_indices(n)] += s
        if _has_factor(test):
            trace = n * abs(s) + float(np.abs(np.diagonal(B)).sum())
            return float((s + (n + 4) * EPS * trace) * scale)
        slack *= 8


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

    It is about n eps tr(A) if A is PSD, and −λmin(A) and a little more if not. As
    x'x = 1, opt(A) = opt(A + δI) − δ: bounds that need a PSD matrix hold for any.
    Infinite if the time up to the deadline does not suffice to find it.
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
    # SciPy is not for those who only import: solvers are imported with the package.
    from scipy.linalg import LinAlgError, cholesky

    try:
        cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
