"""What an algorithm promises beforehand, and what Theorem 3 makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """objective ≥ OPT / factor(k, d) − error(k, d), for every input of size d.

    Both functions must not decrease in d. `factor` is infinite for a heuristic. With
    `assumes_psd` the promise holds for positive semidefinite input only.

    Examples
    --------
    >>> from blockspca.solvers import Guarantee
    >>> half = Guarantee(factor=lambda k, d: 2.0, error=lambda k, d: 0.0)
    >>> half.after_blocks(k=4, block_size=10, epsilon=0.1).error
    0.2
    """

    factor: Callable[[int, int], float]
    error: Callable[[int, int], float]
    assumes_psd: bool = False

    def after_blocks(self, k: int, block_size: int, epsilon: float) -> BlockGuarantee:
        """Apply Theorem 3: m and a at the size of the largest block, and kε/m more."""
        m = self.factor(k, block_size)
        return BlockGuarantee(
            factor=m,
            error=self.error(k, block_size) + k * epsilon / m,
            k=k,
            epsilon=epsilon,
            block_size=block_size,
            assumes_psd=self.assumes_psd,
        )


@dataclass(frozen=True)
class BlockGuarantee:
    """objective ≥ OPT / factor − error on the original matrix, known beforehand."""

    factor: float
    error: float
    k: int
    epsilon: float
    block_size: int
    assumes_psd: bool = False

    def __str__(self) -> str:
        if math.isinf(self.factor):
            return (
                "The solver is a heuristic: nothing is promised beforehand about how "
                "close its objective comes to the optimum."
            )
        share = "" if self.factor == 1 else f" / {self.factor:.4g}"
        proviso = ", if the matrix is positive semidefinite" if self.assumes_psd else ""
        return (
            f"Theorem 3 promises objective ≥ optimum{share} − {self.error:.4g}"
            f"{proviso}: blocks have at most {self.block_size} features, and ignoring "
            f"the entries between them, each at most ε = {self.epsilon:.4g}, changes "
            f"no objective by more than k·ε = {self.k * self.epsilon:.4g}."
        )


def within_factor(factor: Callable[[int, int], float]) -> Guarantee:
    """objective ≥ OPT / factor(k, d), for positive semidefinite matrices."""
    return Guarantee(factor, lambda k, d: 0.0, assumes_psd=True)


EXACT = Guarantee(factor=lambda k, d: 1.0, error=lambda k, d: 0.0)
HEURISTIC = Guarantee(factor=lambda k, d: math.inf, error=lambda k, d: 0.0)
