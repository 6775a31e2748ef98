"""Branch and bound on the features that the entry dual leaves, the weakest node first.

At each node an ascent lowers the bound, then features are fixed out and in, as long as
that helps; what is left is split by the feature whose relaxed z is nearest to a half.
A node is closed by one Cholesky factorization, or when only one set is left.

The points that ascents come to are rounded and logged, and so is where a node is split
(`log.py`).  With them the search runs again without an ascent, which is how `verify`
checks it: nothing else of it is a choice.  A set above the target raises it, and the
search begins again at the root, with the point that it has come to there: so a log is
of one target only.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics.rounding import EPS
from ...numerics.upper_eigenvalues import eigenvalue_ceiling, is_below
from .ascent import Ascent, Point
from .fixing import fixed_in, fixed_out, likely_in
from .log import LoggedPoint, SearchLog
from .matrix import DualMatrix
from .node import Node, best_ratio
from .pairs import Pairs
from .proof import priced_matrix
from .proximal import Proximal, is_worthwhile

_STEPS = 40  # of an ascent between two rounds of fixing
_ROUNDS = 12  # of ascent and fixing at a node
_WORTHWHILE = 0.02  # of the free features, that a round has to fix for another
_MOST_RAISED = 10  # times that the target is raised; each begins the search again
_WHOLE = 400  # up to this order all eigenvalues are computed to fix features in


class LogMismatch(Exception):
    """A log is not that of this search."""


_NO_PAIRS = Pairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


class EntrySearch:
    """The search of one dense problem.

    Parameters
    ----------
    A : array of shape (n, n)
        In units of about the objective.
    tau : float
        No set above it is to be left.
    log : SearchLog, optional
        Of an earlier run, which is repeated as far as it goes.
    slack : float
        How far above a better set the next τ is.
    screened : bool
        Whether features that are not among these were ruled out for τ.

    Attributes
    ----------
    better : array of int or None
        Rows of the best set above the first τ, up to rounding, if one was found.
    tau : float
        The last one.
    """

    def __init__(
        self,
        A: FloatArray,
        k: int,
        tau: float,
        root: Node,
        log: SearchLog | None = None,
        slack: float = 0.0,
        screened: bool = False,
    ) -> None:
        self.A, self.k, self.tau = A, k, tau
        self.slack, self.screened = slack, screened
        self.repeats = log is not None
        self.log = SearchLog() if log is None else log
        self.points, self.splits = iter(self.log.points), iter(self.log.splits)
        self.nodes = 0
        self.better: NDArray[np.intp] | None = None
        self.best_value = -np.inf  # of the better set
        self.raised = 0  # how often τ was
        self.presence: FloatArray | None = None  # at the last point
        self.density: FloatArray | None = None
        self.whole = root
        self._begin()

    def _begin(self) -> None:
        """Put the root in the place of all nodes."""
        # What was ruled out is no higher than τ.
        self.closed_bound = self.tau if self.screened else -np.inf  # of what is closed
        self.open: list[tuple[float, int, Node]] = [(-self.whole.bound, 0, self.whole)]
        self.waiting = [self.whole]  # of those that are open, not yet worked on
        self.order = itertools.count(1)

    def _raise_target(self) -> None:
        """Begin again with the target that the better set allows."""
        self.tau = max(self.tau, self.best_value + self.slack)
        self.raised += 1
        self.log = SearchLog()
        self._begin()

    @property
    def value(self) -> float:
        """No set exceeds it, errors of entries aside."""
        still_open = [node.bound for _, _, node in self.open]
        return max([self.closed_bound, *still_open])

    def run(self, deadline: Deadline, most_nodes: int) -> float:
        """Work on nodes until all are closed, or time, nodes or the log run out.

        Returns the value. Another call resumes where this one ends.
        """
        while self.waiting or self.open:
            if deadline.passed() or self.nodes >= most_nodes:
                break
            if not self.waiting:
                node = self.open[0][2]
                children = self._children(node)
                if not children:
                    break
                rest = self.open[1:]
                rest += [(-c.bound, next(self.order), c) for c in children]
                heapq.heapify(rest)
                self.open, self.waiting = rest, children
                continue
            node = self.waiting[0]
            before = self.best_value
            worked = self._work(node, deadline)
            self.nodes += 1
            is_raised = self.best_value > max(before, self.tau - self.slack)
            # Late it would lose what the nodes so far have proved.
            is_late = 2 * self.nodes > most_nodes or self.raised == _MOST_RAISED
            if is_raised and not self.repeats and not is_late:
                self._raise_target()
                continue
            # What is open covers all that is not closed, whenever this ends.
            left = [item for item in self.open if item[2] is not node]
            if worked is not None:
                left.append((-worked.bound, next(self.order), worked))
            heapq.heapify(left)
            self.open, self.waiting = left, self.waiting[1:]
        return self.value

    # -- one node ------------------------------------------------------------------

    def _work(self, node: Node, deadline: Deadline) -> Node | None:
        """Return the node with a better bound and fewer features; None if closed."""
        for _ in range(_ROUNDS):
            if self._is_leaf(node):
                return None
            found = self._ascended(node, deadline)
            if found is None:
                return node
            node, closed = found
            if closed:
                self.closed_bound = max(self.closed_bound, self.tau)
                return None
            after = self._fixed(node)
            if after is None:
                return None
            gone = len(node.features) - len(after.features)
            gained = int(after.fixed_in.sum()) - int(node.fixed_in.sum())
            few = gone + gained <= _WORTHWHILE * len(node.free)
            node = after
            if few:
                break
        return None if self._is_leaf(node) else node

    def _is_leaf(self, node: Node) -> bool:
        """Close a node with one set left, or none."""
        q = node.places(self.k)
        if q < 0:
            return True
        if q > 0 and len(node.free) > q:
            return False
        chosen = node.features if q else node.features[node.fixed_in]
        value = eigenvalue_ceiling(self.A[np.ix_(chosen, chosen)])
        self.closed_bound = max(self.closed_bound, value)
        if value > max(self.tau, self.best_value):
            self.better, self.best_value = chosen, value
        return True

    def _matrix(self, node: Node) -> tuple[FloatArray, float]:
        """M of a node, and what rounding may amount to."""
        A = self.A[np.ix_(node.features, node.features)]
        n = len(A)
        priced = priced_matrix(
            np.diagonal(A).copy(),
            self.k,
            node.multipliers(self.k),
            node.weights,
            np.arange(n),
            node.shares,
            A,
            _NO_PAIRS,
        )
        M = priced.block
        M[np.diag_indices(n)] = priced.diagonal
        return M, priced.rounding

    def _ascended(self, node: Node, deadline: Deadline) -> tuple[Node, bool] | None:
        """Lower the bound of a node; tell whether that closes it.

        None if there is no time for a step, or the log ends here.
        """
        point = self._logged(node) if self.repeats else self._improved(node, deadline)
        if point is None:
            return None
        node = replace(
            node,
            weights=point.weights.astype(np.float64),
            shares=point.shares_as_floats,
            ratio=point.ratio,
            presence=None if self.repeats else self.presence,
            density=None if self.repeats else self.density,
        )
        M, rounding = self._matrix(node)
        if is_below(M, self.tau - rounding):
            return node, True
        bound = eigenvalue_ceiling(M) + rounding
        if np.isnan(bound):
            bound = np.inf
        return replace(node, bound=min(bound, node.bound)), False

    def _logged(self, node: Node) -> LoggedPoint | None:
        """The point of an earlier run."""
        point = next(self.points, None)
        if point is not None and len(point.weights) != len(node.features):
            raise LogMismatch
        return point

    def _improved(self, node: Node, deadline: Deadline) -> LoggedPoint | None:
        """The point that an ascent finds, rounded."""
        node = replace(node, ratio=best_ratio(node, self.k))
        n = len(node.features)
        A = self.A[np.ix_(node.features, node.features)]
        matrix = DualMatrix(
            np.diagonal(A).copy(),
            node.multipliers(self.k),
            np.arange(n),
            A,
            _NO_PAIRS,
            np.zeros(n),
        )
        kind = Proximal if is_worthwhile(matrix, deadline) else Ascent
        ascent = kind(matrix, Point(node.weights, node.shares), self.tau)
        if isinstance(ascent, Proximal):
            ascent.density = node.density
        best = ascent.run(_STEPS, deadline)
        self.density = ascent.density if isinstance(ascent, Proximal) else None
        if best.presence is None:
            self.log.points.append(None)
            return None
        point = LoggedPoint.of(best.weights, best.shares, node.ratio)
        self.presence = best.presence
        self.log.points.append(point)
        if n == len(self.A) and not node.fixed_in.any():  # where it may begin again
            weights, shares = point.weights.astype(np.float64), point.shares_as_floats
            self.whole = replace(
                self.whole, weights=weights, shares=shares, density=self.density
            )
        return point

    def _fixed(self, node: Node) -> Node | None:
        """Fix features out and in; None if no set is left."""
        A = self.A[np.ix_(node.features, node.features)]
        out, _, _ = fixed_out(A, node, self.k, self.tau)
        if out.any():
            self.closed_bound = max(self.closed_bound, self.tau)
            node = _restricted(node, ~out)
        if len(node.features) <= _WHOLE:
            M, rounding = self._matrix(node)
            level = self.tau - rounding
            likely = likely_in(M, level, node.free)
            found = fixed_in(M, level, likely[: max(1, node.places(self.k) + 1)])
            if found:
                self.closed_bound = max(self.closed_bound, self.tau)
                inside = node.fixed_in.copy()
                inside[found] = True
                node = replace(node, fixed_in=inside)
                if node.places(self.k) < 0:
                    return None
        return node

    def _children(self, node: Node) -> list[Node]:
        """Split by the feature whose relaxed z is nearest to a half."""
        if self.repeats:
            i = next(self.splits, None)
            if i is None:
                return []
            if not (0 <= i < len(node.fixed_in)) or node.fixed_in[i]:
                raise LogMismatch
        else:
            if node.presence is None or not len(node.free):
                return []
            free = node.free
            parts = node.presence[free] * node.weights[free] ** 2
            shares = node.places(self.k) * parts / max(float(parts.sum()), EPS)
            i = int(free[int(np.argmin(np.abs(np.minimum(shares, 1.0) - 0.5)))])
            self.log.splits.append(i)
        inside = node.fixed_in.copy()
        inside[i] = True
        keep = np.arange(len(node.features)) != i
        return [replace(node, fixed_in=inside), _restricted(node, keep)]


def _restricted(node: Node, keep: NDArray[np.bool_]) -> Node:
    """The node without some of its free features."""
    return replace(
        node,
        features=node.features[keep],
        fixed_in=node.fixed_in[keep],
        weights=node.weights[keep],
        shares=node.shares[np.ix_(keep, keep)],
        presence=None if node.presence is None else node.presence[keep],
        density=None if node.density is None else node.density[keep],
    )
