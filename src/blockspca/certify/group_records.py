"""The tree of a proof for groups that are used as a whole.

`docs/proof-format.md`, section 8, has the rule: units are chosen one after the other,
and what cannot be better is closed by suffix bounds on a matrix N of norms. The order
of the units is that of their own eigenvalues, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Budget, LimitReached
from ..numerics.rounding import larger_root
from ..search.tree_log import below
from .refusals import NotClosed

_NEAR = 2.0**-16  # room of suffix bounds and of all units together, beside |τ|
ALL_UNITS = 2 * _NEAR  # and of a bound by all of them
_BETWEEN = 64  # nodes between two looks at the clock


def group_tree(
    A: FloatArray,
    include: NDArray[np.intp],
    units: Sequence[NDArray[np.intp]],
    k: int,
    tau: float,
    most_nodes: int,
    budget: Budget,
) -> tuple[list[int], str, int] | None:
    """Return the order of the units, a tree for no set above τ, and its nodes.

    None if a set is above τ', or the nodes or the time do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.limits import Budget
    >>> units = [np.array([0, 1]), np.array([2])]
    >>> none = np.empty(0, dtype=np.intp)
    >>> group_tree(np.diag([3.0, 2.0, 1.0]), none, units, 2, 3.5, 10, Budget())
    ([0, 1], 'S0', 1)
    """
    largest = [float(np.linalg.eigvalsh(A[np.ix_(u, u)])[-1]) for u in units]
    order = np.argsort(largest, kind="stable")[::-1].tolist()
    writer = _Writer([units[g] for g in order], tau, most_nodes, budget)
    try:
        B = A
        for p in include.tolist():
            B = writer.chosen(B, p)
        room = k - len(include)
        fit = [g for g, unit in enumerate(writer.units) if len(unit) <= room]
        writer.node(B, fit, room)
    except (NotClosed, LimitReached):
        return None
    return order, " ".join(writer.words), writer.nodes


@dataclass
class _Writer:
    """Writes the nodes in preorder."""

    units: list[NDArray[np.intp]]
    tau: float
    most_nodes: int
    budget: Budget
    nodes: int = 0
    words: list[str] = field(default_factory=list)

    def chosen(self, B: FloatArray, p: int) -> FloatArray:
        """The Schur complement of one more feature."""
        if not B[p, p] < below(self.tau):
            raise NotClosed
        return np.asarray(B + np.outer(B[p], B[p]) / (self.tau - B[p, p]))

    def node(self, B: FloatArray, F: list[int], room: int) -> None:
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise NotClosed
        if self.nodes % _BETWEEN == 0:
            self.budget.check()
        if not F:
            self.words.append("L")
            return
        least = self.tau - _NEAR * abs(self.tau)
        sizes = accumulate(sorted(len(self.units[g]) for g in F))
        opened = self._opened(B, F, sum(size <= room for size in sizes), least)
        if len(opened) > 1 and self._is_below(B, F, least):
            self.words.append("P")
            return
        self.words += [f"S{len(opened)}", *map(str, opened)]
        for g in opened:
            left, child = room - len(self.units[g]), B
            for p in self.units[g].tolist():
                child = self.chosen(child, p)
            after = [h for h in F if h > g and len(self.units[h]) <= left]
            self.node(child, after, left)

    def _is_below(self, B: FloatArray, F: list[int], least: float) -> bool:
        rows = np.concatenate([self.units[g] for g in F])
        return bool(np.linalg.eigvalsh(B[np.ix_(rows, rows)])[-1] < least)

    def _opened(self, B: FloatArray, F: list[int], m: int, least: float) -> list[int]:
        """The units that suffix bounds do not close."""
        n = len(F)
        rows = np.concatenate([self.units[g] for g in F])
        ends = np.cumsum([0, *(len(self.units[g]) for g in F)])
        inner = B[np.ix_(rows, rows)]
        squares = np.add.reduceat(
            np.add.reduceat(inner**2, ends[:-1], axis=0), ends[:-1], axis=1
        )
        own = np.array([
            np.linalg.eigvalsh(inner[a:b, a:b])[-1]
            for a, b in pairwise(ends)
        ])  # fmt: skip
        if not own.max() < below(self.tau):
            raise NotClosed
        later = np.full(m + 1, -np.inf)  # T[q] of the units after
        found = []
        for t in reversed(range(n)):
            sums = np.cumsum(-np.sort(-squares[t, t + 1 :])[: m - 1])
            first = np.full(m + 1, own[t])
            for q in range(2, m + 1) if len(sums) else ():
                r2 = float(sums[min(q - 1, len(sums)) - 1])
                first[q] = larger_root(own[t], np.asarray(r2), float(later[q - 1]))
            later[1:] = np.maximum(later[1:], first[1:])
            if not first[m] <= least:
                found.append(F[t])
        return found[::-1]
