"""Try every support: exact for any symmetric matrix, and the oracle of the tests."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound, eigenvalue_error
from ..result import Status
from .base import EXACT
from .template import BaseSolver, SolverRun

WORK_AT_ONCE = 2**21  # supports in a batch, times k³: some 10 ms between clock readings


class Exhaustive(BaseSolver):
    """max over all k-subsets S of λmax(A_SS), by enumeration.

    Supports of exactly k features suffice, since λmax(A_SS) does not decrease when S
    grows. Nodes are supports. Cost: d-choose-k eigenvalue problems of size k.

    Examples
    --------
    >>> from blockspca.solvers import Exhaustive
    >>> A = [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.5]]
    >>> Exhaustive().solve(A, 2).status.value
    'optimal'
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
        supports = itertools.combinations(range(d), k)
        while run.nodes < budget:
            if run.time_is_up():
                return
            count = min(max(1, WORK_AT_ONCE // k**3), budget - run.nodes)
            flat = itertools.chain.from_iterable(itertools.islice(supports, count))
            batch = np.fromiter(flat, dtype=np.intp).reshape(-1, k)
            matrices = A[batch[:, :, None], batch[:, None, :]]
            values = np.linalg.eigvalsh(matrices)[:, -1]
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
