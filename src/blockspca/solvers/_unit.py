"""A unit in which squares of the entries of A neither overflow nor vanish."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.sources import Source
from ..numerics.rounding import power_of_four
from ..status import Status
from .base import Solution

EXTREME = 1e100  # entries beyond it, or its inverse, are divided by a power of four


def unit_of(largest: float) -> float:
    """A power of four near the largest |A_ij| if its square is out of range, else 1."""
    if 1 / EXTREME <= largest <= EXTREME or largest == 0 or not math.isfinite(largest):
        return 1.0
    return power_of_four(largest)


def in_unit(solution: Solution, unit: float) -> Solution:
    """The solution for `unit` · A; nothing is optimal whose bound overflows."""
    bound, status = solution.upper_bound * unit, solution.status
    if bound / unit < solution.upper_bound:  # among the numbers below 1e-307
        bound = math.nextafter(bound, math.inf)
    if status is Status.OPTIMAL and not math.isfinite(bound):
        status = Status.FEASIBLE
    return replace(solution, upper_bound=bound, status=status)


class ScaledSource(Source):
    """A / unit, entry by entry, for a unit whose square root is exact."""

    def __init__(self, cov: Covariance, unit: float) -> None:
        self.cov = cov
        self.unit, self.root = unit, math.sqrt(unit)
        self.known_psd = cov.known_psd
        self.n_features, self.n_samples = cov.n_features, cov.n_samples
        self.has_columns = cov.has_columns

    def diagonal(self) -> FloatArray:
        return self.cov.diagonal() / self.unit

    def submatrix(self, rows: Any, columns: Any) -> FloatArray:
        return self.cov.submatrix(rows, columns) / self.unit

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.cov.matvec(x) / self.unit

    def gram(self, weights: FloatArray) -> FloatArray:
        return self.cov.gram(weights) / self.unit

    def columns(self, index: Any, start: int, stop: int) -> FloatArray:
        return self.cov.columns(index, start, stop) / self.root

    def entry_error(self) -> float:
        return self.cov.entry_error / self.unit

    def factor_error(self) -> float:
        return self.cov.factor_error / self.root


def rough_size(cov: Covariance) -> float:
    """About the largest |A_ij|, from the diagonal unless A is a sparse matrix."""
    size = float(np.abs(cov.diagonal()).max())
    stored = cov.stored_entries()
    if stored is not None and stored.nnz:
        size = max(size, float(np.abs(stored.data).max()))
    return size
