"""Connected parts: where a k-set above τ must lie if the chain has any slack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray


def connected_parts(
    matrix: FloatArray, k: int, tau: float, upper: float
) -> list[NDArray[np.int64]]:
    """Parts, one of which holds any k-set S with λ(S) > τ ≥ upper ≥ opt(k − 1).

    Let S = S1 ∪ S2 with |A_ij| ≤ ε across.  Then, as λ(S1), λ(S2) ≤ upper,

        λ(S) ≤ upper + ‖A_{S1 S2}‖₂ ≤ upper + ε sqrt(|S1| |S2|) ≤ upper + ε k / 2,

    so for ε = 2 (τ − upper) / k such a set is connected in the graph |A_ij| > ε, and
    lies in a connected component of at least k features.  Exactly block-diagonal
    matrices with blocks smaller than k, where τ = upper, have no such component.
    """
    if tau < upper:
        return [np.arange(len(matrix), dtype=np.int64)]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    epsilon = (1 - 1e-12) * 2 * (tau - upper) / k
    graph: Any = csr_array(np.abs(matrix) > epsilon)
    count, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels, minlength=count)
    return [np.flatnonzero(labels == c) for c in np.flatnonzero(sizes >= k)]
