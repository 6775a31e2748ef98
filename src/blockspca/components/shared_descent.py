"""Descent on the bound of `shared_copies`, made smooth, from a point of `shared_dual`.

The bound is convex in the H_i and X: sums of the k largest of some numbers, and of the
r largest eigenvalues. Both are smoothed, with a temperature θ (`smoothed`); the weights
are the relaxed indicators of the features, and W, the relaxed projection. L-BFGS
descends on n_i, t_i and U for one temperature after the other. The bound itself comes
with every evaluation, and the least of all is kept: it is a bound at any point, so that
nothing here has to be exact.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._validation import FloatArray
from ..bounds.direction_dual.columns import HostColumns
from ..bounds.direction_dual.relaxation import relax
from ..limits import Deadline
from ..numerics.rounding import EPS, TINY
from .shared_copies import CopiesPoint
from .shared_dual import DualPoint
from .smoothed import smoothed_sum

#: Temperatures, of ρ. Where the entropies are a twentieth of the gap, which is so in
#: the last, a lower one gains less than as many steps more in the others.
TEMPERATURES = (0.01, 0.004, 0.0015, 0.0006)
STEPS = 150  # of L-BFGS in each; twice as many lower a gap by a twentieth of it
MEMORY = 10  # pairs of L-BFGS; 20 gain nothing, and take half as long again
# Of the mean of the r largest eigenvalues, beside 1 for ρ: with twice or four times as
# much, entropies of eigenvalues are the larger ones, and gaps by 1 to 3 % of them.
EIGENVALUE_SHARE = 0.25
# Columns whose ‖c‖² is less than this of ρ have no n_i: with ‖X‖ up to 0.4, their
# ‖c‖² + ‖g‖² stays below ρ.
SHORTEST = 0.85
# Of t_i and U to begin with, beside the projections of c_i and the directions of W:
# from 0 no step leads away; after 0.1 gaps are a tenth larger, after 1 a twentieth.
FIRST = 0.6
MOST_ENTRIES = 2**18  # of the n_i, all together: a step takes 0.2 s at the most
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])  # of c − g, t, g, n
_SHIFT = 1e-11  # of the trace: keeps the Cholesky factor of a singular Gram matrix


class _Ended(Exception):
    """Time is up, or the bound is low enough."""


class CopiesDescent:
    """L-BFGS on n_i, t_i and U.

    Attributes
    ----------
    best : CopiesPoint or None
        None if there was nothing to begin with, or no time.
    value : float
        An estimate of its bound.
    """

    def __init__(
        self,
        columns: HostColumns,
        k: int,
        rank: int,
        start: DualPoint,
        inside: HostColumns,
    ) -> None:
        self.k, self.rank = k, rank
        rho, density = start.multiplier, start.density
        index = np.flatnonzero(columns.norms > SHORTEST * rho)
        self.index: NDArray[np.intp] = index
        self.C = np.ascontiguousarray(columns.take(index).dense().T)
        self.inside = np.ascontiguousarray(inside.dense().T)
        n = self.C.shape[1]
        width = min(rank, density.Q.shape[1])
        self.U_shape = (n, width)
        self.best: CopiesPoint | None = None
        self.value = np.inf
        found = relax(columns.take(index), density, rho)
        assert found is not None
        # n_i = √D_i (c_i + Qh_i), and W of the same point
        N = self.C.copy()
        N[: found.H.shape[1]] += (found.Q @ found.H).T
        N *= np.sqrt(np.where(np.isfinite(found.D), found.D, 1.0))[:, None]
        W = rank * density.weights[:width]
        leading = density.Q[:, :width]
        zeta = np.clip(rank * found.relaxed_z, 0.0, 1.0)
        part = (self.C @ leading * W) @ leading.T
        T = FIRST * part * (2 * np.sqrt(zeta * (1 - zeta)))[:, None]
        U = FIRST * leading * W
        # k columns and more see U, and each its own vectors: in units of 1/√k the
        # gradients are of like size, with which L-BFGS begins.
        self._unit = 1 / np.sqrt(k)
        self._at = np.concatenate([N.ravel(), T.ravel(), U.ravel() / self._unit])
        # What the temperature is multiplied by
        self._multiplier = rho
        top = float(np.linalg.eigvalsh(N.T @ N)[-rank:].mean())
        self._eigenvalue = max(EIGENVALUE_SHARE * top, TINY)

    @staticmethod
    def is_affordable(n: int, m: int, memory: int | None) -> bool:
        """Whether arrays of that size are no more than there is memory for."""
        entries = n * m
        fits = memory is None or 8 * (4 * MEMORY + 24) * entries <= memory
        return 0 < entries <= MOST_ENTRIES and fits

    def run(self, target: float, deadline: Deadline) -> None:
        """Descend until the bound is at the target, or time is up."""
        self._target, self._deadline = target, deadline
        at = self._at
        with suppress(_Ended):  # Ctrl-C goes on to the caller, who keeps the best point
            for temperature in TEMPERATURES:
                at = minimize(
                    self._smoothed,
                    at,
                    args=(temperature,),
                    jac=True,
                    method="L-BFGS-B",
                    options={"maxiter": STEPS, "maxcor": MEMORY},
                ).x

    # -- the bound and its smooth form -------------------------------------------------

    def _parts(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        m, n = self.C.shape
        N, T = at[: 2 * m * n].reshape(2, m, n)
        return N, T, self._unit * at[2 * m * n :].reshape(self.U_shape)

    def _smoothed(self, at: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        if not self._deadline.affords_step():
            raise _Ended
        started = time.perf_counter()
        N, T, U = self._parts(at)
        X = U @ U.T
        x, x_N, x_T, x_X = self._chosen(N, T, X)
        y, y_N, y_T = _not_chosen(N, T)
        theta = temperature * self._multiplier
        top, p = smoothed_sum(x - y, self.k, theta)
        H = N.T @ N - T.T @ T
        K = self.inside - self.inside @ X
        L = self.inside - K
        H += K.T @ K - L.T @ L
        apart = 2 * float((self.inside * L).sum())
        values, V = np.linalg.eigh(H)
        theta = temperature * self._eigenvalue
        leading, w = smoothed_sum(values, self.rank, theta)
        self._keep(at, x - y, float(y.sum()) + apart, values)
        W = (V * w) @ V.T
        p = p[:, None]
        grad_N = y_N + p * (x_N - y_N) + 2 * N @ W
        grad_T = y_T + p * (x_T - y_T) - 2 * T @ W
        # Of the inside: d(c − g)(c − g)' − gg' + 2c'g = 2 c'dXc − 2 c'dX Wc
        into = (p * x_X).T @ self.C
        into += 2 * (self.inside - self.inside @ W).T @ self.inside
        grad_U = self._unit * (into + into.T) @ U
        gradient = np.concatenate([grad_N.ravel(), grad_T.ravel(), grad_U.ravel()])
        self._deadline.step_took(time.perf_counter() - started)
        return float(y.sum()) + top + leading + apart, gradient

    def _keep(
        self, at: FloatArray, terms: FloatArray, rest: float, values: FloatArray
    ) -> None:
        """Keep the point if its bound is the least, and end where that will do."""
        largest = np.sort(terms)[::-1][: self.k]
        value = rest + float(np.maximum(largest, 0.0).sum())
        value += float(values[-self.rank :].sum())
        if value < self.value:
            N, T, U = self._parts(at)
            self.value = value
            self.best = CopiesPoint(self.index, N.copy(), T.copy(), U)
            if value <= self._target:
                raise _Ended

    def _chosen(
        self, N: FloatArray, T: FloatArray, X: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return x, its derivatives by n_i and t_i, and f_i, where dx_i = f_i'dX c_i.

        The eigenvectors of Σ ±v_j v_j' are combinations of the four v_j. With their
        Gram matrix G = LL' and L'JLq = λq, J the signs, VJLq is one for λ.
        """
        C = self.C
        G = C @ X
        V = np.stack([C - G, T, G, N], axis=1)
        gram = V @ V.transpose(0, 2, 1)
        trace = np.einsum("ijj->i", gram)
        gram[:, range(4), range(4)] += (_SHIFT * trace + TINY)[:, None]
        L = np.linalg.cholesky(gram)
        values, q = np.linalg.eigh(L.transpose(0, 2, 1) @ (_SIGNS[:, None] * L))
        count = min(self.rank, 2)  # so many can be positive
        values, q = values[:, -count:], q[:, :, -count:]
        u = _SIGNS[:, None] * (L @ q)
        dual = gram @ u  # V'w for the eigenvectors w = Vu
        squares = np.einsum("ija,ija->ia", u, dual)
        positive = values > 16 * EPS * trace[:, None]
        scale = np.where(positive, 1 / np.maximum(squares, TINY), 0.0)
        # Π V, with Π the projection on the eigenvectors of positive eigenvalues
        mixed = (dual * scale[:, None, :]) @ u.transpose(0, 2, 1)
        onto = mixed @ V
        x = np.where(positive, values, 0.0).sum(axis=1)
        x += 2 * np.einsum("ij,ij->i", C, G)
        f = 2 * (C - onto[:, 0] - onto[:, 2])
        return x, -2 * onto[:, 3], 2 * onto[:, 1], f


def _not_chosen(
    N: FloatArray, T: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return y, the larger eigenvalue of tt' − nn', and its derivatives."""
    nn, tt = np.einsum("ij,ij->i", N, N), np.einsum("ij,ij->i", T, T)
    tn = np.einsum("ij,ij->i", T, N)
    half = (tt + nn) / 2
    root = np.sqrt(np.maximum(half**2 - tn**2, 0.0))
    ratio = np.divide(half, root, out=np.ones_like(root), where=root > EPS * half)
    slope = np.divide(tn, root, out=np.zeros_like(root), where=root > EPS * half)
    ratio, slope = ratio[:, None], slope[:, None]
    return (
        (tt - nn) / 2 + root,
        (ratio - 1) * N - slope * T,
        (1 + ratio) * T - slope * N,
    )
