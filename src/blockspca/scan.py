"""One tiled pass over A: diagonal and the K largest |A_ij| of every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._validation import FloatArray
from .covariance import Covariance


@dataclass(frozen=True)
class Scan:
    """What screening needs to know about A.

    Attributes
    ----------
    diagonal : (d,) array
        The variances A_ii.
    values, indices : (d, K) arrays
        The K largest |A_ij|, j ≠ i, of each row, largest first, and where they are.
        Zeros are not listed: their place has value 0 and index −1.
    rounding : float
        Bound on the error of a listed value against the same entry computed again;
        0 if A is in memory.
    """

    diagonal: FloatArray
    values: FloatArray
    indices: NDArray[np.int64]
    rounding: float

    @property
    def max_abs(self) -> float:
        """The largest |A_ij|."""
        return float(max(np.abs(self.diagonal).max(), self.values.max(initial=0.0)))


def scan(
    cov: Covariance, width: int, check: Callable[[], None] | None = None
) -> Scan:
    """Find the `width` largest |A_ij|, j ≠ i, of every row in one pass over A.

    Parameters
    ----------
    cov : Covariance
        Never formed as a whole if it comes from data: memory is O(d · width).
    width : int
        K ≥ 1, how many entries a row keeps.
    check : callable, optional
        Called between tiles; raises to stop the pass.

    Notes
    -----
    O(d²) comparisons, and O(d · width · log d) insertions on data in random order.
    """
    from ._kernels.rowtops import add_tile

    d = cov.n_features
    width = max(1, min(width, d - 1))
    values = np.zeros((d, width))
    indices = np.full((d, width), -1, dtype=np.int64)
    smallest = np.zeros(d)
    for i0, _, j0, _, tile in cov.tiles():
        if check is not None:
            check()
        # One memory layout, one compiled signature.
        tile = np.require(tile, np.float64, ["C", "W"])
        add_tile(tile, i0, j0, values, indices, smallest)
    diagonal = np.array(cov.diagonal(), dtype=np.float64)
    rounding = 0.0
    if cov.n_samples is not None:
        # Two summation orders of one dot product, |c_i·c_j| ≤ sqrt(A_ii A_jj).
        eps = np.finfo(np.float64).eps
        rounding = cov.n_samples * eps * float(np.abs(diagonal).max())
    return Scan(diagonal, values, indices, rounding)
