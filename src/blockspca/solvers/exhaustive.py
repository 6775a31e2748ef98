"""Try every support: exact for any symmetric matrix, and the oracle of the tests."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound, eigenvalue_error
from ..numerics.linalg import on_support
from ..result import Status
from ..stopping import entitled
from .base import EXACT, Deadline, Limits, Solution

WORK_AT_ONCE = 2**21  # supports in a batch, times k³: some 10 ms between clock readings


class Exhaustive:
    """max over all k-subsets S of λmax(A_SS), by enumeration.

    Supports of exactly k features suffice, since λmax(A_SS) does not decrease when S
    grows. Nodes are supports. Cost: d-choose-k eigenvalue problems of size k.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.solvers import Exhaustive, Limits
    >>> A = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.5]])
    >>> solution = Exhaustive().solve(A, 2, limits=Limits())
    >>> solution.status.value, round(solution.upper_bound, 6)
    ('optimal', 1.9)
    """

    name = "exhaustive"
    guarantee = EXACT
    requires_psd = False

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        d = len(A)
        deadline = Deadline(limits.time)
        total = math.comb(d, k)
        budget = total if limits.nodes is None else min(total, limits.nodes)
        best = np.argsort(-np.diagonal(A), kind="stable")[:k]
        best_value = -math.inf
        nodes = 0
        status = Status.OPTIMAL if budget == total else Status.NODE_LIMIT
        bound = cheap_bound(A, k, deadline)
        enough = -math.inf if limits.gap is None else bound / (1 + limits.gap)
        supports = itertools.combinations(range(d), k)
        try:
            while nodes < budget:
                if deadline.passed():
                    status = Status.TIME_LIMIT
                    break
                count = min(max(1, WORK_AT_ONCE // k**3), budget - nodes)
                flat = itertools.chain.from_iterable(itertools.islice(supports, count))
                batch = np.fromiter(flat, dtype=np.intp).reshape(-1, k)
                matrices = A[batch[:, :, None], batch[:, None, :]]
                values = np.linalg.eigvalsh(matrices)[:, -1]
                winner = int(values.argmax())
                if values[winner] > best_value:
                    best_value, best = float(values[winner]), batch[winner]
                nodes += len(batch)
                if 0 < enough <= best_value:
                    status = Status.OPTIMAL if nodes == total else Status.GAP_LIMIT
                    break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        x, objective = on_support(A, best)
        if status is Status.OPTIMAL:
            bound = objective + eigenvalue_error(k, float(np.abs(A).max()))
            status = entitled(objective, bound, limits, None)
        return Solution(x, max(bound, objective), status, nodes)
