"""Rule "entry-tree" in integers: the matrices of `entry_tree`, nothing rounded.

Ã and U are in units of 2^−64 of that of the weights, which are rounded first, to m_i
2^−t: any weights will do. All matrices are multiplied by S = 2^(2t + 14), and what is
paid for weights is rounded up.

A feature i is out if, with B = UI − N ⪰ γI on all of T and any vector y on T ∖ {i}, z =
c − By, Ã_ii + a u² + c'y + y'z + z'z/γ ≤ U. Here y is B⁻¹c in float64, rounded to an
integer times 2^−h, and all of the rest is exact: both sides are compared times S 4^h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from .columns import dot, shifted
from .entry import LOWEST, SHARE_BITS, whole_weights
from .entry_file import EntryNode, NodePoint
from .entry_tree import EntryTree
from .positive import Rows, is_nonnegative, spd_inverse

DEFINITE_BITS = 21  # bits: γ is 2^−21 of |U|, half of the room that writers leave


class IntegerEntryTree(EntryTree):
    """Decides in integers, at U; `entry` gives Ã between features of the record."""

    def __init__(
        self,
        nodes: Iterator[EntryNode],
        entry: Callable[[int, int], int],
        size: int,
        k: int,
        upper: int,
        bits: int,
    ) -> None:
        self.nodes, self.k, self.upper, self.bits = nodes, k, upper, bits
        self.A: Rows = []
        for i in range(size):
            row = [entry(i, j) for j in range(i)]
            self.A.append([*row, max(entry(i, i), LOWEST * abs(upper))])

    def at(self, i: int, j: int) -> int:
        """Return Ã_ij."""
        return self.A[i][j] if i >= j else self.A[j][i]

    def own_matrix(self, chosen: np.ndarray) -> Rows:
        """Return UI − Ã of a set."""
        names = chosen.tolist()
        return [[(i == j) * self.upper - self.at(i, j) for j in names] for i in names]

    def is_below(self, X: Rows, keep: np.ndarray | None) -> bool:
        """Show x'Xx ≥ 0 for all x of k entries."""
        if keep is not None:
            places = np.flatnonzero(keep).tolist()
            X = [[X[a][b] for b in places] for a in places]
        return is_nonnegative(X, self.k)

    def matrix(self, point: NodePoint | None, inside: Any, free: Any) -> Rows:
        """Return S (UI − M) of a point on T."""
        assert point is not None
        R = self.k - len(inside) + len(inside) * Fraction(point.ratio)
        T, w = self.weights(point, inside, free)
        return self.scaled(point, T, {*inside.tolist()}, R, *whole_weights(w))

    def scaled(
        self,
        point: NodePoint,
        T: np.ndarray,
        inside: set[int],
        total: Fraction,
        m: list[int],
        t: int,
    ) -> Rows:
        """Return S (UI − M), with another number in the place of R."""
        shift, names = 2 * t + SHARE_BITS - self.bits, T.tolist()
        shares = _square(point.shares, len(m))
        X: Rows = []
        for a, i in enumerate(names):
            row = [X[b][a] for b in range(a)]
            ratio = total / Fraction(point.ratio if i in inside else 1)
            paid = ceil(max(ratio - 1, Fraction(0)) * (m[a] ** 2 << SHARE_BITS))
            row.append(shifted(self.upper - self.at(i, i), shift) - paid)
            for b in range(a + 1, len(names)):
                value = shifted(self.at(i, names[b]), shift)
                row.append(shares[a][b] * m[a] * m[b] - value)
            X.append(row)
        return X

    def show_out(
        self,
        node: EntryNode,
        a: float,
        out: np.ndarray,
        own: np.ndarray,
        inside: np.ndarray,
        free: np.ndarray,
    ) -> None:
        """Show that features are in no set above U, all with one a."""
        point = node.point
        assert point is not None
        T, w = self.weights(point, inside, free)
        both, t = whole_weights(np.concatenate([w, own]))
        m, u = both[: len(T)], both[len(T) :]
        R = self.k - len(inside) - 1 + len(inside) * Fraction(point.ratio)
        R *= 1 + 1 / Fraction(a)
        X = self.scaled(point, T, {*inside.tolist()}, R, m, t)
        shift = 2 * t + SHARE_BITS - self.bits
        gamma = shifted(abs(self.upper), shift - DEFINITE_BITS)
        lower = [
            [x - gamma * (p == q) for q, x in enumerate(r)] for p, r in enumerate(X)
        ]
        if gamma <= 0 or not is_nonnegative(lower, len(X)):
            raise self.fail("N of what is out to be below U")
        size = max(max(map(abs, row)) for row in X).bit_length()
        B = np.array([[x / (1 << size) for x in row] for row in X])
        G, names = spd_inverse(B), T.tolist()
        shares = _square(point.shares, len(m))
        for i, weight in zip(out.tolist(), u, strict=True):
            place = names.index(i)
            c = [
                shifted(self.at(i, j), shift) - shares[place][b] * weight * m[b]
                for b, j in enumerate(names)
            ]
            c[place] = 0
            top = shifted(self.upper - self.at(i, i), shift)
            top -= ceil(Fraction(a) * (weight**2 << SHARE_BITS))
            y = G @ np.array([x / (1 << size) for x in c])
            y -= G[:, place] * (y[place] / G[place, place])
            y[place] = 0.0
            if not _is_out(X, c, top, y, gamma, place):
                raise self.fail("a feature that has to be out")


def _is_out(
    X: Rows, c: list[int], top: int, y: np.ndarray, gamma: int, place: int
) -> bool:
    """Compare c'y + y'z + z'z/γ with what is left for it, times S 4^h."""
    if not np.isfinite(y).all():
        return False
    h = min(max(50 - int(np.frexp(np.abs(y).max(initial=0.0))[1]), 0), 400)
    whole = [int(v) for v in np.rint(np.ldexp(y, h))]
    z = [(v << h) - dot(row, whole) for v, row in zip(c, X, strict=True)]
    z[place] = 0
    needed = (dot(c, whole) << h) + dot(whole, z) - (-dot(z, z) // gamma)
    return needed <= top << 2 * h


def _square(shares: list[int], n: int) -> Rows:
    """Return the shares of pairs, row by row, as a symmetric matrix."""
    found = np.zeros((n, n), dtype=np.int64)
    found[np.triu_indices(n, 1)] = shares
    rows: Rows = (found + found.T).tolist()
    return rows
