"""Densities X = Q diag(w) Q' + w₀ (I − QQ') of trace 1, and mirror steps between them.

All that a step needs of the many directions in which X is least is that they are
alike: the bound holds for any density, so none of this has to be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._validation import FloatArray

_SMALL = 150  # up to this order all eigenvectors are computed
OTHERS = 12  # directions that a space is made of, beside those of the density
_MOST = 24  # directions that are told apart within a space
_LOWEST_LOG = -27.0  # of a weight, beside the largest
_ROUNDS = 8  # of Newton's method
_TRIALS = 4  # of a step of it
_NEAR_ZERO = 0.003  # of tr(X|B|), what tr(XB) may be
_DAMPING = 0.02  # of second derivatives: sides may be nearly alike
_CHANGE = 1.0  # of η times the size of its side, that is always allowed


def is_large(n: int) -> bool:
    """Tell whether densities of this order are stepped within spaces."""
    return n > _SMALL


@dataclass(frozen=True)
class Density:
    """X = Q diag(weights) Q' + rest (I − QQ'), the largest weight first.

    `others` counts the directions outside the coordinates of Q, where X is `rest` too.
    """

    Q: FloatArray
    weights: FloatArray
    rest: float
    others: int = 0

    @property
    def order(self) -> int:
        """How many dimensions there are."""
        return len(self.Q) + self.others

    def within(self, space: FloatArray) -> Density:
        """Return X in the coordinates of a space, an orthonormal basis that holds Q."""
        others = self.order - space.shape[1]
        return Density(space.T @ self.Q, self.weights, self.rest, others)

    def outward(self, space: FloatArray) -> Density:
        """Return what is given in the coordinates of a space."""
        return Density(space @ self.Q, self.weights, self.rest)

    def moved(self, basis: FloatArray) -> Density:
        """Return a density like X for V'y in place of y, V a basis of another space.

        What Q loses by that is made up for by any other directions.
        """
        Q = np.linalg.qr(basis.T @ self.Q)[0]
        weights = self.weights[: Q.shape[1]]
        total = float(weights.sum()) + (len(Q) - Q.shape[1]) * self.rest
        return Density(Q, weights / total, self.rest / total)

    def onto(self, sides: Sequence[Side], floor: float) -> Density:
        """Return the density on the given sides that is nearest to this one.

        In relative entropy, but for the floor.
        """
        normals = [np.stack([q.a, q.b], axis=1) for q in sides]
        space = np.linalg.qr(np.hstack([self.Q, *normals]))[0]
        none = np.zeros((space.shape[1],) * 2)
        seen = [side.within(space) for side in sides]
        within = self.within(space).step(none, 1.0, floor, seen, [0.0] * len(sides))
        return within[0].outward(space)

    def step(
        self,
        B: FloatArray,
        size: float,
        floor: float,
        sides: Sequence[Side] = (),
        multipliers: Sequence[float] = (),
        trace: float | None = None,
    ) -> tuple[Density, list[float]]:
        """Take the mirror step along B, and stay on the given sides.

        Parameters
        ----------
        B : array
        size : float
        floor : float
            No direction gets less than this share of 1/n.
        sides, multipliers : sequence
            tr(XB_q) ≥ 0 is kept for each side; where to look for η first.
        trace : float, optional
            Of all of B, if there are directions outside the coordinates.

        Returns
        -------
        density : Density
            exp(log X + size (B + Σ η_q B_q)), normalised.
        multipliers : list of float
            η_q ≥ 0, zero where the side is kept by itself.
        """
        n = self.order
        trace = float(np.trace(B)) if trace is None else trace
        own = np.log(self.weights / self.rest)
        H = (self.Q * own) @ self.Q.T + size * B
        found, logs, Q = _keep_sides(H, size, sides, multipliers)
        logs, Q = logs[::-1], Q[:, ::-1]
        others = self.others
        mean = logs[-1]
        if others:
            added = sum(
                eta * float(q.a @ q.b) for eta, q in zip(found, sides, strict=True)
            )
            total = float(own.sum()) + size * (trace + added)
            mean = (total - float(logs.sum())) / others
        top = float(logs[0])
        weights = np.exp(np.maximum(logs - top, _LOWEST_LOG))
        outside = others * float(np.exp(np.clip(mean - top, _LOWEST_LOG, 0.0)))
        least = floor / n * (float(weights.sum()) + outside)
        kept = max(1, int((weights > 1.01 * least).sum()))
        if others and is_large(n):
            kept = min(kept, _MOST)
        # What is not told apart weighs the same: too little for one of those
        # directions, and the sum would be large there.
        rest = max(outside / others if others else 0.0, least)
        if kept < len(weights):
            rest = max(rest, float(weights[kept]))
        weights = np.maximum(weights[:kept], rest)
        total = float(weights.sum()) + (n - kept) * rest
        density = Density(Q[:, :kept], weights / total, rest / total, others)
        return density, found

    def space(
        self,
        B: FloatArray,
        sides: Sequence[Side],
        others: FloatArray | None,
        powers: int = 1,
    ) -> FloatArray | None:
        """Return a basis that nearly holds what steps along B lead to; None for all.

        It is the directions of before, and others, and what as many products with B as
        `powers` make of them.
        """
        n = len(B)
        if not is_large(n):
            return None
        if others is None:
            others = np.random.default_rng(0).standard_normal((n, OTHERS))
        last = np.hstack([self.Q, others])
        blocks = [last, *(np.stack([q.a, q.b], axis=1) for q in sides)]
        mean = float(np.trace(B)) / n
        for _ in range(powers):
            last = B @ last - mean * last
            lengths = np.linalg.norm(last, axis=0)
            last /= np.where(lengths > 0, lengths, 1.0)
            blocks.append(last)
        return np.linalg.qr(np.hstack(blocks))[0]


@dataclass(frozen=True)
class Side:
    """The y with (a'y)(b'y) ≥ 0, that is, y'By ≥ 0 with B = (ab' + ba')/2."""

    a: FloatArray
    b: FloatArray

    def matrix(self) -> FloatArray:
        """Return B."""
        half = np.outer(self.a, self.b) / 2
        return half + half.T

    def within(self, space: FloatArray) -> Side:
        """Return the side in the coordinates of a space that holds a and b."""
        return Side(self.a @ space, self.b @ space)


def _keep_sides(
    H: FloatArray,
    size: float,
    sides: Sequence[Side],
    multipliers: Sequence[float],
) -> tuple[list[float], FloatArray, FloatArray]:
    """Return η_q ≥ 0 and the eigenvalues and -vectors of H + size Σ η_q B_q, ascending.

    The exponential keeps to the sides: log tr exp is convex in η and has the slope
    size · tr(XB_q), which Newton's method takes to zero, or η to none. Nearly: any η
    will do for a bound.
    """
    if not sides:
        logs, Q = np.linalg.eigh(H)
        return [], logs, Q
    matrices = size * np.array([side.matrix() for side in sides])
    scales = np.abs(matrices).max(axis=(1, 2))
    eta = np.array(multipliers)
    logs, Q = np.linalg.eigh(H + np.tensordot(eta, matrices, 1))
    for _ in range(_ROUNDS):
        weights = np.exp(logs - logs[-1])
        weights /= weights.sum()
        seen = Q.T @ matrices @ Q
        along = np.einsum("qii->qi", seen)
        slopes = along @ weights
        free = (eta > 0) | (slopes < 0)
        sizes = np.abs(along[free]) @ weights
        if (np.abs(slopes[free]) <= _NEAR_ZERO * sizes).all():
            break
        curvature = _curvature(seen[free], slopes[free], logs, weights)
        diagonal = np.diag_indices(len(curvature))
        curvature[diagonal] *= 1 + _DAMPING
        curvature[diagonal] += 1e-9 * scales[free] ** 2  # or it may be singular
        change = np.zeros_like(eta)
        change[free] = np.linalg.solve(curvature, -slopes[free])
        most = np.maximum(eta, _CHANGE / scales)
        change /= max(1.0, float((np.abs(change) / most).max()))
        before = _log_sum(logs)
        for _ in range(_TRIALS):
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


def concentrated(y: FloatArray, share: float) -> Density:
    """Return the density share · yy' + (1 − share) I/n, for a unit y."""
    rest = (1 - share) / len(y)
    return Density(y[:, None], np.array([share + rest]), rest)
