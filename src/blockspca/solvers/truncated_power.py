"""Truncated power iteration from many starts at once (Yuan & Zhang 2013)."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..heuristics.power_iteration import power_iteration
from ..numerics.linalg import largest_entries, leading_eigenvector, rough_eigenpair
from ..numerics.upper_eigenvalues import rounding_shift
from .template import BaseSolver, SolverRun

TOLERANCE = 1e-10  # relative, of the objective; the support settles long before


class TruncatedPower(BaseSolver):
    """Repeat x ← the k largest entries of Ax, normalised, until it converges.

    An indefinite A is shifted by a multiple of the identity, which changes no maximiser
    and makes the objective ascend. Starts: the leading eigenvector, the rows whose k
    largest entries are longest, and random vectors; each is run, the best is kept.

    Parameters
    ----------
    n_starts : int
        How many rows to start from, besides the leading eigenvector.
    n_random : int
        How many random starts; they come from `rng`.
    max_iterations : int

    References
    ----------
    Yuan, X.-T. and Zhang, T. (2013). Truncated power method for sparse eigenvalue
    problems. Journal of Machine Learning Research 14.

    Examples
    --------
    >>> from blockspca.solvers import TruncatedPower
    >>> TruncatedPower().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).x.round(3)
    array([0.707, 0.707, 0.   ])
    """

    name = "truncated power"
    _positive_integers = ("max_iterations",)

    def __init__(
        self, n_starts: int = 20, n_random: int = 5, max_iterations: int = 300
    ) -> None:
        self.n_starts = n_starts
        self.n_random = n_random
        self.max_iterations = max_iterations

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        def product(x: FloatArray) -> FloatArray:
            run.nodes += 1
            return A @ x

        x = power_iteration(
            product,
            self._starts(A, k, run.rng),
            k,
            shift=_ascending_shift(A),
            max_iterations=self.max_iterations,
            tolerance=TOLERANCE,
            stop=run.must_stop,
        )
        for column in x.T:
            run.offer(largest_entries(column, k))

    def _starts(
        self, A: FloatArray, k: int, generator: np.random.Generator
    ) -> FloatArray:
        d = len(A)
        lengths = np.partition(A**2, d - k, axis=1)[:, d - k :].sum(axis=1)
        rows = np.argsort(-lengths, kind="stable")[: self.n_starts]
        random = generator.standard_normal((d, self.n_random))
        return np.column_stack([_direction(A), A[:, rows], random])


def _ascending_shift(A: FloatArray) -> float:
    """Return c ≥ 0 such that A + cI has no negative eigenvalue, 0 if A has none.

    As a larger c slows convergence, Gershgorin's bound is used only if there is no
    Cholesky factor, up to rounding.
    """
    if np.isfinite(rounding_shift(A)):
        return 0.0
    return max(0.0, float((np.abs(A).sum(axis=1) - 2 * np.diagonal(A)).max()))


def _direction(A: FloatArray) -> FloatArray:
    """Return a leading eigenvector, a rough one if A is large: it is only a start."""
    if len(A) <= 500:
        return leading_eigenvector(A)
    start = np.diagonal(A) - np.diagonal(A).min() + 1.0
    return rough_eigenpair(A.__matmul__, start, 1e-4)[1]
