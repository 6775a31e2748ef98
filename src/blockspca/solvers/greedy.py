"""Forward selection: add the feature that raises the largest eigenvalue most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..guarantee import within_factor
from .base import Deadline
from .template import BaseSolver, SolverRun

# Stacks of matrices save calls of LAPACK; larger ones would be computed in vain, as the
# best candidates come first.
CANDIDATES_AT_ONCE = 16


def best_addition(
    A: FloatArray, support: NDArray[np.intp], deadline: Deadline
) -> tuple[int, float]:
    """Return the j outside `support` with the largest λmax(A_SS ∪ {j}), and that value.

    Candidates are tried in the order of the upper bound λmax [[A_jj, ‖A_jS‖], [‖A_jS‖,
    λmax(A_SS)]], and the rest are dropped once that bound is below the best value. If
    the deadline passes, the best of those tried is returned.
    """
    diagonal = np.diagonal(A)
    outside = np.setdiff1d(np.arange(len(A)), support)
    if len(support) == 0:
        j = int(outside[np.argmax(diagonal[outside])])
        return j, float(diagonal[j])
    value = float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])
    half_difference = (diagonal[outside] - value) / 2
    between = A[np.ix_(support, outside)]
    size = float(np.abs(between).max()) or 1.0  # squares may be out of range
    coupling = size * np.sqrt(((between / size) ** 2).sum(axis=0))
    bounds = (diagonal[outside] + value) / 2 + np.hypot(half_difference, coupling)
    order = np.argsort(-bounds, kind="stable")
    best, best_value = -1, -np.inf
    for start in range(0, len(order), CANDIDATES_AT_ONCE):
        if bounds[order[start]] <= best_value:
            break
        if best >= 0 and deadline.passed():
            break
        batch = outside[order[start : start + CANDIDATES_AT_ONCE]]
        sets = np.column_stack([np.tile(support, (len(batch), 1)), batch])
        values = np.linalg.eigvalsh(A[sets[:, :, None], sets[:, None, :]])[:, -1]
        winner = int(values.argmax())
        if values[winner] > best_value:
            best, best_value = int(batch[winner]), float(values[winner])
    return best, best_value


class Greedy(BaseSolver):
    """Start from the largest A_ii; add the best feature until there are k.

    For positive semidefinite A the objective is at least OPT/k, because it is at least
    the largest A_ii and OPT is at most the trace of a k × k submatrix (Li & Xie 2020).

    Examples
    --------
    >>> from blockspca.solvers import Greedy, LocalSearch
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> Greedy().solve(A, 2).support, LocalSearch().solve(A, 2).support
    (array([1, 2]), array([0, 1]))
    """

    name = "greedy"
    guarantee = within_factor(lambda k, d: float(k))

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        support = np.empty(0, dtype=np.intp)
        while len(support) < k:
            if len(support) and run.time_is_up():
                return
            j, _ = best_addition(A, support, run.deadline)
            support = np.append(support, j)
            run.keep(support)
