"""Rule "entry-tree": features fixed and split, each step by weights of entries.

In a node I is inside, F free, m = k − |I| are still to be chosen, T = I ∪ F. A point
has weights w and r; ρ_i is r in I and 1 in F, and Σ_S ρ_i ≤ R = m + |I| r for every set
S of the node, so that (Σ_S w_i |x_i|)² ≤ R Σ w_i² x_i²/ρ_i: as in `entry`, x'Ãx ≤ x'Mx
with M_ij = Ã_ij − 2⁻¹⁴ s_ij w_i w_j and M_ii = Ã_ii + max(0, R/ρ_i − 1) w_i².

A feature i with a weight u of its own is in no set above U if, with R' = R − 1, N as M
with R'(1 + 1/a) for R, c_j = Ã_ij − 2⁻¹⁴ s_ij u w_j and B = UI − N without i,

    (U − Ã_ii − a u²) t² − 2t c'y + y'By ≥ 0   for all t and y,

as 2u|x_i| s ≤ a u² x_i² + s²/a for s = Σ_{S∖i} w_j |x_j|. Where UI − N ⪰ γI on all of
T, c'B⁻¹c = c'y + y'z + z'B⁻¹z ≤ c'y + y'z + z'z/γ with z = c − By, for any y.

**Rounding.** Entries are Ã_ij within `error`, and those of M, N and c, i ≠ j, are
rounded as in `entry`: by at most ε each, with the largest of w and u. x has k entries,
so all is shown for the float64 matrices themselves at τ ≤ U − kε; diagonals are rounded
up. With e_z = 1.01 (n + 2) u (|c| + |B||y|), z in float64 is within e_z, and c'y within
1.01 n u |c|'|y|; both are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .entry import LOWEST, SHARE_BITS
from .entry_file import EntryNode, NodePoint
from .fields import ProofError
from .positive import is_nonnegative_by_factor, spd_inverse
from .screening import TINY, UNIT, above

DEFINITE = 2.0**-21  # γ, beside |U|: half of the room that writers leave


class EntryTree:
    """Reads the nodes of a record, in order; features are positions among its own.

    `matrix`, of a point, `own_matrix`, of a set, `is_below`, on all or some of its
    features, and `show_out` are those of an arithmetic.
    """

    nodes: Iterator[EntryNode]
    k: int
    matrix: Any
    own_matrix: Any
    is_below: Any
    show_out: Any

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what} is not shown")

    def node(self, inside: np.ndarray, free: np.ndarray) -> None:
        """Read a node with its children; both are ascending positions."""
        while True:
            node = next(self.nodes)
            m = self.k - len(inside)
            if node.kind == "fix":
                inside, free = self.fix(node, inside, free)
            elif node.kind == "close":
                found = self.matrix(node.point, inside, free)
                if m < 1 or not self.is_below(found, None):
                    raise self.fail("a node to be closed by its point")
                return
            elif node.kind == "last":
                return self.last(inside, free)
            else:
                (p,) = node.features
                if p not in free:
                    raise ProofError(f"k = {self.k}: a split by what is not free")
                left = free[free != p]
                self.node(np.sort(np.append(inside, p)), left)
                self.node(inside, left)
                return

    def last(self, inside: np.ndarray, free: np.ndarray) -> None:
        """Close a node with one set at the most."""
        m = self.k - len(inside)
        if m < 0 or len(free) < m:
            return
        if m != 0 and len(free) != m:
            raise ProofError(f"k = {self.k}: last, with more than one set left")
        chosen = np.sort(np.concatenate([inside, free])) if m else inside
        if not self.is_below(self.own_matrix(chosen), None):
            raise self.fail("the last set of a node to be at most U")

    def fix(
        self, node: EntryNode, inside: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Show features to be out or in; return what is inside and free then."""
        out, needed = np.array(node.features, int), np.array(node.needed, int)
        named = np.concatenate([out, needed])
        if not np.isin(named, free).all() or len(np.unique(named)) != len(named):
            raise ProofError(f"k = {self.k}: fix names features that are not free")
        if self.k - len(inside) < 1:
            raise ProofError(f"k = {self.k}: fix needs m ≥ 1")
        own, prices = np.array(node.own), np.array(node.prices)
        for a in sorted({*node.prices}):
            chosen = prices == a
            self.show_out(node, a, out[chosen], own[chosen], inside, free)
        if len(needed):
            T = np.sort(np.concatenate([inside, free]))
            found = self.matrix(node.point, inside, free)
            for i in needed:
                left = ~np.isin(T, out) & (i != T)
                if not self.is_below(found, left):
                    raise self.fail("a feature that has to be in")
        free = free[~np.isin(free, named)]
        return np.sort(np.concatenate([inside, needed])), free

    def weights(
        self, point: NodePoint | None, inside: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return T, and the weights of a point on it."""
        assert point is not None
        T, w = np.sort(np.concatenate([inside, free])), np.array(point.weights)
        if len(w) != len(T):
            raise ProofError(f"k = {self.k}: a point has {len(w)} weights for {len(T)}")
        return T, w


class FloatEntryTree(EntryTree):
    """Decides in float64, at U.

    `A` is Ã between the features of the record within `error`, with a diagonal from
    above.
    """

    def __init__(
        self,
        nodes: Iterator[EntryNode],
        A: np.ndarray,
        error: float,
        k: int,
        upper: float,
    ) -> None:
        self.nodes, self.A, self.error = nodes, A, error
        self.k, self.upper = k, upper
        own = np.maximum(np.diagonal(A), LOWEST * abs(upper))
        np.fill_diagonal(A, own)
        sizes = np.abs(A)
        np.fill_diagonal(sizes, 0.0)
        self.largest = float(sizes.max(initial=0.0))

    def own_matrix(self, chosen: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Ã of a set, and ε."""
        return self.A[np.ix_(chosen, chosen)], 0.0

    def is_below(
        self, found: tuple[np.ndarray, float], keep: np.ndarray | None
    ) -> bool:
        """Show x'Mx ≤ U for all x of k entries, M within ε."""
        M, entry = found
        M = M if keep is None else M[np.ix_(keep, keep)]
        if not len(M):
            return True
        margin = 2.0**-32 * abs(self.upper)
        level = self.level(M, entry) - margin
        return is_nonnegative_by_factor(level * np.eye(len(M)) - M, self.k, margin)

    def level(self, M: np.ndarray, entry: float) -> float:
        """Return U − kε, less what differences with a diagonal are rounded by."""
        lost = 1.01 * self.k * (entry + self.error + TINY)
        size = abs(self.upper) + lost + float(np.abs(np.diagonal(M)).max())
        return self.upper - lost - 16 * UNIT * size

    def matrix(
        self,
        point: NodePoint | None,
        inside: np.ndarray,
        free: np.ndarray,
        total: float | None = None,
    ) -> tuple[np.ndarray, float]:
        """Return M of a point on T, with R, or N, with another number; and ε."""
        T, w = self.weights(point, inside, free)
        assert point is not None
        rho = np.where(np.isin(T, inside), point.ratio, 1.0)
        R = self.k - len(inside) + len(inside) * point.ratio
        R = above(R if total is None else total)
        paid = above(np.maximum(above(R / rho) - 1.0, 0.0) * w * w)
        product = np.outer(w, w)
        M = self.A[np.ix_(T, T)] - self.shares(point) * product
        own = np.diagonal(self.A)[T]
        np.fill_diagonal(M, own + paid + 4 * UNIT * (np.abs(own) + paid))
        return M, 4 * UNIT * (self.largest + float(w.max(initial=0.0)) ** 2)

    @staticmethod
    def shares(point: NodePoint) -> np.ndarray:
        n = len(point.weights)
        found = np.zeros((n, n))
        found[np.triu_indices(n, 1)] = point.shares
        return (found + found.T) * 2.0**-SHARE_BITS

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
        assert node.point is not None
        T = np.sort(np.concatenate([inside, free]))
        at, n = np.searchsorted(T, out), len(T)
        w = np.array(node.point.weights)
        R = self.k - len(inside) - 1 + len(inside) * node.point.ratio
        N, entry = self.matrix(node.point, inside, free, above(R * (1 + 1 / a)))
        entry += 4 * UNIT * float(own.max(initial=0.0)) * float(w.max(initial=0.0))
        level = self.level(N, entry)
        gamma = DEFINITE * abs(self.upper)
        B = level * np.eye(n) - N
        if not is_nonnegative_by_factor(B - 2 * gamma * np.eye(n), n, gamma / 2):
            raise self.fail("N of what is out to be below U")
        C = self.A[np.ix_(T, out)] - self.shares(node.point)[:, at] * np.outer(w, own)
        places = np.arange(len(out))
        C[at, places] = 0.0
        G = spd_inverse(B)
        Y = G @ C
        Y -= G[:, at] * (Y[at, places] / G[at, at])
        Y[at, places] = 0.0
        Z = C - B @ Y
        Z[at, places] = 0.0
        error = 1.01 * (n + 2) * UNIT * (np.abs(C) + np.abs(B) @ np.abs(Y))
        size = above(np.sqrt(above(np.sum((np.abs(Z) + error) ** 2, axis=0), n)))
        form = np.sum(C * Y, axis=0)
        form += above(1.01 * n * UNIT * np.sum(np.abs(C) * np.abs(Y), axis=0), n)
        form += size * above(np.sqrt(above(np.sum(Y * Y, axis=0), n)))
        form += size * size / gamma
        diagonal = np.diagonal(self.A)[out]
        paid = above(a * own * own)
        total = diagonal + paid + form
        total += 32 * UNIT * (np.abs(diagonal) + paid + np.abs(form)) + TINY
        if not (total <= level).all():
            raise self.fail("a feature that has to be out")
