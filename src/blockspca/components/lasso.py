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
SETTLED = 1e-4  # of the largest entry: iterations end that change none by more


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
    fits = [_Fit(directions, sizes, penalty) for penalty in penalties]
    for _ in range(ITERATIONS):
        moving = [fit for fit in fits if fit.code()]
        if not moving:
            break
        # One product for all: of a large A, reading it is what takes time.
        images = product(np.vstack([fit.V for fit in moving]).T).T
        for fit, AV in zip(moving, np.split(images, len(moving)), strict=True):
            fit.turn(AV)
    return [fit.V for fit in fits]


class _Fit:
    """Components V of one penalty, and scores U = CW'.

    A row for each component: over columns of a few numbers a row, NumPy is slow.
    """

    def __init__(
        self, directions: FloatArray, sizes: FloatArray, penalty: float
    ) -> None:
        self.penalty, self.V = penalty, np.ascontiguousarray(directions.T)
        self.W, self.AW = self.V.copy(), self.V * sizes[:, None]  # AW' = C'U

    def code(self) -> bool:
        """Find V for the scores; False if it is what it was."""
        from .._kernels.lasso import code

        before, self.V = self.V, self.V.copy()
        code(self.AW, self.W @ self.AW.T, self.penalty, self.V)
        return bool(np.abs(self.V - before).max() > SETTLED * np.abs(self.V).max())

    def turn(self, AV: FloatArray) -> None:
        """Find each column of the scores for V and the other ones."""
        from .._kernels.lasso import UNUSED

        V, W, AW, squares = self.V, self.W, self.AW, self.V @ self.V.T
        for j, used in enumerate(np.diagonal(squares)):
            if used > UNUSED:
                W[j] += (V[j] - squares[j] @ W) / used
                AW[j] += (AV[j] - squares[j] @ AW) / used
            length = np.sqrt(max(W[j] @ AW[j], 0.0))
            if length > 1:
                W[j] /= length
                AW[j] /= length
