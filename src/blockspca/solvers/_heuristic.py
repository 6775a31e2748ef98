"""What heuristics share: dense vectors in, the best k-sparse component out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..numerics.linalg import on_support
from ..result import Status
from ..stopping import stop_reason
from .base import HEURISTIC, Deadline, Guarantee, Limits, Solution

LEVELS = 40  # halvings of a penalty: by then levels differ by one part in 10¹²


class Incumbent:
    """The best support among those offered; the k largest A_ii to begin with.

    That start makes the objective at least the largest A_ii, whatever is offered.
    """

    def __init__(self, A: FloatArray, k: int) -> None:
        self.A = A
        self.k = k
        self._seen: set[tuple[int, ...]] = set()
        self.x = np.zeros(len(A))
        self.objective = -np.inf
        self._consider(np.argsort(-np.diagonal(A), kind="stable")[:k])

    def offer(self, weights: FloatArray) -> None:
        """Consider the k largest |weights|; zero weights are ranked by |A · weights|.

        A vector with fewer than k nonzeros is thereby completed, which never lowers
        the largest eigenvalue on its support.
        """
        size = np.abs(weights)
        if not size.max() > 0:
            return
        if np.count_nonzero(size) >= self.k:
            order = np.argsort(-size, kind="stable")
        else:
            order = np.lexsort((-np.abs(self.A @ weights), -size))
        self._consider(order[: self.k])

    def _consider(self, support: NDArray[np.intp]) -> None:
        support = np.sort(support)
        key = tuple(support.tolist())
        if key in self._seen:
            return
        self._seen.add(key)
        x, objective = on_support(self.A, support)
        if objective > self.objective:
            self.x, self.objective = x, objective


class Heuristic(ABC):
    """A solver that proposes vectors, one after another, and promises nothing.

    A subclass defines `_propose`. Here the clock, the node limit, Ctrl-C and the form
    of the result are dealt with once for all; nodes are proposals.
    """

    name: str
    guarantee: Guarantee = HEURISTIC
    requires_psd = False

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        deadline = Deadline(limits.time)
        generator = np.random.default_rng(0) if rng is None else rng
        k = min(k, len(A))
        best = Incumbent(A, k)
        stopped, nodes = None, 0
        try:
            for weights in self._propose(A, k, deadline, generator):
                best.offer(weights)
                nodes += 1
                stopped = stop_reason(limits, deadline, nodes)
                if stopped is not None:
                    break
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        return Solution(best.x, status=stopped or Status.FEASIBLE, nodes=nodes)

    @abstractmethod
    def _propose(
        self, A: FloatArray, k: int, deadline: Deadline, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Yield vectors; a long step must itself give up when the deadline passes."""


def tuned_to_k(
    fit: Callable[[float], FloatArray], k: int, largest: float, levels: int = LEVELS
) -> Iterator[FloatArray]:
    """Yield fit(level) along a bisection for the level that leaves k nonzeros.

    Nonzeros are fewer at a higher level, though not strictly: the search ends at the
    first level with exactly k, or after so many levels, as when several features enter
    at once.
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
    """Return A, or A + cI without negative eigenvalues.

    Every unit vector's objective moves by c, so no maximiser changes.
    """
    lowest = float(np.linalg.eigvalsh(A)[0])
    return A - lowest * np.eye(len(A)) if lowest < 0 else A


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
