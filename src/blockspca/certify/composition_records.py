"""The record of a bound by counts of features: which are open, and a tree for each.

`docs/proof-format.md`, section 5, has the rule, `bounds/compositions.py` the theorem.
Counts are closed with room, as a checker sums up entries that it rounds up by more. All
values are in units of the table; features are those of its covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.compositions import Composition, Compositions, parts_above
from ..bounds.entry_dual.pairs import OutOfTime
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..limits import LimitReached
from ..search.tree_log import ROOM, above, below, root_order, tree_text
from .compositions import level_of
from .refusals import TreeLimits

COUNTED = 2.0**-17  # room of counts, and of what tables say of fewer features
_POINT = 2.0**-26  # of a bound vv' + tI, beside t and v'v
_WEAK = 2.0**-22  # of an entry beside the parts, beside their largest variance
_MOST = 400  # cases; a search has half as many
_ALL = 200  # features of a case that are not screened


def records_by_counts(
    cov: Covariance,
    k: int,
    target: float,
    dual: str | None,
    unit: float,
    upper: FloatArray,
    limits: TreeLimits,
) -> tuple[dict[int, tuple[float, dict[str, Any]]], int]:
    """Return the records of k and of fewer features that its trees need, and nodes.

    As in the search, all are bounded by one τ, here a little less for fewer features.
    `dual` is what the certificate says of the parts, and `upper` bounds opt(q) for each
    q up to k, +inf where nothing is known. There are no records where the table says
    nothing.
    """
    budget = limits.budget
    try:
        parts = parts_above(cov, level := level_of(dual), budget)
    except OutOfTime:
        return {}, 0
    if not Compositions.is_affordable(cov, k, parts, budget.limits.memory):
        return {}, 0
    table = Compositions(cov, k, parts, level, unit)
    if not np.isfinite(table.upper[k]):
        return {}, 0
    known, nodes = upper.copy(), 0
    found: dict[int, tuple[float, dict[str, Any]]] = {}
    for q in range(2, k + 1):
        tau = target - 3 * (k - q) * ROOM * abs(target)
        if q < k and table.upper[q] <= tau - COUNTED * abs(tau):
            continue
        writer = CompositionWriter(table, known, limits)
        record = writer.record(q, tau)
        nodes += writer.nodes
        if record is not None:
            found[q], known[q] = (tau, record), min(tau, known[q])
    return found, nodes


@dataclass
class CompositionWriter:
    """Writes records of k, and of fewer features, from one table."""

    table: Compositions
    #: upper[q] ≥ opt(q), +inf where nothing is known; lowered by what the table says.
    upper: FloatArray
    limits: TreeLimits
    nodes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        said = self.table.upper[1 : len(self.upper)]
        said = np.minimum(self.upper[1:], said + COUNTED * np.abs(said))
        self.upper = np.concatenate([[np.inf], said])

    def record(self, k: int, tau: float) -> dict[str, Any] | None:
        """Return a record for no set of k features above τ, if it can be closed."""
        table = self.table
        budget = self.limits.budget
        found = table.above(tau - COUNTED * abs(tau), _MOST, k, budget)
        if found is None:
            return None
        cases = []
        for composition in found.compositions:
            case = self._case(composition, k, tau)
            if case is None:
                return None
            cases.append(case)
        strong = len(table.points)
        return {
            "rule": "compositions",
            "parts": [part.tolist() for part in table.parts[:strong]],
            "level": self._level(),
            "bounds": [
                [self._point(t, v) for t, v in points] for points in table.points
            ],
            "counts": " ".join(_counts_text(found.beginnings, (), k)),
            "cases": cases,
        }

    def _level(self) -> str:
        """What no entry beside the parts is above."""
        table = self.table
        if len(table.points) == len(table.parts):
            return (0.0).hex()
        largest = float(np.abs(table.cov.diagonal()[table.parts[-1]]).max())
        level = table.weakest * table.unit
        return float(level + 2.0**-24 * level + _WEAK * largest).hex()

    def _point(self, t: float, v: FloatArray) -> dict[str, Any]:
        room = _POINT * (abs(t) + float(v @ v))
        unit = self.table.unit
        numbers = [float(x).hex() for x in v * np.sqrt(unit)]
        return {"t": float((t + room) * unit).hex(), "v": numbers}

    def _case(self, which: Composition, k: int, tau: float) -> dict[str, Any] | None:
        """Features and a tree for sets with given counts."""
        table, counts = self.table, np.array(which.counts)
        budget = self.limits.budget
        sizes = np.array(table.sizes)
        whole = [table.parts[g] for g in np.flatnonzero(counts == sizes)]
        chosen = np.concatenate([np.empty(0, np.intp), *whole])
        used = np.flatnonzero((counts > 0) & (counts < sizes))
        if not len(used):
            B = self._eliminated(chosen, chosen, tau)
            return self._case_record(chosen[:0], B, "L")
        label = np.repeat(used, sizes[used])
        features = np.concatenate([table.parts[g] for g in used])
        try:
            budget.check()
        except LimitReached:
            return None
        if len(features) > _ALL:
            kept = self._survivors(features, label, chosen, counts, tau)
            features, label = features[kept], label[kept]
        B = self._eliminated(chosen, features, tau)
        m = k - len(chosen)
        if B is None or len(features) < m:
            return self._case_record(features, B, "L")
        chain = np.array([np.inf, *self.upper[len(chosen) + 1 : k], np.inf])
        if m == 1:
            fits = bool(np.diagonal(B).max() <= below(tau))
            return self._case_record(features, B, "L" if fits else None)
        order = root_order(B, m, tau, float(chain[m - 1]))
        places = GroupLimits(label[order], counts)
        most = min(budget.nodes_left, self.limits.most_nodes)
        memory = budget.max_entries
        text, nodes = tree_text(
            B[np.ix_(order, order)], m, tau, chain, most, memory, places,
            weights=self._weights(chosen, features[order], tau),
        )  # fmt: skip
        budget.nodes += nodes
        self.nodes += nodes
        return self._case_record(features[order], B, text)

    @staticmethod
    def _case_record(
        features: NDArray[np.intp], B: FloatArray | None, text: str | None
    ) -> dict[str, Any] | None:
        if B is None or text is None:
            return None
        return {"features": features.tolist(), "tree": text}

    def _eliminated(
        self, chosen: NDArray[np.intp], features: NDArray[np.intp], tau: float
    ) -> FloatArray | None:
        """The Schur complement of some features at τ; None if they are not below it."""
        everything = np.concatenate([chosen, features])
        B = self.table.block(everything)
        for _ in chosen:
            pivot = tau - B[0, 0]
            if not B[0, 0] < below(tau):
                return None
            B = B[1:, 1:] + np.outer(B[0, 1:], B[0, 1:]) / pivot
        return np.ascontiguousarray(B)

    def _weights(
        self, chosen: NDArray[np.intp], features: NDArray[np.intp], tau: float
    ) -> FloatArray:
        """(τI − A_PP)⁻¹ A_PF of the features chosen, P."""
        p = len(chosen)
        A = self.table.block(np.concatenate([chosen, features]))
        return np.asarray(np.linalg.solve(tau * np.eye(p) - A[:p, :p], A[:p, p:]))

    def _survivors(
        self,
        features: NDArray[np.intp],
        label: NDArray[np.intp],
        chosen: NDArray[np.intp],
        counts: NDArray[np.intp],
        tau: float,
    ) -> NDArray[np.bool_]:
        """Which features a set above τ with these counts may have.

        Of k − 1 others it has as many of each part as the counts say, one less of its
        own part.
        """
        kept = np.ones(len(features), dtype=bool)
        u = float(self.upper[counts.sum() - 1])
        least = below(tau)
        if not u <= least:
            return kept
        own = np.diagonal(self.table.block(features))
        fixed = np.square(self.table.block(np.concatenate([chosen, features])))
        fixed = fixed[len(chosen) :]
        inside = fixed[:, len(chosen) :]
        np.fill_diagonal(inside, 0.0)
        whole = fixed[:, : len(chosen)].sum(axis=1)
        while True:
            sums = whole.copy()
            for g in np.unique(label):
                block = -np.sort(-inside[:, kept & (label == g)], axis=1)
                prefix = np.cumsum(block[:, : counts[g]], axis=1)
                for mine, count in ((True, counts[g] - 1), (False, counts[g])):
                    rows = (label == g) == mine
                    last = min(int(count), prefix.shape[1])
                    if last:
                        sums[rows] += prefix[rows, last - 1]
            room = (least - own) * (least - u)
            out = kept & (own <= least) & (above(1.0) * sums <= room)
            if not out.any():
                return kept
            kept &= ~out


def _counts_text(
    begun: Sequence[tuple[int, ...]], beginning: tuple[int, ...], k: int
) -> list[str]:
    """The tokens of the node of a beginning, and of those after it."""
    if sum(beginning) == k:
        return ["L"]
    size = len(beginning) + 1
    after = [b for b in begun if len(b) == size and b[:-1] == beginning]
    words = [f"S{len(after)}", *(str(b[-1]) for b in after)]
    for longer in after:
        words += _counts_text(begun, longer, k)
    return words
