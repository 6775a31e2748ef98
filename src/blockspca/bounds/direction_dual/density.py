"""Densities X = Q diag(w) Q' + w₀ (I − QQ') of trace 1, and mirror steps between them.

All that a step needs of the many directions in which X is least is that they are
alike: the bound holds for any density, so none of this has to be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._validation import FloatArray
from .settings import DEFAULT, DualSettings

# A weight of e⁻²⁷ beside the largest is below what the sum is proved to.
_LOWEST_LOG = -27.0


@dataclass(frozen=True)
class Sector:
    """The y with (a'y)(b'y) ≥ 0, that is, y'By ≥ 0 with B = (ab' + ba')/2."""

    a: FloatArray
    b: FloatArray

    def matrix(self) -> FloatArray:
        """Return B."""
        half = np.outer(self.a, self.b) / 2
        return half + half.T

    def to_subspace(self, V: FloatArray) -> Sector:
        """Return the sector in the coordinates of a space that holds a and b."""
        return Sector(self.a @ V, self.b @ V)


def add_sectors(
    M: FloatArray, sectors: Sequence[Sector], etas: Sequence[float]
) -> FloatArray:
    """Return M + Σ η_q B_q."""
    for sector, eta in zip(sectors, etas, strict=True):
        if eta:
            M = M + eta * sector.matrix()
    return M


@dataclass(frozen=True)
class Density:
    """X = Q diag(weights) Q' + rest (I − QQ'), the largest weight first.

    `outside` counts the directions outside the coordinates of Q, where X is `rest` too.
    """

    Q: FloatArray
    weights: FloatArray
    rest: float
    outside: int = 0

    @property
    def order(self) -> int:
        """How many dimensions there are."""
        return len(self.Q) + self.outside

    def to_subspace(self, V: FloatArray) -> Density:
        """Return X in the coordinates of a space, an orthonormal basis that holds Q."""
        outside = self.order - V.shape[1]
        return Density(V.T @ self.Q, self.weights, self.rest, outside)

    def from_subspace(self, V: FloatArray) -> Density:
        """Return what is given in the coordinates of a space."""
        return Density(V @ self.Q, self.weights, self.rest)

    def change_basis(self, V: FloatArray) -> Density:
        """Return a density like X for V'y in place of y, V a basis of another space.

        What Q loses by that is made up for by any other directions.
        """
        Q = np.linalg.qr(V.T @ self.Q)[0]
        weights = self.weights[: Q.shape[1]]
        total = float(weights.sum()) + (len(Q) - Q.shape[1]) * self.rest
        return Density(Q, weights / total, self.rest / total)

    def mean(self, along: FloatArray, trace: float) -> float:
        """Return tr(XF) of an F with these q_l'Fq_l and this trace."""
        return float(self.weights @ along) + self.rest * float(trace - along.sum())

    def onto(
        self,
        sectors: Sequence[Sector],
        min_weight: float,
        settings: DualSettings,
    ) -> Density:
        """Return the density in the given sectors that is nearest to this one.

        In relative entropy, but for the least weight.
        """
        normals = [np.stack([q.a, q.b], axis=1) for q in sectors]
        V = np.linalg.qr(np.hstack([self.Q, *normals]))[0]
        none = np.zeros((V.shape[1],) * 2)
        seen = [sector.to_subspace(V) for sector in sectors]
        etas = [0.0] * len(sectors)
        there = self.to_subspace(V)
        nearest, _ = there.step(none, 1.0, min_weight, seen, etas, settings=settings)
        return nearest.from_subspace(V)

    def step(
        self,
        B: FloatArray,
        size: float,
        min_weight: float,
        sectors: Sequence[Sector] = (),
        etas: Sequence[float] = (),
        trace: float | None = None,
        settings: DualSettings = DEFAULT,
    ) -> tuple[Density, list[float]]:
        """Take the mirror step along B, and stay in the given sectors.

        Parameters
        ----------
        B : array
        min_weight : float
            No direction gets less than this share of 1/n.
        sectors, etas : sequence
            tr(XB_q) ≥ 0 is kept for each sector; where to look for η first.
        trace : float, optional
            Of all of B, if there are directions outside the coordinates.

        Returns
        -------
        density : Density
            exp(log X + size (B + Σ η_q B_q)), normalised.
        etas : list of float
            η_q ≥ 0, zero where the sector is kept by itself.
        """
        n = self.order
        trace = float(np.trace(B)) if trace is None else trace
        own = np.log(self.weights / self.rest)
        H = (self.Q * own) @ self.Q.T + size * B
        found, logs, Q = _keep_to_sectors(H, size, sectors, etas)
        logs, Q = logs[::-1], Q[:, ::-1]
        outside = self.outside
        mean = logs[-1]
        if outside:
            added = sum(
                eta * float(q.a @ q.b) for eta, q in zip(found, sectors, strict=True)
            )
            total = float(own.sum()) + size * (trace + added)
            mean = (total - float(logs.sum())) / outside
        top = float(logs[0])
        weights = np.exp(np.maximum(logs - top, _LOWEST_LOG))
        beyond = outside * float(np.exp(np.clip(mean - top, _LOWEST_LOG, 0.0)))
        least = min_weight / n * (float(weights.sum()) + beyond)
        kept = max(1, int((weights > 1.01 * least).sum()))
        if outside and settings.is_large(n):
            kept = min(kept, settings.max_directions)
        # What is not told apart weighs the same: too little for one of those
        # directions, and the sum would be large there.
        rest = max(beyond / outside if outside else 0.0, least)
        if kept < len(weights):
            rest = max(rest, float(weights[kept]))
        weights = np.maximum(weights[:kept], rest)
        total = float(weights.sum()) + (n - kept) * rest
        density = Density(Q[:, :kept], weights / total, rest / total, outside)
        return density, found

    def space(
        self,
        B: FloatArray,
        sectors: Sequence[Sector],
        more: FloatArray | None,
        powers: int,
        settings: DualSettings,
    ) -> FloatArray | None:
        """Return a basis that nearly holds what steps along B lead to; None for all.

        It is the directions of before, and more, and what as many products with B as
        `powers` make of them.
        """
        n = len(B)
        if not settings.is_large(n):
            return None
        if more is None:
            rng = np.random.default_rng(0)
            more = rng.standard_normal((n, settings.extra_directions))
        last = np.hstack([self.Q, more])
        blocks = [last, *(np.stack([q.a, q.b], axis=1) for q in sectors)]
        mean = float(np.trace(B)) / n
        for _ in range(powers):
            last = B @ last - mean * last
            lengths = np.linalg.norm(last, axis=0)
            last /= np.where(lengths > 0, lengths, 1.0)
            blocks.append(last)
        return np.linalg.qr(np.hstack(blocks))[0]


def concentrated(y: FloatArray, weight: float) -> Density:
    """Return the density weight · yy' + (1 − weight) I/n, for a unit y."""
    rest = (1 - weight) / len(y)
    return Density(y[:, None], np.array([weight + rest]), rest)


def _keep_to_sectors(
    H: FloatArray, size: float, sectors: Sequence[Sector], etas: Sequence[float]
) -> tuple[list[float], FloatArray, FloatArray]:
    """Return η_q ≥ 0 and the eigenvalues and -vectors of H + size Σ η_q B_q, ascending.

    The exponential keeps to the sectors: log tr exp is convex in η and has the slope
    size · tr(XB_q), which Newton's method takes to zero, or η to none. Nearly: any η
    will do for a bound, so that eight rounds, and slopes of 0.3 % of tr(X|B|), do.
    """
    if not sectors:
        logs, Q = np.linalg.eigh(H)
        return [], logs, Q
    matrices = size * np.array([sector.matrix() for sector in sectors])
    scales = np.abs(matrices).max(axis=(1, 2))
    eta = np.array(etas)
    logs, Q = np.linalg.eigh(H + np.tensordot(eta, matrices, 1))
    for _ in range(8):
        weights = np.exp(logs - logs[-1])
        weights /= weights.sum()
        seen = Q.T @ matrices @ Q
        along = np.einsum("qii->qi", seen)
        slopes = along @ weights
        free = (eta > 0) | (slopes < 0)
        sizes = np.abs(along[free]) @ weights
        if (np.abs(slopes[free]) <= 0.003 * sizes).all():
            break
        curvature = _curvature(seen[free], slopes[free], logs, weights)
        diagonal = np.diag_indices(len(curvature))
        # Sectors may be nearly alike, or have no weight: it would be singular.
        curvature[diagonal] *= 1.02
        curvature[diagonal] += 1e-9 * scales[free] ** 2
        change = np.zeros_like(eta)
        change[free] = np.linalg.solve(curvature, -slopes[free])
        # Far away the second derivatives say nothing: η at most doubles, or is of the
        # size of its sector.
        most = np.maximum(eta, 1.0 / scales)
        change /= max(1.0, float((np.abs(change) / most).max()))
        before = _log_sum(logs)
        for _ in range(4):  # without a line search it is lost where three sectors meet
            trial = np.maximum(eta + change, 0.0)
            there = np.linalg.eigh(H + np.tensordot(trial, matrices, 1))
            if _log_sum(there[0]) <= before:
                break
            change /= 4
        else:
            break
        eta, (logs, Q) = trial, there
    return eta.tolist(), logs, Q


def _log_sum(logs: FloatArray) -> float:
    return float(logs[-1] + np.log(np.exp(logs - logs[-1]).sum()))


def _curvature(
    seen: FloatArray, slopes: FloatArray, logs: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return second derivatives of log tr exp, by divided differences of exp."""
    apart = logs[:, None] - logs
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (weights[:, None] - weights) / apart
    larger = np.maximum(weights[:, None], weights)
    ratio = np.where(np.abs(apart) < 1e-6, larger, ratio)
    curvature = np.einsum("qij,rij,ij->qr", seen, seen, ratio, optimize=True)
    return np.asarray(curvature - np.outer(slopes, slopes))
