"""What the trees of a proof may take."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import Budget


@dataclass(frozen=True)
class TreeLimits:
    """The nodes of one tree, and the budget of all, which they are charged to."""

    most_nodes: int
    budget: Budget
