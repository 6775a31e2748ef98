"""Nested screening: the features that can be in a k-set whose eigenvalue exceeds τ.

Let S be a k-set with λ(S) > τ ≥ upper ≥ opt(k − 1), i in S and T = S ∖ {i}. Split a
unit vector into its i-th entry and the rest:

    λ(S) ≤ λmax [[A_ii, ‖A_iT‖], [‖A_iT‖, λ(T)]].

The right side exceeds τ only if A_ii > τ or ‖A_iT‖² > (τ − A_ii)(τ − λ(T)). As λ(T) ≤
upper and ‖A_iT‖² ≤ r², the sum of the k − 1 largest squares of row i, a feature with

    A_ii ≤ τ and r² ≤ (τ − A_ii)(τ − upper)

is in no such set. Without it the r of other features can only shrink: repeat. If sets
have to keep limits of groups or to contain a root, T does so, too, for all i outside
the root. So opt is about such sets, and the root stays.

**Variances alone.** If A is positive semidefinite, A_ij² ≤ A_ii A_jj, so r² ≤ A_ii
times the sum of the k − 1 largest variances, and a feature of small variance drops out
before any covariance is computed. Of raw measurements a few hundred features are
scanned.

**A bound.** If τ is so high that no feature stays, opt(k) ≤ τ. The least such τ is the
largest λmax [[A_ii, r], [r, upper]] over i. It is the record of a tree with one node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..constraints.rules import Rules
from ..covariance.covariance import Covariance
from ..validation import FloatArray, Indices

# Data with more features are scanned by variance, largest first: 100 × 1,000,000 raw.
SCAN_ALL = 1000
FIRST = 500  # features of the first scan, or 6 k
SURE = 1e-12  # room for the rounding of tests by variance


def can_matter(
    norms: FloatArray, diagonal: FloatArray, tau: float, upper: float
) -> NDArray[np.bool_]:
    """Tell which features the inequality above keeps; `norms` are their r²."""
    return norms > max(tau - upper, 0.0) * (tau - diagonal) * (1 - SURE)


def levels(norms: FloatArray, diagonal: FloatArray, upper: float) -> FloatArray:
    """Return λmax [[A_ii, r], [r, upper]] of all features."""
    half = np.abs(diagonal - upper) / 2
    root = half + np.sqrt(half * half + norms)
    added = np.divide(norms, root, out=np.zeros_like(norms), where=root > 0)
    return np.maximum(diagonal, upper) + added


class Screening:
    """The largest entries of rows, of as many features as the proofs need.

    Parameters
    ----------
    k_max : int
        Largest k that will be asked for.
    """

    def __init__(self, cov: Covariance, k_max: int, rules: Rules, run: Run) -> None:
        self._cov, self._run, self._width = cov, run, max(k_max - 1, 1)
        self._variances = cov.diagonal()
        self._root = rules.root
        d, size = cov.n_features, max(FIRST, 6 * k_max)
        # A matrix that may be indefinite has no bound on entries by variances.
        partly = cov.known_psd and d > max(SCAN_ALL, 2 * size)
        self._descending = -np.sort(-self._variances) if partly else self._variances
        self._scan(self._largest(size) if partly else None)

    def _largest(self, size: int) -> Indices:
        order = np.argpartition(-self._variances, size - 1)[:size]
        return np.union1d(order, self._root).astype(np.int64)

    def _scan(self, features: Indices | None) -> None:
        lists = self._cov.lists(self._width, self._run, features)
        self.values, self.indices = lists.values, lists.indices
        self.error = lists.error + self._cov.entry_error
        self.features = features
        if features is None:
            self.diagonal = self._variances
            self._outside = np.empty(0)
        else:
            self.diagonal = self._variances[features]
            self._outside = np.delete(self._variances, features)
        self._squares = running_sums(self.values**2)
        self._alive = np.empty(len(self.diagonal), dtype=np.int64)
        # A root stays: its inequality then holds always.
        self._raised = self.diagonal
        if len(self._root):
            self._raised = self.diagonal.copy()
            self._raised[self._positions(self._root)] = np.inf

    def _positions(self, features: Indices) -> Indices:
        return (
            features
            if self.features is None
            else np.searchsorted(self.features, features)
        )

    def _named(self, rows: Indices) -> Indices:
        return rows if self.features is None else self.features[rows]

    def survivors(self, k: int, tau: float, upper: float) -> Indices:
        """Return the features that may be in a k-set above τ, k ≥ 2, ascending.

        Features are scanned until variances rule out all others.
        """
        from .._kernels.screen import screen

        while missing := self._unscanned(k, tau, upper):
            assert self.features is not None
            # Twice as many take four times as long: all scans but the last one take
            # a third of its time.
            size = 2 * len(self.features) + missing
            most = self._cov.n_features // 2
            self._scan(self._largest(size) if size <= most else None)
        if tau < upper:
            return self._named(np.arange(len(self.diagonal)))
        survivors = np.empty(len(self.diagonal), dtype=np.int64)
        count = screen(
            self._raised,
            self.values,
            self.indices,
            self._squares,
            k,
            tau,
            upper,
            self.error,
            self._alive,
            survivors,
        )
        return self._named(survivors[:count])

    def _unscanned(self, k: int, tau: float, upper: float) -> int:
        """Return how many unscanned features variances do not rule out."""
        if len(self._outside) == 0:
            return 0
        return int(can_matter(self._by_variance(k), self._outside, tau, upper).sum())

    def _by_variance(self, k: int) -> FloatArray:
        """Bound r² of the features that were not scanned."""
        return self._outside * float(self._descending[: k - 1].sum())

    def level(self, k: int, upper: float) -> float:
        """Return a τ at which no feature stays, k ≥ 2, given upper ≥ opt(k − 1)."""
        norms, diagonal = self.norms(k - 1), self.diagonal
        if len(self._outside):
            # Partners that were not scanned have A_ij² ≤ A_ii A_jj.
            most = float(self._outside.max())
            values = (self.values[:, : k - 1] + self.error) ** 2
            values = np.maximum(values, (diagonal * most)[:, None])
            norms = np.append(values.sum(axis=1), self._by_variance(k).max())
            diagonal = np.append(diagonal, most)
        level = float(levels(norms, diagonal, upper).max())
        return level + SURE * abs(level)

    def norms(self, q: int) -> FloatArray:
        """Bound the sum of the q largest squares of each row that was scanned."""
        return (np.sqrt(self._squares[:, q - 1]) + np.sqrt(q) * self.error) ** 2

    def row_sums(self, k: int) -> FloatArray | None:
        """Return A_ii plus the k − 1 largest |A_ij|; None if some were not scanned."""
        if self.features is not None:
            return None
        return self.diagonal + self.values[:, : k - 1].sum(axis=1)

    def strongest(self, size: int) -> Indices:
        """Return the features with the largest entries in their rows, ascending.

        The one of largest variance, where every path begins, is among them.
        """
        weight = np.maximum(self.diagonal, 0.0) ** 2 + self._squares[:, -1]
        weight[self.diagonal.argmax()] = np.inf
        size = min(size, len(weight))
        rows = np.sort(np.argpartition(-weight, size - 1)[:size])
        return self._named(rows)

    def unlike_rows(self, count: int) -> Indices:
        """Return features with strong rows, none in the list of another one."""
        order = np.argsort(-self._squares[:, -1], kind="stable")
        chosen: list[int] = []
        for i in order.tolist():
            if not any(i in self.indices[j] for j in chosen):
                chosen.append(i)
                if len(chosen) == count:
                    break
        return self._named(np.array(chosen))

    def row_supports(self, k: int, count: int) -> Indices:
        """Return i and its k − 1 largest |A_ij| for the rows with the largest norms."""
        complete = np.flatnonzero(self.indices[:, k - 2] >= 0)
        weight = self._squares[complete, k - 2] + self.diagonal[complete] ** 2
        best = complete[np.argsort(-weight, kind="stable")[:count]]
        return self._named(np.column_stack([best, self.indices[best, : k - 1]]))


def running_sums(rows: FloatArray) -> FloatArray:
    """Return running sums of each row, in place; NumPy's are slow for short rows."""
    for j in range(1, rows.shape[1]):
        rows[:, j] += rows[:, j - 1]
    return rows
