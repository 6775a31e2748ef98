"""Components by a lasso: sets to begin with, and to be better than.

For data C, A = C'C, components V as columns and scores U,

    ½ ‖C − U V'‖² + α Σ |V_fj|,     ‖u_j‖ ≤ 1,

is lowered by turns in V, whose rows are lasso problems of m numbers, and in the columns
of U. The scores stay combinations U = CW of features, so that products AV are all that
is needed of the data. From the leading eigenvectors, as `SparsePCA` of scikit-learn
does it (Jenatton, Obozinski & Bach, 2010), and with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._validation import FloatArray

#: α for features whose mean variance is 1. More, and components lose all their
#: features; less, and what they are cut to was not decided by the lasso.
PENALTIES = (0.03, 0.1, 0.3)
ITERATIONS = 20  # later ones change what is cut to k little
PASSES = 10  # over the m entries of a row; a few are enough from the last ones
SETTLED = 1e-4  # a pass that changes no entry by more is the last
UNUSED = 1e-12  # sum of squares of a component without features


def lasso_components(
    product: Callable[[FloatArray], FloatArray],
    directions: FloatArray,
    sizes: FloatArray,
    penalties: Sequence[float] = PENALTIES,
) -> list[FloatArray]:
    """Return a set of components, (m, d), for each penalty; not cut.

    Parameters
    ----------
    product : callable
        AV for V, (d, m), where the diagonal of A has mean 1.
    directions, sizes : (d, m) and (m,) arrays
        Leading eigenvectors of A and their eigenvalues.
    """
    return [_fitted(product, directions, sizes, penalty) for penalty in penalties]


def _fitted(
    product: Callable[[FloatArray], FloatArray],
    directions: FloatArray,
    sizes: FloatArray,
    penalty: float,
) -> FloatArray:
    V = directions.copy()
    W, AW = directions.copy(), directions * sizes  # U = CW, and A W = C'U
    for _ in range(ITERATIONS):
        V = _coded(AW, W.T @ AW, penalty, V)
        AV, squares = product(V), V.T @ V
        for j, used in enumerate(np.diagonal(squares)):
            if used > UNUSED:
                W[:, j] += (V[:, j] - W @ squares[:, j]) / used
                AW[:, j] += (AV[:, j] - AW @ squares[:, j]) / used
            length = np.sqrt(max(W[:, j] @ AW[:, j], 0.0))
            if length > 1:
                W[:, j] /= length
                AW[:, j] /= length
    return np.ascontiguousarray(V.T)


def _coded(
    images: FloatArray, gram: FloatArray, penalty: float, V: FloatArray
) -> FloatArray:
    """Return V after passes of coordinate descent, all rows at once."""
    V = V.copy()
    for _ in range(PASSES):
        moved = 0.0
        for j in range(V.shape[1]):
            if gram[j, j] <= UNUSED:
                V[:, j] = 0.0
                continue
            left = images[:, j] - V @ gram[:, j] + V[:, j] * gram[j, j]
            new = np.sign(left) * np.maximum(np.abs(left) - penalty, 0) / gram[j, j]
            moved = max(moved, float(np.abs(new - V[:, j]).max()))
            V[:, j] = new
        if moved < SETTLED:
            break
    return V
