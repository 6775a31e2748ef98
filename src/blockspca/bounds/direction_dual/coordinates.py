"""What the sum M of a node is made of, in the coordinates u = V'y of a basis V.

There are two such changes.

**All that is left.**  Late in the search a few hundred columns are left, of many more
entries.  With V an orthonormal basis of their span and that of the sectors, c_i = Vr_i:
all that the dual says of the c_i and y it says of the r_i and u.  What V and R are
worth is measured.  If ‖V'V − I‖ ≤ e and ‖c_i − Vr_i‖ ≤ e s_i with s_i ≥ ‖c_i‖, then
‖u‖² ≤ 1 + e and

    (c_i'y)² ≤ (r_i'u)² + 3e s_i²,

so that a bound for the r_i is one for the c_i once e times itself and 3e Σ s_i² over
the k largest are added.  In the same way (a'y)(b'y) ≥ 0 leaves (r_a'u)(r_b'u) ≥ −3e.

**A space for mirror steps.**  If V holds the directions Q of a density, then

    V'(c + Qh) = V'c + (V'Q)h,

so that V'MV follows from V'C, and what a step needs of the rest is its trace.  A step
then costs O(s² p) for s dimensions, whatever n is.  The space is left now and then, to
see what M does outside; no bound is proved in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._validation import FloatArray
from ...numerics.rounding import EPS, TINY
from .columns import Columns, DenseColumns, HostColumns, Indices, in_space, to_host
from .density import Density, Sector
from .node import Node
from .problem import Problem
from .relaxation import Relaxation


@dataclass(frozen=True)
class Coordinates:
    """Columns, and what else M is made of, in the coordinates of a basis."""

    #: Of the free features that may have a term in M; None where not needed. Steps may
    #: have them in the memory of a GPU.
    active: Columns | None
    fixed_in: HostColumns | None  #: of the features that are fixed in, if any
    sectors: Sequence[Sector]
    #: `columns`, `free`: all columns of a node, or more, and where the free ones are
    #: among them.
    columns: HostColumns | None = None
    free: Indices | None = None
    basis: FloatArray | None = None  #: V; None for the coordinates of the problem
    error: float = 0.0  #: e
    #: 3e s_i² of the free columns: by how much (c_i'y)² may be above (r_i'u)².
    column_error: FloatArray | float = 0.0
    bound_error: float = 0.0  #: the sum of the k largest of all columns
    deflation: FloatArray | None = None  #: √α q, while the sum is deflated
    outside: FloatArray | None = None  #: what of ‖c_i‖² is outside a space for steps
    trace: float = 0.0  #: of what is fixed in, less the deflation, in all directions

    def to_subspace(self, density: Density) -> Density:
        """Return what a density of the node is like here."""
        return density if self.basis is None else density.change_basis(self.basis)

    def from_subspace(self, density: Density) -> Density:
        """Return what a density of these coordinates is like at the node."""
        return density if self.basis is None else density.change_basis(self.basis.T)

    def rounding(self, size: float, etas: Sequence[float]) -> float:
        """Bound what the coordinates cost a bound of at most `size`."""
        return self.error * (size + 3 * sum(etas)) + self.bound_error

    def free_columns(self) -> tuple[HostColumns, Indices | slice]:
        """Return columns, and where the free ones are among them."""
        assert self.columns is not None
        assert self.free is not None
        if 4 * len(self.free) > self.columns.shape[1]:
            return self.columns, self.free  # cheaper than a copy
        return self.columns.take(self.free), slice(None)

    def within(self, V: FloatArray, active: bool = True) -> Coordinates:
        """Return the same in a space for steps, which holds sectors and deflation.

        Without the active columns if they are not needed.
        """
        fixed_in, trace = None, 0.0
        if self.fixed_in is not None:
            fixed_in = DenseColumns(self.fixed_in.project(V), self.fixed_in.norms)
            trace = float(self.fixed_in.norms.sum())
        deflation = None
        if self.deflation is not None:
            deflation = self.deflation @ V
            trace -= float(self.deflation @ self.deflation)
        sectors = [sector.to_subspace(V) for sector in self.sectors]
        columns, outside = None, None
        if active and self.active is not None:
            columns = in_space(self.active, V)
            inside = np.einsum("ij,ij->j", columns.C, columns.C)
            outside = columns.norms - to_host(inside)
        return Coordinates(
            columns,
            fixed_in,
            sectors,
            deflation=deflation,
            outside=outside,
            trace=trace,
        )

    def fixed_mean(self, density: Density) -> float:
        """Return tr(XF), F what M has beside the relaxation."""
        mean = 0.0
        if self.fixed_in is not None:
            along = (self.fixed_in.project(density.Q) ** 2).sum(axis=1)
            mean = density.mean(along, float(self.fixed_in.norms.sum()))
        if self.deflation is not None:
            along = (self.deflation @ density.Q) ** 2
            mean -= density.mean(along, float(self.deflation @ self.deflation))
        return mean

    def sum(self, relaxation: Relaxation) -> tuple[FloatArray, float]:
        """Return M within a space, but for the sectors, and the trace of all of it."""
        assert self.outside is not None
        M = relaxation.total
        trace = float(np.trace(M) + relaxation.D @ self.outside) + self.trace
        if self.fixed_in is not None:
            M = M + self.fixed_in.gram(np.ones(self.fixed_in.shape[1]))
        if self.deflation is not None:
            M = M - np.outer(self.deflation, self.deflation)
        return M, trace


def coordinates(problem: Problem, node: Node, active: Indices) -> Coordinates:
    """Return what is left at a node as it is, or in fewer coordinates.

    `active` are positions among the free columns.
    """
    settings, n = problem.settings, problem.columns.shape[0]
    fixed = len(node.fixed_in)
    count = fixed + len(node.free) + 2 * len(node.sectors)
    if settings.reduces(n, count):
        left = problem.columns.take(np.concatenate([node.fixed_in, node.free]))
        found = reduced(left, fixed, node.sectors, problem.k)
    else:
        fixed_in = problem.columns.take(node.fixed_in) if fixed else None
        found = Coordinates(None, fixed_in, node.sectors, problem.columns, node.free)
    assert found.columns is not None
    assert found.free is not None
    return replace(found, active=found.columns.take(found.free[active]))


def reduced(
    columns: HostColumns, fixed: int, sectors: Sequence[Sector], k: int
) -> Coordinates:
    """Return columns, the first of them fixed in, and sectors in a basis of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.bounds.direction_dual.columns import DenseColumns
    >>> reduced(DenseColumns(np.eye(9)[:, :3]), 1, [], 2).columns.shape
    (3, 3)
    """
    count = columns.shape[1]
    normals = [normal for sector in sectors for normal in (sector.a, sector.b)]
    C = np.column_stack([columns.dense(), *normals])
    V, R = np.linalg.qr(C)
    n, m = V.shape
    # Nothing is assumed of LAPACK: what the factors miss of C is measured.
    residual = C - V @ R
    # Both are computed with the rounding of sums of m, and of n, products.
    away = np.sqrt(np.einsum("ij,ij->j", residual, residual))
    away += (m + 8) * EPS * np.sqrt(m) * np.sqrt(np.einsum("ij,ij->j", R, R))
    skew = float(np.linalg.norm(V.T @ V - np.eye(m))) + (n + 8) * EPS * m
    sizes = np.concatenate([columns.sizes, np.ones(len(normals))])
    # A column of zeros is off by nothing, and must not divide by it.
    sizes = np.maximum(sizes, TINY)
    error = max(skew, float((away / sizes).max(initial=0.0)))
    column_error = 3 * error * columns.sizes**2
    ends = R[:, count:].T
    seen = DenseColumns(np.ascontiguousarray(R[:, :count]))
    return Coordinates(
        active=None,
        fixed_in=seen.take(np.arange(fixed)) if fixed else None,
        sectors=[Sector(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True)],
        columns=seen,
        free=np.arange(fixed, count),
        basis=V,
        error=error,
        column_error=column_error[fixed:],
        bound_error=float(np.sort(column_error)[-k:].sum()),
    )
