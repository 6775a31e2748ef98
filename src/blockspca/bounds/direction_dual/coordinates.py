"""The columns of a node in the coordinates of their span, once that is small.

Late in the dual's search a few hundred columns are left, of many more entries.  With V
an orthonormal basis of their span and that of the sides, c_i = Vr_i, and of a direction
y only u = V'y counts: all that the dual says of the c_i and y it says of the r_i and u.

**Rounding.**  What V and R are worth is measured.  If ‖V'V − I‖ ≤ e and
‖c_i − Vr_i‖ ≤ e s_i with s_i ≥ ‖c_i‖, then ‖u‖² ≤ 1 + e and

    (c_i'y)² ≤ (r_i'u)² + 3e s_i²,

so that a bound for the r_i is one for the c_i once e times itself and 3e Σ s_i² over
the k largest are added.  In the same way (a'y)(b'y) ≥ 0 leaves (r_a'u)(r_b'u) ≥ −3e.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._validation import FloatArray
from ...numerics.rounding import EPS, TINY
from .columns import Columns, DenseColumns
from .density import Density, Side, is_large
from .node import Indices, Node
from .problem import Problem

_SMALLER = 0.85  # of the dimensions, or it does not pay


@dataclass(frozen=True)
class View:
    """Columns and sides of a node.

    Attributes
    ----------
    columns : Columns
    inside, undecided : array of int
        Those of the node, among these columns.
    sides : sequence of Side
    basis : array or None
        V, if the coordinates are its.
    error : float
        e.
    blur : array
        3e s_i² of the columns: by how much (c_i'y)² may be above (r_i'u)².
    lost : float
        The sum of the k largest.
    """

    columns: Columns
    inside: Indices
    undecided: Indices
    sides: Sequence[Side]
    blur: FloatArray
    basis: FloatArray | None = None
    error: float = 0.0
    lost: float = 0.0

    def inward(self, density: Density) -> Density:
        """Return what a density of the node is like here."""
        return density if self.basis is None else density.moved(self.basis)

    def outward(self, density: Density) -> Density:
        """Return what a density of these coordinates is like at the node."""
        return density if self.basis is None else density.moved(self.basis.T)

    def rounding(self, size: float, etas: Sequence[float]) -> float:
        """Bound what the coordinates cost a bound of at most `size`."""
        return self.error * (size + 3 * sum(etas)) + self.lost


def view(problem: Problem, node: Node) -> View:
    """Return the columns of a node as they are, or in fewer coordinates."""
    n = problem.columns.shape[0]
    count = len(node.inside) + len(node.undecided)
    if not is_large(n) or count + 2 * len(node.sides) > _SMALLER * n:
        none = np.zeros(problem.columns.shape[1])
        return View(problem.columns, node.inside, node.undecided, node.sides, none)
    chosen = np.concatenate([node.inside, node.undecided])
    return compact(
        problem.columns.take(chosen), len(node.inside), node.sides, problem.k
    )


def compact(columns: Columns, inside: int, sides: Sequence[Side], k: int) -> View:
    """Return columns, the first of them inside, and sides in coordinates of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.bounds.direction_dual.columns import DenseColumns
    >>> compact(DenseColumns(np.eye(9)[:, :3]), 1, [], 2).columns.shape
    (3, 3)
    """
    count = columns.shape[1]
    normals = [normal for side in sides for normal in (side.a, side.b)]
    C = np.column_stack([columns.dense(), *normals])
    V, R = np.linalg.qr(C)
    n, m = V.shape
    residual = C - V @ R
    # Both are computed with the rounding of sums of m, and of n, products.
    away = np.sqrt(np.einsum("ij,ij->j", residual, residual))
    away += (m + 8) * EPS * np.sqrt(m) * np.sqrt(np.einsum("ij,ij->j", R, R))
    skew = float(np.linalg.norm(V.T @ V - np.eye(m))) + (n + 8) * EPS * m
    sizes = np.concatenate([columns.sizes, np.ones(len(normals))])
    sizes = np.maximum(sizes, TINY)
    error = max(skew, float((away / sizes).max(initial=0.0)))
    blur = 3 * error * columns.sizes**2
    ends = R[:, count:].T
    return View(
        columns=DenseColumns(np.ascontiguousarray(R[:, :count])),
        inside=np.arange(inside),
        undecided=np.arange(inside, count),
        sides=[Side(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True)],
        blur=blur,
        basis=V,
        error=error,
        lost=float(np.sort(blur)[-k:].sum()),
    )
