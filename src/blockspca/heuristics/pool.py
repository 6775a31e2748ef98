"""Good supports, cheaply: extend by one feature, swap, and restart from rows of A."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..numerics.linalg import SMALL, leading_eigenvector, rayleigh
from ..numerics.rounding import in_units
from ..rules import GroupLimits

# How far above λ(S) the swap test puts its shift: near enough to see small gains,
# far enough to keep τI − A_SS well conditioned.
_SWAP_SHIFT = 1e-7

# −λmin / |λmax| from which on LAPACK's λmax is not right to 1e-12 of itself.
_LOPSIDED = 1e3


class Pool:
    """A growing principal submatrix of A, in units of `unit`.

    Everything after the scan (swaps, proofs) happens inside it.
    """

    def __init__(self, cov: Covariance, unit: float) -> None:
        self.cov = cov
        self.n_features = cov.n_features
        self._unit = unit
        self.features: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.matrix: FloatArray = np.empty((0, 0))
        self._position = np.full(cov.n_features, -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.features)

    def add(self, features: NDArray[np.int64]) -> int:
        """Make sure the features are in; returns how many were new."""
        new = features[self._position[features] < 0]
        if len(new) == 0:
            return 0
        old = len(self.features)
        size = old + len(new)
        self._position[new] = np.arange(old, size)
        within = in_units(self.cov.submatrix(new), self._unit)
        if old == 0:
            self.features, self.matrix = new, within
            return size
        matrix = np.empty((size, size))
        matrix[:old, :old] = self.matrix
        matrix[old:, old:] = within
        cross = in_units(self.cov.submatrix(new, self.features), self._unit)
        matrix[old:, :old] = cross
        matrix[:old, old:] = cross.T
        self.features = np.concatenate([self.features, new])
        self.matrix = matrix
        return len(new)

    def positions(self, features: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the features are in `matrix`."""
        return self._position[features]

    def submatrix(self, features: NDArray[np.int64]) -> FloatArray:
        return self.within(self._position[features])

    def within(self, at: NDArray[np.int64]) -> FloatArray:
        """The part of `matrix` at some positions."""
        return _submatrix(self.matrix, at)


def first_pool(k_max: int) -> int:
    """How many features the first supports for 1, …, k_max are made of."""
    # Ten for each place where that is cheap; the pool holds all entries among its
    # features, and swaps look at each of them.
    return max(4 * k_max, min(10 * k_max, 100))


def _submatrix(matrix: FloatArray, at: NDArray[np.int64]) -> FloatArray:
    return matrix.take(at, 0).take(at, 1)  # half the time of an index


def leading_pair(
    matrix: FloatArray, support: NDArray[np.int64]
) -> tuple[float, FloatArray]:
    """λ(S) and its eigenvector."""
    if len(support) == 1:
        return float(matrix[support[0], support[0]]), np.ones(1)
    within = _submatrix(matrix, support)
    if len(support) > SMALL:
        x = leading_eigenvector(within)
        return rayleigh(within, x), x
    values, vectors = _eigen(within)
    return float(values[-1]), vectors[:, -1]


@cache
def _lapack() -> Any:
    # SciPy is not for those who only import: solvers are imported with the package.
    from scipy.linalg import lapack

    return lapack


def _eigen(within: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, ascending, and eigenvectors, as `numpy.linalg.eigh` has them.

    For a handful of features the checks of `eigh` take longer than LAPACK. The largest
    is what its eigenvector reaches where LAPACK's may be more.
    """
    values, vectors, failed = _lapack().dsyevd(within)
    if failed:
        values, vectors = np.linalg.eigh(within)
    if -values[0] > _LOPSIDED * abs(values[-1]):
        # LAPACK errs by eps times the largest |λ|; the Rayleigh quotient does not.
        values[-1] = rayleigh(within, vectors[:, -1])
    return values, vectors


Resolvent = Callable[[float], FloatArray]


def _spectrum(
    within: FloatArray, pair: tuple[float, FloatArray] | None = None
) -> tuple[float, FloatArray, Resolvent]:
    """λ, its eigenvector and τ ↦ (τI − A_SS)^{-1} for A_SS; `pair` is λ and x."""
    if len(within) > SMALL:  # all eigenvalues would cost more than the inverse
        if pair is None:
            x = leading_eigenvector(within)
            pair = rayleigh(within, x), x
        value, x = pair
        identity = np.eye(len(x))
        return value, x, lambda tau: np.linalg.inv(tau * identity - within)
    values, vectors = _eigen(within)
    return (
        float(values[-1]),
        vectors[:, -1],
        lambda tau: (vectors / (tau - values)) @ vectors.T,
    )


def extended(
    matrix: FloatArray,
    support: NDArray[np.int64],
    size: int,
    pair: tuple[float, FloatArray] | None = None,
    groups: GroupLimits | None = None,
) -> NDArray[np.int64]:
    """Add features one by one, each time the best by λmax [[λ(S), b], [b, A_jj]].

    b = x'A_Sj with x the eigenvector of S, so the 2×2 value is a lower bound on
    λ(S ∪ {j}) and the objective never falls.  `pair` is λ(S) and x, if known. With
    groups, which have room for `size` features, their limits are kept.
    """
    diagonal = matrix.diagonal()
    while len(support) < size:
        if len(support) == 0:
            support = diagonal.argmax(axis=0, keepdims=True)  # as an array
            continue
        value, x = pair or leading_pair(matrix, support)
        pair = None
        coupling = x.dot(matrix.take(support, 0))
        half = (diagonal - value) / 2
        scores = half + np.hypot(half, coupling)  # less λ(S), the same for all
        scores[support] = -np.inf
        if groups is not None:
            scores[groups.closed_to(support)] = -np.inf
        added = np.empty(len(support) + 1, dtype=np.int64)
        added[:-1], added[-1] = support, scores.argmax()
        support = added
    return support


def extended_at_once(
    matrix: FloatArray,
    support: NDArray[np.int64],
    size: int,
    groups: GroupLimits | None,
) -> NDArray[np.int64]:
    """Add the features that `extended` would look at first, all in one step.

    For when time is up: one eigenvector in place of one for each feature.
    """
    missing = size - len(support)
    if missing <= 0:
        return support
    diagonal = matrix.diagonal()
    if len(support) == 0:
        scores = diagonal.copy()
    else:
        value, x = leading_pair(matrix, support)
        half = (diagonal - value) / 2
        scores = half + np.hypot(half, x @ matrix.take(support, 0))
        scores[support] = -np.inf
    order = np.argsort(-scores, kind="stable")
    if groups is not None:
        return groups.first(
            np.concatenate([support, order[: -len(support) or None]]), size
        )
    return np.concatenate([support, order[:missing]])


Swapped = tuple[NDArray[np.int64], float, FloatArray]


def swaps(
    matrix: FloatArray,
    support: NDArray[np.int64],
    groups: GroupLimits | None = None,
    pair: tuple[float, FloatArray] | None = None,
) -> Iterator[Swapped]:
    """Yield S, λ(S) and its eigenvector: as given, then after each swap that raises λ.

    With M = (τI − A_SS)^{-1}, V = M A_S· and q_j = A_jS V_j, all swaps at once:

        λ(S \\ {i} ∪ {j}) > τ   ⇔   A_jj + q_j − V_ij² / M_ii > τ,

    by the Schur complement and the deletion formula for M.  O(k² n) a round.  With
    groups, their limits are kept.  `pair` is λ(S) and x, if known.
    """
    diagonal = matrix.diagonal()
    value, x, resolvent = _spectrum(_submatrix(matrix, support), pair)
    spread = max(abs(value), float(np.abs(diagonal[support]).max())) or 1.0
    while True:
        yield support, value, x
        if len(support) == len(matrix):
            return
        spread = max(spread, abs(value))  # or τ is λ itself once that has grown
        tau = value + _SWAP_SHIFT * spread
        rows, columns = matrix[support], np.arange(len(matrix))
        if 2 * len(support) > len(matrix):  # most columns are those of the support
            columns = np.delete(columns, support)
            rows = rows[:, columns]
        inverse = resolvent(tau)
        V = inverse @ rows
        scores = V * V
        scores /= -inverse.diagonal()[:, None]
        scores += diagonal[columns] + np.einsum("ij,ij->j", rows, V)
        if len(columns) == len(matrix):
            scores[:, support] = -np.inf
        if groups is not None:
            scores[~groups.exchanges(support)[:, columns]] = -np.inf
        best = int(np.argmax(scores))
        i, j = divmod(best, len(columns))
        if not scores[i, j] > tau:
            return
        candidate = support.copy()
        candidate[i] = columns[j]
        raised = _spectrum(_submatrix(matrix, candidate))
        if not raised[0] > value:
            return
        support = candidate
        value, x, resolvent = raised


def swapped(
    matrix: FloatArray,
    support: NDArray[np.int64],
    max_swaps: int = 1000,
    stop: Callable[[], bool] = lambda: False,
    groups: GroupLimits | None = None,
    pair: tuple[float, FloatArray] | None = None,
) -> Swapped:
    """The last of `swaps`; `stop` is asked before each round, True ends them."""
    found = swaps(matrix, support, groups, pair)
    last = next(found)
    for _ in range(max_swaps):
        if stop():
            break
        better = next(found, None)
        if better is None:
            break
        last = better
    return last


def best_supports(
    matrix: FloatArray, supports: NDArray[np.int64], n_best: int
) -> NDArray[np.int64]:
    """The n_best rows S of `supports` with the largest λ(S), best first."""
    supports = np.unique(np.sort(supports, axis=1), axis=0)
    blocks = matrix[supports[:, :, None], supports[:, None, :]]
    values = np.linalg.eigvalsh(blocks)[:, -1]
    return supports[np.argsort(-values, kind="stable")[:n_best]]
