"""The semidefinite dual, min over U of λmax(A + U) + (k − 1) max |U_ij|."""

from __future__ import annotations

import time

import numpy as np

from .._validation import FloatArray
from .eigenvalues import eigenvalue_ceiling

_EPS = float(np.finfo(float).eps)


def semidefinite_bound(
    A: FloatArray,
    k: int,
    *,
    time_limit: float = 10.0,
    iterations: int = 300,
    target: float = -np.inf,
) -> float:
    """Return λmax(A + U) + (k − 1) max |U_ij| for a good U with a zero diagonal.

    Any such U gives a bound (see `threshold_bound`), so that it may stop at any time.
    U comes from the multipliers of the relaxation

        max tr(AX)   s.t.  X ⪰ 0, tr X = 1, Σ_{i≠j} |X_ij| ≤ k − 1,

    solved by the alternating direction method of multipliers: one eigendecomposition of
    a d × d matrix per step.

    References
    ----------
    d'Aspremont, El Ghaoui, Jordan, Lanckriet (2007), A direct formulation for sparse
    PCA using semidefinite programming. A zero diagonal of U makes it k − 1, not k.
    """
    deadline = time.monotonic() + time_limit
    A = np.asarray(A, dtype=np.float64)
    d = len(A)
    best = eigenvalue_ceiling(A)
    size = float(np.abs(A).max(initial=0.0))
    if k >= d or size == 0:
        return best
    if k == 1:
        return float(np.diagonal(A).max())
    scaled = A / size
    step = 1.0  # the penalty parameter, kept in balance with the residuals below
    Z = np.eye(d) / d
    Y = np.zeros((d, d))
    for iteration in range(iterations):
        values, basis = np.linalg.eigh(Z - Y + scaled / step)
        values = _onto_simplex(values)
        active = values > 0
        X = (basis[:, active] * values[active]) @ basis[:, active].T
        previous = Z
        Z = _onto_ball(X + Y, k - 1.0)
        Y += X - Z
        np.fill_diagonal(Y, 0.0)
        out_of_time = time.monotonic() > deadline
        if iteration % 10 == 9 or out_of_time:
            U = -step * Y
            U = (U + U.T) / 2
            allowed = float(np.abs(U).max())
            bound = eigenvalue_ceiling(scaled + U) + (k - 1) * allowed * (1 + 4 * _EPS)
            best = min(best, size * (bound + d * _EPS * (1 + allowed)))
            if best <= target or out_of_time:
                break
            primal = np.linalg.norm(X - Z)
            dual = np.linalg.norm(Z - previous)
            if primal > 5 * dual:
                step, Y = step * 2, Y / 2
            elif dual > 5 * primal:
                step, Y = step / 2, Y * 2
    return best


def _onto_simplex(values: FloatArray) -> FloatArray:
    """Project onto {v ≥ 0, Σv = 1}."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.maximum(values - excess[last], 0.0)


def _onto_ball(M: FloatArray, radius: float) -> FloatArray:
    """Project onto {Σ_{i≠j} |M_ij| ≤ radius}, the diagonal left as it is."""
    size = np.abs(M)
    np.fill_diagonal(size, 0.0)
    if size.sum() <= radius:
        return M.copy()
    low, high = 0.0, float(size.max())
    for _ in range(50):
        middle = (low + high) / 2
        if np.maximum(size - middle, 0.0).sum() > radius:
            low = middle
        else:
            high = middle
    result = np.copysign(np.maximum(size - high, 0.0), M)
    np.fill_diagonal(result, np.diagonal(M))
    return result
