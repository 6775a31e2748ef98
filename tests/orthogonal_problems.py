"""Matrices for several orthogonal components."""

from __future__ import annotations

import numpy as np


def matrix(seed: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d + 3, d)) * rng.gamma(2.0, size=d)
    kinds = (
        lambda: np.cov(X.T),
        lambda: np.corrcoef(X.T),
        lambda: X[:2].T @ X[:2],
        lambda: np.cov(X.T) - 0.7 * np.cov(rng.normal(size=(d, d)).T),
        lambda: np.cov(X.T) * 1e-9,
    )
    A = kinds[seed % len(kinds)]()
    return (A + A.T) / 2


def correlated() -> np.ndarray:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 24))
    for j in range(3):
        X[:, 6 * j : 6 * j + 8] += (1.5 - 0.2 * j) * rng.normal(size=(60, 1))
    return np.corrcoef(X.T)
