"""Optimise the direction dual: mirror ascent over densities, and parts of the sphere.

If the density ends up spread over two directions, the relaxation mixes vectors y that
differ in them.  Cut their plane into wedges, and the sphere with it: y is in the wedge
between two lines exactly when y'My ≥ 0, M = ab' + ba', with a and b the normals of the
lines, pointing inwards.  On that part of the sphere, adding ηM to the sum for any η ≥ 0
keeps the bound valid; the largest of the parts' bounds is a bound for all y.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance, as_covariance
from .direction_dual import rounding_of_sum, supergradient
from .eigenvalues import eigenvalue_ceiling, psd_shift

_EPS = float(np.finfo(float).eps)
_LARGEST_DENSE = 6000  # features of a matrix that are factorized at most
_WEDGES = 6  # fewer than three cannot cut off a density without correlation
_ENTRIES = 2**26  # of C that are held at most: 512 MiB


@dataclass(frozen=True)
class DualBound:
    """An upper bound on opt(k) and how it came about.

    Attributes
    ----------
    value : float
        opt(k) ≤ value, rounding included.
    penalty : float
        The ρ of the bound (of the weakest part, if there are several).
    iterations, parts : int
        Steps of ascent, and parts of the sphere that were bounded apart.
    elapsed : float
        Seconds.
    """

    value: float
    penalty: float
    iterations: int
    parts: int
    elapsed: float


def dual_bound(
    cov: Covariance | FloatArray,
    k: int,
    *,
    start: Sequence[int] | NDArray[np.intp] | None = None,
    survivors: Sequence[int] | NDArray[np.intp] | None = None,
    target: float = -np.inf,
    time_limit: float = 10.0,
    iterations: int = 150,
    parts: int = 1,
) -> DualBound:
    """Bound opt(k) by the direction dual, with ρ and the directions optimised.

    Parameters
    ----------
    cov : Covariance or array
        Made from data, or a matrix; an indefinite one is shifted by its smallest
        eigenvalue, which x'x = 1 makes harmless.
    k : int
    start : sequence of int, optional
        A good support. The better it is, the fewer steps are needed; the bound holds
        for any.
    survivors : sequence of int, optional
        Bound the optimum over these features only.
    target : float
        Stop as soon as the bound is this low.
    time_limit, iterations : float, int
        Where to stop; `iterations` is per part.
    parts : int
        How many parts of the sphere may be bounded apart: 1, or 7 and more.

    Notes
    -----
    A step costs O(n² p) for the p features with A_ii > ρ, and the result is valid
    whenever it stops.
    """
    started = time.monotonic()
    cov = as_covariance(cov)
    problem = _problem(cov, k, start, survivors)
    if problem is None:
        elapsed = time.monotonic() - started
        return DualBound(np.inf, 0.0, 0, 1, elapsed)
    deadline = started + time_limit
    target = target / problem.unit + problem.shift - problem.slack
    root = _Part(problem)
    root.ascend(iterations, target, deadline)
    steps = root.steps
    # The weakest part first; the second entry settles ties.
    heap: list[tuple[float, int, _Part]] = [(-root.bound, 0, root)]
    while (
        len(problem.C) > 1
        and len(heap) + _WEDGES <= parts
        and -heap[0][0] > target
        and time.monotonic() < deadline
    ):
        _, _, weakest = heapq.heappop(heap)
        for child in weakest.split():
            child.ascend(iterations, target, deadline)
            steps += child.steps
            heapq.heappush(heap, (-child.bound, steps, child))
    value = max(part.proved() for _, _, part in heap)
    return DualBound(
        float((value + problem.slack - problem.shift) * problem.unit),
        float(heap[0][2].best_penalty * problem.unit),
        steps,
        len(heap),
        time.monotonic() - started,
    )


@dataclass
class _Problem:
    """Columns that matter, longest first; the rest is no longer than `floor`.

    All in multiples of `unit`, a power of four near the largest variance.
    """

    C: FloatArray
    norms: FloatArray
    k: int
    floor: float
    penalty: float
    leading: FloatArray
    unit: float
    shift: float = 0.0
    slack: float = 0.0


def _problem(
    cov: Covariance,
    k: int,
    start: Sequence[int] | NDArray[np.intp] | None,
    survivors: Sequence[int] | NDArray[np.intp] | None,
) -> _Problem | None:
    everything = np.arange(cov.n_features)
    features = everything if survivors is None else np.asarray(survivors, dtype=np.intp)
    k = min(k, len(features))
    shift = slack = 0.0
    if not cov.known_psd:
        if cov.n_features > _LARGEST_DENSE:
            return None
        shift = psd_shift(cov.submatrix(features))
    diagonal = cov.diagonal()[features] + shift
    if not diagonal.max() > 0:
        return None
    unit = 4.0 ** np.floor(np.log2(diagonal.max()) / 2)
    diagonal /= unit
    shift /= unit
    start = _default_start(cov, k, features) if start is None else np.asarray(start)
    x = np.zeros(cov.n_features)
    x[start] = np.linalg.eigh(cov.submatrix(start) / unit)[1][:, -1]
    image = cov.matvec(x) / unit + shift * x
    scores = image[features] ** 2 / max(float(x @ image), np.finfo(float).tiny)
    penalty = float(np.partition(scores, len(features) - k)[len(features) - k])
    penalty = max(penalty, 1e-3 * float(np.sort(diagonal)[-k:].mean()))
    order = np.argsort(-diagonal, kind="stable")
    rows = cov.n_samples if cov.known_psd and cov.n_samples else None
    most = len(order) if rows is None else max(k, _ENTRIES // rows)
    count = min(int((diagonal > 0.8 * penalty).sum()), most)
    chosen = features[order[:count]]
    floor = float(diagonal[order[count]]) if count < len(order) else 0.0
    floor *= 1 + 8 * ((rows or 0) + 4) * _EPS
    if rows is not None:
        C = cov.factor_columns(chosen) / np.sqrt(unit)
        if len(C) > count:
            C = np.linalg.qr(C, mode="reduced")[1]
            slack = 8 * (rows + count) * _EPS * float(diagonal[order[:count]].sum())
    else:
        # A little more on the diagonal, so that rounding cannot stop the factorization
        slack = 8 * (count + 4) * _EPS * float(diagonal[order[:count]].sum())
        inner = cov.submatrix(chosen) / unit + (shift + slack) * np.eye(count)
        C = np.linalg.cholesky(inner).T
        slack *= 2
    leading = C @ x[chosen]
    if not np.linalg.norm(leading) > 0:
        leading = C[:, 0].copy()
    leading /= np.linalg.norm(leading)
    norms = np.einsum("ij,ij->j", C, C)
    longest_first = np.argsort(-norms, kind="stable")
    C, norms = C[:, longest_first], norms[longest_first]
    return _Problem(C, norms, k, floor, penalty, leading, unit, shift, slack)


def _default_start(
    cov: Covariance, k: int, features: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Truncated power steps from the feature of the largest variance."""
    diagonal = cov.diagonal()[features]
    x = np.zeros(cov.n_features)
    x[features[int(diagonal.argmax())]] = 1.0
    chosen = features[:0]
    for _ in range(20):
        image = cov.matvec(x)[features]
        image += max(0.0, -float(diagonal.min())) * x[features]
        top = np.argpartition(-np.abs(image), k - 1)[:k]
        if np.array_equal(np.sort(features[top]), np.sort(chosen)):
            break
        chosen = features[top]
        x[:] = 0.0
        x[chosen] = image[top] / max(
            float(np.linalg.norm(image[top])), np.finfo(float).tiny
        )
    return np.sort(chosen)


@dataclass
class _Part:
    """Mirror ascent for the vectors y with y'My ≥ 0 for each M in `sides`."""

    problem: _Problem
    sides: list[FloatArray] = field(default_factory=list)
    multipliers: list[float] = field(default_factory=list)
    log_density: FloatArray | None = None
    penalty: float = 0.0
    value: float = np.inf
    best_penalty: float = 0.0
    steps: int = 0
    parent: _Part | None = None

    def __post_init__(self) -> None:
        if self.log_density is None:
            n = len(self.problem.C)
            y = self.problem.leading
            # The logarithm of (3/10) yy' + (7/10) I/n, up to a constant
            self.log_density = np.log1p(3 * n / 7) * np.outer(y, y)
            self.penalty = max(self.problem.penalty, self.problem.floor)
        self._best_total: FloatArray | None = None
        self._best_multipliers: list[float] = []
        self._density: tuple[FloatArray, FloatArray] | None = None

    def ascend(self, iterations: int, target: float, deadline: float) -> None:
        """Take up to `iterations` steps; stop at the target or when they stall."""
        problem, k = self.problem, self.problem.k
        H = self.log_density
        assert H is not None
        latest = 0
        for step in range(iterations):
            logs, basis = np.linalg.eigh(H)
            weights = np.exp(np.maximum(logs - logs[-1], -27.0))
            weights /= weights.sum()
            self.penalty = max(self.penalty, problem.floor, np.finfo(float).tiny)
            total, support_size, estimate = supergradient(
                problem.C, problem.norms, weights, basis, self.penalty
            )
            for side, multiplier in zip(self.sides, self.multipliers, strict=True):
                total += multiplier * side
            value = k * self.penalty + float(np.linalg.eigvalsh(total)[-1])
            self.steps += 1
            if value < self.value:
                if value < self.value - 1e-4 * abs(value):
                    latest = step
                self.value, self.best_penalty = value, self.penalty
                self._best_total, self._density = total, (weights, basis)
                self._best_multipliers = list(self.multipliers)
            reference = max(abs(k * self.penalty + estimate), 1e-300)
            if step - latest > 30 or (
                not self.sides and self.value - reference < 1e-5 * reference
            ):
                break
            if self.value <= target or time.monotonic() > deadline:
                break
            size = 2.0 / (1 + step / 50)
            H = (basis * np.log(weights)) @ basis.T + size / reference * total
            for q, side in enumerate(self.sides):
                slope = float(((side @ basis) * basis).sum(axis=0) @ weights)
                self.multipliers[q] = max(
                    0.0, self.multipliers[q] - 0.1 * size * reference * slope
                )
            self.penalty *= (max(support_size, 0.1 * k) / k) ** 0.3
        self.log_density = H

    def split(self) -> list[_Part]:
        """Cut the plane of the two leading directions of the density into wedges."""
        assert self._density is not None
        _, basis = self._density
        plane = basis[:, [-1, -2]]
        edges = np.arange(_WEDGES + 1) * np.pi / _WEDGES
        inwards = plane @ np.stack([-np.sin(edges), np.cos(edges)])
        children = []
        for q in range(_WEDGES):
            M = np.outer(inwards[:, q], -inwards[:, q + 1])
            child = _Part(
                self.problem,
                [*self.sides, M + M.T],
                [*self.multipliers, 0.0],
                self.log_density,
                self.best_penalty,
                parent=self,
            )
            children.append(child)
        return children

    @property
    def bound(self) -> float:
        """The bound of this part or of one that contains it, but for rounding."""
        return self.value if self.parent is None else min(self.value, self.parent.bound)

    def proved(self) -> float:
        """Return the bound of this part, rounding included."""
        if self.parent is not None and self.parent.bound <= self.value:
            return self.parent.proved()
        assert self._best_total is not None
        constant = self.problem.k * self.best_penalty
        size = constant + sum(2 * abs(eta) for eta in self._best_multipliers)
        value = constant + eigenvalue_ceiling(self._best_total)
        return value + rounding_of_sum(self.problem.C, self._best_total, size)
