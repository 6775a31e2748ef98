"""Sparse PCA as a regression with an elastic net penalty, tuned to k nonzeros."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._validation import FloatArray
from ..numerics.linalg import leading_eigenvector, rayleigh
from ._heuristic import Heuristic, shifted_to_psd, soft_threshold, tuned_to_k
from .template import SolverRun

CONVERGED = 1e-8  # relative change of β
STEPS_PER_TURN = 5  # on β, between two updates of α


class ElasticNet(Heuristic):
    """min over α, β, ‖α‖ = 1, of ‖X − Xβα'‖² + λ‖β‖² + γ‖β‖₁, for one component.

    Only A = X'X enters: for given α the criterion is β'(A + λI)β − 2α'Aβ + γ‖β‖₁ up to
    a constant, lowered by proximal gradient steps; for given β the best α is Aβ/‖Aβ‖.
    α starts at the leading eigenvector, as in the paper, and γ is found by bisection so
    that β has k nonzeros.

    Parameters
    ----------
    ridge : float
        λ, as a multiple of the largest eigenvalue of A. A large one leaves simple
        thresholding, the paper's case of many more features than samples.
    max_iterations : int
        At most this many updates of α for each γ.

    Notes
    -----
    Cost: O(d²) a step, and O(d³) once for the leading eigenvector. A heuristic. An
    indefinite A is shifted by a multiple of the identity, which changes no maximiser.
    Nodes are values of γ.

    References
    ----------
    Zou, H., Hastie, T. and Tibshirani, R. (2006). Sparse principal component analysis.
    Journal of Computational and Graphical Statistics 15.

    Examples
    --------
    >>> from blockspca.solvers import ElasticNet
    >>> ElasticNet(ridge=0.1).solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).support
    array([0, 1])
    """

    name = "elastic net"
    _positive_integers = ("max_iterations",)
    _positive_numbers = ("ridge",)

    def __init__(self, ridge: float = 1e-2, max_iterations: int = 100) -> None:
        self.ridge = ridge
        self.max_iterations = max_iterations

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        gram = shifted_to_psd(A)
        start = leading_eigenvector(gram)
        largest_eigenvalue = rayleigh(gram, start)
        if largest_eigenvalue <= 0:
            return iter(())
        ridge = self.ridge * largest_eigenvalue
        step = 1 / (largest_eigenvalue + ridge)

        def fit(level: float) -> FloatArray:
            target = gram @ start  # Aα
            beta = np.zeros(len(A))
            for _ in range(self.max_iterations):
                previous = beta
                for _ in range(STEPS_PER_TURN):
                    gradient = gram @ beta + ridge * beta - target
                    beta = soft_threshold(beta - step * gradient, step * level / 2)
                image = gram @ beta
                length = float(np.linalg.norm(image))
                change = np.linalg.norm(beta - previous)
                if length == 0 or change <= CONVERGED * np.linalg.norm(beta):
                    break
                if run.deadline.passed():
                    break
                target = gram @ (image / length)
            return beta

        return tuned_to_k(fit, k, 2 * float(np.abs(gram @ start).max()))
