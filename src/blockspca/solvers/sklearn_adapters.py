"""scikit-learn's sparse PCA estimators as solvers, their alpha tuned to k nonzeros."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._validation import FloatArray
from ..numerics.rounding import EPS
from ._canonical import CanonicalForm
from ._heuristic import Heuristic, tuned_to_k
from .template import SolverRun

FITS = 12  # values of alpha at most, for one k


class _ScikitLearn(Heuristic):
    """An estimator with `alpha` and `components_`, fitted to data made from A."""

    requires_psd = True
    _positive_integers = ("max_iterations",)

    def __init__(self, max_iterations: int = 100) -> None:
        self.max_iterations = max_iterations

    @abstractmethod
    def _estimator(self) -> Any:
        """Return the class to fit, not imported before."""

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        from sklearn.exceptions import ConvergenceWarning

        form = CanonicalForm(A)
        data = data_with_gram(form.matrix)
        if len(data) == 0:
            return iter(())
        seed = int(run.rng.integers(2**31))
        estimator = self._estimator()

        def fit(alpha: float) -> FloatArray:
            with warnings.catch_warnings():
                # What did not converge is still a proposal, judged by its objective.
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                fitted = estimator(
                    n_components=1,
                    alpha=alpha,
                    max_iter=self.max_iterations,
                    random_state=seed,
                ).fit(data)
            return form.restore(np.nan_to_num(fitted.components_[0]))

        # v is X'u with ‖u‖ = 1, soft-thresholded at α, and |x_j'u| ≤ ‖x_j‖ = sqrt(A_jj)
        longest = math.sqrt(float(np.diagonal(form.matrix).max()))
        return tuned_to_k(fit, k, longest, FITS)


def data_with_gram(A: FloatArray) -> FloatArray:
    """Return centred data X, one row per eigenvalue and sign, with X'X = A.

    The rows are ± sqrt(λ/2) v, for the positive eigenvalues λ only.
    """
    eigenvalues, vectors = np.linalg.eigh(A)
    rank_tolerance = len(A) * EPS * max(0.0, float(eigenvalues[-1]))
    kept = eigenvalues > rank_tolerance
    half = (vectors[:, kept] * np.sqrt(eigenvalues[kept] / 2)).T[::-1]
    return np.vstack([half, -half])


class ScikitLearnSparsePCA(_ScikitLearn):
    """`sklearn.decomposition.SparsePCA` with one component: min ½‖X − uv'‖² + α‖v‖₁.

    It needs data: X is made from A's eigenvalues and eigenvectors, centred and with
    X'X = A, so A has to be positive semidefinite. α is found by bisection, so that v
    has k nonzeros; if no α does, the k largest entries of v count.

    Parameters
    ----------
    max_iterations : int
        `max_iter` of the estimator.

    Notes
    -----
    A heuristic. Nodes are fits; a fit, once begun, is not stopped by a time limit.

    Examples
    --------
    >>> from blockspca.solvers import ScikitLearnSparsePCA
    >>> ScikitLearnSparsePCA().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).support
    array([0, 1])
    """

    name = "scikit-learn SparsePCA"

    def _estimator(self) -> Any:
        from sklearn.decomposition import SparsePCA

        return SparsePCA


class ScikitLearnMiniBatchSparsePCA(_ScikitLearn):
    """`sklearn.decomposition.MiniBatchSparsePCA` with one component.

    Otherwise as `ScikitLearnSparsePCA`: data made from A, which has to be positive
    semidefinite, and α found by bisection. The order of the batches comes from `rng`.

    Parameters
    ----------
    max_iterations : int
        `max_iter` of the estimator: passes over the data.

    Examples
    --------
    >>> from blockspca.solvers import ScikitLearnMiniBatchSparsePCA
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> ScikitLearnMiniBatchSparsePCA().solve(A, 2).support
    array([0, 1])
    """

    name = "scikit-learn MiniBatchSparsePCA"

    def __init__(self, max_iterations: int = 30) -> None:
        super().__init__(max_iterations)

    def _estimator(self) -> Any:
        from sklearn.decomposition import MiniBatchSparsePCA

        return MiniBatchSparsePCA
