"""The generalised variance of several scores, det V'AV, and loadings that raise it.

With G = V'AV the covariance of the scores, det G is the product of their adjusted
variances, in whatever order these are counted: they are the pivots of G. Let V have x
and the other components W. By the Schur complement

    det V'AV = det W'AW · x'A_W x,    A_W = A − AW (W'AW)⁻¹ W'A,

so that x enters by the residual variance that `ResidualDeflation` solves for, and by
nothing else. The best x given the others is the x that raises det G most; a set in
which each component is proved to be the best given the others is one that no single
exchange improves. (The *sum* of adjusted variances has no such property: it depends on
the order, and a larger x'A_W x may lower it.)

On supports that stay, the best loadings of x are the leading eigenvector of A_W there.
Loadings go up to a fixed point before anything is proved: a round of m components of k
features costs m²k² + mk³, beside the A of all their features.

References
----------
S. S. Wilks, "Certain generalizations in the analysis of variance", Biometrika 1932.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..numerics.linalg import leading_eigenvector
from .variance import adjusted_variance

ROUNDS = 200  # of all components; ten to seventy were seen
SETTLED = 1e-14  # of det G: what a round that ends the ascent gains


def log_volume(scores: FloatArray) -> float:
    """Return log det G, of the scores' covariance; −inf if one adds nothing, or less.

    >>> import math
    >>> import numpy as np
    >>> round(math.exp(log_volume(np.array([[2.0, 1.0], [1.0, 2.0]]))), 6)
    3.0
    """
    pivots = adjusted_variance(scores)
    if not (pivots > 0).all():
        return -math.inf
    return float(np.log(pivots).sum())


def raised_loadings(
    cov: Covariance, components: FloatArray, stop: Callable[[], bool] = lambda: False
) -> FloatArray:
    """Return components, (m, d), on the same supports, with a det G that is no less.

    As they are, where some score adds nothing to the others. Between two components
    `stop` may end it.
    """
    used = np.flatnonzero(components.any(axis=0))
    within, V = cov.submatrix(used), components[:, used].copy()
    supports = [np.flatnonzero(row) for row in V]
    images = V @ within
    before = log_volume(images @ V.T)
    for _ in range(ROUNDS):
        if not math.isfinite(before):
            return components
        for j, support in enumerate(supports):
            left = _left(within, images, V, j, support)
            if left is None:
                return components
            V[j, support] = leading_eigenvector(left)
            images[j] = V[j, support] @ within[support]
            if stop():
                break
        after = log_volume(images @ V.T)
        if after <= before + SETTLED or stop():
            break
        before = after
    raised = np.zeros_like(components)
    raised[:, used] = V
    return raised


def _left(
    within: FloatArray,
    images: FloatArray,
    V: FloatArray,
    j: int,
    support: NDArray[np.intp],
) -> FloatArray | None:
    """Return what regression on all scores but j leaves of A on a support.

    None if these scores depend on one another, up to rounding. `images` are V A.
    """
    others = np.delete(images, j, axis=0)
    try:
        root = np.linalg.cholesky(others @ np.delete(V, j, axis=0).T)
    except np.linalg.LinAlgError:
        return None
    factor = np.linalg.solve(root, others[:, support])
    return np.asarray(within[np.ix_(support, support)] - factor.T @ factor)
