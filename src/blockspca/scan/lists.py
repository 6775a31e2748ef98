"""One pass over A: diagonal and the K largest |A_ij| of every row, in bounded memory.

From them follow screening (design: r_m(i) of every row), every edge stronger than
`Scan.complete_above`, and max |A_ij|. A itself is never formed: dense data go through
BLAS in tiles, sparse data, and what deflation leaves of them, through kernels that cost
Σ_s nnz(x_s)².
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, MemoryLimitError, check_positive_integer
from ..covariance.covariance import Covariance
from .passes import Pass, Progress
from .single import SINGLE_FROM

__all__ = ["MemoryLimitError", "Scan", "known_scan", "scan"]


@dataclass(frozen=True)
class Scan:
    """What screening and the threshold path need to know about A."""

    diagonal: FloatArray  #: the variances A_ii
    #: `values`, `indices`: the K largest |A_ij|, j ≠ i, of each row, largest first, and
    #: where they are. Zeros are not listed: their place has value 0 and index −1.
    values: FloatArray
    indices: NDArray[np.int64]
    #: No exact |A_ij| exceeds its listed value, or the last of its row if it is not
    #: listed, by more than this; 0 if A is in memory.
    rounding: float

    @property
    def width(self) -> int:
        """K, the length of the lists."""
        return int(self.values.shape[1])

    @property
    def max_abs(self) -> float:
        """The largest |A_ij|."""
        first = self.values[:, 0]  # of each row the largest
        return float(max(np.abs(self.diagonal).max(), first.max()))

    @property
    def complete_above(self) -> float:
        """ε₀: every edge with |A_ij| > ε₀ is listed, in both its rows.

        The largest of the last values of full lists. An entry above it exceeds the last
        value of its row, so it is in the list.
        """
        if self.width >= len(self.diagonal) - 1:
            return 0.0
        full = self.indices[:, -1] >= 0
        return float(self.values[full, -1].max(initial=0.0))

    def narrowed(self, width: int) -> Scan:
        """Return the same with at most `width` entries of each row."""
        if self.width <= width:
            return self
        values = np.ascontiguousarray(self.values[:, :width])
        indices = np.ascontiguousarray(self.indices[:, :width])
        return replace(self, values=values, indices=indices)

    def edges(self, level: float) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the listed pairs (i, j) with |A_ij| > level ≥ 0, and these entries.

        A pair that both its rows list comes twice. Rounding may make the two differ.
        """
        row, place = np.nonzero(self.values > level)
        pairs = np.stack([row, self.indices[row, place]], axis=1)
        return pairs, self.values[row, place]


def scan(
    cov: Covariance,
    width: int,
    check: Callable[[], None] | None = None,
    features: NDArray[np.int64] | None = None,
    *,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Scan:
    """Find the `width` largest |A_ij|, j ≠ i, of every row in one pass over A.

    Parameters
    ----------
    cov : Covariance
        Never formed as a whole if it comes from data.
    width : int
        K ≥ 1, how many entries a row keeps.
    check : callable, optional
        Called between tiles; raises to stop the pass.
    features : array of int, optional
        Scan the principal submatrix of these features only; rows and indices of the
        result then count within them.
    memory : int, optional
        Bytes that the pass may hold above the data. Tiles shrink to fit, then the
        lists, to 8 entries at the shortest; `MemoryLimitError` if that is not enough.
    progress : callable, optional
        Called with the work done and the total, between tiles.

    Notes
    -----
    Dense data: n d² flops at the most. Features are taken by descending variance, and a
    tile is passed over if sqrt(A_ii A_jj) ≥ |A_ij| shows that nothing in it can enter a
    list; on data whose variances differ that is most of them. Sparse data: O(Σ_s
    nnz(x_s)²) plus the list entries. Of entries equal to the last of a full list, which
    ones are listed is not defined.

    It takes as many threads as `n_jobs` of the call under way allows, all cores if it
    says nothing. The values do not depend on it.

    The widest full scan of a covariance is kept as long as the covariance is, and
    returned again where it is wide enough.
    """
    width = check_positive_integer(width, "width")
    if features is None and (known := known_scan(cov, width)) is not None:
        return known
    job = Pass(cov, width, check, features, memory, progress)
    found = Scan(*job.run())
    if features is None:
        _known[cov] = found
    return found


def scan_kernels(cov: Covariance) -> tuple[str, ...]:
    """Return the modules of `_kernels` that a scan uses."""
    if cov.sparse_data() is not None:
        return ("sparse_tops",)
    if cov.sparse_correction() is not None:
        return ("corrected_tops",)
    if cov.in_memory:
        return ("rowtops",)
    if cov.dense_factor() is not None and cov.n_features >= SINGLE_FROM:
        return ("rowtops", "columntops", "single_tops")
    return ("rowtops", "columntops")


def known_scan(cov: Covariance, width: int) -> Scan | None:
    """Return the full scan of `cov` made before, if its lists are long enough."""
    known = _known.get(cov)
    if known is None or known.width < min(width, cov.n_features - 1):
        return None
    return known


_known: weakref.WeakKeyDictionary[Covariance, Scan] = weakref.WeakKeyDictionary()
