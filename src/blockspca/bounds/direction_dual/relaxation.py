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

With X = Q diag(w) Q' + w₀ (I − QQ'), z_i is c_i + Qh_i up to its length: what the sum
needs are the products Q'C, C diag(·) C' and C diag(·) H', and no array as large as C.
Where C is in the memory of a GPU, these and h_i are computed there, by the same code.

References
----------
d'Aspremont, Bach, El Ghaoui (2008), Optimal solutions for sparse principal component
analysis, whose semidefinite relaxation this evaluates; the closed form of κ is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm

from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics.rounding import EPS
from .columns import Columns, to_host
from .density import Density

_ENTRIES = 2**17  # of an array in between: 1 MiB, which the cache holds
_STEPS = 40  # of Newton's method, which takes five; any μ gives a bound
_STEEPEST = 1e4  # largest (size of c + ‖h‖) / ‖c + Qh‖: more costs too many digits


def direction_weights(
    norms: FloatArray, squares: FloatArray, uncertain: FloatArray, multiplier: float
) -> FloatArray:
    """Return κ for (c'z)² = squares, rounded upwards; infinite where z is no good."""
    room = multiplier - norms + squares - uncertain
    # A room that is nearly nothing would make κ, and the rounding of the sum, huge.
    usable = room > 1e-7 * multiplier
    excess = norms - multiplier + uncertain
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(usable, multiplier * excess / room, np.inf)


def own_weights(
    norms: FloatArray, uncertain: FloatArray, multiplier: float
) -> FloatArray:
    """Return κ for z = c/‖c‖, rounded upwards.

    Where ρ is lost in the rounding of ‖c‖², (c'y)² ≤ ‖c‖² (z'y)² takes its place.
    """
    kappa = direction_weights(norms, norms, uncertain, multiplier)
    return np.where(np.isfinite(kappa), kappa, norms + uncertain)


def rounding_of_sum(n: int, p: int, size: float) -> float:
    """Bound the rounding error of a sum of p terms ww' with Σ‖w‖² ≤ size."""
    return 2 * (n + p + 16) * EPS * size


@dataclass(frozen=True)
class Relaxation:
    """Σ κ_i z_i z_i' = Σ D_i (c_i + Qh_i)(c_i + Qh_i)' at a density, and its parts."""

    total: FloatArray  #: (n, n)
    D: FloatArray  #: (p,); zero for columns whose projections are no more than ρ
    #: (r, m); h_i in its columns, where the columns c_i are; zero for those after the
    #: first m.
    H: Any
    Q: FloatArray  #: (n, r)
    #: (p,); how much of each column the relaxation takes, 0 to 1: the indicator of the
    #: feature, relaxed. Their sum is k where ρ is best.
    relaxed_z: FloatArray
    #: (p,); μ_i: their sum, with kρ, is the concave function at the density.
    mu: FloatArray
    #: Σ D_i (size of c_i + ‖h_i‖)², to which rounding errors are in proportion.
    size: float

    @property
    def is_from_host(self) -> bool:
        """Whether its products are those of the host, which bounds are proved by."""
        return isinstance(self.H, np.ndarray)

    @property
    def is_finite(self) -> bool:
        """Whether an ascent can go on from it: ρ or X may be too small for numbers."""
        return bool(np.isfinite(self.size + self.relaxed_z.sum() + self.mu.sum()))

    def to_subspace(self, V: FloatArray, columns: Columns) -> Relaxation:
        """Return the sum in the coordinates of a space, as `columns` are."""
        Q = V.T @ self.Q
        return replace(self, total=_sum(columns, self.D, self.H, Q), Q=Q)


def relax(
    columns: Columns,
    density: Density,
    multiplier: float,
    deadline: Deadline | None = None,
    before: Relaxation | None = None,
    projection_bound: FloatArray | None = None,
) -> Relaxation | None:
    """Return the sum for the best directions at a density.

    None if the deadline comes first. What was found at a density nearby, for the same
    columns, makes it faster. `projection_bound` is at least
    (c_i'y)² of the y in question, ‖c_i‖² by default: where that is at most ρ, there is
    no term.
    """
    (n, p), Q = columns.shape, density.Q
    r = Q.shape[1]
    # A small part of all, where those with the largest projections come first.
    largest = columns.norms if projection_bound is None else projection_bound
    active = np.flatnonzero(largest > multiplier)
    head = columns.head(int(active[-1]) + 1 if len(active) else 0)
    every = len(active) == head.shape[1]
    G = head.project(Q)
    if not every:
        G = G[:, np.asarray(active, like=G)]
    D, relaxed_z, mu = np.zeros(p), np.zeros(p), np.zeros(p)
    h = np.empty((r, len(active)), like=G)
    if before is not None:
        mu[active] = before.mu[active]
    size = 0.0
    # Q'Q = I up to this; products with it carry the rounding of n terms.
    skew = float(np.linalg.norm(Q.T @ Q - np.eye(r)))
    relative = float(32 * (n + 4) * np.sqrt(r + 1) * EPS + skew)
    step = max(1, _ENTRIES // (r + 1) if isinstance(G, np.ndarray) else len(active))
    for start in range(0, len(active), step):
        if deadline is not None and deadline.passed():
            return None
        part = slice(start, start + step)
        index = active[part]
        found = _best_directions(
            G[:, part],
            head.norms[index],
            head.sizes[index],
            density,
            multiplier,
            relative,
            mu[index],
        )
        h[:, part] = found[0]
        D[index], relaxed_z[index], mu[index] = map(to_host, found[1:4])
        size += found[4]
    if not every:
        H = np.zeros((r, head.shape[1]), like=G)
        H[:, np.asarray(active, like=G)] = h
        h = H
    return Relaxation(_sum(head, D, h, Q), D, h, Q, relaxed_z, mu, size)


def _sum(columns: Columns, D: FloatArray, H: Any, Q: FloatArray) -> FloatArray:
    """Return Σ D_i (c_i + Qh_i)(c_i + Qh_i)' over the columns that have an h_i."""
    head = columns.head(H.shape[1])
    weights = D[: H.shape[1]]
    weighted = np.asarray(weights, like=H) * H
    half = head.combine(weighted.T) + Q @ to_host(weighted @ H.T / 2)
    W, Z = np.hstack([half, Q]), np.hstack([Q, half])
    total = head.gram(weights)
    # total + WZ', all of it symmetric, without another array of its size
    return np.asarray(dgemm(1.0, W.T, Z.T, 1.0, total.T, trans_a=1, overwrite_c=1).T)


def _best_directions(
    G: Any,
    norms: FloatArray,
    sizes: FloatArray,
    density: Density,
    multiplier: float,
    relative: float,
    mu: FloatArray,
) -> tuple[Any, Any, Any, Any, float]:
    """Return h, D, the relaxed z, μ and the size of the sum where Q'c = G.

    Where G is: what is done to the arrays is what those of a GPU can, too.
    """
    norms, sizes, mu = (np.asarray(given, like=G) for given in (norms, sizes, mu))
    weights = np.append(density.weights, density.rest)[:, None]
    weights = np.asarray(weights, like=G)
    squares = np.vstack([G**2, np.zeros((1, len(norms)), like=G)])
    squares[-1] = np.maximum(norms - squares.sum(axis=0), 0.0)
    # Newton's method on 1/f(μ) = 1, f(μ) = Σ_l w_l c_l² / (μ + ρ w_l), which is
    # decreasing: 1/f is nearly linear.
    mass = weights * squares
    shifts = multiplier * weights
    total_mass = mass.sum(axis=0)
    first = np.maximum(total_mass - shifts[0], 1e-9 * total_mass)
    mu = np.where(mu > 0, mu, first)
    for _ in range(_STEPS):
        ratio = mass / (mu + shifts)
        f = ratio.sum(axis=0)
        if np.abs(f - 1).max() < 1e-7:
            break
        slope = (ratio / (mu + shifts)).sum(axis=0)
        mu = np.maximum(mu + f * (f - 1) / slope, 0.05 * mu)
    # In units, powers of two, of the least of a column: no square of it underflows.
    pull = mass / np.ldexp(mu + shifts, -np.frexp(mu + shifts[-1])[1]) ** 2
    relaxed_z = (weights * pull).sum(axis=0) / pull.sum(axis=0)
    # (μ + ρw₀) (μI + ρX)⁻¹ c = c + Qh
    h = G * ((mu + shifts[-1]) / (mu + shifts[:-1]) - 1)
    length = np.sqrt(np.einsum("ij,ij->j", h, h))
    inner = np.einsum("ij,ij->j", h, G)
    lengths = np.maximum(norms + 2 * inner + length**2, 0.0)  # ‖c + Qh‖²
    size = sizes + length
    good = size**2 < min(_STEEPEST**2, 0.125 / relative) * lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        steepness = np.where(good, size**2 / lengths, 1.0)
        # (c'z)² is a quotient of such sums, each off by `relative` times its size.
        uncertain = relative * sizes**2 * steepness
        squares = (norms + inner) ** 2 / lengths
        kappa = direction_weights(norms, squares, uncertain, multiplier)
        own = ~(good & np.isfinite(kappa))
        if own.any():
            h, size = np.where(own, 0.0, h), np.where(own, sizes, size)
            lengths = np.where(own, norms, lengths)
            uncertain = relative * sizes**2 * (sizes**2 / norms)
            kappa = np.where(own, own_weights(norms, uncertain, multiplier), kappa)
        least = lengths - 4 * relative * size**2  # ‖c + Qh‖² at its least
        D = np.where(least > 0, kappa / least, np.inf)
    D = np.where(own, np.minimum(D, 1.0), D)  # cc' is always enough
    return h, D, relaxed_z, mu, float((D * size**2).sum())
