"""A node of the entry dual's search: features fixed in, free features, and its bound.

**Theorem.**  Let F be fixed in, f = |F|, and let q = k − f further features be chosen
from T.  For r > 0, w ≥ 0 and |U_ij| ≤ w_i w_j with a zero diagonal, every S ⊇ F with
|S ∩ T| ≤ q and S ⊆ F ∪ T has

    λ(S) ≤ λmax(A − U + Diag(g_i w_i²)),   g_i = R/ρ_i − 1,   R = q + f r,

where ρ_i = r for i in F and 1 for i in T.

*Proof.*  As in `proof.py`: by Cauchy and Schwarz (Σ_S w_i |x_i|)² ≤ Σ_S ρ_i ·
Σ_S w_i² x_i²/ρ_i, and Σ_S ρ_i ≤ R.  ∎

With r = 1 all g_i are k − 1.  The best r, for a density P, has
r² = q Σ_F P_ii w_i² / (f Σ_T P_ii w_i²), where the slope of Σ P_ii g_i w_i² vanishes.

All matrices of a node are dense: the search begins when few features are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import EPS
from .record import MOST_RATIO


@dataclass(frozen=True)
class Node:
    """Features of the dense problem, those fixed in, and a point of the dual."""

    features: NDArray[np.intp]  #: F ∪ T, ascending, as rows of the dense problem
    fixed_in: NDArray[np.bool_]  #: which of them are in F
    #: `weights`, `shares`: (n,) and (n, n)
    weights: FloatArray
    shares: FloatArray
    ratio: float = 1.0  #: r
    bound: float = np.inf  #: proved, in units of the problem
    presence: FloatArray | None = None  #: (n,); P_ii at the point
    #: (n, r); Y, where the next ascent begins (`proximal.py`).
    density: FloatArray | None = None

    @classmethod
    def whole(cls, n: int) -> Node:
        """All of n features, nothing fixed, and a point of zeros."""
        nothing = np.zeros(n, dtype=bool)
        return cls(np.arange(n), nothing, np.zeros(n), np.zeros((n, n)))

    def places(self, k: int) -> int:
        """q, how many features are still to be chosen."""
        return k - int(self.fixed_in.sum())

    @property
    def free(self) -> NDArray[np.intp]:
        """Positions of T."""
        return np.flatnonzero(~self.fixed_in)

    def rho(self) -> FloatArray:
        return np.where(self.fixed_in, self.ratio, 1.0)

    def multipliers(self, k: int) -> FloatArray:
        """g_i, rounded upwards."""
        rho = self.rho()
        R = self.places(k) + int(self.fixed_in.sum()) * self.ratio
        return np.maximum(R / rho * (1 + 4 * EPS) - 1.0, 0.0)


def best_ratio(node: Node, k: int) -> float:
    """r for which the slope in r vanishes, at the node's presence."""
    f, q = int(node.fixed_in.sum()), node.places(k)
    if node.presence is None or f == 0 or q <= 0:
        return 1.0
    parts = node.presence * node.weights**2
    fixed, free = float(parts[node.fixed_in].sum()), float(parts[~node.fixed_in].sum())
    if fixed <= 0 or free <= 0:
        return node.ratio
    ratio = float(np.sqrt(q * fixed / (f * free)))
    return float(np.clip(ratio, 1 / MOST_RATIO, MOST_RATIO))
