"""The entry dual in a written proof: the point of a bound, or its search.

Beside weights, core and shares, a point names the features K of which the matrix is
eliminated, and the scaling v that bounds the rows of all others (`proof.py`, "Many
features"). Whoever checks it makes the matrix M anew (`docs/proof-format.md`, rule
"entry"). A search is run again from its log, and what it does at each node is noted
(rule "entry-tree").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from .check import (
    checked_pairs,
    dense_problem,
    priced_point,
    searched_value,
    with_errors,
)
from .fixing import fixed_in, fixed_out, likely_in
from .log import SearchLog, SearchRecord
from .node import Node
from .pairs import OutOfTime
from .proof import bound_beside, dense_features
from .record import ONE, EntryRecord
from .search import EntrySearch, LogMismatch

FARTHEST = 2.0**100  # of a scaling from 1, either way, by the format


def written_point(
    cov: Covariance, k: int, record: EntryRecord, deadline: Deadline
) -> tuple[float, dict[str, Any]] | None:
    """Return the bound of a record, and its fields in a proof.

    None if there is no time for a pass over A, or no scaling that the format has.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> from blockspca.limits import Budget
    >>> cov = Covariance.from_matrix(np.ones((3, 3)))
    >>> nobody, nothing = np.empty(0, np.intp), np.zeros((0, 0))
    >>> record = EntryRecord.of(np.ones(3), 1.0, nobody, nothing)
    >>> value, said = written_point(cov, 2, record, Budget())
    >>> round(value, 6), said["weights"][0], said["core"]
    (2.0, '0x1.0000000000000p+0', [])
    """
    try:
        M, slope = priced_point(cov, k, record, checked_pairs(cov, record, deadline))
    except OutOfTime:
        return None
    inside, grown, rows = dense_features(M, slope.presence, slope.largest)
    value = bound_beside(M, inside, grown, rows, deadline) * record.unit
    said: dict[str, Any] = {
        "weights": in_hex(record.weights_in(1.0)),
        "core": record.core.tolist(),
        "shares": record.shares[np.triu_indices(len(record.core), 1)].tolist(),
        "dense": np.flatnonzero(inside).tolist(),
    }
    if not inside.all():
        scaling = grown / float(grown.max())
        if not (np.isfinite(value) and float(scaling.min()) >= 1 / FARTHEST):
            return None
        said["scaling"] = in_hex(scaling)
    return with_errors(value, cov, k), said


def in_hex(values: FloatArray) -> list[str]:
    """Numbers as the format has them."""
    return [value.hex() for value in values.tolist()]


def written_search(
    cov: Covariance, k: int, record: SearchRecord, deadline: Deadline
) -> tuple[float, dict[str, Any]] | None:
    """Return the bound of a logged search, and its fields in a proof.

    None if the log does not repeat, or not in time. Where features were ruled out
    before the search, the proof needs the bound of `record.screen` for k − 1.
    """
    features = record.features
    A = dense_problem(cov, features, record.unit)
    search = _NotedSearch(A, k, record.tau, Node.whole(len(A)), record.log)
    try:
        value = max(search.run(deadline, 2**62), record.tau)
    except LogMismatch:
        return None
    writer = _Writer(features, float(np.sqrt(record.unit)), value)
    if not (np.isfinite(value) and writer.write(search.root)):
        return None
    said = {"features": features.tolist(), "nodes": writer.nodes}
    return searched_value(value, record.unit, k, cov), said


@dataclass
class _Round:
    """A point of a node, its bound, and what it fixes: features, u and a, and in."""

    node: Node
    bound: float
    out: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)


@dataclass
class _Noted:
    """What was done at a node, and its children."""

    rounds: list[_Round] = field(default_factory=list)
    is_last: bool = False
    split: int = -1
    children: tuple[_Noted, ...] = ()


class _NotedSearch(EntrySearch):
    """A search that notes what it does; nodes are known by their identity."""

    def __init__(
        self, A: FloatArray, k: int, tau: float, root: Node, log: SearchLog
    ) -> None:
        super().__init__(A, k, tau, root, log)
        self.root = self.at = _Noted()
        self.noted = {id(root): (root, self.root)}

    def _work(self, node: Node, deadline: Deadline) -> Node | None:
        self.at = self.noted[id(node)][1]
        worked = super()._work(node, deadline)
        if worked is not None:
            self.noted[id(worked)] = worked, self.at
        return worked

    def _is_leaf(self, node: Node) -> bool:
        self.at.is_last = super()._is_leaf(node)
        return self.at.is_last

    def _ascended(self, node: Node, deadline: Deadline) -> tuple[Node, bool] | None:
        found = super()._ascended(node, deadline)
        if found is not None:
            bound = self.tau if found[1] else found[0].bound
            self.at.rounds.append(_Round(found[0], bound))
        return found

    def _fixed(self, node: Node) -> Node | None:
        after = super()._fixed(node)
        done = self.at.rounds[-1]
        A = self.A[np.ix_(node.features, node.features)]
        out, own, prices = fixed_out(A, node, self.k, self.tau)
        done.out = node.features[out].tolist()
        done.own, done.prices = own[out].tolist(), prices[out].tolist()
        if after is not None:
            done.needed = np.setdiff1d(
                after.features[after.fixed_in], node.features[node.fixed_in]
            ).tolist()
        else:  # more are needed than there are places
            M, rounding = self._matrix(node)
            left = np.flatnonzero(~out)
            M, level = M[np.ix_(left, left)], self.tau - rounding
            likely = likely_in(M, level, np.flatnonzero(~node.fixed_in[left]))
            found = fixed_in(M, level, likely[: node.places(self.k) + 1])
            done.needed = np.sort(node.features[left[found]]).tolist()
            self.at.is_last = True
        return after

    def _children(self, node: Node) -> list[Node]:
        children = super()._children(node)
        if children:
            noted = self.noted[id(node)][1]
            (noted.split,) = np.setdiff1d(node.features, children[1].features)
            noted.children = (_Noted(), _Noted())
            for child, one in zip(children, noted.children, strict=True):
                self.noted[id(child)] = child, one
        return children


@dataclass
class _Writer:
    """Writes the nodes of a search, features by their numbers, for sets above τ."""

    features: NDArray[np.intp]
    root_of_unit: float
    tau: float
    nodes: list[dict[str, Any]] = field(default_factory=list)

    def write(self, noted: _Noted) -> bool:
        """Write a node and its children; False if something is open above τ."""
        for done in noted.rounds:
            if done.bound <= self.tau:
                self.nodes.append({"close": self._point(done.node)})
                return True
            if done.out or done.needed:
                said = {
                    "fix": self._point(done.node),
                    "out": self.features[done.out].tolist(),
                    "own": in_hex(np.array(done.own) * self.root_of_unit),
                    "prices": in_hex(np.array(done.prices)),
                    "in": self.features[done.needed].tolist(),
                }
                self.nodes.append(said)
        if noted.is_last:
            self.nodes.append({"last": True})
            return True
        if not noted.children:
            return False
        self.nodes.append({"split": int(self.features[noted.split])})
        return all(self.write(child) for child in noted.children)

    def _point(self, node: Node) -> dict[str, Any]:
        shares = np.rint(node.shares * ONE).astype(int)
        return {
            "ratio": float(node.ratio).hex(),
            "weights": in_hex(node.weights * self.root_of_unit),
            "shares": shares[np.triu_indices(len(shares), 1)].tolist(),
        }
