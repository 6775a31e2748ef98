"""Two moves that improve a support: add a feature, or swap two features.

Both compare all candidates at once and obey the rules about sets.
"""

from __future__ import annotations

import numpy as np

from ..constraints.rules import FREE, Rules
from ..linalg.eigen import leading_pair
from ..validation import FloatArray, Indices
from .pool import principal

# τ − λ(S) in the test of swaps, as a share of the largest entry: small enough for small
# gains, large enough for a well-conditioned τI − A_SS.
SHIFT = 1e-7
MOST_SWAPS = 1000


def extended(
    matrix: FloatArray,
    support: Indices,
    size: int,
    rules: Rules = FREE,
    pair: tuple[float, FloatArray] | None = None,
) -> Indices:
    """Add the feature j with the largest λmax [[λ(S), b], [b, A_jj]] up to a size.

    b = x'A_Sj with x the eigenvector of S. That eigenvalue is at most λ(S ∪ {j}), so
    the objective never falls. An empty support begins with the root, or with the
    feature of largest variance. At least `size` features must be available. `pair` is
    λ(S) and x of the support, if the caller has them.
    """
    diagonal = matrix.diagonal()
    if len(support) == 0:
        support = rules.root
    while len(support) < size:
        if len(support) == 0:
            scores = diagonal.copy()
        else:
            value, x = pair or leading_pair(principal(matrix, support))
            pair = None
            half = (diagonal - value) / 2
            scores = half + np.hypot(half, x @ matrix.take(support, 0))
            scores[support] = -np.inf
        scores = np.where(rules.open_to(support), scores, -np.inf)
        support = np.append(support, scores.argmax())
    return support


def swapped(
    matrix: FloatArray, support: Indices, rules: Rules = FREE, most: int = MOST_SWAPS
) -> tuple[Indices, float, FloatArray, int]:
    """Swap features as long as λ(S) rises; return S, λ(S), x and the number of rounds.

    With M = (τI − A_SS)⁻¹, V = M A_S· and q_j = A_jS V_j, by the Schur complement and
    the deletion formula for M,

        λ(S ∖ {i} ∪ {j}) > τ   ⇔   A_jj + q_j − V_ij² / M_ii > τ.

    A round tests all swaps in O(k² n).
    """
    diagonal = matrix.diagonal()
    value, x = leading_pair(principal(matrix, support))
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
        candidate_value, y = leading_pair(principal(matrix, candidate))
        if not candidate_value > value:
            break
        support, value, x = candidate, candidate_value, y
    return support, value, x, rounds
