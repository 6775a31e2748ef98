"""Base class of heuristics that propose vectors, of which the best support counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from .._validation import FloatArray
from ..numerics.upper_eigenvalues import psd_shift
from .template import BaseSolver, SolverRun

LEVELS = 40  # halvings of a penalty: by then levels differ by one part in 10¹²


class Heuristic(BaseSolver):
    """A solver that proposes vectors, one after another, and promises nothing.

    A subclass defines `_propose`; nodes are proposals. The k largest A_ii come first,
    so that the objective is at least the largest A_ii, whatever is proposed.
    """

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        run.offer_variances()
        for weights in self._propose(A, k, run):
            run.offer_vector(weights)
            run.nodes += 1
            if run.must_stop():
                return

    @abstractmethod
    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        """Yield vectors; a long step must itself give up when run.deadline passes."""


def tuned_to_k(
    fit: Callable[[float], FloatArray], k: int, largest: float, levels: int = LEVELS
) -> Iterator[FloatArray]:
    """Yield fit(level) along a bisection for the level that leaves k nonzeros.

    Nonzeros are fewer at a higher level, though not strictly. The search ends at the
    first level with exactly k nonzeros, or after `levels` levels, since several
    features may enter at once.
    """
    low, high = 0.0, largest
    for _ in range(levels):
        level = (low + high) / 2
        weights = fit(level)
        yield weights
        count = np.count_nonzero(weights)
        if count == k:
            return
        if count > k:
            low = level
        else:
            high = level


def shifted_to_psd(A: FloatArray) -> FloatArray:
    """Return A + cI without negative eigenvalues; c is rounding if A has none.

    Every unit vector's objective moves by c, so no maximiser changes.
    """
    return A + psd_shift(A) * np.eye(len(A))


def soft_threshold(values: FloatArray, level: float | FloatArray) -> FloatArray:
    """Return sign(v) · max(|v| − level, 0) for every entry v."""
    shrunk: FloatArray = np.sign(values) * np.maximum(np.abs(values) - level, 0.0)
    return shrunk


def keep_largest(y: FloatArray, k: int) -> FloatArray:
    """Project onto the unit vectors with at most k nonzeros; zero stays zero."""
    x = np.zeros_like(y)
    kept = np.argsort(-np.abs(y), kind="stable")[:k]
    x[kept] = y[kept]
    length = float(np.linalg.norm(x))
    return x / length if length > 0 else x
