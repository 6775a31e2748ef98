"""Hypothesis strategies: small problems of the kinds in the zoo."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from zoo import KINDS, symmetric_matrix


@st.composite
def problems(draw, max_features: int = 8, kinds: tuple[str, ...] = KINDS):
    """Draw a symmetric matrix with a sparsity 1 ≤ k ≤ d."""
    kind = draw(st.sampled_from(kinds))
    d = draw(st.integers(1, max_features))
    k = draw(st.integers(1, d))
    seed = draw(st.integers(0, 2**32 - 1))
    return symmetric_matrix(kind, d, np.random.default_rng(seed)), k


@st.composite
def thresholded_problems(draw, **kwargs):
    """Draw a problem with a threshold: zero, an entry of the matrix, or between."""
    A, k = draw(problems(**kwargs))
    entries = np.unique(np.abs(A))
    i = draw(st.integers(0, len(entries) - 1))
    epsilon = draw(st.sampled_from([0.0, 1.0, 0.5])) * entries[i]
    return A, k, float(epsilon)
