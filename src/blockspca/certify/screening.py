"""Nested screening: which features can be in a k-set whose eigenvalue exceeds τ.

Let S be a k-set with λ(S) > τ ≥ upper ≥ opt(k − 1), i in S and T = S \\ {i}.  Splitting
a unit vector into its i-th entry and the rest,

    λ(S) ≤ λmax [[A_ii, ‖A_iT‖], [‖A_iT‖, λ(T)]],

and the right side exceeds τ only if ‖A_iT‖² > (τ − A_ii)(τ − λ(T)).  As λ(T) ≤ upper and
‖A_iT‖² ≤ r_{k−1}(i)², the sum of the k − 1 largest squares of row i, a feature with

    r_{k−1}(i)² ≤ (τ − A_ii)(τ − upper)

is in no such set.  Removing it can only shrink the r of the others: repeat.  With
upper > τ nothing but r = 0 is removed, which is safe too: then λ(S) ≤ max(A_ii, λ(T)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..scan import Scan


class Screening:
    """The row tops of A, in units of `unit`, ready to screen for every k.

    Parameters
    ----------
    scan : Scan
        Diagonal and row tops.
    unit : float
        A power of two near max |A_ij|; squares of scaled entries neither overflow
        nor vanish, and the scaling is exact.
    """

    def __init__(self, scan: Scan, unit: float) -> None:
        self.unit = unit
        self.diagonal: FloatArray = scan.diagonal / unit
        self.values: FloatArray = scan.values / unit
        self.indices = scan.indices
        self.rounding = scan.rounding / unit
        self.prefix: FloatArray = np.cumsum(self.values**2, axis=1)
        self._alive = np.empty(len(self.diagonal), dtype=np.int64)
        self._survivors = np.empty(len(self.diagonal), dtype=np.int64)

    def survivors(self, k: int, tau: float, upper: float) -> NDArray[np.int64]:
        """Features that may be in a k-set above τ, given upper ≥ opt(k − 1)."""
        if k == 1:
            return np.flatnonzero(self.diagonal > tau)
        from .._kernels.screen import screen

        # Sums of k squares are accurate to k·eps; widen rather than trust them.
        widened = self.rounding + 1e-15 * float(np.sqrt(self.prefix[:, -1].max()))
        count, _ = screen(
            self.diagonal,
            self.values,
            self.indices,
            self.prefix,
            k,
            tau,
            upper,
            widened,
            self._alive,
            self._survivors,
        )
        return self._survivors[:count].copy()

    def row_supports(self, k: int, n_rows: int) -> NDArray[np.int64]:
        """{i} ∪ {its k − 1 largest |A_ij|}, for the n_rows rows of largest norm."""
        complete = np.flatnonzero(self.indices[:, k - 2] >= 0)
        norms = self.prefix[complete, k - 2] + self.diagonal[complete] ** 2
        best = complete[np.argsort(-norms, kind="stable")[:n_rows]]
        return np.column_stack([best, self.indices[best, : k - 1]])

    def squared_norms(self, q: int) -> FloatArray:
        """r_q(i)², bounded from above where the lists are shorter than q."""
        width = self.values.shape[1]
        norms = self.prefix[:, min(q, width) - 1].copy()
        if q > width:
            norms += (q - width) * self.values[:, -1] ** 2
        return (np.sqrt(norms) + np.sqrt(q) * self.rounding) ** 2

    def nested_bound(self, k: int, upper: float) -> float:
        """opt(k) ≤ max_i λmax [[A_ii, r_{k−1}(i)], [r_{k−1}(i), upper]]."""
        half = (self.diagonal - upper) / 2
        roots = np.sqrt(half**2 + self.squared_norms(k - 1))
        return float(((self.diagonal + upper) / 2 + roots).max())

    def row_sum_bound(self, k: int) -> float:
        """opt(k) ≤ max_i A_ii + (sum of the k − 1 largest |A_ij|), by Gershgorin."""
        sums = self.values[:, : k - 1].sum(axis=1)
        beyond = max(0, k - 1 - self.values.shape[1])
        sums += beyond * self.values[:, -1] + (k - 1) * self.rounding
        return float((self.diagonal + sums).max())
