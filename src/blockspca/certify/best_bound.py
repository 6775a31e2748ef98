"""The least of the named upper bounds, cheap ones first, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance, as_covariance
from .bounds import (
    best_threshold_bound,
    frobenius_bound,
    largest_eigenvalue_bound,
    row_sum_bound,
    trace_bound,
)
from .dual_bound import dual_bound
from .eigenvalues import eigenvalue_ceiling, psd_shift
from .growth import refute
from .semidefinite import semidefinite_bound

_LARGEST_DENSE = 3000  # features of a matrix that is held and searched
_LARGEST_SEMIDEFINITE = 700
_GAPS = (1.0, 0.3, 0.1, 0.03)  # refuted on the way to the one asked for
_TOLERANCE = 1e-9


@dataclass(frozen=True, order=True)
class NamedBound:
    """An upper bound on opt(k) and where it comes from; the least one sorts first."""

    value: float
    name: str


@dataclass(frozen=True)
class GrowthBound:
    """The bound of `growth_bound`, and the better support it met, if it met one."""

    value: float
    objective: float
    support: NDArray[np.intp]
    sets: int
    exact: bool


def growth_bound(
    A: FloatArray,
    k: int,
    support: Sequence[int] | NDArray[np.intp],
    *,
    time_limit: float = 60.0,
    gap: float = 0.0,
) -> GrowthBound:
    """Bound opt(k) by refuting (1 + g) · objective for smaller and smaller g.

    Each refutation (`growth.refute`) proves opt(k) < τ. A set that reaches τ replaces
    the support, which counts as progress: the search goes on from its value. `exact`
    means that the last refutation was within 1e-9 of max(|objective|, max |A_ij|).
    """
    deadline = time.monotonic() + time_limit
    best = np.sort(np.asarray(support, dtype=np.intp))
    objective = float(np.linalg.eigvalsh(A[np.ix_(best, best)])[-1])
    size = max(abs(objective), float(np.abs(A).max()))
    if size == 0:
        return GrowthBound(0.0, 0.0, best, 0, True)
    bound, sets = np.inf, 0
    gaps = [g for g in _GAPS if g > gap]
    gaps.append(max(gap, _TOLERANCE * size / max(abs(objective), _TOLERANCE * size)))
    position = 0
    while position < len(gaps) and time.monotonic() < deadline:
        tau = objective + gaps[position] * max(abs(objective), _TOLERANCE * size)
        outcome = refute(A, k, tau, time_limit=deadline - time.monotonic())
        sets += outcome.sets
        if outcome.refuted:
            bound = min(bound, tau)
            position += 1
        elif outcome.support is None:
            break
        else:
            found = outcome.support
            value = float(np.linalg.eigvalsh(A[np.ix_(found, found)])[-1])
            if value <= objective:
                break  # within the allowance for rounding: τ cannot be refuted
            objective, best = value, found
    exact = position == len(gaps) and bound - objective <= 2 * _TOLERANCE * size
    return GrowthBound(bound, objective, best, sets, exact)


def best_bound(
    cov: Covariance | FloatArray,
    k: int,
    *,
    time_limit: float,
    incumbent: Sequence[int] | NDArray[np.intp] | None = None,
    survivors: Sequence[int] | NDArray[np.intp] | None = None,
    gap: float = 0.0,
) -> NamedBound:
    """Return the least of the named bounds, cheap ones first.

    Parameters
    ----------
    cov : Covariance or array
    k : int
    time_limit : float
        Seconds, for the bounds that take as long as they are given.
    incumbent : sequence of int, optional
        A good support; without one the bounds that need a value to aim at are skipped.
    survivors : sequence of int, optional
        Bound the optimum over these features only.
    gap : float
        Stop when the bound is within this share of the incumbent's value.
    """
    started = time.monotonic()
    cov = as_covariance(cov)
    features = (
        np.arange(cov.n_features)
        if survivors is None
        else np.sort(np.asarray(survivors))
    )
    k = min(k, len(features))
    target = -np.inf
    if incumbent is not None:
        inner = cov.submatrix(np.asarray(incumbent))
        objective = float(np.linalg.eigvalsh(inner)[-1])
        size = max(abs(objective), float(np.abs(cov.diagonal()).max()))
        target = objective + max(gap * abs(objective), 2 * _TOLERANCE * size)

    def left(share: float = 1.0) -> float:
        return max(0.0, share * (started + time_limit - time.monotonic()))

    A = cov.submatrix(features) if len(features) <= _LARGEST_DENSE else None
    known = [NamedBound(np.inf, "none"), *_cheap_bounds(cov, features, A, k)]

    def try_dual(parts: int, share: float) -> None:
        dual = dual_bound(
            cov,
            k,
            start=incumbent,
            survivors=None if survivors is None else features,
            target=target,
            time_limit=left(share),
            parts=parts,
        )
        known.append(NamedBound(dual.value, "direction dual"))

    def is_open() -> bool:
        return min(known).value > target and left() > 0

    # A shift as large as the optimum itself leaves the dual nothing to work with.
    if is_open() and (cov.known_psd or A is None or psd_shift(A) < abs(target) / 4):
        try_dual(1, 0.2)
        if is_open() and min(known).name == "direction dual":
            try_dual(7, 0.4)
    if A is not None and is_open():
        known.append(NamedBound(best_threshold_bound(A, k)[0], "soft threshold"))
    if A is not None and incumbent is not None and is_open():
        place = np.flatnonzero(np.isin(features, incumbent))
        if len(place):
            grown = growth_bound(A, k, place, time_limit=left(0.7), gap=gap)
            known.append(NamedBound(grown.value, "growth"))
    if A is not None and len(A) <= _LARGEST_SEMIDEFINITE and is_open():
        value = semidefinite_bound(A, k, time_limit=left(), target=target)
        known.append(NamedBound(value, "semidefinite dual"))
    return min(known)


def _cheap_bounds(
    cov: Covariance, features: NDArray[np.intp], A: FloatArray | None, k: int
) -> list[NamedBound]:
    """The bounds that cost no more than an eigenvalue."""
    bounds = []
    if cov.known_psd:
        bounds.append(NamedBound(trace_bound(cov.diagonal()[features], k), "trace"))
        if (cov.n_samples or 0) < len(features):
            bounds.append(
                NamedBound(largest_eigenvalue_bound(cov), "largest eigenvalue")
            )
    if A is not None:
        bounds.append(NamedBound(row_sum_bound(A, k), "row sums"))
        bounds.append(NamedBound(frobenius_bound(A, k), "Frobenius norm"))
        if not cov.known_psd or len(A) <= (cov.n_samples or 0):
            bounds.append(NamedBound(eigenvalue_ceiling(A), "largest eigenvalue"))
        if not cov.known_psd:
            value = trace_bound(np.diagonal(A), k, shift=psd_shift(A))
            bounds.append(NamedBound(value, "trace"))
    return bounds
