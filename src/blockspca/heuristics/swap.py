"""Exchange one feature of a support for another while λmax rises, all pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from .pool import spectrum, submatrix_at

# How far above λ(S) the swap test puts its shift: near enough to see small gains,
# far enough to keep τI − A_SS well conditioned.
_SWAP_SHIFT = 1e-7

Swapped = tuple[NDArray[np.int64], float, FloatArray]


def swaps(
    matrix: FloatArray,
    support: NDArray[np.int64],
    groups: GroupLimits | None = None,
    pair: tuple[float, FloatArray] | None = None,
) -> Iterator[Swapped]:
    """Yield S, λ(S) and its eigenvector: as given, then after each swap that raises λ.

    With M = (τI − A_SS)^{-1}, V = M A_S· and q_j = A_jS V_j, all swaps at once:

        λ(S \\ {i} ∪ {j}) > τ   ⇔   A_jj + q_j − V_ij² / M_ii > τ,

    by the Schur complement and the deletion formula for M.  O(k² n) a round.  With
    groups, their limits are kept.  `pair` is λ(S) and x, if known.
    """
    diagonal = matrix.diagonal()
    value, x, resolvent = spectrum(submatrix_at(matrix, support), pair)
    spread = max(abs(value), float(np.abs(diagonal[support]).max())) or 1.0
    while True:
        yield support, value, x
        if len(support) == len(matrix):
            return
        spread = max(spread, abs(value))  # or τ is λ itself once that has grown
        tau = value + _SWAP_SHIFT * spread
        rows, columns = matrix[support], np.arange(len(matrix))
        if 2 * len(support) > len(matrix):  # most columns are those of the support
            columns = np.delete(columns, support)
            rows = rows[:, columns]
        inverse = resolvent(tau)
        V = inverse @ rows
        scores = V * V
        scores /= -inverse.diagonal()[:, None]
        scores += diagonal[columns] + np.einsum("ij,ij->j", rows, V)
        if len(columns) == len(matrix):
            scores[:, support] = -np.inf
        if groups is not None:
            scores[~groups.exchanges(support)[:, columns]] = -np.inf
        best = int(np.argmax(scores))
        i, j = divmod(best, len(columns))
        if not scores[i, j] > tau:
            return
        candidate = support.copy()
        candidate[i] = columns[j]
        raised = spectrum(submatrix_at(matrix, candidate))
        if not raised[0] > value:
            return
        support = candidate
        value, x, resolvent = raised


def swapped(
    matrix: FloatArray,
    support: NDArray[np.int64],
    max_swaps: int = 1000,
    stop: Callable[[], bool] = lambda: False,
    groups: GroupLimits | None = None,
    pair: tuple[float, FloatArray] | None = None,
) -> Swapped:
    """The last of `swaps`; `stop` is asked before each round, True ends them."""
    found = swaps(matrix, support, groups, pair)
    last = next(found)
    for _ in range(max_swaps):
        if stop():
            break
        better = next(found, None)
        if better is None:
            break
        last = better
    return last
