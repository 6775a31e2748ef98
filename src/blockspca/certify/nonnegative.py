"""Non-negative loadings on a given set of features, and when there are none on all.

**Lemma.** Let λ be the largest eigenvalue of A_SS, simple, and its eigenvector have
entries of both signs. Then no best x ≥ 0 on S has x_i > 0 for all i in S. *Proof.* Such
an x is in the interior of the orthant, so that it is a local maximum of x'Ax over the
whole sphere. Local maxima of a quadratic form on the sphere are global ones, so x is an
eigenvector for λ; but that has both signs. ∎
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..numerics.rounding import EPS, frobenius_norm, power_of_two

_STEPS = 200  # of the ascent; it ends sooner where x changes by rounding only


def nonnegative_loadings(within: FloatArray) -> FloatArray:
    """Return a unit vector x ≥ 0 with a large x'Ax; no more than that is promised.

    Ascends from both signs of the leading eigenvector, from that of A with its negative
    entries at 0 and from the largest variance, and then takes the leading eigenvector
    of what is not 0, as long as that has one sign.
    """
    size = float(np.abs(within).max())
    within = within / power_of_two(size)  # squares neither overflow nor vanish
    leading = leading_eigenvector(within)
    positive = np.maximum(within, 0.0)
    np.fill_diagonal(positive, np.diagonal(within))
    single = np.zeros(len(within))
    single[np.argmax(np.diagonal(within))] = 1.0
    starts = [
        np.maximum(leading, 0.0),
        np.maximum(-leading, 0.0),
        np.abs(leading_eigenvector(positive)),
        single,
    ]
    # A shift that makes x'Ax convex: then each step of the ascent raises it.
    shift = float(np.abs(within).sum(axis=1).max())
    best, value = single, float(np.diagonal(within).max())
    for start in starts:
        if not start.any():
            continue
        for x in _ascended(within, start, shift):
            reached = rayleigh(within, x)
            if reached > value:
                best, value = x, reached
    return best


def _ascended(within: FloatArray, x: FloatArray, shift: float) -> list[FloatArray]:
    x = x / np.linalg.norm(x)
    for _ in range(_STEPS):
        new = np.maximum(within @ x + shift * x, 0.0)
        size = np.linalg.norm(new)
        if not size > 0:
            break
        new /= size
        moved = float(np.abs(new - x).max())
        x = new
        if moved <= 4 * EPS:
            break
    found = [x]
    kept = np.flatnonzero(x > 1e-8)
    while len(kept):
        y = leading_eigenvector(within[np.ix_(kept, kept)])
        if (y >= 0).all():
            polished = np.zeros(len(x))
            polished[kept] = y
            found.append(polished)
            break
        kept = kept[y > 0]
    return found


def has_both_signs(cov: Covariance, support: NDArray[np.intp]) -> bool:
    """Tell whether the lemma applies to a set for sure.

    Entries err by e, which moves A_SS by |S| e in norm, and LAPACK is exact for a
    matrix that differs by a modest multiple of eps ‖A_SS‖, for which 8 |S| eps ‖A_SS‖_F
    has room. With E their sum and g the distance between the two largest eigenvalues,
    the eigenvector errs by 2 E / (g − 2 E) at most (Davis and Kahan), where g > 2 E.
    """
    if len(support) < 2:
        return False
    within = cov.submatrix(support)
    within = (within + within.T) / 2
    values, vectors = np.linalg.eigh(within)
    size = frobenius_norm(within)
    error = len(support) * (cov.entry_error + 8 * EPS * size)
    gap = float(values[-1] - values[-2])
    if not gap > 8 * error:
        return False
    off = 4 * error / (gap - 4 * error)
    y = vectors[:, -1]
    return bool(y.max() > off and y.min() < -off)
