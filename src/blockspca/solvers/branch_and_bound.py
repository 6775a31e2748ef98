"""Branch and bound over supports: exact, and with a valid bound whenever it stops."""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import is_loaded, load
from .._validation import FloatArray
from ..bounds.closed_form import largest_eigenvalue_bound, row_sum_bound
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..heuristics.swap import swapped
from ..limits import stop_reason
from ..numerics.linalg import (
    largest_entries,
    leading_eigenpairs,
    leading_eigenvector,
    on_support,
    rayleigh,
    vector_on,
    with_sign,
)
from ..numerics.rounding import EPS
from ..status import STOPPED, Status, status_of_gap
from ._reduction import ascend, reduce_features, rounding_error, tolerance
from ._spectrum import SPECTRUM_SIZE, Spectrum
from ._unit import ScaledSource, in_unit, rough_size, unit_of
from .base import EXACT, Deadline, Limits, Solution
from .chan import Chan, best_row
from .template import CovarianceSolver, SolverRun
from .truncated_power import TruncatedPower

KERNELS = ("branch_and_bound", "opening")
DENSE_SIZE = 1500  # features for which A is formed without a second thought
REFRESH_SIZE = 250  # features for which they cost a few milliseconds
EASY_SLICES = 6  # slices before eigenvalues of a large matrix pay
WORK_AT_FIRST = 2**18  # operations before more than one support is looked at
WORK_AT_ONCE = 2**26  # operations between two looks at the clock: about 0.1 s


class BranchAndBound(CovarianceSolver):
    """max over k-subsets S of λmax(A_SS), by branching on one feature at a time.

    A node fixes features I in and others out, and leaves F free. With k' = k − |I| and
    a value τ to beat, S = I ∪ T beats it exactly if T beats it in the Schur complement

        B = A_FF + A_FI (τI − A_II)⁻¹ A_IF .

    So a node is dropped if one of these is at most τ: the k' largest B_jj together
    (trace; A + cI in place of an indefinite A), the largest B_jj plus the k' − 1
    largest |B_jl| of its row (Gershgorin), λmax of what remains, or λ₂ + (λ₁ − λ₂)
    Σ_S v_i², where v is the leading eigenvector. The same bounds with one more feature
    fixed drop features.

    Parameters
    ----------
    eigen_size : int
        Test λmax of what remains in nodes of at most that many features.

    Notes
    -----
    Nodes are taken by the largest upper bound, then explored depth first for a slice
    that grows with the search. A truncated power iteration in each node looks for
    better supports and picks the feature of largest loading to branch on.

    Stopped by a limit or by Ctrl-C, it returns the best support and the largest bound
    of the open nodes. Supports better by less than the tolerance, 1e-10 (relative),
    count as equal; the bound of a finished search is that much above its objective.
    `optimal` is an excess of the bound of at most 1e-6 of the objective. So a search
    with an `incumbent` that finds nothing better ends `feasible`, with the bound of the
    incumbent.

    Rounding: steps of Cholesky's method and Schur complements are backward stable.
    Where nothing free reaches τ alone, B_jj ≤ τ, columns of the factor have at most the
    length √(τ + max|A|), so that what is computed is exact for a matrix whose m × m
    submatrices are off by at most r = 4 (m + 2)² eps (|τ| + max|A|), m the larger of k
    and `eigen_size`; where something does, nothing is dropped. Nodes are dropped at
    half the tolerance, which is at least 2r: what they hold stays below the other half.
    From m of about 500 on the tolerance exceeds 1e-9.

    Entries beyond 1e±100 are divided by a power of two, as their squares overflow.

    k = 1 and k = 2 need no search: the largest A_ii, and the larger eigenvalue of every
    2 × 2 submatrix in closed form.

    Cost of a node: O(f² k) for f free features; the number of nodes is exponential in
    the worst case. Memory: d bytes per open node, and d (d + 2) for those on one path.

    `solve_covariance` takes a `Covariance` of data with few samples and many features:
    one pass over its rows drops features, and A is formed for the others only.

    References
    ----------
    Berk, L. and Bertsimas, D. (2019). Certifiably optimal sparse principal component
    analysis. Mathematical Programming Computation 11, 381-420.

    Examples
    --------
    >>> from blockspca.solvers import BranchAndBound
    >>> BranchAndBound().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).status.value
    'optimal'
    """

    name = "branch and bound"
    guarantee = EXACT
    _positive_integers = ("eigen_size",)

    def __init__(self, eigen_size: int = 64) -> None:
        self.eigen_size = eigen_size

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        A = np.ascontiguousarray(A)
        if k == 1:  # in units a variance beside large covariances may lose its digits
            run.adopt(_largest(np.diagonal(A), 0.0))
            return
        # Not by `argmax`, which copies a read-only array, such as that of a Covariance.
        unit = unit_of(max(float(A.max()), -float(A.min())))
        if unit == 1.0:
            run.adopt(self._search(A, k, run))
        else:
            run.adopt(in_unit(self._search(A / unit, k, run, unit), unit))

    def _search(
        self, A: FloatArray, k: int, run: SolverRun, unit: float = 1.0
    ) -> Solution:
        """Solve for a matrix whose entries can be squared."""
        limits = run.limits
        if not is_loaded(*KERNELS):
            if not load(*KERNELS, seconds=limits.time):
                x, _ = on_support(A, largest_entries(np.diagonal(A), k))
                return Solution(x, row_sum_bound(A, k), Status.TIME_LIMIT)
            limits = replace(limits, time=run.deadline.remaining())
        if k >= len(A):
            x = leading_eigenvector(A)
            bound = largest_eigenvalue_bound(A)
            status = status_of_gap(rayleigh(A, x), bound, limits.gap, None)
            return Solution(x, bound, status)
        if k == 2:
            return _best_of_all_pairs(A, limits)
        size = min(self.eigen_size, len(A))
        return _Search(A, k, limits, run.incumbent / unit, size).run(run)

    def _forms_matrix(self, cov: Covariance) -> bool:
        return cov.in_memory or cov.n_features <= DENSE_SIZE

    def _solve_covariance(self, cov: Covariance, k: int, run: SolverRun) -> None:
        if k == 1:
            run.adopt(_largest(cov.diagonal(), cov.entry_error))
            return
        unit = unit_of(rough_size(cov))
        if unit == 1.0:
            run.adopt(self._search_covariance(cov, k, run))
            return
        scaled = Covariance(ScaledSource(cov, unit))
        run.adopt(in_unit(self._search_covariance(scaled, k, run, unit), unit))

    def _search_covariance(
        self, cov: Covariance, k: int, run: SolverRun, unit: float = 1.0
    ) -> Solution:
        """Drop features in one pass over the rows, and search among the others."""
        limits, deadline = run.limits, run.deadline
        best = Chan().solve_covariance(cov, k, limits=limits)
        if best.status is Status.INTERRUPTED:
            return Solution(best.x, math.inf, Status.INTERRUPTED)
        x, objective = ascend(cov, best.x, k)
        reached = max(objective, run.incumbent / unit)
        bound = math.inf
        size = min(self.eigen_size, cov.n_features)
        if cov.known_psd:
            bound = float(np.sort(cov.diagonal())[-k:].sum()) * (1 + k * EPS)
        try:
            left, bound, scale = reduce_features(cov, k, size, reached, bound, deadline)
        except KeyboardInterrupt:
            return Solution(x, bound, Status.INTERRUPTED)
        if left is None:
            return Solution(x, bound, Status.TIME_LIMIT)
        if len(left) <= k:
            left = np.union1d(left, np.flatnonzero(x))
        if limits.memory is not None and 16 * len(left) ** 2 > limits.memory:
            return Solution(x, bound, Status.MEMORY_LIMIT)
        share = replace(limits, time=deadline.remaining())
        A = np.ascontiguousarray(cov.submatrix(left))
        if len(left) <= k:
            solution = self.solve(A, k, limits=share)
        else:
            size = min(self.eigen_size, len(A))
            search = _Search(A, k, share, reached, size)
            spectrum = Spectrum.of_data(cov, left)
            if spectrum is not None:
                search.use(spectrum)
            solution = search.run(run)
        # entries of A computed in rows and in the submatrix differ by rounding
        rounding = 2 * k * cov.entry_error
        proved = max(solution.upper_bound, reached + tolerance(k, size, reached, scale))
        bound = min(bound, proved + rounding)
        within = np.zeros(cov.n_features)
        within[left] = solution.x
        value = float(within @ cov.matvec(within))
        if value > objective:
            x, objective = within, value
        bound = max(bound, objective)
        stopped = solution.status if solution.status in STOPPED else None
        status = status_of_gap(
            objective, bound, limits.gap, stopped, keep_interrupt=True
        )
        return Solution(x, bound, status, solution.nodes)


@functools.cache
def _kernels() -> tuple[Any, Any]:
    """The compiled parts, imported when they are needed: that takes a while."""
    from .._kernels import branch_and_bound, opening

    return branch_and_bound, opening


def _largest(variances: FloatArray, error: float) -> Solution:
    """k = 1: the largest variance, known up to an error."""
    x = np.zeros(len(variances))
    x[variances.argmax()] = 1.0
    largest = float(variances.max())
    bound = largest + error
    return Solution(x, bound, status_of_gap(largest, bound, None, None))


def _best_of_all_pairs(A: FloatArray, limits: Limits) -> Solution:
    """k = 2 needs no search: there are no more pairs than entries of A."""
    best_pair = _kernels()[1].best_pair
    d = len(A)
    pair = np.array([0, 1], dtype=np.int64)
    bound, stopped = -math.inf, None
    deadline = Deadline(limits.time)
    step = max(1, ENTRIES_AT_ONCE // d)
    try:
        for start in range(0, d, step):
            if deadline.passed():
                stopped = Status.TIME_LIMIT
                break
            bound = best_pair(A, start, min(start + step, d), bound, pair)
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    x, objective = on_support(A, pair)
    bound = math.inf if stopped else max(bound, objective)
    return Solution(
        x,
        bound,
        status_of_gap(objective, bound, limits.gap, stopped, keep_interrupt=True),
    )


class _Search:
    """One branch and bound: the open nodes, the best support, the value to beat."""

    def __init__(
        self, A: FloatArray, k: int, limits: Limits, incumbent: float, eigen_size: int
    ) -> None:
        self.A = A
        self.k = k
        self.limits = limits
        self.deadline = Deadline(limits.time)
        self.eigen_size = eigen_size
        self.scale = 0.0  # max |A_ij|, once it is known
        self.incumbent = incumbent
        self.support = np.empty(0, dtype=np.intp)
        self.x, self.objective = np.empty(0), -math.inf
        self.nodes = 0
        self.root = Spectrum(np.zeros(len(A)), math.inf, 0.0, math.inf)
        self.shift = 0.0
        self.open: list[tuple[float, int, NDArray[np.uint8]]] = []
        self.numbers = itertools.count()
        self.under_way = math.inf  # bound of the nodes that are being explored
        self.states = np.empty((0, 0), dtype=np.uint8)  # those nodes, once there are
        self.floor = -math.inf  # see `pass_over`
        self.step = 0.0

    @property
    def tau(self) -> float:
        """The value at which nodes are dropped, half the tolerance below `proved`."""
        return self.levels()[0]

    @property
    def proved(self) -> float:
        """What no support exceeds once every node is dropped, rounding included."""
        return self.levels()[1]

    def levels(self) -> tuple[float, float]:
        reached = max(self.objective, self.incumbent)
        room = least = tolerance(self.k, self.eigen_size, reached, self.scale)
        if self.limits.gap is not None:
            room = max(room, self.limits.gap * abs(reached) * (1 - 1e-9))
        tau = max(reached + room - least / 2, self.floor)
        return tau, tau + least / 2

    def offer(self, support: NDArray[np.intp], trusted: bool = False) -> None:
        """Sort a support and keep it if better; if `trusted`, a node depends on it."""
        support.sort()
        if trusted:  # LAPACK's, not that of Lanczos' method
            within = self.A[support[:, None], support]
            loadings = with_sign(leading_eigenpairs(within, 1)[1][:, 0])
            x = vector_on(support, loadings, len(self.A))
            objective = rayleigh(within, loadings)
        else:
            x, objective = on_support(self.A, support)
        if objective > self.objective:
            self.x, self.objective, self.support = x, objective, support

    def pass_over(self) -> None:
        """Raise the value to beat: a support was said to beat it and does not.

        By rounding, then. Each time by twice as much as before, so that it happens a
        few times at most; the bound of the search includes it.
        """
        tau = self.tau
        least = rounding_error(self.k, self.eigen_size, tau, self.scale)
        self.step = max(2 * self.step, least)
        self.floor = max(tau + self.step, math.nextafter(tau, math.inf))

    def push(self, bound: float, state: NDArray[np.uint8]) -> None:
        if bound > self.tau:
            heapq.heappush(self.open, (-bound, next(self.numbers), state))

    def run(self, run: SolverRun) -> Solution:
        """Search with more and more effort, so that what is easy is soon proved."""
        d = len(self.A)
        stopped: Status | None = None
        try:
            self.prepare()
            self.push(self.under_way, np.zeros(d, dtype=np.uint8))
            self.under_way = -math.inf
            hard = EASY_SLICES if d > REFRESH_SIZE else 2
            most = max(1, WORK_AT_ONCE // (min(d, 200) ** 2 * self.k))
            budget = max(1, WORK_AT_FIRST // (d**2 * self.k))
            for done in itertools.count(1):
                stopped = self.stop_reason() if self.open else None
                if stopped is not None or not self.open:
                    break
                self.explore(budget)
                if done == 1 and self.open:
                    self.find_start()
                elif done == hard and self.open and d <= SPECTRUM_SIZE:
                    self.look_harder(run.rng)
                budget = 1 if done == 1 else min(2 * budget, most)
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        return self.conclude(stopped)

    def prepare(self) -> None:
        """A bound and a support, from one pass over A and some power iterations."""
        self.kernels, opening = _kernels()
        d = len(self.A)
        sums = np.empty(d)
        step = max(1, ENTRIES_AT_ONCE // d)
        for start in range(0, d, step):
            stop = min(start + step, d)
            largest = opening.row_sums(self.A, self.k, start, stop, sums)
            self.scale = max(self.scale, largest)
            if self.deadline.passed():
                self.offer(largest_entries(np.diagonal(self.A), self.k))
                return
        self.under_way = float(sums.max())
        support = np.empty(self.k, dtype=np.int64)
        self.kernels.first_support(self.A, self.k, sums, support)
        self.offer(support)

    def use(self, spectrum: Spectrum) -> None:
        self.root = spectrum
        self.shift = spectrum.defect
        if math.isinf(self.shift):  # Gershgorin: A + shift·I is semidefinite
            self.shift = float((np.abs(self.A).sum(axis=1)).max())

    def find_start(self) -> None:
        """The best row cut to k, power iterations from there, then swaps."""
        if math.isinf(self.root.defect):
            self.use(Spectrum.unknown(self.A))
        self.offer(best_row(self.A, self.k, self.deadline)[0])
        before = -math.inf
        while self.objective > before and not self.deadline.passed():
            before = self.objective
            product = self.x[self.support] @ self.A[self.support]
            self.offer(largest_entries(product, self.k))
        self.swap()

    def look_harder(self, rng: np.random.Generator) -> None:
        """Get the eigenvalues and start from many vectors, now that it pays."""
        self.use(Spectrum.of(self.A))
        before = self.objective
        limits = Limits(time=self.deadline.remaining())
        start = SolverRun(self.A, self.k, limits, rng=rng)
        TruncatedPower()._solve(self.A, self.k, start)  # Ctrl-C is to end all
        self.offer(start.support)
        if self.objective > before:
            self.swap()

    def swap(self) -> None:
        self.offer(swapped(self.A, self.support, stop=self.deadline.passed)[0])

    def stop_reason(self) -> Status | None:
        memory = self.limits.memory
        if memory is not None and len(self.open) * len(self.A) > memory:
            return Status.MEMORY_LIMIT
        return stop_reason(self.limits, self.deadline, self.nodes)

    def explore(self, budget: int) -> None:
        """Take the node of the largest bound; explore below it for `budget` nodes."""
        kernels = self.kernels
        negative_bound, _, state = heapq.heappop(self.open)
        self.under_way = -negative_bound
        d = len(self.A)
        if self.limits.nodes is not None:
            budget = min(budget, self.limits.nodes - self.nodes)
        spectrum = self.spectrum_of(state)
        if len(self.states) == 0:
            self.states = np.empty((d + 2, d), dtype=np.uint8)
        states = self.states
        bounds = np.empty(d + 2)
        states[0], bounds[0] = state, self.under_way
        counters = np.array([1, 0, 0], dtype=np.int64)
        found = np.empty(self.k, dtype=np.int64)
        while True:
            outcome = kernels.explore(
                self.A, self.k, self.tau, self.root.defect, self.shift,
                spectrum.weights, spectrum.low, spectrum.span, self.eigen_size,
                budget - counters[1], states, bounds, counters, found,
            )  # fmt: skip
            if outcome == kernels.BETTER_SUPPORT:
                before = self.objective
                self.offer(found[: counters[2]].copy(), trusted=True)
                if self.objective <= before:
                    self.pass_over()
            if outcome == kernels.FINISHED or counters[1] >= budget:
                break
        self.nodes += int(counters[1])
        for i in range(counters[0]):
            self.push(float(bounds[i]), states[i].copy())
        self.under_way = -math.inf

    def spectrum_of(self, state: NDArray[np.uint8]) -> Spectrum:
        """That of the features not fixed out, where it is cheap to have."""
        n_left = len(state) - state.tobytes().count(2)
        if n_left == len(self.A) or n_left > REFRESH_SIZE:
            return self.root
        left = np.flatnonzero(state != 2)
        spectrum = Spectrum.of(self.A, left)
        self.under_way = min(self.under_way, spectrum.low + spectrum.span)
        return spectrum

    def conclude(self, stopped: Status | None) -> Solution:
        if len(self.support) == 0:  # stopped before there was one
            self.offer(largest_entries(np.diagonal(self.A), self.k))
        bound = self.proved
        left = max(self.under_way, -self.open[0][0] if self.open else -math.inf)
        if left > -math.inf:
            error = rounding_error(self.k, self.eigen_size, left, self.scale)
            bound = max(bound, left + error)
        status = status_of_gap(
            self.objective, bound, self.limits.gap, stopped, keep_interrupt=True
        )
        return Solution(self.x, bound, status, self.nodes)
