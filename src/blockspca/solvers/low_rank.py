"""Exact sparse PCA of a rank-r approximation of A, with a bound for A itself."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import largest_eigenvalue_bound, row_sum_bound
from ..guarantee import within_factor
from ..numerics.linalg import largest_entries, symmetric_eigenvalues
from ..numerics.rounding import EPS
from ..status import Status
from .base import Deadline, Guarantee, Limits
from .template import BaseSolver, SolverRun

TOLERANCE = 1e-10  # relative; directions that are better by less are not looked for
NARROWEST = 1e-9  # half-width of the smallest box of directions
SCORES_AT_ONCE = 2**19  # boxes in a batch, times d
BOXES_KEPT = 2**18  # at one width: some megabytes
ENUMERATE_BELOW = 2**-6  # half-width at which few features are undecided
SUPPORTS_PER_BOX = 256


def additive_guarantee(delta: float) -> Guarantee:
    """objective ≥ OPT − δ, for semidefinite matrices with λ_{r+1} ≤ δ."""
    return Guarantee(lambda k, d: 1.0, lambda k, d: delta, assumes_psd=True)


class LowRank(BaseSolver):
    """max x'A_r x exactly, where A_r keeps the r largest eigenvalues of A.

    With A_r = VV', V of r columns, the optimum is max over unit vectors c in r
    dimensions of the sum of the k largest (Vc)_i². So directions c are searched, not
    supports: boxes of directions are bounded, those that fix the k largest entries are
    settled exactly, and the others are cut in half.

    For positive semidefinite A, with δ = λ_{r+1}(A),

        OPT − δ ≤ OPT(A_r) ≤ objective ≤ OPT ≤ OPT(A_r) + δ .

    δ depends on the matrix, so the promise made beforehand is the one that holds for
    all of them, d/k (the leading eigenvector cut to k entries already has it). What
    holds for the matrix at hand is the solution's `upper_bound`, and `guarantee_on(A)`.
    An indefinite A is shifted by a multiple of the identity first.

    Parameters
    ----------
    rank : int
        The r of A_r; the search takes time exponential in it.

    Notes
    -----
    Nodes are boxes. The number of different sets of k largest entries is at most of
    order d^r; most boxes are dropped by their bound. Stopped early, the bounds of the
    open boxes enter `upper_bound`.

    References
    ----------
    Asteris, M., Papailiopoulos, D., Kyrillidis, A. and Dimakis, A. (2015). Sparse PCA
    via bipartite matchings. Advances in Neural Information Processing Systems 28.

    Papailiopoulos, D., Dimakis, A. and Korokythakis, S. (2013). Sparse PCA through
    low-rank approximations. International Conference on Machine Learning.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.solvers import LowRank
    >>> LowRank(rank=2).solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).support
    array([0, 1])
    >>> round(LowRank(rank=2).guarantee_on(np.diag([3.0, 2.0, 1.0])).error(1, 3), 6)
    1.0
    """

    name = "low rank"
    guarantee = within_factor(lambda k, d: max(1.0, d / k))
    _positive_integers = ("rank",)

    def __init__(self, rank: int = 2) -> None:
        self.rank = rank

    def guarantee_on(self, A: FloatArray) -> Guarantee:
        """m = 1 and a = λ_{r+1}(A): what holds for A and all its blocks.

        A principal submatrix has no larger (r + 1)-th eigenvalue than A.
        """
        self._check_parameters()
        eigenvalues = symmetric_eigenvalues(A)
        size = float(np.abs(eigenvalues).max())
        error = 4 * len(A) * EPS * size
        if self.rank < len(A):
            error += max(0.0, float(eigenvalues[-1 - self.rank]))
        return additive_guarantee(error)

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        run.offer(largest_entries(run.variances, k))
        run.tighten(row_sum_bound(A, k))
        eigenvalues, vectors = np.linalg.eigh(A)
        # An indefinite A has no real factor V; adding δI moves every objective by δ.
        shift = max(0.0, -float(eigenvalues[0]))
        r = min(self.rank, len(A))
        V = vectors[:, -r:] * np.sqrt(np.maximum(eigenvalues[-r:] + shift, 0.0))
        search = _Directions(V, k)
        stopped = search.run(run.deadline, run.limits)
        run.nodes = search.nodes
        run.offer(search.support)
        residual = A - V @ V.T
        residual[np.diag_indices_from(residual)] += shift
        rest = min(row_sum_bound(residual, k), largest_eigenvalue_bound(residual))
        slack = 8 * len(A) * EPS * (search.upper_bound + shift)
        run.tighten(search.upper_bound + rest - shift + slack)
        run.tighten(largest_eigenvalue_bound(A))
        run.stopped = stopped


@dataclass(frozen=True)
class _Boxes:
    """Directions c with c[face] = 1 and the other entries within a cube, in [−1, 1]."""

    faces: NDArray[np.intp]
    centres: FloatArray
    bounds: FloatArray

    def directions(self, r: int) -> FloatArray:
        """Unit vectors through the centres."""
        c = np.ones((len(self.faces), r))
        others = np.arange(r) != self.faces[:, None]
        c[others] = self.centres.ravel()
        return c / np.linalg.norm(c, axis=1, keepdims=True)

    def part(self, rows: slice) -> _Boxes:
        return _Boxes(self.faces[rows], self.centres[rows], self.bounds[rows])

    def halved(self, width: float) -> _Boxes:
        """Cut each box in half along every axis; `width` is the new half-width."""
        axes = self.centres.shape[1]
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * axes)).reshape(axes, -1).T
        centres = (self.centres[:, None, :] + width * signs).reshape(-1, axes)
        times = len(signs)
        return _Boxes(
            np.repeat(self.faces, times), centres, np.repeat(self.bounds, times)
        )


class _Directions:
    """max over unit c of the sum of the k largest (Vc)_i², by halving boxes."""

    def __init__(self, V: FloatArray, k: int) -> None:
        self.V = V
        self.k = k
        self.norms = np.linalg.norm(V, axis=1)
        self.support = largest_entries(self.norms, k)
        self.value = self.value_of(self.support[None])[0]
        self.upper_bound = float(np.sort(self.norms**2)[-k:].sum())
        self.settled = -math.inf  # bound of boxes that are too narrow to cut
        self.nodes = 0
        self.tried: set[tuple[bytes, bytes]] = set()

    def value_of(self, supports: NDArray[np.intp]) -> FloatArray:
        rows = self.V[supports]
        return symmetric_eigenvalues(rows.transpose(0, 2, 1) @ rows)[:, -1]

    def offer(self, supports: NDArray[np.intp]) -> None:
        values = self.value_of(supports)
        winner = int(values.argmax())
        if values[winner] > self.value:
            self.value, self.support = float(values[winner]), supports[winner]

    def enumerate(
        self, score: FloatArray, reach: FloatArray, upper: FloatArray
    ) -> bool:
        """Try every support that can be the best in one box, if there are few."""
        d, k = len(score), self.k
        lower = score - reach
        possible = np.flatnonzero(upper >= np.partition(lower, d - k)[d - k])
        certain = np.flatnonzero(lower > np.partition(upper, d - k - 1)[d - k - 1])
        undecided = np.setdiff1d(possible, certain)
        # With more supports it is faster to halve the box, which decides some features.
        if math.comb(len(undecided), k - len(certain)) > SUPPORTS_PER_BOX:
            return False
        key = (certain.tobytes(), undecided.tobytes())
        if key not in self.tried:
            self.tried.add(key)
            chosen = itertools.combinations(undecided.tolist(), k - len(certain))
            self.offer(np.array([[*certain.tolist(), *rest] for rest in chosen]))
        return True

    def run(self, deadline: Deadline, limits: Limits) -> Status:
        r = self.V.shape[1]
        # The whole sphere, up to sign.
        boxes = _Boxes(np.arange(r), np.zeros((r, r - 1)), np.full(r, math.inf))
        width = 1.0 if r > 1 else 0.0
        status = Status.FEASIBLE
        while len(boxes.faces):
            stopped = self.level(boxes, width, deadline, limits)
            if isinstance(stopped, Status):
                status = stopped
                break
            boxes = stopped
            if width <= NARROWEST or len(boxes.faces) > BOXES_KEPT:
                if width > NARROWEST:
                    status = Status.MEMORY_LIMIT
                self.settled = max(self.settled, float(boxes.bounds.max(initial=0.0)))
                break
            width /= 2
            boxes = boxes.halved(width)
        reached = max(self.value * (1 + TOLERANCE), self.settled)
        self.upper_bound = min(self.upper_bound, reached)
        return status

    def level(
        self, boxes: _Boxes, width: float, deadline: Deadline, limits: Limits
    ) -> _Boxes | Status:
        """Bound all boxes of one width; return those that are still of interest."""
        d, r = self.V.shape
        k = self.k
        step = max(1, SCORES_AT_ONCE // d)
        kept: list[_Boxes] = []
        for start in range(0, len(boxes.faces), step):
            over = limits.nodes is not None and self.nodes >= limits.nodes
            # One batch at least, or there would be no bound.
            if over or (self.nodes and deadline.passed()):
                open_bound = max(
                    [float(boxes.bounds[start:].max())]
                    + [float(part.bounds.max(initial=0.0)) for part in kept]
                )
                self.settled = max(self.settled, open_bound)
                return Status.NODE_LIMIT if over else Status.TIME_LIMIT
            batch = boxes.part(slice(start, start + step))
            self.nodes += len(batch.faces)
            directions = batch.directions(r)
            scores = np.abs(directions @ self.V.T)
            # unit vectors through a box differ by at most its half-diagonal
            reach = width * math.sqrt(r - 1) * self.norms
            upper = np.minimum(scores + reach, self.norms)
            top = np.argpartition(-scores, min(k, d - 1), axis=1)
            inside, outside = top[:, :k], top[:, k:]
            largest = np.partition(upper, d - k, axis=1)[:, d - k :]
            bounds = np.minimum(batch.bounds, np.einsum("ij,ij->i", largest, largest))
            # A box in which the k largest stay the k largest has one best support,
            # which is offered: nothing is left to look for.
            lower = np.take_along_axis(scores - reach, inside, axis=1).min(axis=1)
            above = np.take_along_axis(upper, outside, axis=1).max(
                axis=1, initial=-math.inf
            )
            settled = lower >= above
            self.offer(inside)
            alive = np.flatnonzero((bounds > self.value * (1 + TOLERANCE)) & ~settled)
            if width <= ENUMERATE_BELOW:
                hard = [not self.enumerate(scores[i], reach, upper[i]) for i in alive]
                alive = alive[np.array(hard, dtype=bool)]
            kept.append(_Boxes(batch.faces[alive], batch.centres[alive], bounds[alive]))
        return _Boxes(
            np.concatenate([part.faces for part in kept]),
            np.concatenate([part.centres for part in kept]),
            np.concatenate([part.bounds for part in kept]),
        )
