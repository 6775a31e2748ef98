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

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._validation import FloatArray
from .columns import Indices
from .density import Density, Sector
from .settings import DEFAULT, DualSettings


@dataclass
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
    sectors: list[Sector] = field(default_factory=list)
    etas: list[float] = field(default_factory=list)
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

    def keep_free(self, kept: Any) -> dict[str, Any]:
        """Return those of the free columns, with what is known of them."""
        names = ("free", "relaxed_z", "projection_bound")
        return {name: getattr(self, name)[kept] for name in names}


def branches(node: Node, settings: DualSettings = DEFAULT) -> list[Node]:
    """Split a node: its sphere, if the density is wide, else by a feature."""
    weights = node.density.weights
    # Next to one direction there are no two to tell apart.
    if len(weights) > 1 and weights[1] > 0.001 * weights[0]:
        return _sectors(node, settings)
    at = int(np.argmin(np.abs(node.relaxed_z - 0.5)))
    rest = node.keep_free(np.arange(len(node.free)) != at)
    fixed_in = np.append(node.fixed_in, node.free[at])
    return [_child(node, **rest), _child(node, fixed_in=fixed_in, **rest)]


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
            _child(
                node, density=density, sectors=sectors, etas=etas, min_weight=min_weight
            )
        )
    return children


def _child(node: Node, **changes: Any) -> Node:
    changes.setdefault("sectors", list(node.sectors))
    changes.setdefault("etas", list(node.etas))
    return replace(node, **changes)
