"""Try every support: exact for any symmetric matrix, and the oracle of the tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound, eigenvalue_error
from ..numerics.linalg import symmetric_eigenvalues
from ..status import Status
from .base import EXACT
from .template import BaseSolver, SolverRun

WORK_AT_ONCE = 2**21  # supports in a batch, times k³: some 10 ms between clock readings


def evaluated_subsets(
    A: FloatArray, size: int, most: int
) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
    """Yield subsets of `size` features and their λmax(A_SS), batch by batch.

    In lexicographic order, at most `most`: shapes (count, size) and (count,).
    """
    subsets = itertools.combinations(range(len(A)), size)
    at_once = max(1, WORK_AT_ONCE // size**3)
    for start in range(0, most, at_once):
        part = itertools.islice(subsets, min(at_once, most - start))
        flat = itertools.chain.from_iterable(part)
        batch = np.fromiter(flat, dtype=np.intp).reshape(-1, size)
        if len(batch) == 0:
            return
        matrices = A[batch[:, :, None], batch[:, None, :]]
        values = symmetric_eigenvalues(matrices)[:, -1]
        yield batch, np.asarray(values, dtype=np.float64)


class Exhaustive(BaseSolver):
    """max over all k-subsets S of λmax(A_SS), by enumeration.

    Supports of exactly k features suffice, since λmax(A_SS) does not decrease when S
    grows. Nodes are supports. Cost: d-choose-k eigenvalue problems of size k.

    Examples
    --------
    >>> from blockspca.solvers import Exhaustive
    >>> Exhaustive().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).nodes
    3
    """

    name = "exhaustive"
    guarantee = EXACT

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        d, limits = len(A), run.limits
        total = math.comb(d, k)
        budget = total if limits.nodes is None else min(total, limits.nodes)
        best_value = -math.inf
        run.tighten(cheap_bound(A, k, run.deadline))
        bound = run.upper_bound
        enough = -math.inf if limits.gap is None else bound / (1 + limits.gap)
        batches = evaluated_subsets(A, k, budget)
        while run.nodes < budget:
            if run.time_is_up():
                return
            batch, values = next(batches)
            winner = int(values.argmax())
            if values[winner] > best_value:
                best_value = float(values[winner])
                run.keep(batch[winner])
            run.nodes += len(batch)
            if 0 < enough <= best_value and run.nodes < total:
                return
        if run.nodes < total:
            run.stopped = Status.NODE_LIMIT
            return
        error = eigenvalue_error(k, float(np.abs(A).max()))
        run.upper_bound = run.objective + error
