"""One pass over A: diagonal and the K largest |A_ij| of every row, in bounded memory.

Screening needs the lists, the threshold path all edges above `Scan.complete_above`,
which are listed. A is never formed: tiles of A = C'C are computed by BLAS from dense
data, and rows of A by kernels that cost Σ_s nnz(x_s)² from sparse data.
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
    #: No exact |A_ij| exceeds its listed value, or the last listed value of its row, by
    #: more than this; 0 if A is in memory.
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

        The largest last value of a full list: what is above it is in its row's list.
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
    check, progress : callable, optional
        Called between tiles; `progress` with the work done and the total. Either may
        raise to stop the pass.
    features : array of int, optional
        Scan the principal submatrix of these features only; rows and indices of the
        result then count within them.
    memory : int, optional
        Bytes that the pass may hold above the data. Tiles shrink to fit, then the
        lists, to 8 entries at the shortest; `MemoryLimitError` if that is not enough.

    Notes
    -----
    Dense data: at most n d² flops. Features are taken by descending variance, and a
    tile is skipped if |A_ij| ≤ sqrt(A_ii A_jj) shows that nothing in it can enter a
    list; where variances differ, that is most of them. Sparse data: O(Σ_s nnz(x_s)²)
    plus the list entries. Ties with the last entry of a full list are broken
    arbitrarily. The values do not depend on the number of threads.

    The widest full scan of a covariance is kept as long as the covariance, and returned
    again where it is wide enough.
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
