"""Truncated power iteration on a whole covariance, for k in the hundreds and beyond.

Works by products A x alone: neither A nor a row of it is kept, so that d = 100,000 and
k = 2000 take seconds. It finds; it proves nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_positive_integer, check_sparsity
from ..covariance.covariance import Covariance, as_covariance
from ..limits import Deadline, Limits, stop_reason
from ..numerics import cost as _cost
from ..numerics.linalg import (
    OnSupport,
    largest_entries,
    on_support,
    rough_eigenpair,
    vector_on,
    with_sign,
)
from ..numerics.rounding import in_units, power_of_two
from ..numerics.threads import blas_limited_to
from ..result import Solution
from ..status import Status
from .pool import Pool, leading_pair
from .power_iteration import power_iteration
from .row_norms import squared_row_norms
from .swap import swapped

# Supports are cut down in steps: what a larger k settles first is a better start.
RATIOS = (2.0, 1.5, 1.2, 1.0)
MOST_STEPS = 200  # with each: starts settle far sooner, but nothing says that all do
EIGENVECTOR_TOLERANCE = 1e-4  # of a start: its k largest entries are all that counts
ONE_THREAD_UP_TO = 500  # k of matrices on which threads of LAPACK wait for one another
POLISH_CANDIDATES = 200  # outside the set: those that pull most, of which one goes in
POLISH_SHARE = 0.5  # of the time that is left
#: Features of a set of k, that a sample of all features has on average: it has none of
#: them in one of fifty cases.
HITS = 4
SAMPLE_SHARE = 0.25  # of the time that is left, for rows of the sample
#: Entries of rows that are held at a time: few at first, as of raw data the first rows
#: rule out most others, then twice as many each time.
FIRST_CHUNK, CHUNK = 2**17, 2**21


def truncated_power(
    cov: Covariance | Any,
    k: int,
    *,
    limits: Limits | None = None,
    n_starts: int = 4,
    polish: bool = True,
    sample: bool = True,
) -> Solution:
    """Repeat x ← the k largest entries of Ax, normalised, from several starts at once.

    A start goes through supports of 2k, 1.5k, 1.2k and k features, with at most 200
    steps on each.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
        Used through `matvec` and one k × k submatrix.
    k : int
    limits : Limits, optional
        Time and nodes (products with all starts); the best so far is returned.
    n_starts : int
        Rows of A to start from, those of largest variance, and as many with the largest
        sums of k squares (`sample`); the leading eigenvector and the variances come on
        top.
    polish : bool
        Exchange single features as long as that raises the objective.
    sample : bool
        Look for such rows among 4 d / k of them, which is most of the time where d is
        large.

    Returns
    -------
    Solution
        Its upper bound is infinite.

    Notes
    -----
    O(nnz(X)) per start and iteration from data. Positive semidefinite A: the objective
    of a start never falls while k stays the same (Yuan & Zhang 2013). An indefinite A
    is shifted by its most negative eigenvalue, as Lanczos finds it.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.heuristics.truncated_power import truncated_power
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> np.flatnonzero(truncated_power(A, 2).x)
    array([0, 1])
    """
    cov = as_covariance(cov)
    k = check_sparsity(k, cov.n_features)
    limits = Limits() if limits is None else limits
    n_starts = check_positive_integer(n_starts, "n_starts")
    search = _Search(_InUnits(cov), k, limits)
    try:
        # Threads of BLAS would wait for one another: steps of 29 features took 0.2 to
        # 1.6 s with two of them, and 0.02 to 0.46 s with one.
        with blas_limited_to(1):
            search.run(n_starts, sample)
        if polish and search.status is Status.FEASIBLE:
            # and in LAPACK on small matrices
            with blas_limited_to(1) if k <= ONE_THREAD_UP_TO else nullcontext():
                search.polish()
    except KeyboardInterrupt:
        search.status = Status.INTERRUPTED
    if search.polished is None:
        x, _ = on_support(cov, search.support)
    else:
        x = search.polished.vector(cov.n_features)
    return Solution(x, status=search.status, nodes=search.nodes)


class _InUnits:
    """A in units of a power of two near its largest variance, so that squares exist."""

    def __init__(self, cov: Covariance) -> None:
        self._cov, self._unit = cov, power_of_two(float(np.abs(cov.diagonal()).max()))
        self.n_features, self.n_samples = cov.n_features, cov.n_samples
        self.known_psd, self.in_memory = cov.known_psd, cov.in_memory
        self.dask_source = cov.dask_source

    def diagonal(self) -> FloatArray:
        return in_units(self._cov.diagonal(), self._unit)

    def rows(self, index: NDArray[np.intp] | slice) -> FloatArray:
        return in_units(self._cov.rows(index), self._unit)

    def row_norms(
        self, index: NDArray[np.intp], most_entries: int, deadline: Deadline
    ) -> FloatArray | None:
        """Bounds on the squared norms of rows, where they come cheaper than rows."""
        cov, unit = self._cov, self._unit
        return squared_row_norms(cov, index, unit, most_entries, deadline)

    def pool(self) -> Pool:
        return Pool(self._cov, self._unit)

    def matvec(self, x: FloatArray) -> FloatArray:
        return in_units(self._cov.matvec(x), self._unit)


class _TimeIsUp(Exception):
    """Raised from a product, to end iterations that do not look at the clock."""


def _leading_eigenvector(
    cov: _InUnits, deadline: Deadline, c: float | None = None
) -> tuple[float, Any]:
    """Approximate leading eigenpair of A, or of cI − A, from products with A alone.

    Where they do not converge, or time is up before, a start and the value 0.
    """
    start = np.sqrt(np.abs(cov.diagonal())) + 1e-12

    def matvec(x: FloatArray) -> FloatArray:
        if deadline.passed():
            raise _TimeIsUp
        return cov.matvec(x) if c is None else c * x - cov.matvec(x)

    try:
        return rough_eigenpair(matvec, start, EIGENVECTOR_TOLERANCE)
    except _TimeIsUp:
        return 0.0, start


def _lowest_eigenvalue(cov: _InUnits, deadline: Deadline) -> float:
    """Return about λmin(A), to a small part of λmax(A).

    As c − λmax(cI − A): asked for λmin itself, ARPACK compares its error with λmin, and
    where that is zero, as in every singular covariance, it does not end.
    """
    c = abs(_leading_eigenvector(cov, deadline)[0])
    return c - _leading_eigenvector(cov, deadline, c)[0]


def _starts(
    cov: _InUnits, k: int, n_starts: int, sample: bool, deadline: Deadline
) -> FloatArray:
    """Rows of A, the variances and the leading eigenvector, as columns."""
    d = cov.n_features
    variances = cov.diagonal()
    rows = largest_entries(variances, min(n_starts, d))
    largest, leading = _leading_eigenvector(cov, deadline) if d > 3 else (0.0, None)
    starts = list(cov.rows(rows))
    if sample:
        starts += _strong_rows(cov, k, n_starts, largest, deadline)
    starts.append(np.abs(variances))
    if leading is not None:
        starts.append(leading)
    return np.column_stack(starts)


@dataclass
class _StrongRow:
    """A row of A, the sum of its k largest squares, and where these are."""

    total: float
    feature: int
    row: FloatArray
    k: int

    @cached_property
    def covers(self) -> NDArray[np.bool_]:
        """Which features have its k largest entries."""
        d = len(self.row)
        covered = np.zeros(d, dtype=bool)
        covered[np.argpartition(np.abs(self.row), d - self.k)[d - self.k :]] = True
        return covered

    @property
    def rank(self) -> tuple[float, int]:
        return -self.total, self.feature


def _strong_rows(
    cov: _InUnits, k: int, n_starts: int, largest: float, deadline: Deadline
) -> list[FloatArray]:
    """Rows with the largest sums of k squares, of a sample, that are not alike.

    Features of a set that are tied to one another have such rows, and one of them leads
    to the set. Of correlations variances say nothing, and the leading eigenvector is
    that of all features: BASEHOCK, k = 50, had 40.3 without these rows, and has 46.2,
    the optimum; gordon, k = 50, 34.7 and 37.0. `largest` is about λmax(A), or 0.
    """
    d = cov.n_features
    if cov.dask_source() is not None:  # where every call is a pass over the data
        return []
    sample = np.random.default_rng(0).permutation(d)[: int(np.ceil(HITS * d / k))]
    most = _most_of_row(cov, k, largest)[sample]
    chunk, most_at_once = max(1, FIRST_CHUNK // d), max(1, CHUNK // d)
    row_seconds = _cost.passes(4, d)
    if not cov.in_memory:
        row_seconds += _cost.product(1, cov.n_samples or d, d)
    clock = Deadline(_part(deadline.remaining(), SAMPLE_SHARE))
    if len(sample) * d > CHUNK:  # fewer rows take less than their norms
        norms = cov.row_norms(sample, CHUNK, clock)
        most = most if norms is None else np.minimum(most, norms)
    # Those first that may have most, so that the others need not be looked at.
    order = np.argsort(-most, kind="stable")
    sample, most = sample[order], most[order]
    kept: list[_StrongRow] = []
    least = -np.inf
    while len(sample) and clock.affords(chunk * row_seconds):
        chosen, sample, most = sample[:chunk], sample[chunk:], most[chunk:]
        chunk = min(2 * chunk, most_at_once)
        A = cov.rows(chosen)
        squares = A * A
        above = _may_exceed(squares, k, least)
        if not above.all():
            A, squares, chosen = A[above], squares[above], chosen[above]
        sums = np.partition(squares, d - k, axis=1)[:, d - k :].sum(axis=1).tolist()
        found = zip(sums, chosen.tolist(), A, strict=True)
        near = [_StrongRow(*given, k) for given in found]
        kept = _unlike(sorted([*kept, *near], key=attrgetter("rank")), n_starts)
        if len(kept) == n_starts:  # of Dorothea_train, k = 500, 74 of 800 are computed
            least = kept[-1].total
            sample, most = sample[most > least], most[most > least]
    return [found.row for found in kept]


def _most_of_row(cov: _InUnits, k: int, largest: float) -> FloatArray:
    """What the k largest squares of each row come to at most, if A is PSD.

    By A_ij² ≤ A_ii A_jj, and by the sum of all of them, e'AAe ≤ A_ii λmax.
    """
    variances = cov.diagonal()
    if not cov.known_psd:
        return np.full(len(variances), np.inf)
    most = float(np.sort(variances)[-k:].sum())
    return np.asarray(variances * (min(most, 1.01 * largest) if largest > 0 else most))


def _may_exceed(squares: FloatArray, k: int, least: float) -> NDArray[np.bool_]:
    """Tell which rows may have k entries whose sum is above `least`.

    That is at most kθ + Σ (s − θ)⁺ for every θ, with equality for the k-th largest.
    """
    if not least > 0:
        return np.ones(len(squares), dtype=bool)
    # About the k-th largest of weak rows. Of Dorothea_train, k = 200 to 2000, it tells
    # of nearly all; a tenth and half of `least` on average do as well.
    theta = 0.3 * least / k
    above = np.maximum(squares - theta, 0.0).sum(axis=1)
    return np.asarray(above + k * theta > least)


def _unlike(ranked: list[_StrongRow], most: int) -> list[_StrongRow]:
    """The first of those that would lead to the same features, at most so many."""
    kept: list[_StrongRow] = []
    for found in ranked:
        if not any(other.covers[found.feature] for other in kept):
            kept.append(found)
            if len(kept) == most:
                break
    for found in kept:
        if found.row.base is not None:
            found.row = found.row.copy()  # not its whole chunk
    return kept


def _part(seconds: float | None, share: float) -> float | None:
    return None if seconds is None else share * seconds


class _Search:
    """The best support so far, and what has been spent on it."""

    def __init__(self, cov: _InUnits, k: int, limits: Limits) -> None:
        self.cov, self.k, self.limits = cov, k, limits
        self.deadline = Deadline(limits.time)
        self.status = Status.FEASIBLE
        self.nodes = 0
        self.value = -np.inf
        self.support: NDArray[np.intp] = largest_entries(cov.diagonal(), k)
        self.polished: OnSupport | None = None  # by swaps; its objective is in units
        self.shift = 0.0

    def stop(self) -> bool:
        stopped = stop_reason(self.limits, self.deadline, self.nodes)
        self.status = stopped or self.status
        return self.status is not Status.FEASIBLE

    def run(self, n_starts: int, sample: bool) -> None:
        cov, d = self.cov, self.cov.n_features
        if self.stop():  # the support of largest variances is all there is
            return
        if not cov.known_psd and d > 3:
            self.shift = max(0.0, -1.1 * _lowest_eigenvalue(cov, self.deadline))
        elif not cov.known_psd:
            self.shift = float(np.abs(cov.rows(slice(None))).sum())
        starts = _starts(cov, self.k, n_starts, sample, self.deadline)
        sizes = sorted({min(d, int(r * self.k)) for r in RATIOS}, reverse=True)
        # Straight to k, and by way of larger supports: neither is always better.
        for route in ([self.k], sizes):
            x = starts
            for size in route:
                x = self.settle(x, size)
                if self.stop():
                    return

    def settle(self, x: FloatArray, size: int) -> FloatArray:
        """Cut, and iterate until no start improves."""

        def product(x: FloatArray) -> FloatArray:
            self.nodes += 1
            return self.cov.matvec(x)

        return power_iteration(
            product,
            x,
            size,
            shift=self.shift,
            max_iterations=MOST_STEPS,
            stop=self.stop,
            offer=self.offer if size <= self.k else None,
            merge=True,
        )

    def offer(self, x: FloatArray, values: FloatArray) -> None:
        best = int(np.argmax(values))
        if values[best] > self.value:
            self.value = float(values[best])
            support = np.flatnonzero(x[:, best])
            if len(support) < self.k:
                missing = np.setdiff1d(np.arange(len(x)), support)
                support = np.concatenate([support, missing[: self.k - len(support)]])
            self.support = np.sort(support)

    def polish(self) -> None:
        """Swap features of the support for the next best, one at a time."""
        clock = Deadline(_part(self.deadline.remaining(), POLISH_SHARE))
        d, k = self.cov.n_features, self.k
        size = min(d, k + POLISH_CANDIDATES)
        # A round of swaps, the eigenvectors before and after it, and two submatrices
        round_ = _cost.inverse(k) + 2 * _cost.product(k, k, size)
        round_ += _cost.passes(40, size * size)
        # The pool keeps what is known of A from round to round, the pair its λ and x.
        pool = self.cov.pool()
        support = self.support.astype(np.int64)
        pair: tuple[float, FloatArray] | None = None
        start = np.arange(k, dtype=np.int64)
        while not self.stop() and clock.affords(round_) and not clock.passed():
            if pair is None:
                pool.add(support)
                pair = leading_pair(pool.matrix, start)
            pull = np.abs(self.cov.matvec(vector_on(support, pair[1], d)))
            outside = np.delete(np.arange(d), support)
            count = min(POLISH_CANDIDATES, len(outside))
            others = outside[largest_entries(pull[outside], count)]
            features = np.concatenate([support, others])
            pool.add(features)
            matrix = pool.submatrix(features)
            chosen, value, x = swapped(matrix, start, max_swaps=1, pair=pair)
            self.nodes += 1
            order = np.argsort(features[chosen])
            found, pair = features[chosen][order], (value, x[order])
            self.polished = OnSupport(found, with_sign(pair[1]), value)
            if np.array_equal(found, support):
                return
            support = found
