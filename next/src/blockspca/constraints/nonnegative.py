"""Non-negative loadings on the features of a support."""

from __future__ import annotations

import numpy as np

from ..linalg.eigen import leading_pair
from ..validation import FloatArray

STEPS = 200  # of an ascent; most end earlier, when x changes by rounding only


def nonnegative_pair(A: FloatArray) -> tuple[float, FloatArray]:
    """Return x'Ax and x for a good unit vector x ≥ 0.

    Four ascents start from the leading eigenvector v, from −v, from the leading
    eigenvector of A with its negative entries set to 0, and from the largest variance.
    A shift makes x'Ax convex, so each step raises it. The leading eigenvector on the
    features with a loading replaces x if it is non-negative and better.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.constraints.nonnegative import nonnegative_pair
    >>> nonnegative_pair(np.array([[2.0, -1.0], [-1.0, 1.0]]))[1]
    array([1., 0.])
    """
    n, largest = len(A), float(np.abs(A).max())
    # A power of two, so that nothing is rounded and no square underflows.
    unit = float(np.ldexp(1.0, np.frexp(largest)[1])) if largest else 1.0
    A = A / unit
    leading = leading_pair(A)[1]
    positive = np.where(np.eye(n, dtype=bool), A, np.maximum(A, 0.0))
    single = np.zeros(n)
    single[A.diagonal().argmax()] = 1.0
    starts = [leading, -leading, np.abs(leading_pair(positive)[1]), single]
    shift = float(np.abs(A).sum(axis=1).max())
    best, value = single, float(A.diagonal().max())
    for start in starts:
        x = np.maximum(start, 0.0)
        for _ in range(STEPS):
            size = float(np.linalg.norm(x))
            if size == 0:
                break
            before, x = x / size, np.maximum(A @ x / size + shift * x / size, 0.0)
            if np.abs(x / max(np.linalg.norm(x), size * 1e-300) - before).max() < 1e-15:
                break
        if not x.any():
            continue
        x = x / np.linalg.norm(x)
        used = np.flatnonzero(x > 1e-8)
        polished = np.zeros(n)
        polished[used] = leading_pair(A[np.ix_(used, used)])[1]
        for y in (x, polished):
            if (y >= 0).all() and float(y @ A @ y) > value:
                best, value = y, float(y @ A @ y)
    return value * unit, best
