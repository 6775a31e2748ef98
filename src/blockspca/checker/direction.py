"""Rule "direction": a bound for one k, by a vector v_i for every large column.

Let A = C'C with columns c_i, a_i = ‖c_i‖² and ρ > 0. Take any vector v_i with

    (c_i'v_i)² ≥ (a_i − ρ)(ρ + ‖v_i‖²)                                              (*)

(none, v_i = 0, if a_i ≤ ρ). Then (c_i'y)² ≤ ρ + (v_i'y)² for all unit vectors y: in the
plane of c_i and v_i the determinant of ρI + v_i v_i' − c_i c_i' is ρ² + ρ(‖v_i‖² − a_i)
− a_i ‖v_i‖² + (c_i'v_i)² ≥ 0, and this matrix has at most one negative eigenvalue. It
is κzz'/‖z‖² + ρI − cc' of the page, with v = √κ z/‖z‖. Hence, with V = (v_1, v_2, …),

    λ(S) = max_y Σ_S (c_i'y)² ≤ kρ + λmax(VV')   for all sets S of k features.

How the v_i are found is of no importance: what they must satisfy is checked.
"""

from __future__ import annotations

import numpy as np

from .proof_file import Direction

ROUNDS = 60  # of bisection, from 18 decimal digits


def find_vectors(
    C: np.ndarray, rho: float, given: Direction, error: float
) -> np.ndarray:
    """Return vectors v_i for the columns of C, which have ‖c_i‖² > ρ, or nearly so.

    Those of the page, z_i = c_i + Σ h_l q_l, or c_i where that z_i would be poor; with
    κ larger by what an error of c'v and v by `error` ‖c‖‖v‖ and `error` ‖v‖ can cost.
    """
    a = np.einsum("si,si->i", C, C)
    Q = np.array(given.directions, dtype=float).reshape(-1, len(C)).T
    w = np.array([*given.weights, given.rest])[:, None]
    g = Q.T @ C
    squares = np.vstack([g**2, np.maximum(0.0, a - np.sum(g**2, axis=0))])
    high = a * w.max()
    low = high * 1e-18
    for _ in range(ROUNDS):
        middle = np.sqrt(low * high)
        is_low = np.sum(w * squares / (middle + rho * w), axis=0) > 1
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    Z = C + Q @ (g * ((high + rho * w[-1]) / (high + rho * w[:-1]) - 1))

    def slack(Z: np.ndarray) -> np.ndarray:
        norms = np.einsum("si,si->i", Z, Z)
        b = np.einsum("si,si->i", C, Z) ** 2 / np.where(norms > 0, norms, 1.0)
        return rho - a + b

    poor = ~(slack(Z) > 1e-7 * rho)
    Z[:, poor] = C[:, poor]
    rest = slack(Z)
    kappa = rho * np.maximum(0.0, a - rho) / rest
    kappa += 4 * error * a * (rho + kappa) / rest
    return Z * np.sqrt(kappa / np.einsum("si,si->i", Z, Z))
