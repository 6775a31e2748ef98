"""Generalized power method with an ℓ0 or ℓ1 penalty, tuned to k nonzeros."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._validation import FloatArray
from ._heuristic import Heuristic, shifted_to_psd, soft_threshold, tuned_to_k
from .template import SolverRun

CONVERGED = 1e-10  # relative change of the weights


class Penalty(Protocol):
    """How a penalty of a given level acts on the scores c_i'y."""

    def largest(self, variance: float) -> float:
        """Return a level at which no score survives, given the largest A_ii."""

    def shrink(self, scores: FloatArray, level: float) -> FloatArray:
        """Return the weights of the columns in the next y."""


@dataclass(frozen=True)
class L0Penalty:
    """γ‖x‖₀: scores with (c_i'y)² > γ survive as they are."""

    def largest(self, variance: float) -> float:
        return variance

    def shrink(self, scores: FloatArray, level: float) -> FloatArray:
        return np.where(scores**2 > level, scores, 0.0)


@dataclass(frozen=True)
class L1Penalty:
    """γ‖x‖₁: scores with |c_i'y| > γ survive, shortened by γ."""

    def largest(self, variance: float) -> float:
        return math.sqrt(variance)

    def shrink(self, scores: FloatArray, level: float) -> FloatArray:
        return soft_threshold(scores, level)


class GeneralizedPower(Heuristic):
    """max over unit y of Σ_i [(c_i'y)² − γ]₊ (ℓ0) or Σ_i [|c_i'y| − γ]₊² (ℓ1).

    c_i are the columns of C, C'C = A. Both are convex in y, and are maximised by y ←
    gradient / its norm, from the longest column. The gradient is C w with w the shrunk
    scores, so that only w ← shrink(Aw / sqrt(w'Aw)) is computed and C is never formed.
    γ is found by bisection, so that k weights are nonzero.

    Parameters
    ----------
    penalty : L0Penalty or L1Penalty
        L0Penalty by default.
    max_iterations : int
        At most this many steps for each γ.

    Notes
    -----
    Cost: O(d²) a step. A heuristic. An indefinite A is shifted by a multiple of the
    identity, which changes no maximiser. Nodes are values of γ.

    References
    ----------
    Journée, M., Nesterov, Y., Richtárik, P. and Sepulchre, R. (2010). Generalized power
    method for sparse principal component analysis. Journal of Machine Learning
    Research 11.

    Examples
    --------
    >>> from blockspca.solvers import GeneralizedPower, L1Penalty
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 1.5]]
    >>> GeneralizedPower(L1Penalty()).solve(A, 2).support
    array([0, 1])
    """

    name = "generalized power"
    _positive_integers = ("max_iterations",)

    def __init__(
        self, penalty: Penalty | None = None, max_iterations: int = 200
    ) -> None:
        self.penalty = L0Penalty() if penalty is None else penalty
        self.max_iterations = max_iterations

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        psd = shifted_to_psd(A)
        longest = int(np.argmax(np.diagonal(psd)))
        variance = float(psd[longest, longest])
        start = np.zeros(len(A))
        start[longest] = 1.0

        def fit(level: float) -> FloatArray:
            weights = start
            for _ in range(self.max_iterations):
                image = psd @ weights
                square = float(weights @ image)
                if square <= 0 or run.deadline.passed():
                    break
                previous = weights
                weights = self.penalty.shrink(image / math.sqrt(square), level)
                change = np.linalg.norm(weights - previous)
                if change <= CONVERGED * np.linalg.norm(previous):
                    break
            return weights

        return tuned_to_k(fit, k, self.penalty.largest(variance))
