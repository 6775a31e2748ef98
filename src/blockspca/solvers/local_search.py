"""Greedy, then exchange one chosen feature for another while that helps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..numerics.linalg import on_support
from .base import Deadline
from .greedy import Greedy, best_addition
from .template import BaseSolver, SolverRun

IMPROVEMENT = 1e-12  # relative to the largest entry; smaller gains are rounding


def best_swap(
    A: FloatArray,
    support: NDArray[np.intp],
    value: float,
    deadline: Deadline | None = None,
) -> NDArray[np.intp] | None:
    """Return the best support that differs in one feature, or None if none is better.

    If the deadline passes, the best of the swaps looked at is returned.

    With T = S without i and τ = `value`, the Schur complement says that T ∪ {j} beats τ
    exactly when A_jj + A_jT (τI − A_TT)⁻¹ A_Tj > τ: one formula for all j at once.
    """
    outside = np.setdiff1d(np.arange(len(A)), support)
    if len(outside) == 0:
        return None
    best: NDArray[np.intp] | None = None
    rounding = IMPROVEMENT * max(abs(value), float(np.abs(A).max()))
    best_value = value + rounding
    for position in range(len(support)):
        if deadline is not None and deadline.passed():
            break
        rest = np.delete(support, position)
        eigenvalues, vectors = np.linalg.eigh(A[np.ix_(rest, rest)])
        room = value - eigenvalues
        if len(rest) and room[-1] <= rounding:
            # Feature i added nothing, so the inequality has no room: compare directly.
            j, _ = best_addition(A, rest)
        else:
            coupling = vectors.T @ A[np.ix_(rest, outside)]
            excess = np.diagonal(A)[outside] + (coupling**2 / room[:, None]).sum(axis=0)
            j = int(outside[np.argmax(excess)])
        candidate = np.sort(np.append(rest, j))
        candidate_value = float(np.linalg.eigvalsh(A[np.ix_(candidate, candidate)])[-1])
        if candidate_value > best_value:
            best, best_value = candidate, candidate_value
    return best


class LocalSearch(BaseSolver):
    """Forward selection followed by pairwise swaps, to a local optimum (Li & Xie 2020).

    Nodes are swaps made. The guarantee is that of the greedy start.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.solvers import LocalSearch, Limits
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> np.flatnonzero(LocalSearch().solve(A, 2, limits=Limits()).x)
    array([0, 1])
    """

    name = "local search"
    guarantee = Greedy.guarantee

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        Greedy()._solve(A, k, run)
        if run.stopped is not None:
            return
        support = np.flatnonzero(run.x)
        while len(support) == k and not run.must_stop():
            better = best_swap(A, support, run.objective, run.deadline)
            if better is None:
                run.time_is_up()
                return
            if on_support(A, better)[1] <= run.objective:  # better by rounding only
                return
            run.keep(better)
            support = better
            run.nodes += 1
