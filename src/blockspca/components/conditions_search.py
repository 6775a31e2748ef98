"""Is there a k-set above τ under the conditions N'x = 0?  An exact search, in NumPy.

Let c(S) = max x'Ax over unit vectors x on S with N_S'x = 0. For every M ≥ 0 and every
Q whose columns span those of N, c(S) ≤ λmax((A − M QQ')_SS): the second term is zero
for such x. So what `search.reference` proves of the matrices A_M = A − M QQ' holds for
c, at any M, and M may differ between the nodes: A_M is the less, the larger M is, and
the bounds of a smaller M hold for a larger one. The search goes by the Schur recursion
on A_M, with the least M of a ladder for which the features chosen so far stay below τ;
rounding grows with M (`search_rounding`). Sets of k features that stay above τ for the
largest M are decided by their null space, and so are nodes whose chosen features do.

**The null space of a set, from above.** W = N D + E is what is known of N, up to
lengths D, with ‖E‖_F ≤ ε. If N_S'x = 0, then ‖W_S'x‖ ≤ ε. Let U = [U_1, U_2] be any
square matrix with η ≥ ‖U'U − I‖, T any matrix, and R = U_1 − W_S T. Then

    ‖U_1'x‖ ≤ ‖T‖ ε + ‖R‖ =: β,    ‖x − U_2 y‖ ≤ η + (1 + η) β =: θ,    y = U_2'x,

because x = UU'x up to η, and with |‖y‖² − 1| ≤ η + β²

    c(S) ≤ λ + |λ| (η + β²) + ‖A_SS‖ (2 θ (1 + η) + θ²),    λ = λmax(U_2'A_SS U_2).

If U has no U_2 and θ < 1, there is no such x. U and T come from a singular value
decomposition of W_S; directions with singular values below `CUT` count as free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Deadline
from ..numerics.rounding import EPS, frobenius_norm, increased
from ..numerics.upper_eigenvalues import eigenvalue_ceiling
from ..search.reference import (
    NodeCapReached,
    Undecided,
    eliminated,
    opened,
    search_rounding,
    suffix_bounds,
)
from .conditions import best_orthogonal

CUT = 1e-5  # singular values of W_S below it count as none: β is about eps / CUT
LADDER = (0.0, 1e2, 1e4)  # M, in units of the largest A_ii


class Better(Exception):
    """A set above τ was found."""

    def __init__(self, support: NDArray[np.intp]) -> None:
        super().__init__()
        self.support = support


@dataclass(frozen=True)
class Conditions:
    """N'x = 0, of which W = N D + E is known, with ‖E‖_F ≤ error.

    The columns of W have norm 1, or less.
    """

    W: FloatArray
    error: float

    def ceiling(self, within: FloatArray, support: NDArray[np.intp]) -> float:
        """Return a number that is at least c(S); −inf if no x is possible."""
        k = len(support)
        W = self.W[support]
        left, sizes, right = np.linalg.svd(W)
        rank = int((sizes > CUT).sum())
        first, free = left[:, :rank], left[:, rank:]
        T = right[:rank].T / sizes[:rank]
        apart = float(np.linalg.norm(first - W @ T))
        apart += (W.shape[1] + 2) * EPS * float(np.linalg.norm(np.abs(W) @ np.abs(T)))
        apart += 2 * EPS * float(np.linalg.norm(first))
        eta = float(np.linalg.norm(left.T @ left - np.eye(k))) + (k + 2) * EPS * k
        room = 1 + 64 * EPS * k  # norms and sums of positive numbers are rounded
        beta = room * (float(np.linalg.norm(T)) * self.error * room + apart)
        theta = room * (eta + (1 + eta) * beta)
        if free.shape[1] == 0:
            return -np.inf if theta < 0.5 else np.inf
        inner = free.T @ within @ free
        size = room * frobenius_norm(within)
        # two products of k terms, of columns of norm 1 + η
        rounding = 2 * (k + 3) * EPS * float(free.shape[1]) * size * room
        top = eigenvalue_ceiling((inner + inner.T) / 2) + rounding
        off = abs(top) * (eta + beta**2) + size * (2 * theta * (1 + eta) + theta**2)
        return float(increased(top + room * off))


class ConstrainedSearch:
    """Proves that no k-set S has c(S) > τ.

    Parameters
    ----------
    A : (n, n) array
        x'Ax is the objective wherever N'x = 0; its entries are known to ± entry_error.
    upper : (k,) array
        upper[q] ≥ max x'Ax over q-sparse unit vectors, without conditions.
    """

    def __init__(
        self,
        A: FloatArray,
        conditions: Conditions,
        k: int,
        tau: float,
        upper: FloatArray,
        entry_error: float,
        max_nodes: int,
        deadline: Deadline,
    ) -> None:
        self.A, self.conditions, self.k = A, conditions, k
        # |x'(A − Ã)x| ≤ k e for every k-sparse unit vector x
        self.tau = float(np.nextafter(tau - k * entry_error, -np.inf))
        basis = np.linalg.qr(conditions.W)[0]
        # Q need only span the columns of N: what it is off by, times M, is rounding
        # that is added to τ, since ‖Q'x‖ ≤ ‖T‖ ε + ‖Q − WT‖ for every T.
        T = np.linalg.lstsq(conditions.W, basis, rcond=None)[0]
        off = float(np.linalg.norm(T)) * conditions.error
        off += float(np.linalg.norm(basis - conditions.W @ T))
        sizes = float(np.linalg.norm(np.abs(conditions.W) @ np.abs(T))) + len(T)
        off = 1.01 * (off + (len(T) + 4) * EPS * sizes)
        scale = float(np.diagonal(A).max())
        largest = float(np.abs(A).max())
        self.matrices, self.taus, self.uppers = [], [], []
        for weight in LADDER:
            M = weight * scale
            matrix = A - M * (basis @ basis.T) if weight else A
            matrix = (matrix + matrix.T) / 2
            lost = 0.0
            if weight:  # of x'A_M x: Q'x, and the entries of M QQ' and of A_M
                sums = float((np.abs(basis) @ np.abs(basis.T)).max())
                lost = M * off**2 + k * (len(T) + 4) * EPS * (largest + M * sums)
            rounding = search_rounding(matrix, k, self.tau - lost) + lost
            self.matrices.append(matrix)
            self.taus.append(float(np.nextafter(self.tau - rounding, -np.inf)))
            self.uppers.append(increased(upper + k * entry_error + rounding))
        self.max_nodes, self.deadline = max_nodes, deadline
        self.nodes = 0

    def run(self) -> int:
        """Search all sets, and return how many nodes that took.

        Raises
        ------
        Better
            With a set that is above τ, up to rounding of its loadings.
        Undecided
            If a set comes so near that rounding hides on which side it is.
        NodeCapReached
            If `max_nodes` nodes did not suffice, or the deadline passed.
        """
        everything = np.arange(len(self.A), dtype=np.int64)
        if len(everything) >= self.k:
            self.visit(everything[:0], everything, 0)
        return self.nodes

    def visit(
        self, chosen: NDArray[np.int64], features: NDArray[np.int64], level: int
    ) -> None:
        """Close the k-sets that hold `chosen` and others of `features`."""
        m = self.k - len(chosen)
        if len(features) < m:
            return
        self.nodes += 1
        if self.nodes > self.max_nodes or self.deadline.passed():
            raise NodeCapReached
        B = None
        while B is None and level < len(LADDER):
            B = eliminated(self.matrices[level], chosen, features, self.taus[level])
            level += B is None
        if B is None:
            self._by_null_space(chosen, features, m, level)
            return
        tau = self.taus[level]
        above = ~(np.diagonal(B) <= tau)
        if m == 1:
            for feature in features[above]:
                self._leaf(np.append(chosen, feature))
            return
        for feature in features[above]:  # too large for this M together with `chosen`
            features = features[features != feature]
            self.visit(np.append(chosen, feature), features, level + 1)
        B = B[np.ix_(~above, ~above)]
        known = np.where(self.uppers[level] <= tau, self.uppers[level], np.inf)
        known = known[len(chosen) :]
        order = opened(B, m, tau, known[m - 1])
        if order is None:
            return
        B, features = B[np.ix_(order, order)], features[order]
        first, _ = suffix_bounds(B, m, known)
        for t in range(len(B) - m + 1):
            if not first[t] <= tau:
                self.visit(np.append(chosen, features[t]), features[t + 1 :], level)

    def _by_null_space(
        self, chosen: NDArray[np.int64], features: NDArray[np.int64], m: int, level: int
    ) -> None:
        together = np.sort(np.concatenate([chosen, features]))
        if self._ceiling(together) <= self.tau:
            return
        for t, feature in enumerate(features):
            with_t = np.append(chosen, feature)
            if m == 1:
                self._leaf(with_t)
            else:
                self.visit(with_t, features[t + 1 :], level)

    def _ceiling(self, support: NDArray[np.int64]) -> float:
        support = np.sort(support)
        return self.conditions.ceiling(self.A[np.ix_(support, support)], support)

    def _leaf(self, support: NDArray[np.int64]) -> None:
        support = np.sort(support)
        if self._ceiling(support) <= self.tau:
            return
        within = self.A[np.ix_(support, support)]
        found = best_orthogonal(within, self.conditions.W[support])
        if found is not None and found[1] > self.tau:
            raise Better(support)
        raise Undecided
