"""The semidefinite relaxation of d'Aspremont et al., with a bound from its dual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .._validation import FloatArray
from ._relaxation import (
    Relaxation,
    centred,
    dual_value,
    onto_l1_ball,
    onto_spectrahedron,
)
from .base import HEURISTIC

STEP = 0.1  # of X, when the largest entry of A is 1; the step of U is its inverse


class SemidefiniteRelaxation(Relaxation):
    """max tr(AX)  s.t.  tr X = 1, Σ|X_ij| ≤ k, X ⪰ 0, rounded to k features.

    Its dual is min over symmetric U of λmax(A − U) + k max|U_ij|. Every U gives an
    upper bound on the optimum of sparse PCA: x'Ux ≤ max|U_ij| ‖x‖₁² ≤ k max|U_ij|.

    Parameters
    ----------
    tolerance, max_iterations
        As in `ConvexRelaxation`.

    Notes
    -----
    The primal-dual method of Chambolle and Pock alternates projections onto {X ⪰ 0,
    tr X = 1} and onto the ℓ1 ball: O(d³) an iteration, for hundreds of features. The
    bound is evaluated from U every 20 iterations, with rounding included; it holds
    however early the method stops, and for indefinite A. A heuristic from below.
    Nodes are iterations.

    References
    ----------
    d'Aspremont, A., El Ghaoui, L., Jordan, M. I. and Lanckriet, G. (2007). A direct
    formulation for sparse PCA using semidefinite programming. SIAM Review 49.

    Amini, A. A. and Wainwright, M. J. (2009). High-dimensional analysis of semidefinite
    relaxations for sparse principal components. Annals of Statistics 37.

    Examples
    --------
    >>> from blockspca.solvers import SemidefiniteRelaxation
    >>> A = [[2, 1, 0], [1, 2, 0], [0, 0, 2.5]]
    >>> 3.0 <= SemidefiniteRelaxation().solve(A, 2).upper_bound < 3.01
    True
    """

    name = "semidefinite relaxation"
    guarantee = HEURISTIC

    def _iterate(
        self, A: FloatArray, k: int
    ) -> Iterator[tuple[FloatArray, Callable[[], float]]]:
        scaled, scale = centred(A)
        X = extrapolated = np.eye(len(A)) / len(A)
        U = np.zeros_like(A)
        while True:
            target = U + extrapolated / STEP
            U = target - onto_l1_ball(target * STEP, k) / STEP
            previous, X = X, onto_spectrahedron(X + STEP * (scaled - U))
            extrapolated = 2 * X - previous
            yield X, partial(entry_bound, A, k, scale * U)


def entry_bound(A: FloatArray, k: int, U: FloatArray) -> float:
    """Return λmax(A − (U + U')/2) + k max|U_ij|, at least the optimum for every U."""
    return dual_value(A, (U + U.T) / 2, k * float(np.abs(U).max()))
