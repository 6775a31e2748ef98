"""Hypothesis strategies: small symmetric matrices of every kind that users have."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

KINDS = (
    "psd",
    "indefinite",
    "negative",
    "integer",
    "rank one",
    "duplicated",
    "zero rows",
    "block-diagonal",
    "diagonal",
    "zero",
)


def symmetric_matrix(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a d × d symmetric matrix of the given kind."""
    X = rng.normal(size=(d + 3, d))
    psd = X.T @ X / (d + 3)
    noise = rng.normal(size=(d, d))
    indefinite = (noise + noise.T) / 2
    if kind == "psd":
        return psd
    if kind == "indefinite":
        return indefinite
    if kind == "negative":
        return -psd - 0.1 * np.eye(d)
    if kind == "integer":  # many ties, between entries and between supports
        values = rng.integers(-2, 3, size=(d, d))
        return (np.triu(values) + np.triu(values, 1).T).astype(float)
    if kind == "rank one":
        v = rng.normal(size=d)
        return np.outer(v, v)
    if kind == "duplicated":
        index = rng.integers(0, max(1, d // 2), size=d)
        return psd[np.ix_(index, index)]
    if kind == "zero rows":
        keep = rng.random(d) < 0.5
        return psd * np.outer(keep, keep)
    if kind == "block-diagonal":
        label = rng.integers(0, 3, size=d)
        return indefinite * (label[:, None] == label)
    if kind == "diagonal":
        return np.diag(rng.normal(size=d))
    if kind == "zero":
        return np.zeros((d, d))
    raise ValueError(kind)


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
