"""Screening and row sums, rounded up: docs/proof-format.md, sections 4 and 5.

All that is used of A are float64 numbers that are no smaller. A sum of q non-negative
numbers has a relative error of at most (q + 4)u; `UP` and the like allow twice that.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from .reading import ProofError

UNIT = 2.0**-53
TINY = 2.0**-1000  # more than what squares can lose by underflow
WHOLE = 1500  # features of which whole rows are listed
MOST = 20_000  # features of a tree: its matrix has 3 GiB


class Matrix(Protocol):
    """A symmetric matrix A in float64, each number within `error` of the exact one.

    `is_psd` states that A is positive semidefinite.
    """

    size: int
    is_psd: bool
    error: float
    diagonal: np.ndarray

    def block(self, features: np.ndarray) -> np.ndarray:
        """Return entries on some features."""
        ...

    def lists(
        self, features: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the largest |A_ij| of each row of some features, among these.

        They fall in each row. Then their positions in `features`, −1 where there are no
        more, and an error of their own.
        """
        ...


def up(x: np.ndarray, terms: int = 0) -> np.ndarray:
    """Return numbers no smaller than those ≥ 0 of which x are roundings."""
    return x * (1 + (2 * terms + 16) * UNIT)


def largest_row_sum(matrix: Matrix, k: int) -> Fraction:
    """Return a number that is at least the bound of the rule `rows`.

    Rows that rounding does not separate from the largest are added exactly.
    """
    values, _, error = matrix.lists(np.arange(matrix.size), k - 1)
    sums = matrix.diagonal + values.sum(axis=1)
    sizes = np.abs(matrix.diagonal) + values.sum(axis=1)
    near = np.flatnonzero(sums >= sums.max() - (4 * k + 16) * UNIT * sizes.max())
    largest = max(
        sum(map(Fraction, values[i].tolist()), Fraction(float(matrix.diagonal[i])))
        for i in near
    )
    return largest + Fraction(matrix.error) + (k - 1) * Fraction(error)


class Screening:
    """Drops features by Lemma 1, for several questions (k, τ, u).

    Features that all sets include stay: u says nothing about sets without them.
    """

    def __init__(
        self,
        matrix: Matrix,
        questions: Sequence[tuple[int, float, float]],
        include: np.ndarray,
    ) -> None:
        self._stays = np.zeros(matrix.size, dtype=bool)
        self._stays[include] = True
        self.matrix = matrix
        self.top = matrix.diagonal
        if matrix.error > 0:
            self.top = np.nextafter(self.top + matrix.error, np.inf)
        self._width = 2 * max((k for k, *_ in questions), default=0) + 16
        self._union = np.zeros(0, dtype=np.int64)
        for question in questions:
            self._union = np.union1d(self._union, self._by_variance(*question))
        self._lists: tuple[np.ndarray, np.ndarray, float] | None = None

    def survivors(self, k: int, tau: float, u: float) -> np.ndarray:
        """Return the features that may be in a k-set above τ."""
        features = self._by_variance(k, tau, u)
        if u <= tau and len(features) > WHOLE:
            if self._lists is None:
                self._lists = self.matrix.lists(self._union, self._width)
            alive = np.isin(self._union, features)
            features = self._union[
                self._drop(self._union, self._lists, alive, k, tau, u)
            ]
        before = len(features) + 1
        while u <= tau and 1 < len(features) < before:
            before = len(features)
            width = before - 1 if before <= WHOLE else self._width
            lists = self.matrix.lists(features, width)
            alive = np.ones(before, dtype=bool)
            features = features[self._drop(features, lists, alive, k, tau, u)]
        if len(features) > MOST:
            raise ProofError(
                f"k = {k}: screening leaves {len(features)} features, and a tree can "
                f"have {MOST} at most"
            )
        return features

    def _by_variance(self, k: int, tau: float, u: float) -> np.ndarray:
        """Use A_ij² ≤ A_ii A_jj: the features left, of a semidefinite matrix."""
        alive = np.ones(len(self.top), dtype=bool)
        top = np.maximum(self.top, 0.0)
        while self.matrix.is_psd and k > 1 and u <= tau:
            largest = np.sort(top[alive])[::-1][: k - 1].sum()
            squares = up(top * largest, k) + TINY * (top > 0)
            out = alive & ~self._stays & self._excluded(squares, self.top, tau, u)
            if not out.any():
                break
            alive &= ~out
        return np.flatnonzero(alive)

    @staticmethod
    def _excluded(
        squares: np.ndarray, top: np.ndarray, tau: float, u: float
    ) -> np.ndarray:
        room = (tau - top) * (tau - u) * (1 - 8 * UNIT)
        excluded: np.ndarray = (top <= tau) & (squares <= room)
        return excluded

    def _drop(
        self,
        features: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray, float],
        alive: np.ndarray,
        k: int,
        tau: float,
        u: float,
    ) -> np.ndarray:
        """Return the mask of the features left once no more can be dropped.

        Entries that are not in a list count as its last one.
        """
        values, positions, error = lists
        is_whole = values.shape[1] >= len(features) - 1
        last = np.zeros(len(values)) if is_whole else values[:, -1]
        top = self.top[features]
        while True:
            rows = np.flatnonzero(alive)
            stays = self._stays[features[rows]]
            inside = alive[positions[rows]] & (positions[rows] >= 0)
            inside &= np.cumsum(inside, axis=1) <= k - 1
            squares = (values[rows] ** 2 * inside).sum(axis=1)
            missing = min(k - 1, len(rows) - 1) - inside.sum(axis=1)
            squares += np.maximum(missing, 0) * last[rows] ** 2
            squares += TINY * ((values[rows] * inside).any(axis=1) | (last[rows] > 0))
            norms = up(np.sqrt(squares), values.shape[1]) + up(
                np.sqrt(np.float64(k)) * error
            )
            out = rows[~stays & self._excluded(up(norms**2), top[rows], tau, u)]
            if not len(out):
                return alive
            alive[out] = False
