"""One node of the dual's search: sectors of the sphere, features fixed in and free.

With the features I fixed in and F free, the direction dual reads

    Σ_{i∈S} (c_i'y)² ≤ (k − |I|) ρ + y'My,
    M = Σ_{i∈I} c_i c_i' + Σ_{i∈F} κ_i z_i z_i',

for every k-set S with I ⊂ S ⊂ I ∪ F.

A sector of the sphere is cut out by y'By ≥ 0, B = (ab' + ba')/2: the y between two
lines in the plane of two directions, a and b the inward normals of the lines.  On it ηB
may be added to M for any η ≥ 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from .columns import Indices
from .density import Density, Sector
from .settings import DEFAULT, DualSettings


@dataclass(frozen=True)
class Ascended:
    """Where an ascent has come to; the fields are those of a node."""

    bound: float
    density: Density
    multiplier: float
    min_weight: float
    etas: Sequence[float]
    moves: int
    relaxed_z: FloatArray


@dataclass(frozen=True)
class Fixed:
    """What the bound of an ascent leaves one choice for."""

    bound: float
    #: `fixed_in`, `fixed_out`: of the free columns, those that are fixed in, and out.
    fixed_in: NDArray[np.bool_]
    fixed_out: NDArray[np.bool_]
    short_columns: bool = False  #: features that are no columns are fixed out
    #: The new bounds of the projections, where these were bounded, and the gap then.
    projection_bound: FloatArray | None = None
    gap: float = np.inf

    def count(self, active: Indices) -> int:
        """Return how many of those free columns are fixed."""
        return int((self.fixed_in | self.fixed_out)[active].sum())


@dataclass(frozen=True)
class Node:
    """What is fixed, and where the ascent stands."""

    #: `fixed_in`, `free`: columns of the problem; all others are fixed out.
    fixed_in: Indices
    free: Indices
    #: `density`, `multiplier`, `min_weight`: X, ρ, and the least share of 1/n in X.
    density: Density
    multiplier: float
    #: For the free columns, at least (c_i'y)² for every y of a better set: ‖c_i‖² to
    #: begin with.
    projection_bound: FloatArray
    min_weight: float = DEFAULT.first_min_weight
    #: `sectors`, `etas`: B and η of the part of the sphere.
    sectors: Sequence[Sector] = ()
    etas: Sequence[float] = ()
    bound: float = np.inf  #: proved, for the columns of the problem, rounding included
    #: Of the free columns, in the best relaxation: the indicators, 0 to 1.
    relaxed_z: FloatArray = field(default_factory=lambda: np.empty(0))
    gap_at_bound: float = np.inf  #: the gap when the projections were bounded
    moves: int = 0  #: mirror steps so far
    #: Features that are no columns of the problem may be in the set.
    has_short_columns: bool = False
    closed_bound: float = -np.inf  #: the largest bound of what was ruled out

    def n_active(self) -> int:
        """Return how many free columns may have a term in M, now or soon.

        As ρ falls, a column whose projection is below it may come to be above.
        """
        return int((self.projection_bound > 0.7 * self.multiplier).sum())

    def ascended(self, found: Ascended) -> Node:
        """Return the node after an ascent."""
        return replace(self, **vars(found))

    def fixed(self, found: Fixed) -> Node:
        """Return the node after variables were fixed."""
        node = replace(
            self,
            bound=found.bound,
            fixed_in=np.concatenate([self.fixed_in, self.free[found.fixed_in]]),
            has_short_columns=self.has_short_columns and not found.short_columns,
        )
        if found.projection_bound is not None:
            projected = np.minimum(self.projection_bound, found.projection_bound)
            node = replace(node, projection_bound=projected, gap_at_bound=found.gap)
        return node.only_free(~(found.fixed_in | found.fixed_out))

    def with_closed(self, bound: float) -> Node:
        """Return the node when what was ruled out is bounded by so much."""
        return replace(self, closed_bound=max(self.closed_bound, bound))

    def only_free(self, kept: NDArray[np.bool_]) -> Node:
        """Return the node with those of the free columns, and what is known of them."""
        return replace(
            self,
            free=self.free[kept],
            relaxed_z=self.relaxed_z[kept],
            projection_bound=self.projection_bound[kept],
        )


def branches(node: Node, settings: DualSettings = DEFAULT) -> list[Node]:
    """Split a node: its sphere, if the density is wide, else by a feature."""
    weights = node.density.weights
    # Next to one direction there are no two to tell apart.
    if len(weights) > 1 and weights[1] > 0.001 * weights[0]:
        return _sectors(node, settings)
    at = int(np.argmin(np.abs(node.relaxed_z - 0.5)))
    rest = node.only_free(np.arange(len(node.free)) != at)
    return [rest, replace(rest, fixed_in=np.append(node.fixed_in, node.free[at]))]


def _sectors(node: Node, settings: DualSettings) -> list[Node]:
    """Cut the plane of the two leading directions of the density.

    With t = (q₂'y)/(q₁'y), the sectors are |t| ≤ 0.4σ, 0.4σ ≤ ±t ≤ σ, σ ≤ ±t ≤ 2σ and
    what is beyond, σ the deviation of t in the density: none of them contains it.
    """
    weights, Q = node.density.weights, node.density.Q
    deviation = np.sqrt(weights[1] / weights[0])
    angles = np.arctan(deviation * np.array(settings.sector_boundaries))
    inwards = Q[:, :2] @ np.stack([-np.sin(angles), np.cos(angles)])
    # The last line is the first, turned by π: if y had the same sign on all the others
    # it would be in the last sector, so that rounding leaves no gap between them.
    inwards = np.column_stack([inwards, -inwards[:, 0]])
    min_weight = max(node.min_weight, settings.sector_min_weight)
    children = []
    for q in range(len(angles)):
        sectors = [*node.sectors, Sector(inwards[:, q], -inwards[:, q + 1])]
        density = node.density.onto(sectors, min_weight, settings)
        etas = [*node.etas, 0.0]
        children.append(
            replace(
                node, density=density, sectors=sectors, etas=etas, min_weight=min_weight
            )
        )
    return children
