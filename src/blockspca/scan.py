"""One tiled pass over A: diagonal and the K largest |A_ij| of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    cov: Covariance,
    width: int,
    check: Callable[[], None] | None = None,
    features: NDArray[np.int64] | None = None,
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
    features : array of int, optional
        Scan the principal submatrix of these features only; rows and indices of the
        result then count within them.

    Notes
    -----
    O(d²) comparisons, and O(d · width · log d) insertions on data in random order.
    """
    from ._kernels.rowtops import add_tile

    d = cov.n_features if features is None else len(features)
    width = max(1, min(width, d - 1))
    values = np.zeros((d, width))
    indices = np.full((d, width), -1, dtype=np.int64)
    smallest = np.zeros(d)
    tiles = cov.tiles() if features is None else _tiles_of(cov, features)
    for i0, _, j0, _, tile in tiles:
        if check is not None:
            check()
        # One memory layout, one compiled signature.
        tile = np.require(tile, np.float64, ["C", "W"])
        add_tile(tile, i0, j0, values, indices, smallest)
    diagonal = np.array(cov.diagonal(), dtype=np.float64)
    if features is not None:
        diagonal = diagonal[features]
    # An entry computed twice differs by at most twice its error.
    return Scan(diagonal, values, indices, 2 * cov.entry_error)


def _tiles_of(
    cov: Covariance, features: NDArray[np.int64], size: int = 2048
) -> Iterator[tuple[int, int, int, int, FloatArray]]:
    """The upper half of a principal submatrix, as `Covariance.tiles` gives A."""
    n = len(features)
    for i0 in range(0, n, size):
        rows = features[i0 : i0 + size]
        for j0 in range(i0, n, size):
            columns = features[j0 : j0 + size]
            block = cov.submatrix(rows) if i0 == j0 else cov.submatrix(rows, columns)
            yield i0, i0 + len(rows), j0, j0 + len(columns), block
