"""Branch and bound over supports: exact, and with a valid bound whenever it stops."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_positive_integer
from ..bounds import largest_eigenvalue_bound
from ..covariance import Covariance
from ..result import Status, relative_gap
from ..vectors import largest_entries, leading_eigenvector, on_support
from ._spectrum import SPECTRUM_SIZE, Spectrum
from ._stopping import stop_reason
from .base import EXACT, Deadline, Limits, Solution
from .chan import ENTRIES_AT_ONCE, Chan, best_row
from .local_search import best_swap
from .truncated_power import TruncatedPower

EXTREME = 1e100  # entries beyond it, or its inverse, are divided by a power of two
TOLERANCE = 1e-10  # relative; supports that are better by less count as equal
ROUNDING = 1e-13  # the same relative to max |A_ij|, for optima near zero
DENSE_SIZE = 1500  # features for which A is formed without a second thought
REFRESH_SIZE = 250  # features for which they cost a few milliseconds
EASY_SLICES = 6  # slices before eigenvalues of a large matrix pay
WORK_AT_FIRST = 2**18  # operations before more than one support is looked at
WORK_AT_ONCE = 2**26  # operations between two looks at the clock: about 0.1 s


class BranchAndBound:
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
    of the open nodes. Supports better by less than 1e-10 (relative) count as equal; the
    bound of a finished search is that much above its objective. With `incumbent`, a
    search that finds nothing better ends `feasible` with the bound of the incumbent.

    k = 1 and k = 2 need no search: the largest A_ii, and the larger eigenvalue of every
    2 × 2 submatrix in closed form.

    Cost of a node: O(f² k) for f free features; the number of nodes is exponential in
    the worst case. Memory: d bytes per open node.

    `solve_covariance` takes a `Covariance` of data with few samples and many features:
    one pass over its rows drops features, and A is formed for the others only.

    References
    ----------
    Berk, L. and Bertsimas, D. (2019). Certifiably optimal sparse principal component
    analysis. Mathematical Programming Computation 11, 381-420.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.solvers import BranchAndBound, Limits
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> solution = BranchAndBound().solve(A, 2, limits=Limits())
    >>> solution.status.value, round(solution.upper_bound, 6)
    ('optimal', 3.0)
    """

    name = "branch and bound"
    guarantee = EXACT
    requires_psd = False

    def __init__(self, eigen_size: int = 64) -> None:
        self.eigen_size = eigen_size

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        check_positive_integer(self.eigen_size, "eigen_size")
        A = np.ascontiguousarray(A, dtype=np.float64)
        unit = _unit_of(max(float(A.max()), -float(A.min())))
        if unit == 1.0:
            return self._solve(A, k, limits, incumbent, rng)
        if incumbent is not None:
            incumbent /= unit
        return _in_unit(self._solve(A / unit, k, limits, incumbent, rng), unit)

    def _solve(
        self,
        A: FloatArray,
        k: int,
        limits: Limits,
        incumbent: float | None,
        rng: np.random.Generator | None,
    ) -> Solution:
        """Solve for a matrix whose entries can be squared."""
        if k >= len(A):
            x = leading_eigenvector(A)
            return Solution(x, largest_eigenvalue_bound(A), Status.OPTIMAL)
        if k == 1:
            x = np.zeros(len(A))
            x[np.diagonal(A).argmax()] = 1.0
            return Solution(x, float(np.diagonal(A).max()), Status.OPTIMAL)
        if k == 2:
            return _best_of_all_pairs(A, Deadline(limits.time))
        search = _Search(A, k, limits, incumbent, min(self.eigen_size, len(A)))
        return search.run(rng)

    def solve_covariance(
        self,
        cov: Covariance,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        """Solve for a whole `Covariance`, forming A only where it can matter."""
        check_positive_integer(self.eigen_size, "eigen_size")
        k = min(k, cov.n_features)
        if cov.in_memory or cov.n_features <= DENSE_SIZE:
            A = cov.rows(slice(None))
            return self.solve(A, k, limits=limits, incumbent=incumbent, rng=rng)
        unit = _unit_of(_rough_size(cov))
        if unit == 1.0:
            return self._solve_covariance(cov, k, limits, incumbent, rng)
        if incumbent is not None:
            incumbent /= unit
        scaled = Covariance(_ScaledSource(cov, unit))
        solution = self._solve_covariance(scaled, k, limits, incumbent, rng)
        return _in_unit(solution, unit)

    def _solve_covariance(
        self,
        cov: Covariance,
        k: int,
        limits: Limits,
        incumbent: float | None,
        rng: np.random.Generator | None,
    ) -> Solution:
        deadline = Deadline(limits.time)
        best = Chan().solve_covariance(cov, k, limits=limits)
        if best.status is Status.INTERRUPTED:
            return Solution(best.x, math.inf, Status.INTERRUPTED)
        x, objective = ascend(cov, best.x, k)
        reached = objective if incumbent is None else max(objective, incumbent)
        bound = math.inf
        if cov.known_psd:
            bound = float(np.sort(cov.diagonal())[-k:].sum()) * (1 + 1e-12)
        try:
            left, bound = _reduce(cov, k, reached, bound, deadline)
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
            spectrum = Spectrum.of_data(cov, left)
            search = _Search(A, k, share, reached, size, spectrum)
            solution = search.run(rng)
        # entries of A computed in rows and in the submatrix differ by rounding
        rounding = 2 * k * cov.entry_error
        bound = min(bound, max(solution.upper_bound, _above(reached)) + rounding)
        status = solution.status
        within = np.zeros(cov.n_features)
        within[left] = solution.x
        value = float(within @ cov.matvec(within))
        if value > objective:
            x, objective = within, value
        if status in (Status.OPTIMAL, Status.FEASIBLE):  # of what was left: and of all?
            proved = relative_gap(objective, bound) <= 10 * TOLERANCE
            status = Status.OPTIMAL if proved else Status.FEASIBLE
        return Solution(x, max(bound, objective), status, solution.nodes)


def _unit_of(largest: float) -> float:
    """A power of four near the largest |A_ij| if its square is out of range, else 1."""
    if 1 / EXTREME <= largest <= EXTREME or largest == 0 or not math.isfinite(largest):
        return 1.0
    return 4.0 ** (math.floor(math.log2(largest)) // 2)


def _in_unit(solution: Solution, unit: float) -> Solution:
    """The solution for `unit` · A; nothing is optimal whose bound overflows."""
    bound, status = solution.upper_bound * unit, solution.status
    if bound / unit < solution.upper_bound:  # among the numbers below 1e-307
        bound = math.nextafter(bound, math.inf)
    if status is Status.OPTIMAL and not math.isfinite(bound):
        status = Status.FEASIBLE
    return replace(solution, upper_bound=bound, status=status)


class _ScaledSource:
    """A / unit, entry by entry, for a unit whose square root is exact."""

    def __init__(self, cov: Covariance, unit: float) -> None:
        self.cov = cov
        self.unit, self.root = unit, math.sqrt(unit)
        self.known_psd = cov.known_psd
        self.n_features, self.n_samples = cov.n_features, cov.n_samples
        self.has_columns = cov.has_columns

    def diagonal(self) -> FloatArray:
        return self.cov.diagonal() / self.unit

    def submatrix(self, rows: Any, columns: Any) -> FloatArray:
        return self.cov.submatrix(rows, columns) / self.unit

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.cov.matvec(x) / self.unit

    def gram(self, weights: FloatArray) -> FloatArray:
        return self.cov.gram(weights) / self.unit

    def columns(self, index: Any, start: int, stop: int) -> FloatArray:
        return self.cov.columns(index, start, stop) / self.root

    def entry_error(self) -> float:
        return self.cov.entry_error / self.unit

    def factor_error(self) -> float:
        return self.cov.factor_error / self.root


def _rough_size(cov: Covariance) -> float:
    """About the largest |A_ij|, from the diagonal unless A is a sparse matrix."""
    size = float(np.abs(cov.diagonal()).max())
    stored = cov.stored_entries()
    if stored is not None and stored.nnz:
        size = max(size, float(np.abs(stored.data).max()))
    return size


def _best_of_all_pairs(A: FloatArray, deadline: Deadline) -> Solution:
    """k = 2 needs no search: there are no more pairs than entries of A."""
    from .._kernels.opening import best_pair

    d = len(A)
    pair = np.array([0, 1], dtype=np.int64)
    bound, status = -math.inf, Status.OPTIMAL
    step = max(1, ENTRIES_AT_ONCE // d)
    try:
        for start in range(0, d, step):
            if deadline.passed():
                status = Status.TIME_LIMIT
                break
            bound = best_pair(A, start, min(start + step, d), bound, pair)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    x, objective = on_support(A, pair)
    if status is not Status.OPTIMAL:
        return Solution(x, math.inf, status)
    return Solution(x, max(bound, objective), status)


def _above(value: float) -> float:
    """The smallest value that counts as better."""
    return value + TOLERANCE * abs(value)


def ascend(cov: Covariance, x: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Improve x by truncated power iteration with products of A alone."""
    best, best_value = np.flatnonzero(x), -math.inf
    while True:
        loadings, value = on_support(cov.submatrix(best), np.arange(len(best)))
        if value <= best_value:
            return x, best_value
        x = np.zeros(cov.n_features)
        x[best] = loadings
        best_value = value
        best = largest_entries(cov.matvec(x), k)


def _reduce(
    cov: Covariance, k: int, reached: float, bound: float, deadline: Deadline
) -> tuple[NDArray[np.intp] | None, float]:
    """Return the features that a support better than `reached` may use, and a bound.

    One pass over the rows of A, in batches. With c_j² the sum of the k − 1 largest
    A_jl² and `rest` a bound for k − 1 features, a support with j reaches no more than
    λmax [[A_jj, c_j], [c_j, rest]]; it also has a row sum above what it reaches.
    """
    d = cov.n_features
    variances = cov.diagonal()
    sums, shorter, squares = np.empty(d), np.empty(d), np.empty(d)
    step = max(1, ENTRIES_AT_ONCE // d)
    for start in range(0, d, step):
        if deadline.passed():
            return None, bound
        batch = np.arange(start, min(start + step, d))
        rows = np.abs(cov.rows(batch))
        rows[np.arange(len(batch)), batch] = 0.0
        largest = (
            np.partition(rows, d - k + 1, axis=1)[:, d - k + 1 :]
            if k > 1
            else (np.zeros((len(batch), 1)))
        )
        sums[batch] = variances[batch] + largest.sum(axis=1)
        shorter[batch] = sums[batch] - largest.min(axis=1)
        squares[batch] = (largest**2).sum(axis=1)
    tau = _above(reached)
    bound = min(bound, max(tau, float(sums.max()) * (1 + 1e-12)))
    rest = float(shorter.max())
    keep = np.ones(d, dtype=bool)
    if cov.known_psd:  # the trace bounds both the whole and the rest
        order = np.sort(variances)[::-1]
        rest = min(rest, float(order[: k - 1].sum()))
        keep = order[: k - 1].sum() + np.minimum(variances, order[k - 1]) > reached
    if rest < tau:
        room = tau - variances
        keep &= (room <= 0) | (squares > room * (tau - rest))
    return np.flatnonzero(keep), bound


class _Search:
    """One branch and bound: the open nodes, the best support, the value to beat."""

    def __init__(
        self,
        A: FloatArray,
        k: int,
        limits: Limits,
        incumbent: float | None,
        eigen_size: int,
        spectrum: Spectrum | None = None,
    ) -> None:
        self.A = A
        self.k = k
        self.limits = limits
        self.deadline = Deadline(limits.time)
        self.eigen_size = eigen_size
        self.scale = 0.0  # max |A_ij|, once it is known
        self.incumbent = -math.inf if incumbent is None else incumbent
        self.support = np.empty(0, dtype=np.intp)
        self.x, self.objective = np.empty(0), -math.inf
        self.nodes = 0
        self.root = Spectrum(np.zeros(len(A)), math.inf, 0.0, math.inf)
        self.shift = 0.0
        if spectrum is not None:
            self.use(spectrum)
        self.open: list[tuple[float, int, NDArray[np.uint8]]] = []
        self.numbers = itertools.count()
        self.under_way = math.inf  # bound of the nodes that are being explored

    @property
    def tau(self) -> float:
        """The value a node must be able to exceed; rounding stays below half of it."""
        reached = max(self.objective, self.incumbent)
        tolerance = max(TOLERANCE * abs(reached), ROUNDING * self.k * self.scale)
        if self.limits.gap is not None:
            tolerance = max(tolerance, self.limits.gap * abs(reached) * (1 - 1e-9))
        return reached + tolerance

    def offer(self, support: NDArray[np.intp]) -> None:
        support = np.sort(support)
        x, objective = on_support(self.A, support)
        if objective > self.objective:
            self.x, self.objective, self.support = x, objective, support

    def push(self, bound: float, state: NDArray[np.uint8]) -> None:
        if bound > self.tau:
            heapq.heappush(self.open, (-bound, next(self.numbers), state))

    def run(self, rng: np.random.Generator | None) -> Solution:
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
                    self.look_harder(rng)
                budget = 1 if done == 1 else min(2 * budget, most)
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        return self.conclude(stopped)

    def prepare(self) -> None:
        """A bound and a support, from one pass over A and some power iterations."""
        from .._kernels import branch_and_bound, opening

        self.kernels = branch_and_bound
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

    def look_harder(self, rng: np.random.Generator | None) -> None:
        """Get the eigenvalues and start from many vectors, now that it pays."""
        self.use(Spectrum.of(self.A))
        before = self.objective
        limits = Limits(time=self.deadline.remaining())
        start = TruncatedPower().solve(self.A, self.k, limits=limits, rng=rng)
        self.offer(np.flatnonzero(start.x))
        if self.objective > before:
            self.swap()

    def swap(self) -> None:
        while len(self.support) == self.k and not self.deadline.passed():
            better = best_swap(self.A, self.support, self.objective, self.deadline)
            if better is None:
                break
            self.offer(better)

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
        states = np.empty((d + 2, d), dtype=np.uint8)
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
                self.offer(found[: counters[2]])
            if outcome == kernels.FINISHED or counters[1] >= budget:
                break
        self.nodes += int(counters[1])
        for i in range(counters[0]):
            self.push(float(bounds[i]), states[i].copy())
        self.under_way = -math.inf

    def spectrum_of(self, state: NDArray[np.uint8]) -> Spectrum:
        """That of the features not fixed out, where it is cheap to have."""
        n_left = np.count_nonzero(state != 2)
        if n_left == len(self.A) or n_left > REFRESH_SIZE:
            return self.root
        left = np.flatnonzero(state != 2)
        spectrum = Spectrum.of(self.A, left)
        self.under_way = min(self.under_way, spectrum.low + spectrum.span)
        return spectrum

    def conclude(self, stopped: Status | None) -> Solution:
        if len(self.support) == 0:  # stopped before there was one
            self.offer(largest_entries(np.diagonal(self.A), self.k))
        bound = max(self.tau, self.under_way)
        if self.open:
            bound = max(bound, -self.open[0][0])
        if stopped is None:
            if self.objective < self.incumbent:
                stopped = Status.FEASIBLE
            elif (
                relative_gap(self.objective, bound) > 10 * TOLERANCE and self.limits.gap
            ):
                stopped = Status.GAP_LIMIT
            else:
                stopped = Status.OPTIMAL
        return Solution(self.x, max(bound, self.objective), stopped, self.nodes)
