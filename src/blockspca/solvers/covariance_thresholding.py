"""Covariance thresholding: the leading eigenvector once small entries are shrunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._validation import FloatArray
from ..numerics.linalg import leading_eigenvector
from ._heuristic import Heuristic, soft_threshold
from .template import SolverRun


class CovarianceThresholding(Heuristic):
    """The k largest entries of the leading eigenvector of η(A; τ), for several τ.

    η(A; τ)_ij = sign(A_ij) max(|A_ij| − τ, 0) for i ≠ j, and A_ii on the diagonal. The
    paper sets τ from the noise level and the number of samples. Neither is known from
    A, so τ runs over quantiles of |A_ij| and the best objective counts.

    Parameters
    ----------
    n_thresholds : int
        How many quantiles of |A_ij|, i ≠ j, to try; the first is τ = 0.

    Notes
    -----
    Cost: `n_thresholds` leading eigenvectors. A heuristic: it finds the support of a
    spiked covariance when k is of the order of sqrt(n), and says nothing on other
    input. The matrix may be indefinite. Nodes are thresholds.

    References
    ----------
    Deshpande, Y. and Montanari, A. (2016). Sparse PCA via covariance thresholding.
    Journal of Machine Learning Research 17.

    Examples
    --------
    >>> from blockspca.solvers import CovarianceThresholding, Limits
    >>> A = [[2, 1, 0], [1, 2, 0], [0, 0, 2.5]]
    >>> CovarianceThresholding().solve(A, 2, limits=Limits(nodes=1)).status.value
    'node_limit'
    """

    name = "covariance thresholding"
    _positive_integers = ("n_thresholds",)

    def __init__(self, n_thresholds: int = 20) -> None:
        self.n_thresholds = n_thresholds

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        entries = np.abs(A[np.triu_indices(len(A), 1)])
        if len(entries) == 0:
            return
        # Half of them in the upper tenth, where thresholds leave few entries
        middle = self.n_thresholds // 2
        ranks = np.concatenate(
            [
                np.linspace(0, 0.9, self.n_thresholds - middle, endpoint=middle == 0),
                np.linspace(0.9, 1, middle, endpoint=False),
            ]
        )
        thresholds = np.quantile(entries, ranks)
        thresholds[0] = 0.0
        for threshold in np.unique(thresholds):
            shrunk = soft_threshold(A, threshold)
            np.fill_diagonal(shrunk, np.diagonal(A))
            yield leading_eigenvector(shrunk)
