"""Diagonal thresholding: ordinary PCA on the features of largest variance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._validation import FloatArray, check_positive_integer
from ..numerics.linalg import on_support
from ._heuristic import Heuristic
from .template import SolverRun

TIE = 1e-9  # relative; variances closer than this count as equal


class DiagonalThresholding(Heuristic):
    """The k largest entries of the leading eigenvector of A on {i : A_ii ≥ τ}.

    τ is the `n_kept`-th largest A_ii. Features tied with it are all kept, so that the
    answer does not depend on their order: a correlation matrix keeps every feature.

    Parameters
    ----------
    n_kept : int, optional
        How many features survive the threshold; k by default.

    Notes
    -----
    Cost: one eigenvector of a matrix of `n_kept` features. A heuristic: it finds the
    support of a spiked covariance when k is of the order of sqrt(n / log d), and says
    nothing on other input. The matrix may be indefinite.

    References
    ----------
    Johnstone, I. M. and Lu, A. Y. (2009). On consistency and sparsity for principal
    components analysis in high dimensions. Journal of the American Statistical
    Association 104.

    Examples
    --------
    >>> from blockspca.solvers import DiagonalThresholding
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> DiagonalThresholding(n_kept=3).solve(A, 2).support
    array([0, 1])
    """

    name = "diagonal thresholding"

    def __init__(self, n_kept: int | None = None) -> None:
        self.n_kept = n_kept

    def _check_parameters(self) -> None:
        if self.n_kept is not None:
            check_positive_integer(self.n_kept, "n_kept")

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        count = min(len(A), max(k, self.n_kept or k))
        variances = np.diagonal(A)
        threshold = np.partition(variances, -count)[-count]
        slack = TIE * np.abs(variances).max()
        yield on_support(A, np.flatnonzero(variances >= threshold - slack))[0]
