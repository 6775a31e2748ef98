"""Gradient projection onto the sparse unit vectors, with Barzilai–Borwein steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from .._validation import FloatArray
from ..numerics.linalg import leading_eigenvector
from ._heuristic import Heuristic, keep_largest, shifted_to_psd
from .template import SolverRun

CONVERGED = 1e-9  # change of x
SUFFICIENT = 1e-6  # share of the squared step by which the objective must grow
LONGEST = 1.8  # −α in units of the objective: from 2 on, Ax + αx/2 can vanish


class Projection(Heuristic):
    """x ← argmax of ∇f(x)'y − (α/2)‖y − x‖² over ‖y‖₂ = 1, ‖y‖₀ ≤ k, f(x) = x'Ax.

    That is the k largest entries of 2Ax + αx, normalised. α approximates −∇²f by the
    Barzilai–Borwein quotient −Δx'Δ∇f / Δx'Δx, and so is negative where f is convex,
    which takes longer steps than the power method (α = 0). A step is accepted if f
    exceeds the least of its last `memory` values; otherwise α is halved towards 0.

    Parameters
    ----------
    memory : int
        Length of the nonmonotone line search.
    max_iterations : int
        At most this many steps from each start.

    Notes
    -----
    Starts: the feature of the largest variance, its row, and the leading eigenvector.
    Cost: O(d²) a step, and O(d³) once for the eigenvector. A heuristic; every limit
    point satisfies the first-order conditions. An indefinite A is shifted by a multiple
    of the identity, which changes no maximiser. Nodes are accepted steps.

    References
    ----------
    Hager, W. W., Phan, D. T. and Zhu, J. (2016). Projection algorithms for nonconvex
    minimization with application to sparse principal component analysis. Journal of
    Global Optimization 65.

    Examples
    --------
    >>> from blockspca.solvers import Projection
    >>> Projection().solve([[2, -1, 0], [-1, 2, 0.1], [0, 0.1, 2.5]], 2).x.round(3)
    array([ 0.707, -0.707,  0.   ])
    """

    name = "projection"
    _positive_integers = ("memory", "max_iterations")

    def __init__(self, memory: int = 5, max_iterations: int = 500) -> None:
        self.memory = memory
        self.max_iterations = max_iterations

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        psd = shifted_to_psd(A)
        first = int(np.argmax(np.diagonal(psd)))
        starts = [np.eye(1, len(A), first)[0], psd[first], leading_eigenvector(psd)]
        for start in starts:
            yield from self._ascend(psd, k, keep_largest(start, k))

    def _ascend(self, A: FloatArray, k: int, x: FloatArray) -> Iterator[FloatArray]:
        gradient = 2 * (A @ x)
        value = float(x @ gradient) / 2
        recent = deque([value], maxlen=self.memory)
        curvature = 0.0
        for _ in range(self.max_iterations):
            while True:
                y = keep_largest(gradient + curvature * x, k)
                next_gradient = 2 * (A @ y)
                next_value = float(y @ next_gradient) / 2
                step = y - x
                square = float(step @ step)
                # α = 0 never lowers f, so the search ends there
                if curvature > -CONVERGED * abs(value):
                    break
                if next_value >= min(recent) + SUFFICIENT * abs(value) * square:
                    break
                curvature = curvature / 2 if curvature < -0.01 * abs(value) else 0.0
            if square <= CONVERGED**2 or not y.any():
                return
            curvature = -float(step @ (next_gradient - gradient)) / square
            curvature = min(0.0, max(curvature, -LONGEST * next_value))
            x, gradient, value = y, next_gradient, next_value
            recent.append(value)
            yield x
