"""How much better a support must be: what rounding may add to a node's bounds."""

from __future__ import annotations

from ..numerics.rounding import EPS

TOLERANCE = 1e-10  # relative; supports that are better by less count as equal


def rounding_error(k: int, eigen_size: int, value: float, scale: float) -> float:
    """Bound on what rounding adds to the bounds of a node; see `BranchAndBound`."""
    return 4 * (max(k, eigen_size) + 2) ** 2 * EPS * (abs(value) + scale)


def tolerance(k: int, eigen_size: int, reached: float, scale: float) -> float:
    """By how much a support must be better; nodes are dropped at half of it."""
    rounding = rounding_error(k, eigen_size, reached, scale)
    return max(TOLERANCE * abs(reached), 2 * rounding)
