"""How ε is chosen: given, from the noise, or by a search (`block_search.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .._validation import check_real
from ..covariance.covariance import Covariance
from ..result import Visit
from .block_search import BlockSearch
from .block_solve import BlockSolve
from .noise import check_noise_parameters, estimate_noise
from .threshold_path import ThresholdPath

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

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.1], [1.0, 2.0, 0.0], [0.1, 0.0, 1.0]]
    >>> bs.solve(A, 2, threshold=bs.FixedThreshold(0.5)).blocks
    Blocks(2 blocks, largest 2)
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

    Examples
    --------
    >>> import blockspca as bs
    >>> A, _ = bs.datasets.noisy_blocks(n_blocks=5, block_size=4, rng=0)
    >>> bs.solve(A, 2, threshold=bs.NoiseThreshold(n_subsets=10)).status.value
    'optimal'
    """

    C: float = 1.0
    alpha: float = 0.7
    u: float = 1.0
    n_subsets: int | None = None
    rng: int = 0

    def __post_init__(self) -> None:
        check_noise_parameters(self.C, self.alpha, self.u, self.n_subsets)

    def search(
        self, cov: Covariance, k: int, path: ThresholdPath, solve_at: SolveAt
    ) -> tuple[BlockSolve, tuple[Visit, ...]]:
        epsilon = estimate_noise(
            cov, self.C, self.alpha, self.u, self.n_subsets, self.rng
        )
        return _solve_once(epsilon, path, solve_at)


_STRATEGIES = {"search": BlockSearch, "noise": NoiseThreshold}


def as_strategy(
    threshold: ThresholdStrategy | float | str | None,
) -> ThresholdStrategy:
    """Accept a strategy, its name or a threshold; None is the search of Algorithm 5.

    Examples
    --------
    >>> from blockspca.blocks.strategies import as_strategy
    >>> as_strategy(0.3)
    FixedThreshold(epsilon=0.3)
    """
    if threshold is None:
        return BlockSearch()
    if isinstance(threshold, str):
        if threshold in _STRATEGIES:
            return _STRATEGIES[threshold]()
        raise ValueError(
            f"threshold = {threshold!r} is not known; pass one of "
            f"{sorted(_STRATEGIES)}, a number or a strategy such as BlockSearch()."
        )
    if hasattr(threshold, "search") and not isinstance(threshold, type):
        return threshold
    if isinstance(threshold, type):
        raise TypeError(
            f"threshold = {threshold.__name__} is a class; pass an instance, "
            f"{threshold.__name__}()."
        )
    return FixedThreshold(check_real(threshold, "threshold", minimum=0))
