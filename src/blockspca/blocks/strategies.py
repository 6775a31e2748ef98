"""How ε is chosen: given, from the noise (Algorithm 4), or searched (Algorithm 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._validation import check_positive, check_positive_integer, check_real
from ..covariance import Covariance
from ..result import Visit
from .framework import BlockSolve
from .noise import estimate_noise
from .path import ThresholdPath

ROUNDING = 1e-12  # relative; an improvement must be larger than this

SolveAt = Callable[[float], BlockSolve]


class ThresholdStrategy(Protocol):
    """Chooses thresholds, has each solved, and returns the best and the visits."""

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]: ...


def _solve_once(
    epsilon: float, path: ThresholdPath, solve_at: SolveAt
) -> tuple[BlockSolve, tuple[Visit, ...]]:
    solved = solve_at(epsilon)
    visit = Visit(epsilon, path.largest_block(epsilon), "solved", solved.objective)
    return solved, (visit,)


@dataclass(frozen=True)
class FixedThreshold:
    """Algorithm 3 at a given ε.

    Parameters
    ----------
    epsilon : float
        Entries with |A_ij| ≤ ε do not join features into a block. 0 keeps the blocks
        that A has by itself.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_real(self.epsilon, "epsilon", minimum=0)

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]:
        return _solve_once(float(self.epsilon), path, solve_at)


@dataclass(frozen=True)
class NoiseThreshold:
    """Algorithm 3 at the noise level that Algorithm 4 estimates.

    The parameters are those of `estimate_noise`.
    """

    C: float = 1.0
    alpha: float = 0.7
    u: float = 1.0
    n_subsets: int | None = None
    rng: int = 0

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]:
        epsilon = estimate_noise(
            cov, self.C, self.alpha, self.u, self.n_subsets, self.rng
        )
        return _solve_once(epsilon, path, solve_at)


@dataclass(frozen=True)
class BlockSearch:
    """Algorithm 5: a binary search for ε with blocks no larger than can be afforded.

    Parameters
    ----------
    max_block_size : int, optional
        d0, the largest block worth solving; max(30, 2k) by default.
    delta : float, optional
        δ, the width at which the search ends; 0.01 ‖A‖∞ by default.
    noise_level, a, b : float, optional
        ε̄, a and b of the interval [a ε̄, b ε̄] to search. By default ε̄ = 1, a = 0 and
        b = ‖A‖∞, the whole range.
    early_stopping : bool
        End as soon as blocks of size d0 exactly have been solved, as in the paper's
        experiments.

    Examples
    --------
    >>> import numpy as np, blockspca as bs
    >>> A = np.diag([3.0, 2.0, 2.0]) + 0.1
    >>> A[1, 2] = A[2, 1] = 1.5
    >>> result = bs.solve(A, 2, threshold=bs.BlockSearch(max_block_size=2))
    >>> result.support
    array([1, 2])
    """

    max_block_size: int | None = None
    delta: float | None = None
    noise_level: float = 1.0
    a: float = 0.0
    b: float | None = None
    early_stopping: bool = True

    def __post_init__(self) -> None:
        if self.max_block_size is not None:
            check_positive_integer(self.max_block_size, "max_block_size")
        if self.delta is not None:
            check_positive(self.delta, "delta")
        check_positive(self.noise_level, "noise_level")
        check_real(self.a, "a", minimum=0)
        if self.b is not None and not check_real(self.b, "b", minimum=0) > self.a:
            raise ValueError(f"b = {self.b} is not above a = {self.a}.")

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]:
        limit = self.max_block_size or max(30, 2 * k)
        largest_entry = cov.max_abs()
        delta = self.delta or max(0.01 * largest_entry, np.finfo(float).tiny)
        low = self.a * self.noise_level
        high = largest_entry if self.b is None else self.b * self.noise_level
        if path.largest_block(high) > limit:
            raise ValueError(
                f"the search ends at ε = {high:.4g}, where the largest block still has "
                f"{path.largest_block(high)} features, more than max_block_size = "
                f"{limit}; raise b to at least "
                f"{path.threshold_for(limit) / self.noise_level:.4g}, or raise "
                "max_block_size."
            )
        best = solve_at(high)
        solved = path.largest_block(high)
        visits = [Visit(high, solved, "solved", best.objective)]
        while high - low > delta and not best.stopped:
            if self.early_stopping and solved == limit:
                break
            epsilon = (low + high) / 2
            if epsilon in (low, high):  # no number lies between them
                break
            size = path.largest_block(epsilon)
            if size <= solved:
                visits.append(Visit(epsilon, size, "size solved before"))
                high = epsilon
                continue
            if size > limit:
                visits.append(Visit(epsilon, size, "too large"))
                low = epsilon
                continue
            found = solve_at(epsilon)
            solved = size
            visits.append(Visit(epsilon, size, "solved", found.objective))
            if found.objective - best.objective > ROUNDING * abs(best.objective):
                best = found
            else:
                high = epsilon
            if found.stopped:
                break
        return best, tuple(visits)
