"""Densities X = Q diag(w) Q' + w₀ (I − QQ') of trace 1, and mirror steps between them.

All that a step needs of the many directions in which X is least is that they are
alike: the bound holds for any density, so none of this has to be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._validation import FloatArray

_SMALL = 256  # up to this order all eigenvectors are computed
_MOST = 24  # directions that are told apart, above it
_LOWEST_LOG = -27.0
_ROUNDS = 2
_NEAR_ZERO = 3e-3  # error of η, of the bracket that it is in


@dataclass(frozen=True)
class Density:
    """X = Q diag(weights) Q' + rest (I − QQ'), the largest weight first."""

    Q: FloatArray
    weights: FloatArray
    rest: float

    def mean(self, B: FloatArray) -> float:
        """Return tr(XB)."""
        along = np.einsum("ij,ij->j", self.Q, B @ self.Q)
        outside = float(np.trace(B)) - float(along.sum())
        return float(self.weights @ along) + self.rest * outside

    def step(
        self,
        B: FloatArray,
        size: float,
        floor: float,
        sides: Sequence[Side] = (),
        multipliers: Sequence[float] = (),
    ) -> tuple[Density, list[float]]:
        """Take the mirror step along B, and stay on the given sides.

        Parameters
        ----------
        B : array of shape (n, n)
        size : float
        floor : float
            No direction gets less than this share of 1/n.
        sides, multipliers : sequence
            tr(XB_q) ≥ 0 is kept for each side; where to look for η first.

        Returns
        -------
        density : Density
            exp(log X + size (B + Σ η_q B_q)), normalised.
        multipliers : list of float
            η_q ≥ 0, zero where the side is kept by itself.
        """
        n = len(B)
        H = (self.Q * np.log(self.weights / self.rest)) @ self.Q.T + size * B
        space = self._space(H, sides)
        within = H if space is None else space.T @ (H @ space)
        found, within = _keep_sides(within, space, size, sides, multipliers)
        logs, Q = np.linalg.eigh(within)
        logs, Q = logs[::-1], Q[:, ::-1]
        others = n - len(logs)
        mean = (float(np.trace(H)) - float(logs.sum())) / others if others else logs[-1]
        top = float(logs[0])
        weights = np.exp(np.maximum(logs - top, _LOWEST_LOG))
        outside = others * float(np.exp(np.clip(mean - top, _LOWEST_LOG, 0.0)))
        least = floor / n * (float(weights.sum()) + outside)
        kept = max(1, int((weights > 1.01 * least).sum()))
        if space is not None:
            kept, Q = min(kept, _MOST), space @ Q[:, :_MOST]
        # What is not told apart weighs the same: too little for one of those
        # directions, and the sum would be large there.
        rest = max(outside / others if others else 0.0, least)
        if kept < len(weights):
            rest = max(rest, float(weights[kept]))
        weights = np.maximum(weights[:kept], rest)
        total = float(weights.sum()) + (n - kept) * rest
        return Density(Q[:, :kept], weights / total, rest / total), found

    def onto(self, sides: Sequence[Side], floor: float) -> Density:
        """Return the density on the given sides that is nearest to this one.

        In relative entropy, but for the floor.
        """
        none = np.zeros((len(self.Q),) * 2)
        return self.step(none, 1.0, floor, sides, [0.0] * len(sides))[0]

    def _space(self, H: FloatArray, sides: Sequence[Side]) -> FloatArray | None:
        """Return a basis that nearly holds the leading eigenvectors; None for all.

        It is what H makes of the directions of before and a few others.
        """
        n = len(H)
        if n <= _SMALL:
            return None
        wanted = min(_MOST, 2 * len(self.weights) + 8)
        more = max(0, wanted - len(self.weights))
        fixed = np.random.default_rng(0).standard_normal((n, more)) / np.sqrt(n)
        blocks = [self.Q, fixed, *(np.stack([q.a, q.b], axis=1) for q in sides)]
        last = np.hstack([self.Q, fixed])
        mean = float(np.trace(H)) / n
        for _ in range(2):
            last = H @ last - mean * last
            blocks.append(last)
        return np.linalg.qr(np.hstack(blocks))[0]


@dataclass(frozen=True)
class Side:
    """The y with (a'y)(b'y) ≥ 0, that is, y'By ≥ 0 with B = (ab' + ba')/2."""

    a: FloatArray
    b: FloatArray

    def matrix(self, space: FloatArray | None = None) -> FloatArray:
        """Return B, or what it is within a space."""
        a, b = (self.a, self.b) if space is None else (self.a @ space, self.b @ space)
        half = np.outer(a, b) / 2
        return half + half.T


def _keep_sides(
    H: FloatArray,
    space: FloatArray | None,
    size: float,
    sides: Sequence[Side],
    multipliers: Sequence[float],
) -> tuple[list[float], FloatArray]:
    """Return η_q ≥ 0, and H + size Σ η_q B_q, whose exponential keeps to the sides.

    log tr exp is convex in η and has the slope size · tr(XB_q): each η in turn is taken
    to its zero, or to none.
    """
    found = list(multipliers)
    matrices = [size * side.matrix(space) for side in sides]
    total = H + sum(eta * B for eta, B in zip(found, matrices, strict=True))
    for _ in range(_ROUNDS if len(sides) > 1 else 1):
        for q, B in enumerate(matrices):
            eta = _zero(total - found[q] * B, B, found[q])
            total += (eta - found[q]) * B
            found[q] = eta
    return found, total


def _zero(H: FloatArray, B: FloatArray, guess: float) -> float:
    """Return η ≥ 0 with tr(exp(H + ηB) B) = 0, or 0 if it is positive there."""

    def slope(eta: float) -> float:
        logs, Q = np.linalg.eigh(H + eta * B)
        weights = np.exp(logs - logs[-1])
        along = np.einsum("ij,ij->j", Q, B @ Q)
        size = float(weights @ np.abs(along))
        return float(weights @ along) / size if size > 0 else 0.0

    low, high = guess / 2, guess or 1.0 / float(np.abs(B).max())
    if slope(low) >= 0:
        if low == 0 or slope(0.0) >= 0:
            return 0.0
        for _ in range(60):
            low, high = low / 8, low
            if slope(low) < 0:
                break
    for _ in range(60):
        if slope(high) >= 0:
            break
        low, high = high, 2 * high
    else:
        return high
    from scipy.optimize import brentq

    return float(brentq(slope, low, high, rtol=_NEAR_ZERO, xtol=_NEAR_ZERO * high))


def concentrated(y: FloatArray, share: float) -> Density:
    """Return the density share · yy' + (1 − share) I/n, for a unit y."""
    rest = (1 - share) / len(y)
    return Density(y[:, None], np.array([share + rest]), rest)
