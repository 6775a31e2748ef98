"""Trees decided in float64, with margins that are derived here.

u = 2⁻⁵³. Let B̂ be the computed matrix of a node, after s choices with d_t = fl(τ −
B̂_pp), v_t = fl(w_t/fl(√d_t)), w_t the row of p, B̂ ← fl(B̂ + v_t v_t'). *B̂ is the exact
Schur complement, at τ, of a matrix Ã' + E*, Ã' being the first one, as each step adds
w_i w_j/d_t plus at most 6u|w_i w_j|/d_t + u|B̂_ij|, and d_t is τ − B̂_pp within u d_t;
these errors, moved back to the entries of the first matrix, are E. If B̂_ii, B̂_jj ≤ τ,
then Σ_t w_ti²/d_t = B̂_ii − (Ã' + E)_ii ≤ g_i = τ − (Ã' + E)_ii, and with Cauchy's
inequality Σ_t |w_ti w_tj|/d_t ≤ √(g_i g_j) and |B̂_ij| ≤ |Ã'_ij + E_ij| + √(g_i g_j).
With weights ω_i ≥ 1.01(|τ| + |Ã'_ii|) and c ≥ |Ã'_ij|/√(ω_i ω_j) for all i, j,

    |E_ij| ≤ ε √(ω_i ω_j),    ε = ε₀ + 1.05 (s + 8)(1 + c) u,

where ε₀ is for the first matrix: its entries are products, within ε₀ √(ω_i ω_j). So
for x with k entries that are not 0, |x'Ex| ≤ ε (Σ √ω_i |x_i|)² ≤ kε Σ ω_i x_i². The
first matrix is Ã with δ_i = kε ω_i added to its diagonal: then x'Ãx ≤ x'(Ã' + E)x, and
what is shown at τ holds for Ã. (Entries far below 0 on the diagonal, as a penalty makes
them, have large margins, and others have not.) U_j bounds sets of Ã, hence U_j +
2 max δ those of Ã' + E, which is what the chain needs. A node with a B̂_ii > τ and m
features that can be had together cannot hold, and fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .positive import eliminate_all
from .screening import TINY, UNIT, Level, above, below
from .tree import Tree
from .tree_text import Node


class FloatTree(Tree):
    """Reads a tree; `first` is the matrix to begin with, Ã' above.

    B is Ã on all features of the tree, each entry within ε₀ √(squares_i squares_j);
    `choices` is how many features are chosen one after the other at the most.
    """

    needs_small_diagonal = True

    def __init__(
        self,
        nodes: Sequence[Node],
        uppers: tuple[int, dict[int, float]],
        B: np.ndarray,
        products: tuple[float, np.ndarray],
        choices: int,
    ) -> None:
        k, chain = uppers
        super().__init__(nodes, k)
        self.tau = tau = chain[k]
        error, squares = products
        diagonal = np.abs(np.diagonal(B))
        weights = np.maximum(1.02 * (abs(tau) + diagonal), 1.01 * squares) + TINY
        roots = np.sqrt(weights)
        c = float((np.abs(B) / np.outer(roots, roots)).max(initial=0.0)) * 1.01
        margin = np.zeros(len(B))
        if choices or error:
            unit = error + 1.05 * (choices + 8) * (1 + c) * UNIT
            margin = 1.01 * k * unit * weights
        self.first = B.copy()
        self.first[np.diag_indices(len(B))] += margin
        self.most = float(above(2.02 * margin.max(initial=0.0)))
        if not margin.any():
            self.most = 0.0
        self.chain = self.chained(chain)

    def chained(self, uppers: dict[int, float]) -> dict[int, float]:
        """Return the U_j + 2 max δ of those j < k where it is at most τ."""
        found = {j: upper + self.most for j, upper in uppers.items() if j < self.k}
        if self.most:  # the sum has been rounded
            found = {j: u + 2 * UNIT * abs(u) for j, u in found.items()}
        return {j: u for j, u in found.items() if u <= self.tau}

    def size(self, B: np.ndarray) -> int:
        return len(B)

    def part(self, B: np.ndarray, places: np.ndarray) -> np.ndarray:
        return B[np.ix_(places, places)]

    def too_large(self, B: np.ndarray) -> np.ndarray:
        return ~(np.diagonal(B) <= self.tau)

    def drop(self, B: np.ndarray, m: int) -> np.ndarray:
        """Drop all i with r² ≤ (τ − B_ii)(τ − u); return what is left."""
        level = Level(m, self.tau, self.chain[self.k - 1])
        squares = B**2
        np.fill_diagonal(squares, 0.0)
        keep = np.arange(len(B))
        while len(keep):
            inside = squares[np.ix_(keep, keep)]
            if m - 1 < len(keep):
                inside = np.partition(inside, len(keep) - m + 1, axis=1)
                inside = inside[:, len(keep) - m + 1 :]
            sums = above(inside.sum(axis=1), m)
            out = level.excludes(np.diagonal(B)[keep], sums)
            if not out.any():
                break
            keep = keep[~out]
        return keep

    def pivot_fits(self, B: np.ndarray, t: int) -> bool:
        return bool(self.tau - B[t, t] > 0)

    def child(self, B: np.ndarray, t: int, places: np.ndarray) -> np.ndarray:
        v = B[t, places] / np.sqrt(self.tau - B[t, t])
        after = len(places) and places[0] == t + 1 and len(places) == len(B) - t - 1
        rest = B[t + 1 :, t + 1 :] if after else B[np.ix_(places, places)]
        return rest + np.outer(v, v)

    def check_last(self, B: np.ndarray, m: int, pairs: np.ndarray | None) -> None:
        if self.exceeds(B):
            raise self.fail(f"L with m = {m}")
        if m < 2:
            return
        room = self.tau - np.diagonal(B)
        fits = above(B**2) <= below(np.outer(room, room))
        np.fill_diagonal(fits, True)
        if pairs is not None:
            fits |= ~pairs
        if not fits.all():
            raise self.fail(f"L with m = {m}")

    def open_by_suffix(self, B: np.ndarray, m: int) -> np.ndarray:
        """Return the t whose suffix bound first[m][t] is not shown to be at most τ.

        Places are counted from the last feature on: T[q] is there for those that have
        q − 1 features after them. λmax [[a, r], [r, b]] is computed within 8u(|a| + |b|
        + r) of itself, and does not change by more than b does: so after q steps T is
        within 8uq of what bounds |a| + |b| + r, which is added at the end. What is more
        than `top`, above τ, is cut to it: what follows from it is above τ as well.
        """
        N, chosen = len(B), self.k - m
        if m > N:
            return np.zeros(0, dtype=np.int64)
        squares = np.sort(np.triu(B, 1) ** 2, axis=1)[::-1, ::-1][:, : m - 1]
        sums = np.ascontiguousarray(above(np.cumsum(squares, axis=1), m).T)
        a = np.diagonal(B)[::-1].copy()
        caps = [self.chain.get(chosen + q, np.inf) for q in range(1, m)]
        sizes = [abs(cap) for cap in caps if cap < np.inf]
        size = max(float(np.abs(a).max()), abs(self.tau), *sizes)
        size += float(np.sqrt(sums[-1].max()))
        top = 2 * size
        T, half = np.maximum.accumulate(a), a / 2
        T = np.minimum(T, min(caps[0], top))
        for q in range(2, m):
            b, h = T[:-1] / 2, half[q - 1 :]
            difference = h - b
            first = b + h + np.sqrt(difference * difference + sums[q - 2, q - 1 :])
            T = np.minimum(np.maximum.accumulate(first), min(caps[q - 1], top))
        T = T + 8.1 * m * UNIT * (size + top)
        fits = self.pairs_fit(a[m - 1 :], T[:-1], sums[m - 2, m - 1 :])
        return N - m - np.flatnonzero(~fits)[::-1]

    def pairs_fit(
        self, a: np.ndarray, b: np.ndarray, squares: np.ndarray
    ) -> np.ndarray:
        """Say where λmax [[a, r], [r, b]] ≤ τ is shown."""
        fits = (a <= self.tau) & (b <= self.tau)
        return fits & (squares <= below((self.tau - a) * (self.tau - b)))

    def check_positive(self, B: np.ndarray) -> None:
        """Eliminate all of F, with half of the room that writers leave.

        What the elimination errs by is measured, and must be less than that.
        """
        room = 2.0**-37 * abs(self.tau)
        if not eliminate_all(B[None], self.tau - room)[0] <= 0.99 * room:
            raise self.fail("P")
