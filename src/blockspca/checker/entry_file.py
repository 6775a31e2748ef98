"""Reads the rules "entry" and "entry-tree": section 7 of docs/proof-format.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .fields import ProofError, Reader, a_list, integer, integers, real, reals, take

SHARE_BITS = 14  # a share s stands for s/2^14
LARGEST_SCALING = 2.0**100
DEEPEST_SPLIT = 299

ENTRY: dict[str, Reader] = {
    "weights": reals,
    "core": integers,
    "shares": integers,
    "dense": integers,
}
ENTRY_TREE: dict[str, Reader] = {"features": integers, "nodes": a_list}

Places = Callable[[list[int]], tuple[int, ...]]  # of names of features


@dataclass(frozen=True)
class Entry:
    """What a rule "entry" is made of; features are positions among those kept."""

    weights: list[float]
    core: tuple[int, ...]
    shares: np.ndarray  # of the pairs of the core, row by row
    dense: tuple[int, ...]
    scaling: np.ndarray  # ones, if all features are dense


@dataclass(frozen=True)
class Point:
    """Weights and shares for the features of a node, and the ratio of those inside."""

    ratio: float
    weights: list[float]
    shares: np.ndarray


@dataclass(frozen=True)
class Fix:
    """Features that are in no better set, and features that are in all of them."""

    point: Point
    out: tuple[int, ...]
    own: list[float]
    prices: list[float]
    inside: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """Two nodes follow: with the feature, and without it."""

    feature: int


@dataclass(frozen=True)
class Close:
    """The node is bounded by its point."""

    point: Point


@dataclass(frozen=True)
class Last:
    """One set is left, or none."""


EntryNode = Fix | Split | Close | Last


def in_order(names: list[int], where: str) -> list[int]:
    """Return names that are strictly ascending, or refuse."""
    if any(a >= b for a, b in pairwise(names)):
        raise ProofError(f"{where}: the features must be ascending")
    return names


def share_matrix(shares: np.ndarray, size: int) -> np.ndarray:
    """Return the symmetric matrix of the shares of pairs, 0 on its diagonal."""
    found = np.zeros((size, size))
    found[np.triu_indices(size, 1)] = shares
    return found + found.T


def read_entry(found: dict[str, Any], where: str, places: Places, d: int) -> Entry:
    """Return the rule "entry" of a record whose values have been read; d features."""
    weights = found["weights"]
    if len(weights) != d or min(weights) < 0:
        raise ProofError(f"{where}: a weight of at least 0 is needed per feature")
    core = places(in_order(found["core"], where))
    dense = places(in_order(found["dense"], where))
    if not {*core} <= {*dense}:
        raise ProofError(f"{where}: dense must contain the core")
    if ("scaling" in found) != (len(dense) < d):
        raise ProofError(f"{where}: scaling is needed beside dense, and only there")
    scaling = found.get("scaling", [1.0] * d)
    if len(scaling) != d:
        raise ProofError(f"{where}: a scaling is needed per feature")
    if min(scaling) < 1 / LARGEST_SCALING or max(scaling) > LARGEST_SCALING:
        raise ProofError(f"{where}: scaling is needed beside dense, from 2^-100 on")
    shares = _shares(found["shares"], len(core), where)
    return Entry(weights, core, shares, dense, np.array(scaling))


def read_entry_nodes(
    found: list[Any], where: str, places: Places
) -> tuple[EntryNode, ...]:
    """Return the nodes of a rule "entry-tree": one node, with its children."""
    nodes: list[EntryNode] = []
    waiting = [0]  # how many splits each node that is still to be read is within
    for item in found:
        if not waiting:
            raise ProofError(f"{where}: there are nodes after the last")
        node = _node(item, where, places)
        nodes.append(node)
        if isinstance(node, Fix):
            continue
        depth = waiting.pop()
        if isinstance(node, Split):
            if depth >= DEEPEST_SPLIT:
                raise ProofError(f"{where}: more than {DEEPEST_SPLIT} splits deep")
            waiting += [depth + 1, depth + 1]
    if waiting:
        raise ProofError(f"{where}: a node is missing")
    return tuple(nodes)


def _node(value: Any, where: str, places: Places) -> EntryNode:
    keys = [*value] if type(value) is dict else []
    if "close" in keys:
        found = take(value, where, close=_point)
        return Close(found["close"])
    if "last" in keys:
        if take(value, where, last=lambda item, _: item)["last"] is not True:
            raise ProofError(f"{where}: last must be true")
        return Last()
    if "split" in keys:
        found = take(value, where, split=integer)
        return Split(places([found["split"]])[0])
    if "fix" not in keys:
        raise ProofError(f"{where}: a node is one of close, last, split, fix")
    readers: dict[str, Reader] = {"fix": _point, "out": integers, "own": reals}
    readers |= {"prices": reals, "in": integers}
    found = take(value, where, **readers)
    out, inside = (places(in_order(found[key], where)) for key in ("out", "in"))
    if {*out} & {*inside}:
        raise ProofError(f"{where}: a feature cannot be both out and in")
    own, prices = found["own"], found["prices"]
    if not len(own) == len(prices) == len(out):
        raise ProofError(f"{where}: own and prices are needed per feature that is out")
    if min(own, default=0.0) < 0 or min(prices, default=1.0) <= 0:
        raise ProofError(f"{where}: own must not be negative, prices positive")
    return Fix(found["fix"], out, own, prices, inside)


def _point(value: Any, where: str) -> Point:
    found = take(value, where, ratio=real, weights=reals, shares=integers)
    weights = found["weights"]
    if found["ratio"] <= 0 or min(weights, default=0.0) < 0:
        raise ProofError(
            f"{where}: a ratio above 0 and weights of at least 0 are needed"
        )
    shares = _shares(found["shares"], len(weights), where)
    return Point(found["ratio"], weights, shares)


def _shares(found: list[int], size: int, where: str) -> np.ndarray:
    """Return a share for each pair of `size` features."""
    most = 2**SHARE_BITS
    if len(found) != size * (size - 1) // 2 or any(abs(s) > most for s in found):
        raise ProofError(f"{where}: a share of -2^14 to 2^14 is needed per pair")
    return np.array(found, dtype=np.int32)
