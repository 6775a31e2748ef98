"""Where the ascent of the entry dual begins: a point made from a good component.

Let x be the best unit vector on a support S, λ = x'Ax, and g = Ax.  If the bound of
`proof.py` is to be λ itself, x has to be an eigenvector of M, and by complementary
slackness U_ij = w_i w_j sign(x_i x_j) within S.  Then Mx = λx says

- on S:  w_i = c/|x_i| for one c, as w_i (w'|x|) = k w_i² |x_i|;
- for j outside:  Σ_S U_ji x_i = g_j, so that the row of M is orthogonal to x.

So within S the weights are c/|x_i|; outside they are as large as their price on the
diagonal lets them, w_j² (k − 1) = β² (λ − A_jj), and U_jS is what is nearest to A_jS
among |U_ji| ≤ w_i w_j with the right product with x, U_ji = clip(A_ji + θ_j x_i).  All
other entries are clipped.  c is such that the weight of the feature of least loading is
f times the largest that its price allows.  Of a few f and β the best for the features
near S is taken, or equal weights where these are better.

Any point gives a bound: nothing here has to be exact.  It replaces equal weights, the
best of which are 2 % off on CovColon (correlation, k = 100), 4 % on Leukemia (k = 50)
and 10 % on srbct_khan (k = 100), of the 3k features nearest to S; this is 0.7, 2.3 and
2.6 % off, and the ascent from there gets to 0.04, 0.15 and 0.7 % in 0.1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.linalg import lanczos

_SCALES = (1.0, 0.95, 1.1, 1.3)  # f
_PRICES = (0.95, 0.9)  # β
_EQUAL = (0.9, 0.8, 0.65, 0.5)  # β² of equal weights
_HALVINGS = 30  # of the interval for θ
_WHOLE = 100  # up to this order all eigenvalues are computed
_ACCURACY = 1e-4  # relative, of λmax, by which starts are compared


@dataclass(frozen=True)
class Component:
    """A support with its loadings, and what A makes of them, in units."""

    support: NDArray[np.intp]  #: ascending
    loadings: FloatArray  #: (k,)
    objective: float  #: λ, positive
    image: FloatArray  #: (d,); g = Ax

    def nearest(self, size: int) -> NDArray[np.intp]:
        """The support and the features with the largest |g|, ascending."""
        score = np.abs(self.image)
        score[self.support] = np.inf
        return np.sort(np.argsort(-score, kind="stable")[:size])


def starting_point(
    component: Component, k: int, diagonal: FloatArray, A: FloatArray, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return weights of all features, none below `least`, and shares of the core.

    A is that between the features of the core, `component.nearest(m)`, and `diagonal`
    has A_ii of all features, in units. k is at least 2.
    """
    core = component.nearest(len(A))
    signs = np.where(component.image[core] < 0, -1.0, 1.0)
    A = A * signs * signs[:, None]  # so that x ≥ 0
    np.fill_diagonal(A, 0.0)
    best, value = None, np.inf
    for weights, equal in _tried(component, k, diagonal, least):
        U = _moved(A, component, core, weights[core], equal)
        M = A - U
        M[np.diag_indices(len(core))] = diagonal[core] + (k - 1) * weights[core] ** 2
        here = _largest(M)
        if here < value or best is None:
            best, value = (weights, U), here
    assert best is not None
    weights, U = best
    product = weights[core][:, None] * weights[core]
    shares = np.divide(U, product, out=np.zeros_like(U), where=product > 0)
    return weights, shares * signs * signs[:, None]


def _tried(
    component: Component, k: int, diagonal: FloatArray, least: float
) -> list[tuple[FloatArray, bool]]:
    """Weights to choose from; True where they are equal."""
    support, top = component.support, component.objective
    allowed = np.sqrt(np.maximum(top - diagonal, 0.0) / (k - 1))
    size = np.maximum(np.abs(component.loadings), 1e-12)
    smallest = int(np.argmin(size))
    found = []
    for f in _SCALES:
        for beta in _PRICES:
            weights = beta * allowed
            c = f * allowed[support[smallest]] * size[smallest]
            weights[support] = np.minimum(c / size, allowed[support])
            found.append((np.maximum(weights, least), False))
    middle = float(np.median(allowed[support]))
    for share in _EQUAL:
        weights = np.full(len(diagonal), np.sqrt(share) * middle)
        found.append((np.maximum(weights, least), True))
    return found


def _moved(
    A: FloatArray,
    component: Component,
    core: NDArray[np.intp],
    w: FloatArray,
    equal: bool,
) -> FloatArray:
    """U between the features of the core, for A with signs such that x ≥ 0."""
    product = w[:, None] * w
    U = np.clip(A, -product, product)
    if not equal:
        inside = np.isin(core, component.support)
        i, j = np.flatnonzero(inside), np.flatnonzero(~inside)
        U[np.ix_(i, i)] = product[np.ix_(i, i)]
        crossing, x = np.ix_(j, i), np.abs(component.loadings)
        wanted = np.abs(component.image[core])[j]
        rows = _projected(A[crossing], product[crossing], x, wanted)
        U[crossing] = rows
        U[np.ix_(i, j)] = rows.T
    np.fill_diagonal(U, 0.0)
    return U


def _projected(
    rows: FloatArray, most: FloatArray, x: FloatArray, wanted: FloatArray
) -> FloatArray:
    """Nearest to each row among |u_i| ≤ most_i with u'x = wanted, or as far as it goes.

    u_i = clip(a_i + θ x_i), where θ is found by halving an interval.
    """
    if not rows.size:
        return rows
    reach = float(np.abs(rows).max() + most.max()) / max(float(x.min()), 1e-12)
    low, high = np.full(len(rows), -reach), np.full(len(rows), reach)
    found = rows
    for _ in range(_HALVINGS):
        theta = (low + high) / 2
        found = np.clip(rows + theta[:, None] * x, -most, most)
        short = found @ x < wanted
        low, high = np.where(short, theta, low), np.where(short, high, theta)
    return found


def _largest(M: FloatArray) -> float:
    """About λmax(M)."""
    if len(M) > _WHOLE:
        start = np.random.default_rng(0).normal(size=len(M))
        found = lanczos(M, start, tolerance=_ACCURACY)
        if found is not None:
            return float(found[0][-1])
    return float(np.linalg.eigvalsh(M)[-1])
