"""The slack τI − B of a tree's nodes, in float64 or in integers.

Both do the steps of docs/proof-format.md, section 5, on G = unit · (τI − B). All that
they compare is rounded in the safe direction. A slack is a lower bound on τ − λ.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np

from .records import allowance

UNIT = 2.0**-53


class Floats:
    """Float64 with the margins of the page; `G` is the root, its unit 1."""

    name = "float64 with derived margins"

    def __init__(
        self,
        k: int,
        upper: float,
        smaller: Mapping[int, float],
        block: Any,
        lowest: float,
        error: float,
    ) -> None:
        """`smaller` has the U_q, `block` Ã of the tree, `lowest` is min A_ii."""
        size = max(abs(upper) + max(0.0, -lowest), float(np.abs(block).max()))
        margin = allowance(k, size, error)
        self.tau = upper - margin
        self.room = 2.0**-51 * (k + 2) ** 2 * size
        self.G = -block
        np.fill_diagonal(self.G, self.tau - block.diagonal())
        rounding = 4 * UNIT * (abs(upper) + margin)
        self.slacks: dict[int, Any] = {
            q: self.tau - (u + margin) - rounding for q, u in smaller.items()
        }

    def child(self, G: Any, unit: Any, t: int, rest: np.ndarray) -> tuple[Any, Any]:
        """Return G and its unit after choosing feature t."""
        row = G[t, rest]
        return G[np.ix_(rest, rest)] - np.outer(row, row) / G[t, t], 1.0

    def fits(self, squares: Any, products: Any) -> Any:
        """Say whether squares ≤ products, which were rounded."""
        return squares * (1 + 16 * UNIT) <= products

    def sums(self, squares: Any) -> Any:
        """Return cumulated sums of each row, rounded up."""
        terms = squares.shape[1]
        return np.cumsum(squares, axis=1) * (1 + (2 * terms + 8) * UNIT)

    def least(self, a: float, square: float, b: float) -> float:
        """Return a lower bound on the eigenvalues of [[a, r], [r, b]], r² = square."""
        low = a if a < b else b
        if square <= 0:
            return low
        half = abs(a - b) / 2
        less = square / (half + sqrt(half * half + square))
        return low - less - 16 * UNIT * (abs(low) + less)

    def is_semidefinite(self, G: Any, m: int) -> bool:
        """Say whether G ⪰ 0 on vectors with m nonzeros, within the room of the page."""
        try:
            L = np.linalg.cholesky(G)
        except np.linalg.LinAlgError:
            return False
        n, largest = len(G), float(G.diagonal().max())
        residual = float(np.abs(G - L @ L.T).max())
        return m * (residual + 1.1 * (n + 4) * UNIT * largest) <= self.room


class Integers:
    """Integers, without fractions: the unit is the last pivot (Bareiss)."""

    name = "integers (rows rounded up in float64)"

    def __init__(
        self,
        k: int,
        upper: float,
        smaller: Mapping[int, float],
        block: Any,
        bits: int,
        error: int,
    ) -> None:
        """`block` has integers, each within `error` of 2^bits A_ij."""
        scale = Fraction(2) ** bits
        self.tau = int(Fraction(upper) * scale // 1) - k * error
        self.G = -block
        self.G[np.diag_indices(len(block))] += self.tau
        self.slacks: dict[int, Any] = {
            q: self.tau - int(-(-Fraction(u) * scale // 1)) - k * error
            for q, u in smaller.items()
            if np.isfinite(u)
        }

    def child(self, G: Any, unit: Any, t: int, rest: np.ndarray) -> tuple[Any, Any]:
        """Return G and its unit after choosing feature t."""
        row, pivot = G[t, rest], G[t, t]
        return (G[np.ix_(rest, rest)] * pivot - np.outer(row, row)) // unit, pivot

    def fits(self, squares: Any, products: Any) -> Any:
        """Say whether squares ≤ products."""
        return np.asarray(squares <= products, dtype=bool)

    def sums(self, squares: Any) -> Any:
        """Return cumulated sums of each row."""
        return np.cumsum(squares, axis=1)

    def least(self, a: int, square: int, b: int) -> int:
        """Return a lower bound on the eigenvalues of [[a, r], [r, b]], r² = square."""
        return (
            (a + b - isqrt((a - b) ** 2 + 4 * square) - 1) // 2 if square else min(a, b)
        )

    def is_semidefinite(self, G: Any, m: int) -> bool:
        """Say whether G is positive definite, exactly if float64 thinks so."""
        unit: Any = 1
        try:
            np.linalg.cholesky((G / max(1, G.max())).astype(np.float64))
        except np.linalg.LinAlgError:
            return False
        while len(G):
            if G[0, 0] <= 0:
                return False
            G, unit = self.child(G, unit, 0, np.arange(1, len(G)))
        return True
