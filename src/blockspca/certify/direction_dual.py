"""The direction dual: an upper bound for A = C'C from n × n eigenvalues only.

With c_i the columns of C, opt(k) = max over k-sets S and unit y of Σ_{i∈S} (c_i'y)².
For ρ > 0, ‖c‖² > ρ and any unit z with ρ − ‖c‖² + (c'z)² > 0,

    (c'y)² ≤ ρ + κ (z'y)²  for every unit y,    κ = ρ (‖c‖² − ρ) / (ρ − ‖c‖² + (c'z)²),

because κzz' + ρI − cc' is ρI outside the plane of c and z, and in that plane it has
determinant zero and a positive trace.  Where ‖c‖² ≤ ρ, (c'y)² ≤ ρ anyway.  Adding up,

    opt(k) ≤ kρ + λmax( Σ_{‖c_i‖² > ρ} κ_i z_i z_i' ).

Any ρ and any directions z_i give a bound.  The best ones for a density X (X ⪰ 0 of
trace 1) are z_i ∝ (μ_i I + ρX)⁻¹ c_i, μ_i > 0 such that c_i' X (μ_i I + ρX)⁻¹ c_i = 1;
the sum is then a supergradient of a concave function of X, which mirror ascent
maximises.  z_i = c_i/‖c_i‖ gives the dual bound with weights t_i = 1 − ρ/A_ii.

References
----------
d'Aspremont, Bach, El Ghaoui (2008), Optimal solutions for sparse principal component
analysis, whose semidefinite relaxation this evaluates; the closed form of κ is ours.
"""

from __future__ import annotations

import time

import numpy as np

from .._validation import FloatArray
from .eigenvalues import eigenvalue_ceiling

_EPS = float(np.finfo(float).eps)
_CHUNK = 1024  # columns


def direction_bound(
    C: FloatArray, k: int, penalty: float, directions: FloatArray | None = None
) -> float:
    """Return kρ + λmax(Σ κ_i z_i z_i'), which is at least opt(k) of C'C.

    Parameters
    ----------
    C : array of shape (n, d)
    k : int
    penalty : float
        ρ > 0.
    directions : array of shape (n, d), optional
        z_i in its columns, of any length; c_i by default. Where z_i does not satisfy
        ρ − ‖c_i‖² + (c_i'z_i)² > 0, c_i is used instead.

    Examples
    --------
    >>> import numpy as np
    >>> direction_bound(np.diag([2.0, 1.0]), 1, 3.9) >= 4.0
    True
    """
    norms = np.einsum("ij,ij->j", C, C)
    active = norms > penalty
    C, norms = C[:, active], norms[active]
    Z = C.copy() if directions is None else np.array(directions[:, active])
    kappa = direction_weights(C, norms, Z, penalty)
    total = (Z * kappa) @ Z.T
    value = k * penalty + eigenvalue_ceiling(total)
    return value + rounding_of_sum(C, total, k * penalty)


def direction_weights(
    C: FloatArray, norms: FloatArray, Z: FloatArray, penalty: float
) -> FloatArray:
    """Return κ, rounded upwards. Z is scaled to unit columns, and mended, in place."""
    lengths = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    Z /= np.where(lengths > 0, lengths, 1.0)
    squares = np.einsum("ij,ij->j", C, Z) ** 2
    uncertain = 8 * (len(C) + 4) * _EPS * norms
    room = penalty - norms + squares - uncertain
    unusable = ~(room > 1e-7 * penalty)
    if unusable.any():
        Z[:, unusable] = C[:, unusable] / np.sqrt(norms[unusable])
        room[unusable] = penalty - uncertain[unusable]
    kappa = penalty * (norms - penalty + uncertain) / room
    # Where ρ is lost in the rounding of ‖c‖², use (c'y)² ≤ ‖c‖² (z'y)² for z = c/‖c‖.
    hopeless = ~(room > 0)
    kappa[hopeless] = norms[hopeless] + uncertain[hopeless]
    return kappa


def rounding_of_sum(C: FloatArray, total: FloatArray, constant: float) -> float:
    n, p = C.shape
    return 2 * (n + p + 16) * _EPS * (float(np.trace(total)) + constant)


def best_directions(
    rotated: FloatArray, weights: FloatArray, penalty: float
) -> tuple[FloatArray, FloatArray]:
    """Return z_i and μ_i for the density diag(weights), columns in its basis."""
    # Newton's method on 1/f(μ) = 1, f(μ) = Σ_l w_l c_l² / (μ + ρ w_l), which is
    # decreasing: 1/f is nearly linear.
    mass = weights[:, None] * rotated**2
    shifts = penalty * weights[:, None]
    total_mass = mass.sum(axis=0)
    mu = np.maximum(total_mass - penalty * weights[-1], 1e-9 * total_mass)
    for _ in range(20):
        ratio = mass / (mu + shifts)
        f = ratio.sum(axis=0)
        if np.abs(f - 1).max(initial=0.0) < 1e-7:
            break
        slope = (ratio / (mu + shifts)).sum(axis=0)
        mu = np.maximum(mu + f * (f - 1) / slope, 0.05 * mu)
    return rotated / (mu + shifts), mu


def supergradient(
    C: FloatArray,
    norms: FloatArray,
    weights: FloatArray,
    basis: FloatArray,
    penalty: float,
    *,
    copies: FloatArray | None = None,
    deadline: float = np.inf,
) -> tuple[FloatArray, float, float] | None:
    """Return Σ κ_i z_i z_i' at a density, the size of its support and its value.

    Column i counts copies[i] times, once by default. None if the deadline, by
    `time.monotonic`, comes first.

    The density is basis · diag(weights) · basis'; `norms` are sorted, longest first.
    A few columns at a time: the arrays in between are as large as what they are for.
    """
    count = int(np.searchsorted(-norms, -penalty))
    total = np.zeros((len(C), len(C)))
    support = value = 0.0
    if copies is None:
        copies = np.ones(len(norms))
    for start in range(0, count, _CHUNK):
        if time.monotonic() > deadline:
            return None
        part = slice(start, min(start + _CHUNK, count))
        rotated = basis.T @ C[:, part]
        Z, mu = best_directions(rotated, weights, penalty)
        squares = weights[:, None] * Z**2
        share = (weights[:, None] * squares).sum(axis=0) / squares.sum(axis=0)
        kappa = direction_weights(rotated, norms[part], Z, penalty)
        total += (Z * (kappa * copies[part])) @ Z.T
        support += float(share @ copies[part])
        value += float(mu @ copies[part])
    return basis @ total @ basis.T, support, value
