"""All block structures of A at once: the maximum spanning forest of |A|.

Features i and j share a block at threshold ε exactly when a chain of entries larger
than ε joins them, and then the forest has such a chain too. Its d − 1 edges, sorted,
hence give the blocks at every ε.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray, check_positive_integer, check_real
from ..covariance.covariance import Covariance, as_covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..scan.lists import Scan

# Rows computed ahead of need, and the memory for those kept (see `_RowsAhead`).
LOOKAHEAD = 64
CACHE_BYTES = 2**26
BATCH_SECONDS = (
    0.2  # of rows that are computed together, between two looks at the clock
)
CHECKED_FROM = 4000  # features: smaller matrices in memory need no look at the clock
ROWS_BETWEEN_CHECKS = 64


@dataclass(frozen=True)
class ThresholdPath:
    """The blocks of A at every threshold ε ≥ `complete_above`.

    Attributes
    ----------
    n_features : int
        The number d of features.
    weights : array, descending
        Absolute values of the forest's edges, all positive.
    edges : array of shape (len(weights), 2)
        The pairs of features they join.
    complete_above : float
        0 for a complete path. A path made from a scan is exact for every ε from here
        up, and refuses a smaller one with `IncompletePathError`.
    crowded_below : int
        For every ε < `complete_above` the largest block has at least this size.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import threshold_path
    >>> A = np.array([[2.0, 0.9, 0.1], [0.9, 2.0, 0.3], [0.1, 0.3, 1.0]])
    >>> path = threshold_path(A)
    >>> path.largest_block(0.5), path.largest_block(0.2)
    (2, 3)
    >>> path.threshold_for(max_block_size=2)
    0.3
    >>> [block.tolist() for block in path.blocks(0.5)]
    [[0, 1], [2]]
    """

    n_features: int
    weights: FloatArray
    edges: NDArray[np.int64]
    complete_above: float = 0.0
    crowded_below: int = 0

    @cached_property
    def _largest(self) -> NDArray[np.int64]:
        """Largest component after 0, 1, 2, … of the strongest edges."""
        root = np.arange(self.n_features)
        size = np.ones(self.n_features, dtype=np.int64)
        largest = np.ones(len(self.weights) + 1, dtype=np.int64)
        for m, (i, j) in enumerate(self.edges.tolist()):
            a, b = _find(root, i), _find(root, j)
            # Union by size, which keeps paths to the root short.
            if size[a] < size[b]:
                a, b = b, a
            root[b] = a
            size[a] += size[b]
            largest[m + 1] = max(largest[m], size[a])
        return largest

    @property
    def largest_weight(self) -> float:
        """The largest |A_ij| with i ≠ j."""
        return float(self.weights[0]) if len(self.weights) else 0.0

    def n_edges(self, epsilon: float) -> int:
        """Return the number of forest edges larger than ε."""
        epsilon = check_real(epsilon, "epsilon", minimum=0)
        if epsilon < self.complete_above:
            raise IncompletePathError(
                f"ε = {epsilon:.6g} is below {self.complete_above:.6g}, down to which "
                "this path, made from a scan, is exact; pass a larger ε, scan with "
                "longer lists, or build the complete path with threshold_path(cov)."
            )
        return int(np.searchsorted(-self.weights, -epsilon, side="left"))

    def n_blocks(self, epsilon: float) -> int:
        """Return the number of blocks at ε, single features included."""
        return self.n_features - self.n_edges(epsilon)

    def largest_block(self, epsilon: float) -> int:
        """Return lbs(A^ε), the size of the largest block: the ε-intrinsic dimension."""
        return int(self._largest[self.n_edges(epsilon)])

    def largest_ignored(self, epsilon: float) -> float:
        """Return the largest |A_ij| between features of different blocks; it is ≤ ε.

        At the end of an incomplete path, `complete_above`, which bounds these entries.
        """
        m = self.n_edges(epsilon)
        return float(self.weights[m] if m < len(self.weights) else self.complete_above)

    def threshold_for(self, max_block_size: int) -> float:
        """Return the smallest ε whose blocks have at most `max_block_size` features.

        For an incomplete path the smallest ε that it covers: exact if the size is below
        `crowded_below`.
        """
        size = check_positive_integer(max_block_size, "max_block_size")
        m = int(np.searchsorted(self._largest, size, side="right")) - 1
        return float(self.weights[m] if m < len(self.weights) else self.complete_above)

    def labels(self, epsilon: float) -> NDArray[np.intp]:
        """Return the block of each feature, blocks numbered by their first feature."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        d, m = self.n_features, self.n_edges(epsilon)
        i, j = self.edges[:m].T
        graph = coo_array((np.ones(m), (i, j)), shape=(d, d))
        _, component = connected_components(graph, directed=False)
        _, first, label = np.unique(component, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.intp)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[label]

    def blocks(self, epsilon: float) -> list[NDArray[np.intp]]:
        """Return the blocks at ε, each ascending, ordered by their first feature."""
        return split_by_label(self.labels(epsilon))

    def distinct_thresholds(self) -> FloatArray:
        """Return every ε at which the blocks change, descending."""
        return np.unique(self.weights)[::-1]


class IncompletePathError(ValueError):
    """A threshold was asked for that a path made from a scan does not cover."""


def split_by_label(labels: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the members of each label 0, 1, …, ascending."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels)).tolist()
    # `np.split` takes ten times as long, half of a solve by blocks of one feature.
    return [order[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def threshold_path(
    cov: Covariance | Any,
    *,
    deadline: Deadline | None = None,
    memory: int | None = None,
) -> ThresholdPath:
    """Build the maximum spanning forest of |A| with Prim's algorithm.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
        Entries are read row by row, each row once (from data, a few are computed more
        than once).
    deadline : Deadline, optional
        Checked between rows that are computed from data, and while the kernel is
        compiled; TimeoutError when it passes.
    memory : int, optional
        Bytes for rows that are computed ahead.

    Notes
    -----
    O(d²) time and O(d) memory beyond A. Ties between edges do not matter: the blocks at
    any ε are the same for every maximum spanning forest.

    Examples
    --------
    >>> from blockspca import threshold_path
    >>> threshold_path([[2.0, 0.9], [0.9, 1.0]]).weights
    array([0.9])
    """
    cov = as_covariance(cov)
    if not load("forest", seconds=deadline.remaining() if deadline else None):
        raise TimeoutError("the time was up before the threshold path was compiled")
    from .._kernels import forest

    d = cov.n_features
    # Bit patterns of float64, see the kernel.
    strength, coarse, tops, parent = forest.no_edges(d)
    order = np.zeros(d, dtype=np.int64)
    joined_by = np.zeros(d, dtype=np.int64)
    deadline = deadline or Deadline(None)
    if cov.in_memory and (deadline.seconds is None or d < CHECKED_FROM):
        bits = cov.rows(slice(None)).view(np.int64)
        forest.grow_forest(bits, strength, coarse, tops, parent, order, joined_by)
    else:
        rows: FloatArray | _RowsAhead
        if cov.in_memory:
            rows = cov.rows(slice(None))
        else:
            rows = _RowsAhead(cov, strength, deadline, memory)
        vertex = 0
        for step in range(d):
            if step % ROWS_BETWEEN_CHECKS == 0:
                _check(deadline)
            order[step] = vertex
            joined_by[step] = strength[vertex]
            bits = rows[vertex].view(np.int64)
            vertex = forest.absorb(bits, vertex, strength, coarse, tops, parent)
    weights = joined_by.view(np.float64)
    joined = np.flatnonzero(weights > 0)
    strongest = joined[np.argsort(-weights[joined], kind="stable")]
    child = order[strongest]
    return ThresholdPath(
        d, weights[strongest], np.stack([parent[child], child], axis=1)
    )


def path_from_scan(found: Scan) -> ThresholdPath:
    """Build the maximum spanning forest of the edges that a scan lists.

    Exact for every ε ≥ ε₀ = `Scan.complete_above`: all edges above ε₀ are listed, and
    the blocks at ε depend on the edges above ε only. With lists of K entries that is
    enough for every block size up to K: if ε₀ > 0, the row that attains it has K
    entries of ε₀ or more, so that below ε₀ the largest block has more than K features.

    Notes
    -----
    O(E log E) for E edges, at most d K.
    """
    level = found.complete_above
    path = strongest_forest(len(found.diagonal), *found.edges(level))
    if level == 0:
        return path
    crowd = max(found.width + 1, path.largest_block(level))
    return replace(path, complete_above=level, crowded_below=crowd)


def strongest_forest(
    n_features: int, edges: NDArray[np.int64], weights: FloatArray
) -> ThresholdPath:
    """Build the maximum spanning forest of some edges; a pair may come repeatedly."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    order = np.argsort(-weights, kind="stable")
    pairs = np.sort(edges[order], axis=1)
    # A pair counts once, with the first of its weights, the largest.
    _, first = np.unique(pairs @ [n_features, 1], return_index=True)
    first.sort()
    pairs, weights = pairs[first], weights[order[first]]
    # Ranks, not weights: exact, never 0, and the strongest edge has the smallest.
    rank = np.arange(1.0, len(weights) + 1)
    shape = (n_features, n_features)
    places = tuple(pairs.T.astype(np.int32))  # older SciPy takes no wider ones
    graph = coo_array((rank, places), shape=shape).tocsr()
    kept = np.sort(minimum_spanning_tree(graph).data).astype(np.int64) - 1
    return ThresholdPath(n_features, weights[kept], pairs[kept])


def _check(deadline: Deadline) -> None:
    if deadline.passed():
        raise TimeoutError("the time was up before the threshold path was complete")


class _RowsAhead:
    """Rows of A for Prim's algorithm, computed in batches before they are needed.

    One row at a time from data is a matrix–vector product, bound by memory; 64 rows at
    once are a matrix product. The vertices most strongly tied to the tree come next, so
    their rows are computed along with the one that is asked for.
    """

    def __init__(
        self,
        cov: Covariance,
        strength: NDArray[np.int64],
        deadline: Deadline,
        memory: int | None,
    ) -> None:
        self.cov = cov
        self.strength = strength
        self.deadline = deadline
        rows = min(CACHE_BYTES, memory or CACHE_BYTES) // (8 * cov.n_features)
        # Half of the rows that fit; the others hold rows computed ahead before.
        self.batch = max(1, min(LOOKAHEAD, rows // 2)) if memory else LOOKAHEAD
        if deadline.seconds is not None and cov.sparse_data() is None:
            row = _cost.product(1, cov.n_samples or 0, cov.n_features)
            self.batch = min(self.batch, 1 + int(BATCH_SECONDS / max(row, 1e-9)))
        self.capacity = max(self.batch, rows)
        self.ready: dict[int, FloatArray] = {}

    def __getitem__(self, vertex: int) -> FloatArray:
        if vertex not in self.ready:
            for index, row in self._compute(vertex):
                self.ready[index] = row
        return self.ready.pop(vertex)

    def _compute(self, vertex: int) -> Iterable[tuple[int, FloatArray]]:
        from .._kernels.forest import IN_TREE

        _check(self.deadline)
        # Drop the oldest: rows computed ahead that have not been used for longest.
        while len(self.ready) > self.capacity - self.batch:
            self.ready.pop(next(iter(self.ready)))
        strength = np.where(self.strength == IN_TREE, -1, self.strength)
        strength[[vertex, *self.ready]] = -1  # nothing left to compute
        count = min(self.batch, len(strength)) - 1
        likely = np.argpartition(-strength, count)[:count]
        batch = [vertex, *likely[strength[likely] >= 0].tolist()]
        return zip(batch, self.cov.rows(batch), strict=True)


def _find(root: NDArray[np.int64], i: int) -> int:
    while root[i] != i:
        root[i] = root[root[i]]
        i = int(root[i])
    return i
