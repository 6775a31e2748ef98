"""A with its negative entries raised to 0, for loadings that are not negative.

**Theorem.** If M_ij ≥ A_ij for all i ≠ j and M_ii = A_ii, then x'Ax ≤ x'Mx for every
x ≥ 0. So the optimum over all vectors for M bounds that over non-negative ones for A.
With every negative A_ij raised to 0, M has no negative entry off the diagonal, and by
Perron and Frobenius an optimal x ≥ 0 itself; where its features have no negative entry
among them, or only such as were kept, it is optimal for A.

max(a, 0) changes by no more than a does, so that entries of M have the error of those
of A.
"""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from .covariance import Covariance
from .derived import DerivedCovariance
from .sources import Indices, MomentSource, Source

MOST_ENTRIES = 2**27  # of a matrix that is held as a whole: 1 GiB


def raised(cov: Covariance, kept: tuple[tuple[int, int], ...] = ()) -> Covariance:
    """Return A with negative entries raised to 0, except the pairs in `kept`."""
    view = RaisedSource(cov._source, kept)
    source: Source = view
    if cov.n_features**2 <= MOST_ENTRIES:
        A = np.array(view.submatrix(slice(None), slice(None)))
        A = (A + A.T) / 2
        source = MomentSource(A, cov.entry_error, psd=False, computed_from=view)
    return DerivedCovariance(source, cov.feature_names, "negative entries raised to 0")


class RaisedSource(Source):
    """Another source with its negative entries off the diagonal raised to 0."""

    no_factor = "this one has entries raised to 0"

    def __init__(self, base: Source, kept: tuple[tuple[int, int], ...]) -> None:
        self.base = base
        self.n_features = base.n_features
        self.kept = np.array(kept, dtype=np.intp).reshape(-1, 2)

    def diagonal(self) -> FloatArray:
        return self.base.diagonal()

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        block = np.array(self.base.submatrix(rows, columns))
        index = np.arange(self.n_features)
        at_rows, at_columns = index[rows], index[columns]
        stays = at_rows[:, None] == at_columns
        for i, j in self.kept:
            stays |= np.logical_and.outer(at_rows == i, at_columns == j)
            stays |= np.logical_and.outer(at_rows == j, at_columns == i)
        block[~stays & (block < 0)] = 0.0
        return block

    def entry_error(self) -> float:
        return self.base.entry_error()

    def check_unchanged(self) -> None:
        self.base.check_unchanged()
