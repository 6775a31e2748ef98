"""One node of the dual's search: part of the sphere, features inside and undecided.

With the features I inside and U undecided, the direction dual reads

    Σ_{i∈S} (c_i'y)² ≤ (k − |I|) ρ + y'My,
    M = Σ_{i∈I} c_i c_i' + Σ_{i∈U} κ_i z_i z_i',

for every k-set S with I ⊂ S ⊂ I ∪ U.

A part of the sphere is cut out by y'By ≥ 0, B = (ab' + ba')/2: the y between two lines
in the plane of two directions, a and b the inward normals of the lines.  On it ηB may
be added to M for any η ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from .density import Density, Side

FLOOR = 0.03  # share of the uniform density, while directions are still being found
_FLOOR_AGAIN = 3e-3  # in a part of the sphere
_IN_PLAY = 0.7  # of ρ, that a column must reach
_EDGES = (-2.0, -1.0, -0.4, 0.4, 1.0, 2.0)  # of wedges, in deviations
_WIDE = 0.001  # share of the second direction, of the first's, that calls for wedges

Indices = NDArray[np.intp]


@dataclass
class Node:
    """What is decided, and where the ascent stands.

    Attributes
    ----------
    inside, undecided : array of int
        Columns of the problem.
    density, penalty, floor
        X, ρ, and the least share of 1/n in X.
    reach : array
        For the undecided columns, at least (c_i'y)² for every y of a better set: ‖c_i‖²
        to begin with.
    sides, multipliers : list
        B and η of the part of the sphere.
    bound : float
        Proved, for the columns of the problem, rounding included.
    shares : array
        Of the undecided columns, in the best relaxation.
    reached : float
        The gap when that was found.
    moves : int
        Mirror steps so far.
    others : bool
        Features that are no columns of the problem may be in the set.
    settled : float
        The largest bound of what was ruled out.
    """

    inside: Indices
    undecided: Indices
    density: Density
    penalty: float
    reach: FloatArray
    floor: float = FLOOR
    sides: list[Side] = field(default_factory=list)
    multipliers: list[float] = field(default_factory=list)
    bound: float = np.inf
    shares: FloatArray = field(default_factory=lambda: np.empty(0))
    reached: float = np.inf
    moves: int = 0
    others: bool = False
    settled: float = -np.inf

    def in_play(self) -> int:
        """Return how many undecided columns may have a term in M."""
        return int((self.reach > _IN_PLAY * self.penalty).sum())


def branches(node: Node) -> list[Node]:
    """Split a node: its sphere, if the density is wide, else by a feature."""
    weights = node.density.weights
    if len(weights) > 1 and weights[1] > _WIDE * weights[0]:
        return _wedges(node)
    at = int(np.argmin(np.abs(node.shares - 0.5)))
    rest = np.delete(node.undecided, at)
    shares = np.delete(node.shares, at)
    reach = np.delete(node.reach, at)
    feature = node.undecided[at : at + 1]
    inside = np.concatenate([node.inside, feature])
    return [
        _child(node, undecided=rest, shares=shares, reach=reach),
        _child(node, inside=inside, undecided=rest, shares=shares, reach=reach),
    ]


def _wedges(node: Node) -> list[Node]:
    """Cut the plane of the two leading directions of the density.

    With t = (q₂'y)/(q₁'y), the wedges are |t| ≤ 0.4σ, 0.4σ ≤ ±t ≤ σ, σ ≤ ±t ≤ 2σ and
    what is beyond, σ the deviation of t in the density: none of them contains it.
    """
    weights, Q = node.density.weights, node.density.Q
    deviation = np.sqrt(weights[1] / weights[0])
    angles = np.arctan(deviation * np.array(_EDGES))
    inwards = Q[:, :2] @ np.stack([-np.sin(angles), np.cos(angles)])
    # The last line is the first, turned by π: if y had the same sign on all the others
    # it would be in the last wedge, so that rounding leaves no gap between them.
    inwards = np.column_stack([inwards, -inwards[:, 0]])
    floor = max(node.floor, _FLOOR_AGAIN)
    children = []
    for q in range(len(_EDGES)):
        sides = [*node.sides, Side(inwards[:, q], -inwards[:, q + 1])]
        changes = {
            "density": node.density.onto(sides, floor),
            "sides": sides,
            "multipliers": [*node.multipliers, 0.0],
            "floor": floor,
        }
        children.append(_child(node, **changes))
    return children


def _child(node: Node, **changes: object) -> Node:
    changes.setdefault("sides", list(node.sides))
    changes.setdefault("multipliers", list(node.multipliers))
    return replace(node, **changes)  # type: ignore[arg-type]
