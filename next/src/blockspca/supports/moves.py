"""Two ways to improve a support within a matrix: add a feature, swap two.

Both look at all candidates at once and keep the rules about sets.
"""

from __future__ import annotations

import numpy as np

from ..constraints.rules import FREE, Rules
from ..linalg.eigen import leading_pair
from ..validation import FloatArray, Indices
from .pool import at

# How far above λ(S) the test of swaps puts τ, in units of the largest entry: small
# gains are seen, and τI − A_SS stays well conditioned.
SHIFT = 1e-7
MOST_SWAPS = 1000


def extended(
    matrix: FloatArray, support: Indices, size: int, rules: Rules = FREE
) -> Indices:
    """Add features one by one, each time the best by λmax [[λ(S), b], [b, A_jj]].

    b = x'A_Sj with x the eigenvector of S, so that value is at most λ(S ∪ {j}), and the
    objective never falls. Without a support it begins with the root, or the largest
    variance. `size` features must be available.
    """
    diagonal = matrix.diagonal()
    if len(support) == 0:
        support = rules.root
    while len(support) < size:
        if len(support) == 0:
            scores = diagonal.copy()
        else:
            value, x = leading_pair(at(matrix, support))
            half = (diagonal - value) / 2
            scores = half + np.hypot(half, x @ matrix.take(support, 0))
            scores[support] = -np.inf
        scores = np.where(rules.open_to(support), scores, -np.inf)
        support = np.append(support, scores.argmax())
    return support


def swapped(
    matrix: FloatArray, support: Indices, rules: Rules = FREE, most: int = MOST_SWAPS
) -> tuple[Indices, float, FloatArray, int]:
    """Swap one feature for another as long as λ rises; return S, λ(S), x and rounds.

    With M = (τI − A_SS)⁻¹, V = M A_S· and q_j = A_jS V_j, by the Schur complement and
    the deletion formula for M,

        λ(S ∖ {i} ∪ {j}) > τ   ⇔   A_jj + q_j − V_ij² / M_ii > τ.

    O(k² n) for all swaps of a round.
    """
    diagonal = matrix.diagonal()
    value, x = leading_pair(at(matrix, support))
    rounds = 0
    while rounds < most and len(support) < len(matrix):
        rounds += 1
        size = max(abs(value), float(np.abs(diagonal[support]).max()))
        tau = value + SHIFT * size
        rows = matrix.take(support, 0)
        shifted = -rows.take(support, 1)
        shifted.flat[:: len(support) + 1] += tau
        try:
            inverse = np.linalg.inv(shifted)
        except np.linalg.LinAlgError:  # all entries of A_SS are 0
            break
        V = inverse @ rows
        scores = V * V
        scores /= -inverse.diagonal()[:, None]
        scores += diagonal + np.einsum("ij,ij->j", rows, V)
        scores[:, support] = -np.inf
        if not rules.is_free:
            scores = np.where(rules.exchanges(support), scores, -np.inf)
        i, j = divmod(int(np.argmax(scores)), len(matrix))
        if not scores[i, j] > tau:
            break
        candidate = support.copy()
        candidate[i] = j
        raised, y = leading_pair(at(matrix, candidate))
        if not raised > value:
            break
        support, value, x = candidate, raised, y
    return support, value, x, rounds
