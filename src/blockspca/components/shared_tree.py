"""All sets of k features by a tree that adds one feature after the other, and prunes.

F_r(S) is the sum of the r largest eigenvalues of A_SS, tr A_SS where |S| ≤ r. Features
have an order, in which sets are built: a node T is a set of q features, and stands for
the k-sets T ∪ {i_1, …, i_p}, p = k − q, of T and p features behind the last of T.

**Theorem.** Let g_s = F_s(T), s = 0, …, r, and put, for t = 1, …, p,

    g_s ← λmax [[a + g_{s−1}, c_t], [c_t, g_s]],    s = r, …, 1,

with a = max A_ii and c_t² = max ‖A_iT‖² + max (the t − 1 largest A_ij² of row i), i and
j behind T. Then F_r ≤ g_r for all k-sets of the node.

*Proof.* By the screening inequality of `shared_bounds`, F_s(T ∪ i) is at most that
root of A_ii + F_{s−1}(T), ‖A_iT‖ and F_s(T), which grows with each of the three. i_t is
added to T and t − 1 features behind T, so that its row there has at most c_t² for a sum
of squares; by induction over t. (Where |T ∪ i| ≤ s both sides are traces, A_ii and
F_{s−1}(T) = tr A_TT, and the root is no less than their sum.) ∎

A node with g_r ≤ τ is closed. For p = 1 the root is computed for each i by itself, and
F_r by eigenvalues only where that is above τ: of the 5,461,512 sets of 5 of 60 features
of noise 10,000 to 80,000 have their eigenvalues computed, smaller sets included. What
is left at the end has F_r ≤ τ, or was found.

**Rounding.** LAPACK's eigenvalues of q × q numbers are those of a matrix that is off by
less than 4 q eps of its norm (as `variance.leading_eigenvalues` has it), a sum of s ≤ q
of them errs by q eps of it for each, and entries that are known to ± e change each by
q e at the most. Claims are made with twice that, and checked with once. Sums of squares
and roots are rounded upwards (`numerics.rounding`), in units of a power of two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Deadline
from ..numerics.linalg import symmetric_eigenvalues
from ..numerics.rounding import (
    EPS,
    increased,
    larger_root_above,
    norms_above,
    power_of_two,
    squared,
)
from .shared_heuristic import SharedSet
from .shared_problem import SharedProblem

#: d × d entries are held, and each node looks at a row of d.
TREE_UP_TO = 1000
PLACES = 64  # at which the features behind are looked at
BATCH = 2**17  # entries of the largest array of a batch of nodes: what a cache holds
# Units of work of one round of NumPy over a batch, of which each level that is left has
# r: 30 microseconds, however few the nodes.
ROUND = 3000
CLAIMED, CHECKED = 2.0, 1.0  # times the rounding


class SetTree:
    """Closes all sets at or below a level, and finds those above it.

    Attributes
    ----------
    nodes : int
        Sets that eigenvalues were computed of, those of fewer than k features included.
    work : int
        In units of about ten nanoseconds: a node takes d (1 + q / 8) + 2 q², and a
        batch of them (k − q) r rounds.
    largest : float
        The largest F_r(S), with its rounding, of the k-sets that are not closed.
    """

    def __init__(self, shared: SharedProblem, margin: float = CLAIMED) -> None:
        cov, d = shared.cov, shared.cov.n_features
        self.shared, self.k, self.r, self.margin = shared, shared.k, shared.r, margin
        A = np.asarray(cov.submatrix(np.arange(d, dtype=np.intp)), dtype=np.float64)
        self.unit = power_of_two(float(np.abs(A).max(initial=0.0)))
        self.error = cov.entry_error / self.unit
        self.order = self._in_order(A)
        self.A = np.ascontiguousarray(A[np.ix_(self.order, self.order)]) / self.unit
        self.diagonal = increased(np.diagonal(self.A) + self.error)
        self.squares = squared(self.A)
        np.fill_diagonal(self.squares, 0.0)
        self._behind()
        self.label: NDArray[np.int64] | None = None
        if shared.limits is not None:
            self.label, self.room = shared.limits.label[self.order], shared.limits.room
        self.nodes = self.work = 0
        #: Called after each batch of nodes
        self.tell: Callable[[], None] = lambda: None
        self.largest = -np.inf

    def _in_order(self, A: FloatArray) -> NDArray[np.intp]:
        """Features that must be in first, then those with the largest entries.

        What comes late so has little to add, and nodes are closed early.
        """
        sizes = np.sort(np.abs(A / self.unit), axis=1)[:, -self.k :]
        scores = (sizes**2).sum(axis=1)
        scores[self.shared.include] = np.inf
        return np.argsort(-scores, kind="stable")

    def _behind(self) -> None:
        """Tables over the features from a place on: largest variances, sums of rows."""
        d, most = len(self.A), self.k
        self.variance = np.full(d + 1, -np.inf)
        self.rows = np.zeros((d + 1, most))
        # Of more features not at each place: what is behind an earlier one is more.
        stride = -(-d // PLACES)
        for place in range(0, d, stride):
            until = min(place + stride, d)
            self.variance[place:until] = self.diagonal[place:].max()
            behind = self.squares[place:, place:]
            width = min(most - 1, len(behind))
            if width:
                largest = np.partition(behind, len(behind) - width, axis=1)[:, -width:]
                sums = np.cumsum(np.sort(largest, axis=1)[:, ::-1], axis=1).max(axis=0)
                self.rows[place:until, 1 : width + 1] = sums
                self.rows[place:until, width + 1 :] = sums[-1]

    # -- the walk ----------------------------------------------------------------------

    def run(
        self,
        level: float,
        deadline: Deadline,
        most_work: float,
        found: Callable[[NDArray[np.intp], float], float],
        most_nodes: float = np.inf,
    ) -> bool:
        """Close all sets but those that are found; False if there was not the time.

        Parameters
        ----------
        level : float
            τ: nodes at or below it are closed.
        found : callable
            Told of a set whose F_r is above τ and largest of its batch, and of F_r;
            returns the τ to go on with, which may be larger.
        """
        d, first = len(self.A), len(self.shared.include)
        level /= self.unit
        start = np.arange(first, dtype=np.intp)[None, :]
        # Sets that wait: rows of a batch, and the features to be added to them.
        stack = [(start, np.zeros(1, np.intp), np.zeros(1, np.intp) - 1)]
        while stack:
            before, rows, new = stack.pop()
            size = before.shape[1] + 1
            here = max(1, BATCH // (size * max(d, size)))
            if len(rows) > here:
                stack.append((before, rows[here:], new[here:]))
                rows, new = rows[:here], new[:here]
            sets = before if new[0] < 0 else np.column_stack([before[rows], new])
            if self.nodes + len(sets) > most_nodes:
                return False
            self.nodes += len(sets)
            q = sets.shape[1]
            self.work += len(sets) * (d * (1 + q // 8) + 2 * q**2)
            self.work += ROUND * (self.k - q) * self.r
            sums = self._sums(sets)
            if sets.shape[1] == self.k:
                level = self._settle(sets, sums[self.r], level, found)
            else:
                rows, new = self._children(sets, sums, level)
                if len(rows):
                    stack.append((sets, rows, new))
            self.tell()
            if stack and (self.work > most_work or deadline.passed()):
                return False
        return True

    def _sums(self, sets: NDArray[np.intp]) -> FloatArray:
        """Return F_s of each set, s = 0, …, r, with what rounding may be of it."""
        q = sets.shape[1]
        sums = np.zeros((self.r + 1, len(sets)))
        if q == 0:
            return sums
        within = self.A[sets[:, :, None], sets[:, None, :]]
        values = symmetric_eigenvalues(within)[:, ::-1]
        rounding = 5 * q * EPS * np.abs(values).max(axis=1) + q * self.error
        above = np.cumsum(values + self.margin * rounding[:, None], axis=1)
        for s in range(1, self.r + 1):
            sums[s] = above[:, min(s, q) - 1]
        return sums

    def _settle(
        self,
        sets: NDArray[np.intp],
        values: FloatArray,
        level: float,
        found: Callable[[NDArray[np.intp], float], float],
    ) -> float:
        above = np.flatnonzero(values > level)
        if len(above):
            best = above[np.argmax(values[above])]
            features = np.sort(self.order[sets[best]])
            level = found(features, float(values[best]) * self.unit) / self.unit
            self.largest = max(self.largest, float(values[best]) * self.unit)
        return level

    def _children(
        self, sets: NDArray[np.intp], sums: FloatArray, level: float
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which features are to be added to which sets."""
        d, q = len(self.A), sets.shape[1]
        left = self.k - q
        next_ = sets[:, -1] + 1 if q else np.zeros(len(sets), np.intp)
        places = np.arange(d)
        behind = places >= next_[:, None]
        coupling = self.squares[sets].sum(axis=1)
        if left > 1:
            largest = np.where(behind, coupling, 0.0).max(axis=1)
            open_ = self._extended(sums, next_, largest, left)[self.r] > level
            behind &= open_[:, None] & (places <= d - left)
        else:
            squares = norms_above(coupling, max(q, 1), self.error)
            one, last = sums[self.r - 1][:, None], sums[self.r][:, None]
            roots = larger_root_above(increased(self.diagonal + one), squares, last)
            behind &= roots > level
        if self.label is not None:
            behind &= self._has_room(sets)
        rows, new = np.nonzero(behind)
        return rows, new

    def _extended(
        self,
        sums: FloatArray,
        next_: NDArray[np.intp],
        coupling: FloatArray,
        left: int,
    ) -> FloatArray:
        """Bound F_s of sets with so many features of those behind them, as proved."""
        sums, variance = sums.copy(), self.variance[next_]
        for t in range(left):
            squares = norms_above(coupling + self.rows[next_, t], self.k, self.error)
            for s in range(self.r, 0, -1):
                first = increased(variance + sums[s - 1])
                sums[s] = larger_root_above(first, squares, sums[s])
        return sums

    def _has_room(self, sets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Tell which features each set has room for, by the limits on groups."""
        assert self.label is not None
        taken = (self.label[sets][:, :, None] == self.label).sum(axis=1)
        return (self.label < 0) | (taken < self.room[self.label])


def largest_of_all(
    tree: SetTree,
    best: SharedSet,
    slack: float,
    deadline: Deadline,
    most_work: float,
    most_nodes: float,
    tell: Callable[[SharedSet, int], None],
) -> tuple[SharedSet, float]:
    """Return the best set, and a bound on all: infinite if the tree has not ended.

    Sets within `slack` of the best objective, relative to it, are not told apart.
    """

    def level() -> float:
        return best.objective + slack * abs(best.objective)

    def found(support: NDArray[np.intp], _value: float) -> float:
        nonlocal best
        better = SharedSet.of(tree.shared.cov, support, tree.r)
        if better.objective > best.objective:
            best = better
        return level()

    tree.tell = lambda: tell(best, tree.nodes)
    if not tree.run(level(), deadline, most_work, found, most_nodes):
        return best, np.inf
    return best, max(level(), tree.largest)


def proves(
    tree: SetTree, claimed: float, most_work: float, deadline: Deadline | None = None
) -> bool | None:
    """Tell whether opt_r(k) ≤ claimed; None if so much work, or time, does not tell."""
    above: list[float] = []

    def found(_support: NDArray[np.intp], value: float) -> float:
        above.append(value)
        return claimed

    if not tree.run(claimed, deadline or Deadline(None), most_work, found):
        return False if above else None
    return not above
