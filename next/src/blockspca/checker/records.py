"""The records of a proof: docs/proof-format.md, one class for each rule.

A record states opt(k) ≤ upper for the exact matrix. It rests on the records before it
in the same proof: U_q below is the least `upper` of those of q. Provers fill these
records; the file of a proof, `verify` and the checker read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Variance:
    """The largest A_ii for k = 1; the sum of the k largest if A is semidefinite."""

    k: int
    upper: float


@dataclass(frozen=True)
class Rows:
    """The largest A_ii + sum of the k − 1 largest |A_ij| of its row (Gershgorin)."""

    k: int
    upper: float


@dataclass(frozen=True)
class Average:
    """What U_m says about larger sets, by averages over subsets; m is `smaller`."""

    k: int
    upper: float
    smaller: int


@dataclass(frozen=True)
class Tree:
    """A search for a k-set above `upper`, less a margin, which finds none.

    Parameters
    ----------
    features : tuple of int
        Those that screening left, in the order in which the tree branches.
    nodes : int
        Matrices that the search looked at, the root included. A checker that needs more
        than twice as many stops.
    """

    k: int
    upper: float
    features: tuple[int, ...]
    nodes: int


@dataclass(frozen=True)
class Dual:
    """The nodes of an entry dual or a direction dual, as the page writes them."""

    k: int
    upper: float
    by: str  #: "entries" or "directions"
    nodes: tuple[Any, ...]
    shift: float = 0.0  #: of "directions": columns are a factor of A + shift I
    features: tuple[int, ...] | None = None  #: what screening left; None for all


Record = Variance | Rows | Average | Tree | Dual


@dataclass(frozen=True)
class Sets:
    """Which sets of features count; `groups` are pairs (most, features), disjoint."""

    without: tuple[int, ...] = ()
    include: tuple[int, ...] = ()
    groups: tuple[tuple[int, tuple[int, ...]], ...] = ()


def allowance(k: int, size: float, error: float) -> float:
    """Return how far rounding may move the eigenvalues of k-sets in a tree.

    The page derives it, in the paragraph "Margins".

    Parameters
    ----------
    size : float
        |U| + max(0, −min A_ii), or the largest |A_ij| of the tree if that is larger.
    error : float
        Of an entry, in absolute value.
    """
    return 2.0**-50 * (k + 2) ** 2 * size + k * error
