"""Schemes, data and matrices for several components."""

from __future__ import annotations

import numpy as np

import blockspca as bs
from blockspca.components.schemes import scheme_name

SCHEMES = (
    bs.DisjointSupports(),
    bs.ProjectionDeflation(),
    bs.Orthogonalised(),
    bs.HotellingDeflation(),
    bs.ResidualDeflation(),
    bs.ResidualDeflation(disjoint=True),
)
ids = [scheme_name(scheme) for scheme in SCHEMES]


def overlapping_factors(n: int = 40, d: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(3):
        X[:, 4 * j : 4 * j + 8] += (2 - 0.3 * j) * rng.normal(size=(n, 1))
    return X


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
