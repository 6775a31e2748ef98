"""Nested screening: which features can be in a k-set whose eigenvalue exceeds τ.

Let S be a k-set with λ(S) > τ ≥ upper ≥ opt(k − 1), i in S and T = S \\ {i}.  Splitting
a unit vector into its i-th entry and the rest,

    λ(S) ≤ λmax [[A_ii, ‖A_iT‖], [‖A_iT‖, λ(T)]],

and the right side exceeds τ only if ‖A_iT‖² > (τ − A_ii)(τ − λ(T)).  As λ(T) ≤ upper
and ‖A_iT‖² ≤ r_{k−1}(i)², the sum of the k − 1 largest squares of row i, a feature with

    r_{k−1}(i)² ≤ (τ − A_ii)(τ − upper)

is in no such set.  Removing it can only shrink the r of the others: repeat.  The
argument needs τ ≥ upper; below it nothing is removed.

**Groups.**  Where S may have at most m_g features of group g, all of this holds for
such sets, with opt(k − 1) over such sets, too: T is one of them.  Of the squares of row
i at most m_g of each group count, m_g − 1 of its own.  `limited_lists` drops the others
from the lists; entries beyond a list are at most its last.  What had no room may have
some once another of its group is removed: for each round the lists are made anew.

**Variances alone.**  If A is positive semidefinite, A_ij² ≤ A_ii A_jj, so

    r_{k−1}(i)² ≤ A_ii · (sum of the k − 1 largest variances),

and a feature of small variance fails the inequality before any covariance is known.
Raw measurements differ in variance by orders of magnitude; there the pass over A
shrinks to a few hundred features.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..numerics.rounding import in_units, larger_root
from ..scan.lists import Scan


@cache
def _kernel() -> Any:
    """The kernel, which compiles when it is imported: not before it is called."""
    from .._kernels import screen

    return screen


class Screening:
    """The row tops of A, in units of `unit`, ready to screen for every k.

    Parameters
    ----------
    scan : Scan
        Diagonal and row tops, of all features or of the candidates only.
    unit : float
        A power of two near max |A_ij|; squares of scaled entries neither overflow
        nor vanish, and the scaling is exact.
    candidates : array of int, optional
        The features that were scanned, ascending.
    variances : array, optional
        All variances of a positive semidefinite A, in units of `unit`; needed with
        candidates.
    groups : GroupLimits, optional
        Of all features.
    """

    def __init__(
        self,
        scan: Scan,
        unit: float,
        candidates: NDArray[np.int64] | None,
        variances: FloatArray | None = None,
        groups: GroupLimits | None = None,
    ) -> None:
        self.unit = unit
        self.candidates = candidates
        self.diagonal: FloatArray = in_units(scan.diagonal, unit)
        self.values: FloatArray = scan.values / unit
        self.indices = scan.indices
        if groups is not None and candidates is not None:
            groups = groups.among(candidates)
        self.groups = groups
        if groups is not None:
            self._all = self.values, self.indices
            everything = np.arange(len(groups.label))
            self.values, self.indices = limited_lists(*self._all, groups, everything)
        self.rounding = scan.rounding / unit
        self.prefix = _running_sums(self.values**2)
        self._alive = np.empty(len(self.diagonal), dtype=np.int64)
        self._survivors = np.empty(len(self.diagonal), dtype=np.int64)
        self._outside: FloatArray = np.empty(0)
        self._largest: FloatArray = np.empty(0)
        if candidates is not None and variances is not None:
            self._outside = -np.sort(-np.delete(variances, candidates))
            self._largest = -np.sort(-variances)

    @cached_property
    def _sums(self) -> FloatArray:
        return _running_sums(self.values.copy())

    def to_features(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of the scan as features."""
        return rows.copy() if self.candidates is None else self.candidates[rows]

    def unscanned(self, k: int, tau: float, upper: float) -> int:
        """How many unscanned features their variance alone does not rule out."""
        if len(self._outside) == 0:
            return 0
        if k == 1:
            return int((self._outside > tau).sum())
        partners = float(self._largest[: k - 1].sum())
        # Both sides have some roundings: a feature that is near to being ruled out is
        # scanned.
        margin = max(tau - upper, 0.0) * (1 - 1e-12)
        return int((self._outside * partners > margin * (tau - self._outside)).sum())

    def survivors(self, k: int, tau: float, upper: float) -> NDArray[np.int64]:
        """Features that may be in a k-set above τ, given upper ≥ opt(k − 1).

        Call `unscanned` first: it must be 0.
        """
        if k == 1:
            return self.to_features(np.flatnonzero(self.diagonal > tau))
        if tau < upper:
            return self.to_features(np.arange(len(self.diagonal)))
        if self.groups is None:
            lists = self.values, self.indices, self.prefix
            return self.to_features(
                self._screened(self.diagonal, *lists, k, tau, upper)
            )
        rows = np.arange(len(self.diagonal))
        values, prefix = self.values, self.prefix
        while True:
            # Entries count although their columns are dropped meanwhile, as the next of
            # a group would take the place. The lists of what is left are made anew.
            own = np.repeat(np.arange(len(rows)), values.shape[1]).reshape(values.shape)
            stay = self._screened(
                self.diagonal[rows], values, own, prefix, k, tau, upper
            )
            all_stay = len(stay) == len(rows)
            rows = rows[stay]
            if all_stay or len(rows) < k:
                return self.to_features(rows)
            values, _ = limited_lists(
                self._all[0][rows], self._all[1][rows], self.groups, rows
            )
            prefix = _running_sums(values**2)

    def _screened(
        self,
        diagonal: FloatArray,
        values: FloatArray,
        indices: NDArray[np.int64],
        prefix: FloatArray,
        k: int,
        tau: float,
        upper: float,
    ) -> NDArray[np.int64]:
        """Rows of these lists that stay; the kernel repeats until nothing changes."""
        lists = values, indices, prefix
        scratch = self._alive[: len(diagonal)], self._survivors[: len(diagonal)]
        count, _ = _kernel().screen(
            diagonal, *lists, k, tau, upper, self.rounding, *scratch
        )
        return self._survivors[:count]

    def row_supports(self, k: int, n_rows: int) -> NDArray[np.int64]:
        """{i} ∪ {its k − 1 largest |A_ij|}, for the n_rows rows of largest norm."""
        last = self.indices[:, k - 2]
        # Lists that are cut by groups, or short, name no k − 1 partners.
        complete = np.flatnonzero((last >= 0) & (last != np.arange(len(last))))
        norms = self.prefix[complete, k - 2] + self.diagonal[complete] ** 2
        best = complete[np.argsort(-norms, kind="stable")[:n_rows]]
        rows = np.column_stack([best, self.indices[best, : k - 1]])
        return self.to_features(rows)

    def squared_norms(self, q: int) -> FloatArray:
        """r_q(i)², bounded from above where the lists are shorter than q."""
        width = self.values.shape[1]
        norms = self.prefix[:, min(q, width) - 1].copy()
        if q > width:
            norms += (q - width) * self.values[:, -1] ** 2
        return (np.sqrt(norms) + np.sqrt(q) * self.rounding) ** 2

    def nested_bound(self, k: int, upper: float) -> float:
        """opt(k) ≤ max_i λmax [[A_ii, r_{k−1}(i)], [r_{k−1}(i), upper]]."""
        diagonal, norms = self.diagonal, self.squared_norms(k - 1)
        if len(self._outside):
            # Unscanned partners have A_ij² ≤ A_ii A_jj, and the unscanned feature of
            # largest variance dominates the others.
            variance = self._outside[0]
            listed = np.zeros((len(diagonal), k - 1))
            listed[:, : self.values.shape[1]] = self.values[:, : k - 1]
            partners = np.maximum(
                (listed + self.rounding) ** 2, (diagonal * variance)[:, None]
            )
            norms = np.append(
                partners.sum(axis=1), variance * self._largest[: k - 1].sum()
            )
            diagonal = np.append(diagonal, variance)
        return float(larger_root(diagonal, norms, upper).max())

    def row_sum_bound(self, k: int) -> float:
        """opt(k) ≤ max_i A_ii + (sum of the k − 1 largest |A_ij|), by Gershgorin."""
        if len(self._outside):
            return float("inf")
        width = self.values.shape[1]
        sums = self._sums[:, min(k - 1, width) - 1] + (k - 1) * self.rounding
        if k - 1 > width:
            sums += (k - 1 - width) * self.values[:, -1]
        return float((self.diagonal + sums).max())


def limited_lists(
    values: FloatArray,
    indices: NDArray[np.int64],
    groups: GroupLimits,
    rows: NDArray[np.int64],
) -> tuple[FloatArray, NDArray[np.int64]]:
    """The largest entries that a row may have at once, among some rows.

    The list of row i is that of its largest |A_ij|, descending, −1 where there are no
    more. What is not among `rows`, or what its group has no room for, is dropped, and
    the end of the list is filled with its last value, under the index i itself: what
    was not in the list is no larger. For these rows as a whole: of fewer, what had no
    room may have some.
    """
    width, n = indices.shape[1], len(groups.label)
    if width == 0:
        return values, indices
    among = np.zeros(n, dtype=bool)
    among[rows] = True
    there = (indices >= 0) & among[indices]
    label = np.where(indices >= 0, groups.label[indices], -1)
    own = groups.label[rows]
    kept = np.ones(indices.shape, dtype=bool)
    for j in range(width):
        at = label[:, j]
        before = ((label[:, :j] == at[:, None]) & kept[:, :j]).sum(axis=1)
        room = groups.room[at] - (own == at)
        kept[:, j] = there[:, j] & ((at < 0) | (before < room))
    order = np.argsort(~kept, axis=1, kind="stable")
    # A list of all the other features has nothing beyond it.
    beyond = values.min(axis=1) if width < n - 1 else np.zeros(len(rows))
    values = np.take_along_axis(values, order, axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    dropped = np.take_along_axis(~kept, order, axis=1)
    values = np.where(dropped, beyond[:, None], values)
    indices = np.where(dropped, rows[:, None] if width < n - 1 else -1, indices)
    return np.ascontiguousarray(values), np.ascontiguousarray(indices)


def _running_sums(rows: FloatArray) -> FloatArray:
    """Running sums of each row, in place; NumPy's are slow on many short rows."""
    for j in range(1, rows.shape[1]):
        rows[:, j] += rows[:, j - 1]
    return rows
