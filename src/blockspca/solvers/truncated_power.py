"""Truncated power iteration from many starts at once (Yuan & Zhang 2013)."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray, check_positive_integer
from ..numerics.linalg import (
    lanczos,
    largest_entries,
    leading_eigenvector,
    on_support,
)
from ..result import Status
from ..stopping import stop_reason
from .base import HEURISTIC, Deadline, Limits, Solution

CONVERGED = 1e-10


class TruncatedPower:
    """Repeat x ← the k largest entries of Ax, normalised, until it settles.

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
    >>> import numpy as np
    >>> from blockspca.solvers import TruncatedPower, Limits
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> np.flatnonzero(TruncatedPower().solve(A, 2, limits=Limits()).x)
    array([0, 1])
    """

    name = "truncated power"
    guarantee = HEURISTIC
    requires_psd = False

    def __init__(
        self, n_starts: int = 20, n_random: int = 5, max_iterations: int = 300
    ) -> None:
        self.n_starts = n_starts
        self.n_random = n_random
        self.max_iterations = max_iterations

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        check_positive_integer(self.max_iterations, "max_iterations")
        deadline = Deadline(limits.time)
        generator = np.random.default_rng(0) if rng is None else rng
        best = largest_entries(np.diagonal(A), k)
        stopped, nodes = None, 0
        try:
            x = self._starts(A, k, generator)
            shift = _ascending_shift(A)
            value = -np.inf
            for _ in range(self.max_iterations):
                stopped = stop_reason(limits, deadline, nodes)
                if stopped is not None:
                    break
                y = A @ x
                previous, value = value, np.einsum("ij,ij->j", x, y)
                x = _truncate(y + shift * x, k)
                nodes += 1
                if (value - previous <= CONVERGED * np.abs(value)).all():
                    break
            best = self._best_support(A, x, k)
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        vector, _ = on_support(A, best)
        return Solution(vector, status=stopped or Status.FEASIBLE, nodes=nodes)

    def _starts(
        self, A: FloatArray, k: int, generator: np.random.Generator
    ) -> FloatArray:
        d = len(A)
        lengths = np.partition(A**2, d - k, axis=1)[:, d - k :].sum(axis=1)
        rows = np.argsort(-lengths, kind="stable")[: self.n_starts]
        random = generator.standard_normal((d, self.n_random))
        return _truncate(np.column_stack([_direction(A), A[:, rows], random]), k)

    @staticmethod
    def _best_support(A: FloatArray, x: FloatArray, k: int) -> np.ndarray:
        supports = {tuple(largest_entries(column, k).tolist()) for column in x.T}
        return np.array(max(sorted(supports), key=lambda s: on_support(A, s)[1]))


def _ascending_shift(A: FloatArray) -> float:
    """Return c ≥ 0 such that A + cI has no negative eigenvalue, 0 if A has none.

    A larger c than needed slows every iteration down, so Gershgorin's is used only
    where a Cholesky factor, up to rounding, does not exist.
    """
    shifted = A.copy()
    shifted.flat[:: len(A) + 1] += 1e-12 * float(np.abs(np.diagonal(A)).max())
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return max(0.0, float((np.abs(A).sum(axis=1) - 2 * np.diagonal(A)).max()))
    return 0.0


def _direction(A: FloatArray) -> FloatArray:
    """Return a leading eigenvector, a rough one if A is large: it is only a start."""
    if len(A) <= 500:
        return leading_eigenvector(A)
    start = np.diagonal(A) - np.diagonal(A).min() + 1.0
    found = lanczos(A, start, tolerance=1e-4)
    return start if found is None else found[1][:, 0]


def _truncate(y: FloatArray, k: int) -> FloatArray:
    """Keep the k largest entries of each column and normalise it."""
    kept = np.argsort(-np.abs(y), axis=0, kind="stable")[:k]
    x = np.zeros_like(y)
    np.put_along_axis(x, kept, np.take_along_axis(y, kept, axis=0), axis=0)
    length = np.linalg.norm(x, axis=0)
    x[0, length == 0] = 1.0  # Ax = 0: any vector is as good
    return x / np.where(length == 0, 1.0, length)
