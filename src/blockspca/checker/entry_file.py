"""Reads the nodes of a rule "entry-tree": docs/proof-format.md, section 7."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .fields import (
    ProofError,
    Reader,
    positions,
    read_boolean,
    read_integer,
    read_integers,
    read_list,
    read_real,
    read_reals,
    take,
)

ONE_SHARE = 2**14
MOST_SPLITS = 300  # within one another; each is a call of a function


@dataclass(frozen=True)
class NodePoint:
    """Weights of the features of a node, shares of their pairs, and r."""

    ratio: float
    weights: list[float]
    shares: list[int]


@dataclass(frozen=True)
class EntryNode:
    """An object of `nodes`; its features are positions among those of the record."""

    kind: str
    features: tuple[int, ...] = ()
    point: NodePoint | None = None
    own: list[float] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    needed: tuple[int, ...] = ()

    def in_units(self, scaled: Callable[[list[float]], np.ndarray]) -> EntryNode:
        """Return the node with its weights in another unit."""
        if self.point is None:
            return self
        weights = scaled(self.point.weights).tolist()
        point = replace(self.point, weights=weights)
        return replace(self, point=point, own=scaled(self.own).tolist())


KINDS: dict[str, dict[str, Reader]] = {
    "close": {"close": lambda value, where: _point(value, where)},
    "last": {"last": read_boolean},
    "split": {"split": read_integer},
    "fix": {
        "fix": lambda value, where: _point(value, where),
        "out": read_integers,
        "own": read_reals,
        "prices": read_reals,
        "in": read_integers,
    },
}


def read_nodes(value: Any, where: str, features: list[int]) -> tuple[EntryNode, ...]:
    """Return the objects of one node with all its children."""
    place = {name: position for position, name in enumerate(features)}
    nodes = tuple(_node(item, where, place) for item in read_list(value, where))
    waiting = [1]  # nodes still to be read at each depth
    for node in nodes:
        if not waiting:
            raise ProofError(f"{where}: there are nodes after the last")
        if node.kind != "fix":
            waiting[-1] -= 1
        if node.kind == "split":
            waiting.append(2)
        if len(waiting) > MOST_SPLITS:
            raise ProofError(f"{where}: more than {MOST_SPLITS} splits in one another")
        while waiting and waiting[-1] == 0:
            waiting.pop()
    if waiting:
        raise ProofError(f"{where}: a node is missing")
    return nodes


def _node(value: Any, where: str, place: dict[int, int]) -> EntryNode:
    kinds = [kind for kind in KINDS if type(value) is dict and kind in value]
    if len(kinds) != 1:
        raise ProofError(f"{where}: a node is one of {', '.join(KINDS)}")
    (kind,) = kinds
    found = take(value, where, **KINDS[kind])
    if kind == "last" and not found["last"]:
        raise ProofError(f"{where}: last must be true")
    if kind in ("last", "close"):
        return EntryNode(kind, point=found.get("close"))
    if kind == "split":
        return EntryNode(kind, positions([found["split"]], place, where))
    out, needed = (positions(found[key], place, where, True) for key in ("out", "in"))
    own, prices = found["own"], found["prices"]
    if not len(own) == len(prices) == len(out):
        raise ProofError(f"{where}: own and prices are needed per feature that is out")
    if min(own, default=0.0) < 0 or min(prices, default=1.0) <= 0:
        raise ProofError(f"{where}: own must not be negative, prices positive")
    return EntryNode(kind, out, found["fix"], own, prices, needed)


def _point(value: Any, where: str) -> NodePoint:
    found = take(
        value, where, ratio=read_real, weights=read_reals, shares=read_integers
    )
    n, shares = len(found["weights"]), found["shares"]
    if found["ratio"] <= 0 or min(found["weights"], default=0.0) < 0:
        raise ProofError(
            f"{where}: a ratio above 0 and weights of at least 0 are needed"
        )
    return NodePoint(found["ratio"], found["weights"], shares_of(shares, n, where))


def shares_of(shares: list[int], n: int, where: str) -> list[int]:
    """Return the shares of the pairs of n features, if that is what they are."""
    if len(shares) != n * (n - 1) // 2 or max(map(abs, shares), default=0) > ONE_SHARE:
        raise ProofError(f"{where}: a share of -2^14 to 2^14 is needed per pair")
    return shares
