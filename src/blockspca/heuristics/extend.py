"""Add features to a support, each time the best by a 2 × 2 eigenvalue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from .pool import leading_pair


def extended(
    matrix: FloatArray,
    support: NDArray[np.int64],
    size: int,
    pair: tuple[float, FloatArray] | None = None,
    groups: GroupLimits | None = None,
) -> NDArray[np.int64]:
    """Add features one by one, each time the best by λmax [[λ(S), b], [b, A_jj]].

    b = x'A_Sj with x the eigenvector of S, so the 2×2 value is a lower bound on
    λ(S ∪ {j}) and the objective never falls.  `pair` is λ(S) and x, if known. With
    groups, which have room for `size` features, their limits are kept.
    """
    diagonal = matrix.diagonal()
    while len(support) < size:
        if len(support) == 0:
            support = diagonal.argmax(axis=0, keepdims=True)  # as an array
            continue
        value, x = pair or leading_pair(matrix, support)
        pair = None
        coupling = x.dot(matrix.take(support, 0))
        half = (diagonal - value) / 2
        scores = half + np.hypot(half, coupling)  # less λ(S), the same for all
        scores[support] = -np.inf
        if groups is not None:
            scores[groups.closed_to(support)] = -np.inf
        added = np.empty(len(support) + 1, dtype=np.int64)
        added[:-1], added[-1] = support, scores.argmax()
        support = added
    return support


def extended_at_once(
    matrix: FloatArray,
    support: NDArray[np.int64],
    size: int,
    groups: GroupLimits | None,
) -> NDArray[np.int64]:
    """Add the features that `extended` would look at first, all in one step.

    For when time is up: one eigenvector in place of one for each feature.
    """
    missing = size - len(support)
    if missing <= 0:
        return support
    diagonal = matrix.diagonal()
    if len(support) == 0:
        scores = diagonal.copy()
    else:
        value, x = leading_pair(matrix, support)
        half = (diagonal - value) / 2
        scores = half + np.hypot(half, x @ matrix.take(support, 0))
        scores[support] = -np.inf
    order = np.argsort(-scores, kind="stable")
    if groups is not None:
        return groups.first(
            np.concatenate([support, order[: -len(support) or None]]), size
        )
    return np.concatenate([support, order[:missing]])
