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
_GAPS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 1e-3)
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
    objective = -np.inf
    if incumbent is not None:
        inner = cov.submatrix(np.asarray(incumbent))
        objective = float(np.linalg.eigvalsh(inner)[-1])
    target = objective + gap * abs(objective)

    def left(share: float = 1.0) -> float:
        return max(0.0, share * (started + time_limit - time.monotonic()))

    dense = len(features) <= _LARGEST_DENSE
    A = cov.submatrix(features) if dense else None
    known = [NamedBound(np.inf, "none")]
    if cov.known_psd:
        known.append(NamedBound(trace_bound(cov.diagonal()[features], k), "trace"))
    if A is not None:
        known.append(NamedBound(row_sum_bound(A, k), "row sums"))
        known.append(NamedBound(frobenius_bound(A, k), "Frobenius norm"))
    if A is not None and not (cov.known_psd and (cov.n_samples or 0) < len(A)):
        known.append(NamedBound(eigenvalue_ceiling(A), "largest eigenvalue"))
        if not cov.known_psd and min(known).value > target:
            shift = psd_shift(A)
            value = trace_bound(np.diagonal(A), k, shift=shift)
            known.append(NamedBound(value, "trace"))
    elif cov.known_psd and survivors is None:
        known.append(NamedBound(largest_eigenvalue_bound(cov), "largest eigenvalue"))
    for parts in (1, 7):
        if min(known).value > target and left() > 0:
            dual = dual_bound(
                cov,
                k,
                start=incumbent,
                survivors=None if survivors is None else features,
                target=target,
                time_limit=left(0.3),
                parts=parts,
            )
            known.append(NamedBound(dual.value, "direction dual"))
    if A is not None and min(known).value > target and left() > 0:
        known.append(NamedBound(best_threshold_bound(A, k)[0], "soft threshold"))
    if A is not None and incumbent is not None and min(known).value > target:
        place = np.searchsorted(features, np.sort(np.asarray(incumbent)))
        inside = place < len(features)
        place = place[inside][features[place[inside]] == np.sort(incumbent)[inside]]
        if len(place):
            grown = growth_bound(A, k, place, time_limit=left(0.7), gap=gap)
            known.append(NamedBound(grown.value, "growth"))
    if A is not None and len(A) <= _LARGEST_SEMIDEFINITE and min(known).value > target:
        value = semidefinite_bound(A, k, time_limit=left(), target=target)
        known.append(NamedBound(value, "semidefinite dual"))
    return min(known)
