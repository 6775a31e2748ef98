"""Algorithm 5 of the paper: a binary search for ε, with blocks of a limited size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._validation import check_positive, check_positive_integer, check_real
from ..covariance.covariance import Covariance
from ..result import Visit
from ..status import Status
from .block_solve import BlockSolve
from .threshold_path import ThresholdPath

if TYPE_CHECKING:
    from .strategies import SolveAt

ROUNDING = 1e-12  # relative; an improvement must be larger than this


@dataclass(frozen=True)
class BlockSearch:
    """Algorithm 5: a binary search for ε, with blocks of at most `max_block_size`.

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
    >>> search = bs.BlockSearch(max_block_size=2)
    >>> result = bs.solve(A, 2, threshold=search, certify=False)
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
            raise ValueError(
                f"b = {self.b} is not above a = {self.a}; the search runs from "
                "a · noise_level to b · noise_level."
            )

    def largest_useful_block(self, k: int) -> int:
        """Return d0: how long the lists of a scan must be for this search."""
        return self.max_block_size or max(30, 2 * k)

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]:
        """Run the search; returns the best solve and the thresholds visited."""
        limit = self.largest_useful_block(k)
        low, high, delta = self._interval(cov, path, limit)
        best = solve_at(high)
        solved = path.largest_block(high)
        visits = [Visit(high, solved, "solved", best.objective)]
        while high - low > delta and not _enough(best):
            if self.early_stopping and solved == limit:
                break
            epsilon = (low + high) / 2
            if epsilon in (low, high):  # no number lies between them
                break
            if epsilon < path.complete_above:
                # A scan does not cover thresholds with blocks larger than its lists.
                known = "too large" if path.crowded_below > limit else "not scanned"
                visits.append(Visit(epsilon, path.crowded_below, known))
                low = epsilon
                continue
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
            if _enough(found):
                break
        return best, tuple(visits)

    def _interval(
        self, cov: Covariance, path: ThresholdPath, limit: int
    ) -> tuple[float, float, float]:
        # Computed from data, an entry may exceed the diagonal by rounding.
        largest = max(cov.max_abs(), path.largest_weight)
        delta = self.delta or (0.01 * largest if largest > 0 else 1.0)
        low = self.a * self.noise_level
        high = largest if self.b is None else self.b * self.noise_level
        if low >= high > 0:
            raise ValueError(
                f"the interval to search is empty: a · noise_level = {low:.4g} is not "
                f"below ‖A‖∞ = {high:.4g}; lower a or noise_level."
            )
        if path.largest_block(high) > limit:
            raise ValueError(
                f"the search ends at ε = {high:.4g}, where the largest block still has "
                f"{path.largest_block(high)} features, more than max_block_size = "
                f"{limit}; raise b to at least "
                f"{path.threshold_for(limit) / self.noise_level:.4g}, or raise "
                "max_block_size."
            )
        return low, high, delta


def _enough(solved: BlockSolve) -> bool:
    """Tell whether a limit was reached, the wanted gap included."""
    return solved.stopped is not None or solved.status is Status.GAP_LIMIT
