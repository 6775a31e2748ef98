"""Small problems for the direction dual, with optima that are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blockspca.bounds.direction_dual import relaxation
from blockspca.bounds.direction_dual.density import Density, concentrated
from blockspca.bounds.direction_dual.node import Node
from blockspca.bounds.direction_dual.problem import Problem
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.direction_dual.settings import DEFAULT, DualSettings
from blockspca.covariance.covariance import Covariance
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling
from zoo import SAMPLES as DATA
from zoo import samples as data

__all__ = [
    "DATA",
    "Optimum",
    "covariance",
    "data",
    "direction_bound",
    "mean",
    "proved_of_three",
    "random_density",
    "root_of",
]

Optimum = Callable[[np.ndarray, int], float]


def covariance(kind: str, rng: np.random.Generator) -> Covariance:
    return Covariance.from_data(data(kind, rng))


def root_of(problem: Problem) -> Node:
    """Return the node that a search of the problem begins with."""
    return Node(
        np.empty(0, np.intp),
        np.arange(problem.columns.shape[1]),
        concentrated(problem.leading, 0.87),
        problem.multiplier,
        problem.columns.norms,
    )


def random_density(n: int, r: int, rng: np.random.Generator) -> Density:
    Q = np.linalg.qr(rng.standard_normal((n, r)))[0]
    weights = np.sort(rng.gamma(1.0, size=r))[::-1] + 0.2
    rest = 0.1
    total = weights.sum() + (n - r) * rest
    return Density(Q, weights / total, rest / total)


def mean(density: Density, B: np.ndarray) -> float:
    """Return tr(XB)."""
    along = np.einsum("ij,ij->j", density.Q, B @ density.Q)
    rest = np.trace(B) - along.sum()
    return float(density.weights @ along + density.rest * rest)


def direction_bound(
    C: np.ndarray, k: int, multiplier: float, directions: np.ndarray | None = None
) -> float:
    """Return kρ + λmax(Σ κ_i z_i z_i'), which is at least opt(k) of C'C.

    As `relaxation` has it, but written out: all terms, for any directions.

    Parameters
    ----------
    C : array of shape (n, d)
    k : int
    multiplier : float
        ρ > 0.
    directions : array of shape (n, d), optional
        z_i in its columns, of any length; c_i by default. Where z_i does not satisfy
        ρ − ‖c_i‖² + (c_i'z_i)² > 0, c_i is used instead.
    """
    norms = np.einsum("ij,ij->j", C, C)
    active = norms > multiplier
    C, norms = C[:, active], norms[active]
    Z = C.copy() if directions is None else np.array(directions[:, active])
    lengths = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    Z /= np.where(lengths > 0, lengths, 1.0)
    uncertain = 8 * (len(C) + 4) * relaxation.EPS * norms
    squares = np.einsum("ij,ij->j", C, Z) ** 2
    kappa = relaxation.direction_weights(norms, squares, uncertain, multiplier)
    own = ~np.isfinite(kappa)
    Z[:, own] = C[:, own] / np.sqrt(norms[own])
    kappa[own] = relaxation.own_weights(norms[own], uncertain[own], multiplier)
    total = (Z * kappa) @ Z.T
    value = k * multiplier + eigenvalue_ceiling(total)
    n, p = C.shape
    return value + relaxation.rounding_of_sum(
        n, p, float(np.trace(total)) + k * multiplier
    )


def proved_of_three(
    brute_force: Optimum,
    seeds: range,
    shape: tuple[int, int],
    common: float = 2.0,
    nodes: int = 300,
    share: float = 0.95,
    settings: DualSettings = DEFAULT,
) -> int:
    """Count the problems with k = 3 that are proved; no bound may be wrong.

    Four features have a factor in common; the first target is a share of the optimum.
    """
    proved = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal(shape) * rng.gamma(2.0, size=shape[1])
        X[:, :4] += common * rng.standard_normal((shape[0], 1))
        cov = Covariance.from_data(X)
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        for target in (share * optimum, optimum * (1 + 1e-8)):
            bound = dual_bound(
                cov, 3, target=target, time_limit=60, nodes=nodes, settings=settings
            )
            assert bound.value >= optimum * (1 - 1e-12)
        proved += bound.value <= target * (1 + 1e-11)
    return proved
