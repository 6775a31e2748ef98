"""Trees decided in float64, with margins that are derived here. u = 2⁻⁵³.

With a margin δ, everything is compared with τ₁ ≤ τ − δ in place of τ, and
U_j + δ in place of U_j. Let B̂ be the computed matrix of a node, after s choices with
d_t = fl(τ₁ − B̂_pp), v_t = fl(w_t/fl(√d_t)), w_t the row of p, B̂ ← fl(B̂ + v_t v_t').
*B̂ is the exact Schur complement, at τ₁, of a matrix Ã + E*, as each step adds w_i
w_j/d_t plus at most 6u|w_i w_j|/d_t + u|B̂_ij|, and d_t is τ₁ − B̂_pp within u d_t;
these errors, moved back to the entries of the first matrix, are E. If all B̂_ii ≤ τ₁,
then Σ_t w_ti²/d_t = B̂_ii − (Ã + E)_ii ≤ τ₁ − min (Ã + E)_ii, and with Cauchy's
inequality all |B̂_ij| and all Σ_t |w_ti w_tj|/d_t are at most

    G = max |Ã_ij + E_ij| + τ₁ − min (Ã_ii + E_ii),  so  |E_ij| ≤ ε₀ + (s + 8)uG = ε,

ε₀ being the error of the first B̂, from products. So ‖E_SS‖ ≤ kε for the k features S =
P ∪ T; the margin is δ ≥ kε. Then: no better set at τ₁ for Ã + E is none at τ for Ã; and
U_j bounds sets of Ã, hence U_j + δ those of Ã + E, which is what the chain needs. A
node with a B̂_ii > τ₁ and |F| ≥ m cannot hold, and fails. (`P` adds one row after the
other; its margin is measured.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import sqrt

import numpy as np

from .fields import ProofError
from .integer_tree import skip_node
from .positive import eliminate_all
from .problem import Limits
from .proof_file import Record
from .screening import TINY, UNIT, Level, above, below
from .tree_file import Node

FEW_ROWS = 128  # rows of masks that are kept: most nodes have fewer


@lru_cache(maxsize=FEW_ROWS)
def strictly_above(n: int) -> np.ndarray:
    """Return ones above the diagonal of n rows, and zeros elsewhere."""
    return np.triu(np.ones((n, n)), 1)


class FloatTree:
    """Reads the nodes of one tree, in order (section 5), at τ₁."""

    def __init__(
        self, nodes: Iterator[Node], record: Record, B: np.ndarray, error: float
    ) -> None:
        self.nodes, self.k, self.error = nodes, record.k, error
        self.depth, self.size = record.depth, len(B)
        self.largest = float(np.abs(B).max(initial=0.0))
        self.least = float(np.diagonal(B).min(initial=0.0))
        self.has_p = any(node.letter == "P" for node in record.tree)

    def begin(self, uppers: dict[int, float]) -> None:
        """Choose the margin, τ₁ and the bounds of the chain."""
        tau = uppers[self.k]
        self.growth = 1.01 * (self.largest + abs(tau) + abs(self.least) + self.error)
        entry = self.error + (self.depth + 8) * UNIT * self.growth + TINY
        margin = 1.01 * self.k * entry if self.depth or self.error else 0.0
        if self.has_p:
            # Whatever is chosen is checked: a quarter of the room that writers leave,
            # or three where entries are much larger than τ.
            quarters = 3 if self.growth > 16 * abs(tau) else 1
            margin = max(margin, quarters * 2.0**-38 * abs(tau))
        self.margin = margin
        # Two roundings, of numbers of at most `growth`.
        extra = 2 * UNIT * self.growth if margin else 0.0
        self.tau = tau - margin - extra
        self.chain = {
            k: upper + margin + extra
            for k, upper in uppers.items()
            if upper + margin + extra <= self.tau and k < self.k
        }

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what} is not shown to hold")

    def node(
        self, B: np.ndarray, F: np.ndarray, m: int, groups: Limits | None = None
    ) -> None:
        node = next(self.nodes)
        if len(F) >= m and B.diagonal().max() > self.tau:
            raise self.fail("B_ii ≤ τ")
        while node.letter == "D":
            keep = self.drop(B, m)
            B, F = B[keep][:, keep], F[keep]
            node = next(self.nodes)
        if node.letter == "S":
            self.split(node, B, F, m, groups)
        elif node.letter == "L":
            self.last(B, F, m, groups)
        else:
            self.check_positive(B, self.k - m)

    def drop(self, B: np.ndarray, m: int) -> np.ndarray:
        """Drop all i with r² ≤ (τ₁ − B_ii)(τ₁ − u); return what is left.

        If fewer than m features are left, no set has any of them: all go.
        """
        if m < 2 or self.k - 1 not in self.chain:
            raise self.fail("D, with m ≥ 2 and U of k - 1 at most τ,")
        level = Level(m, self.tau, self.chain[self.k - 1])
        inside, diagonal = B * B, B.diagonal()
        inside.flat[:: len(B) + 1] = 0.0
        keep = np.arange(len(B))
        while len(keep) >= m:
            beyond = len(keep) - m + 1
            largest = np.partition(inside, beyond, axis=1)[:, beyond:]
            stays = ~level.excludes(diagonal[keep], above(largest.sum(axis=1), m))
            if stays.all():
                return keep
            keep, inside = keep[stays], inside[stays][:, stays]
        return keep[:0]

    def last(self, B: np.ndarray, F: np.ndarray, m: int, groups: Limits | None) -> None:
        """Close by too few features, or by all sets of one or two."""
        together = len(F) if groups is None else groups.capacity(F.tolist())
        if together < m or m == 1:  # `node` has compared the diagonal with τ₁
            return
        room = self.tau - np.diagonal(B)
        fits = above(B**2) <= below(np.outer(room, room))
        np.fill_diagonal(fits, True)
        if groups is not None and not fits.all():
            for a, b in np.argwhere(~fits).tolist():
                fits[a, b] = not groups.after([int(F[a])]).has_room(int(F[b]))
        if m > 2 or not fits.all():
            raise self.fail(f"L with m = {m}")

    def split(
        self, node: Node, B: np.ndarray, F: np.ndarray, m: int, groups: Limits | None
    ) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        if m < 2:
            raise self.fail("S with m = 1")
        left = {*F[self.open_by_suffix(B, m)].tolist()} - {*node.opened}
        if left:
            raise self.fail(f"S without position {min(left)}")
        place = {position: t for t, position in enumerate(F.tolist())}
        for position in node.opened:
            if position not in place:
                skip_node(self.nodes)
                continue
            t = place[position]
            child, after = self.choose(B, F, t)
            room = groups and groups.after([position])
            if room is not None:
                keep = [p for p, i in enumerate(after.tolist()) if room.has_room(i)]
                child, after = child[np.ix_(keep, keep)], after[keep]
            self.node(child, after, m - 1, room)

    def choose(
        self, B: np.ndarray, F: np.ndarray, t: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return B and F of the child of the t-th feature."""
        v = B[t, t + 1 :] / sqrt(self.pivot(B, t))
        return B[t + 1 :, t + 1 :] + v[:, None] * v, F[t + 1 :]

    def pivot(self, B: np.ndarray, t: int) -> float:
        """Return τ₁ − B_tt, which must be positive."""
        found = float(self.tau - B[t, t])
        if found <= 0:
            raise self.fail("B_pp < τ")
        return found

    def open_by_suffix(self, B: np.ndarray, m: int) -> np.ndarray:
        """Return the t whose suffix bound first[m][t] is not shown to be at most τ₁.

        T[q] is there for the N − q + 1 places t that have q features from t on. It is
        rounded up: (a + b + √((a − b)² + 4r²))/2 in float64 is within 8u(|a| + |b| + r)
        of the exact number. With |a| ≤ A and r ≤ R for all t, a ≤ T where the chain
        does not lower it, to a number of at most `growth`, and each q adds at most R
        and what is added here: |b| ≤ A + mR + growth, and a little.
        """
        N, chosen = len(B), self.k - m
        if m > N:
            return np.zeros(0, dtype=np.int64)
        a = B.diagonal()
        later = strictly_above(N) if N <= FEW_ROWS else np.triu(np.ones((N, N)), 1)
        squares = np.sort(B * B * later, axis=1)[:, ::-1][:, : m - 1]
        sums = above(np.cumsum(squares, axis=1), m)
        most, longest = max(a.max(), -a.min()), sqrt(sums.max(initial=0.0))
        size = 2 * most + (m + 1) * longest + self.growth
        rounding = 8.1 * UNIT * size + TINY
        T = first = a
        for q in range(1, m):
            if q > 1:
                a, b, r2 = a[: N - q + 1], T[1:], sums[: N - q + 1, q - 2]
                apart = a - b
                first = (a + b + np.sqrt(apart * apart + 4 * r2)) / 2 + rounding
            T = np.maximum.accumulate(first[::-1])[::-1]
            if chosen + q in self.chain:
                T = np.minimum(T, self.chain[chosen + q])
        a, b, r2 = a[: N - m + 1], T[1:], sums[: N - m + 1, m - 2]
        fits = (a <= self.tau) & (b <= self.tau)
        fits &= r2 <= below((self.tau - a) * (self.tau - b))
        return np.flatnonzero(~fits)

    def check_positive(self, B: np.ndarray, chosen: int) -> None:
        """Eliminate all of F: then all pivots are positive, and P ∪ F has less than τ.

        The errors of the choices so far are (s + 8)uG + ε₀ an entry, of |P| + |F|
        features.
        """
        size = chosen + len(B)
        entry = self.error + (self.depth + 8) * UNIT * self.growth + TINY
        total = 1.01 * size * entry if self.depth or self.error else 0.0
        total += eliminate_all(B, self.tau)
        if total + 2 * UNIT * self.growth > self.margin:
            raise self.fail("P")
