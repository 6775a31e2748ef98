"""Depth-first proof on the survivors, in slices that can be stopped and resumed.

The kernel answers one question: is there a k-set S among the survivors with λ(S) > τ?
Let P be the features chosen so far, λ(P) < τ, and B = A + A_·P (τI − A_PP)^{-1} A_P·.
By the Schur complement λ(P ∪ T) > τ exactly when λmax(B_TT) > τ, so the rest of the
problem is again sparse PCA at the same τ, on B with m = k − |P|.  A node is closed by

- **chain**: opt_B(q) ≤ upper[|P| + q] where that is ≤ τ.  At τ' = upper[|P| + q] no set
  P ∪ T exceeds τ', so λmax(B(τ')_TT) ≤ τ', and B(τ) ⪯ B(τ') because τ' ≤ τ;
- **peel**: the screening inequality of `screening.py` on B;
- **suffix bounds**: the 2×2 bound, recursively over the order of the features;
- **sum**: choosing p adds the rank-one term cc', c = B_·p / sqrt(τ − B_pp), to B, so
  opt_B'(q) ≤ opt_B(q) + (sum of the q largest c_j²);
- **leaf**: for the last feature and for the last pair the test is exact.

The chain needs τ ≥ upper[k − 1]: then every proper subset T of a k-set S has λ(T) ≤ τ.

Groups.  Where only sets with at most m_g features of group g count, all subsets of such
a set count as well, so that every line above holds with opt for those sets; a feature
whose group is full is in no set that the node stands for.

Rounding.  Let S be a k-set above τ, d_i = τ − A_ii > 0 and D = diag(d_i).  As τI − A is
positive semidefinite on every proper subset of S, |B_ij| ≤ sqrt(d_i d_j) at every node
on the way to S, and eliminating up to k features in floating point is exact for a
matrix A + E with

    |E_ij| ≤ (k + 2) u sqrt(d_i d_j)      (u = eps / 2; Higham 2002, Theorem 10.3).

A Cholesky test of up to 2k features adds (2k + 2) u sqrt(d_i d_j) in the same sense.
The bounds are sums and 2×2 roots of numbers that lie between the diagonal of B and τ;
each nesting of q ≤ k roots errs by 4u, each sum of q squares by (q + 4) u, relative to
|τ| or to the least d_i among the features in question, which is at most D.  Together
S is lost only if

    λ(S) ≤ τ + c eps (|τ| + x'Dx),      c = k (k + 2) / 2 + k (k + 1) + 3k + 4,

with x the unit eigenvector of A_SS, because (Σ sqrt(d_i) |x_i|)² ≤ k x'Dx.  Finally
x'Dx = τ − Σ A_ii x_i² is at most τ − min A_ii, and, as x'Ax ≥ τ, also at most the
off-diagonal part of x'Ax, which is at most (k − 1) max |A_ij|, i ≠ j.  Neither a large
negative A_ii nor a feature that is not among the survivors makes the allowance large.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import tree_layout as slot
from .._validation import FloatArray
from ..bound_names import BoundName
from ..constraint_rules import GroupLimits
from ..numerics.rounding import EPS

_SLICE_SECONDS = 0.05  # between two looks at the clock, at Ctrl-C and at listeners
_FIRST_ENTRIES = 2**23  # of A, for the nodes of the first slice to look at
_SERIAL_NODES = 4000  # a proof this small is not worth a thread
_PARALLEL_SLICE = 2000  # nodes of a thread before it looks whether another has found

# Where there are no groups, or sets to list; not written to
_ANY_ROOM = np.ones(1, dtype=np.int64)
_NO_SETS = np.zeros((0, 1), dtype=np.int64)


@lru_cache(maxsize=256)  # of the few sizes that the trees of a path have
def _no_labels(n: int) -> NDArray[np.int64]:
    return np.full(n, -1)


@cache
def _kernel() -> Any:
    """What compiles when it is imported: not before there is a tree to search."""
    from .._kernels import schur_tree

    return schur_tree


def rounding_allowance(k: int, tau: float, lowest: float, strongest: float) -> float:
    """What rounding may hide from a search, which proves λ(S) ≤ τ + this; see above.

    `lowest`, `strongest`: min A_ii and max |A_ij|, i ≠ j, over the searched features.
    """
    # 2 (k + 2)² ≥ k (k + 2) / 2 + k (k + 1) + 3k + 4 for every k ≥ 0
    factor = 2.0 * (k + 2) ** 2 * EPS
    spread = min(tau - lowest, (k - 1) * strongest)
    return factor * (abs(tau) + max(spread, 0.0))


def extent(matrix: FloatArray) -> tuple[float, float]:
    """min A_ii and max |A_ij|, i ≠ j: what `rounding_allowance` depends on."""
    diagonal, sizes = matrix.diagonal(), np.abs(matrix)
    sizes.flat[:: len(matrix) + 1] = 0.0
    # Of a handful of numbers, `min` and `max` take twice as long.
    return diagonal.item(diagonal.argmin()), sizes.item(sizes.argmax())


def largest_size(matrix: FloatArray) -> float:
    """max |A_ij|."""
    sizes = np.abs(matrix)
    return sizes.item(sizes.argmax())


class ProofTree:
    """One resumable search for a k-set above τ.

    Parameters
    ----------
    matrix : (n, n) array, C order
        The survivors' submatrix.
    upper : (k + 1,) array
        upper[q] ≥ opt(q) for q < k.
    max_entries : int
        Most float64 entries the matrices of the open levels may take together.
    groups : GroupLimits, optional
        Of the columns; every group that a column belongs to has room.
    lists : int
        List up to so many sets above τ instead of ending at the first; for τ at least
        upper[k − 1] and k ≥ 2.
    """

    def __init__(
        self,
        matrix: FloatArray,
        k: int,
        tau: float,
        upper: FloatArray,
        max_entries: int,
        groups: GroupLimits | None = None,
        lists: int = 0,
    ) -> None:
        n = len(matrix)
        self._listed = np.zeros((lists, k), dtype=np.int64) if lists else _NO_SETS
        self.groups = groups
        if groups is None:
            self._groups = _no_labels(n), _ANY_ROOM
        else:
            self._groups = groups.label, groups.room
        self.matrix, self.k, self.tau, self.upper = matrix, k, tau, upper
        self.max_entries = max_entries
        self.out_of_memory = False
        self.state = np.zeros(slot.N_STATE, dtype=np.int64)
        self.state[slot.DEPTH] = -1
        self.state[slot.ROOT_STOP] = n
        self._blocks = np.empty(min(max(3 * n * n, 64), max(max_entries, n * n)))
        #: Of each level: starts, sizes, counts, cursors; and labels, orders
        self._levels = [np.zeros(k + 1, dtype=np.int64) for _ in range(4)]
        self._indices = [np.zeros((k + 1, n), dtype=np.int64) for _ in range(2)]
        *_, self._counts, self._cursors = self._levels
        self._bounds = np.zeros((4, k + 1, n))
        self._work = np.zeros((3, max(n, k) + 1))
        self._fresh = np.zeros(n, dtype=np.int64)
        self._found = np.zeros(k + 1, dtype=np.int64)

    @property
    def nodes(self) -> int:
        return int(self.state[slot.NODES])

    @property
    def found(self) -> NDArray[np.int64]:
        """Columns of the set above τ that ended the search."""
        return np.sort(self._found[: self.state[slot.FOUND_SIZE]])

    @property
    def listed(self) -> NDArray[np.int64]:
        """Columns of the sets above τ that were listed so far, a set in each row."""
        return np.sort(self._listed[: self.state[slot.LISTED]], axis=1)

    def advance(self, nodes: int) -> int:
        """Search on for at most `nodes` nodes; returns the kernel's code."""
        kernel = _kernel()
        target = self.nodes + nodes
        while True:
            arguments = (
                self.matrix,
                self.k,
                self.tau,
                self.upper,
                self._blocks,
                *self._levels,
                *self._indices,
                self._bounds,
                self._work,
                self._fresh,
                self._found,
                self.state,
                target - self.nodes,
                *self._groups,
                self._listed,
            )
            code = kernel.explore(*arguments)
            if code != kernel.NEEDS_MEMORY:
                return int(code)
            needed = int(self.state[slot.MEMORY])
            if needed > self.max_entries:
                self.out_of_memory = True
                return int(code)
            larger = np.empty(min(2 * needed, self.max_entries))
            larger[: len(self._blocks)] = self._blocks
            self._blocks = larger

    def open_branches(self) -> list[int]:
        """Top-level branches not yet closed (after the root has been opened)."""
        cursor, count = int(self._cursors[0]), int(self._counts[0])
        firsts = self._bounds[slot.FIRST, 0]
        return [t for t in range(cursor, count) if not firsts[t] <= self.tau]

    def stop_after_current_branch(self) -> None:
        self.state[slot.ROOT_STOP] = self._cursors[0]

    def forget_statistics(self) -> None:
        self.state[slot.STATISTICS] = 0

    def branch(self, t: int) -> ProofTree:
        """A search of top-level branch t alone, sharing nothing that is written."""
        n = len(self.matrix)
        tree = ProofTree(
            self.matrix, self.k, self.tau, self.upper, self.max_entries, self.groups
        )
        tree._blocks[: n * n] = self._blocks[: n * n]
        for mine, theirs in zip(
            (*self._levels, *self._indices),
            (*tree._levels, *tree._indices),
            strict=True,
        ):
            theirs[0] = mine[0]
        tree._bounds[:, 0] = self._bounds[:, 0]
        tree._cursors[0] = t
        tree.state[slot.DEPTH] = 0
        tree.state[slot.ROOT_STOP] = t + 1
        return tree


@dataclass
class TreeStatistics:
    """Size of a proof and what closed its nodes."""

    nodes: int = 0
    closed_by_bound: int = 0
    closed_by_sum: int = 0
    closed_by_peeling: int = 0
    leaves: int = 0
    max_depth: int = 0
    restarts: int = 0
    grown: int = 0  #: nodes that were sets of `search/averaging.py`


@dataclass(frozen=True)
class Outcome:
    """How a search ended."""

    exhausted: bool  #: all was searched: there is no set above τ
    counterexample: NDArray[np.int64] | None  #: a set above τ
    out_of_memory: bool = False
    #: The name of the bound that it proves, if it is exhausted.
    argument: BoundName = BoundName.PROOF_TREE

    @property
    def conclusive(self) -> bool:
        """One of the two, and not stopped before."""
        return self.exhausted or self.counterexample is not None


def run_tree(
    tree: ProofTree,
    statistics: TreeStatistics,
    may_go_on: Callable[[int], int],
    n_jobs: int,
) -> Outcome:
    """Advance a tree until it ends or `may_go_on(nodes)` allows no more nodes.

    Parameters
    ----------
    may_go_on : callable
        Takes the nodes opened since the last call and returns how many more are
        allowed in total; 0 stops.  The clock, the callbacks and Ctrl-C live there.
    n_jobs : int
        Threads.  A search that outlives its first slices hands its remaining
        top-level branches to them; the branches do not depend on each other, so
        the answer is the same.
    """
    # A node costs the square of the features that it looks at.
    size, seen = max(1, min(256, _FIRST_ENTRIES // len(tree.matrix) ** 2)), 0
    outcome = None
    try:
        while outcome is None:
            allowed = may_go_on(tree.nodes - seen)
            seen = tree.nodes
            if allowed <= 0:
                return Outcome(False, None)
            started = time.perf_counter()
            outcome = _outcome(tree, tree.advance(min(size, allowed)))
            elapsed = time.perf_counter() - started
            ratio = _SLICE_SECONDS / max(elapsed, 1e-6)
            size = int(max(1, size * min(4.0, max(0.25, ratio))))
            if outcome is None and n_jobs > 1 and tree.nodes > _SERIAL_NODES:
                break
    finally:
        _add(statistics, tree.state)
    if outcome is None:
        return _run_branches(tree, statistics, may_go_on, n_jobs, size)
    return outcome


def _add(statistics: TreeStatistics, state: NDArray[np.int64]) -> None:
    statistics.nodes += int(state[slot.NODES])
    statistics.max_depth = max(statistics.max_depth, int(state[slot.DEEPEST]))
    statistics.closed_by_bound += int(state[slot.PRUNED_FIRST])
    statistics.closed_by_sum += int(state[slot.PRUNED_SUM])
    statistics.closed_by_peeling += int(state[slot.PRUNED_PEEL])
    statistics.leaves += int(state[slot.LEAVES])


def _outcome(tree: ProofTree, code: int) -> Outcome | None:
    kernel = _kernel()
    if code == kernel.FINISHED:
        return Outcome(True, None)
    if code == kernel.FOUND:
        return Outcome(False, tree.found)
    if code == kernel.NEEDS_MEMORY:
        return Outcome(False, None, out_of_memory=True)
    return None


def _run_branches(
    tree: ProofTree,
    statistics: TreeStatistics,
    may_go_on: Callable[[int], int],
    n_jobs: int,
    size: int,
) -> Outcome:
    """Finish the open top-level branches of a tree on `n_jobs` threads.

    In slices of `size` nodes, between which they may be stopped.
    """
    # The nodes that are still allowed are those of all threads together.
    size = max(1, min(size, _PARALLEL_SLICE, may_go_on(0) // n_jobs))
    branches = tree.open_branches()
    tree.stop_after_current_branch()
    waiting = [*reversed(branches), -1]  # −1 is the branch the tree is in
    lock = threading.Lock()
    stop = threading.Event()
    ended: list[Outcome] = []
    counted = 0

    def work() -> None:
        nonlocal counted
        while not stop.is_set():
            with lock:
                if not waiting:
                    return
                t = waiting.pop()
            part = tree if t < 0 else tree.branch(t)
            part.forget_statistics()
            outcome, seen = None, 0
            while outcome is None and not stop.is_set():
                outcome = _outcome(part, part.advance(size))
                with lock:
                    counted += part.nodes - seen
                seen = part.nodes
            with lock:
                _add(statistics, part.state)
                if outcome is not None and not outcome.exhausted:
                    ended.append(outcome)
                    stop.set()

    with ThreadPoolExecutor(n_jobs) as threads:
        futures = [threads.submit(work) for _ in range(n_jobs)]
        reported = 0
        try:
            while not all(future.done() for future in futures):
                wait(futures, timeout=_SLICE_SECONDS)
                fresh, reported = counted - reported, counted
                if may_go_on(fresh) <= 0:
                    stop.set()
                    break
        finally:
            everything_done = all(future.done() for future in futures)
            if not everything_done:
                stop.set()
    for future in futures:
        future.result()
    if ended:
        return ended[0]
    return Outcome(not waiting and not stop.is_set(), None)
