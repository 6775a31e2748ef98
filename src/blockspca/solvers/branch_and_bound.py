"""Branch and bound over supports: exact, and with a valid bound whenever it stops."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_positive_integer
from ..bounds import largest_eigenvalue_bound, row_sum_bound
from ..covariance import Covariance
from ..result import Status, relative_gap
from ..vectors import largest_entries, leading_eigenvector, on_support
from .base import EXACT, Deadline, Limits, Solution
from .chan import ENTRIES_AT_ONCE, Chan, best_row, rough_eigenvector
from .local_search import best_swap
from .truncated_power import TruncatedPower

TOLERANCE = 1e-10  # relative; supports that are better by less count as equal
ROUNDING = 1e-13  # the same relative to max |A_ij|, for optima near zero
SPECTRUM_SIZE = 1200  # features for which all eigenvalues cost about a second
DENSE_SIZE = 1500  # features for which A is formed without a second thought
REFRESH_SIZE = 250  # features for which they cost a few milliseconds
EASY_BUDGET = 16  # nodes in a slice before eigenvalues of a large matrix pay
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
        if k >= len(A):
            x = leading_eigenvector(A)
            return Solution(x, largest_eigenvalue_bound(A), Status.OPTIMAL)
        A = np.ascontiguousarray(A, dtype=np.float64)
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
        k = min(k, cov.n_features)
        if cov.in_memory or cov.n_features <= DENSE_SIZE:
            A = cov.rows(slice(None))
            return self.solve(A, k, limits=limits, incumbent=incumbent, rng=rng)
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
            spectrum = _Spectrum.of_data(cov, left)
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


@dataclass(frozen=True)
class _Spectrum:
    """x'Ax ≤ low + span · Σ of `weights` over the support of x, and λmin ≥ −defect."""

    weights: FloatArray
    low: float
    span: float
    defect: float  #: A + defect · I is positive semidefinite

    @classmethod
    def of(cls, A: FloatArray, features: NDArray[np.intp] | None = None) -> _Spectrum:
        """Take it from the two largest eigenvalues of A, restricted to `features`."""
        within = A if features is None else A[np.ix_(features, features)]
        eigenvalues, vectors = np.linalg.eigh(within)
        size = max(abs(eigenvalues[0]), abs(eigenvalues[-1]))
        slack = 8 * len(within) * np.finfo(float).eps * size
        second = float(eigenvalues[-2]) if len(within) > 1 else float(eigenvalues[-1])
        weights = vectors[:, -1] ** 2
        if features is not None:
            everywhere = np.zeros(len(A))
            everywhere[features] = weights
            weights = everywhere
        span = max(0.0, float(eigenvalues[-1]) - second)
        defect = max(0.0, slack - float(eigenvalues[0]))
        return cls(weights, second + slack, span, defect)

    @classmethod
    def of_data(cls, cov: Covariance, left: NDArray[np.intp]) -> _Spectrum | None:
        """From the eigenvalues of the n × n Gram matrix, where samples are few.

        For a unit vector v at a distance of at most e from the eigenvector and β = λ₁ −
        λ₂, the largest eigenvalue of A − βvv' is at most λ₂ + 2βe, and e is at most √2
        times the residual of v, divided by β (Davis & Kahan).
        """
        n = cov.n_samples
        if n is None or not 2 <= n <= SPECTRUM_SIZE or not cov.known_psd:
            return None
        eigenvalues = np.linalg.eigvalsh(cov.gram(np.ones(cov.n_features)))
        first, second = float(eigenvalues[-1]), float(eigenvalues[-2])
        rounding = np.finfo(float).eps * (n + len(left)) * first
        defect = 8 * rounding  # of the entries of A
        if first - second <= 1e-6 * first:
            return cls(np.zeros(len(left)), math.inf, 0.0, defect)
        v = rough_eigenvector(cov.matvec, cov.diagonal(), tolerance=0.0)
        v /= np.linalg.norm(v)
        product = cov.matvec(v)
        residual = float(np.linalg.norm(product - (v @ product) * v))
        low = second + 3 * residual + 8 * rounding
        return cls(v[left] ** 2, low, first - second, defect)

    @classmethod
    def unknown(cls, A: FloatArray) -> _Spectrum:
        """Without eigenvalues; that A is semidefinite is shown by a Cholesky factor."""
        slack = 1e-13 * len(A) * float(np.abs(np.diagonal(A)).max())
        defect = 2 * slack  # the factorisation itself is rounded
        shifted = A.copy()
        shifted[np.diag_indices_from(shifted)] += slack
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            defect = math.inf
        return cls(np.zeros(len(A)), math.inf, 0.0, defect)


class _Search:
    """One branch and bound: the open nodes, the best support, the value to beat."""

    def __init__(
        self,
        A: FloatArray,
        k: int,
        limits: Limits,
        incumbent: float | None,
        eigen_size: int,
        spectrum: _Spectrum | None = None,
    ) -> None:
        self.A = A
        self.spectrum = spectrum  # if known beforehand
        self.k = k
        self.limits = limits
        self.deadline = Deadline(limits.time)
        self.eigen_size = eigen_size
        self.scale = float(np.abs(A).max())
        self.incumbent = -math.inf if incumbent is None else incumbent
        self.support = largest_entries(np.diagonal(A), k)
        self.x, self.objective = on_support(A, self.support)
        self.nodes = 0
        self.open: list[tuple[float, int, NDArray[np.uint8]]] = []
        self.numbers = itertools.count()
        self.under_way = -math.inf  # bound of the nodes that are being explored

    @property
    def tau(self) -> float:
        """The value a node must be able to exceed; rounding stays below half of it."""
        reached = max(self.objective, self.incumbent)
        tolerance = max(TOLERANCE * abs(reached), ROUNDING * self.k * self.scale)
        if self.limits.gap is not None:
            tolerance = max(tolerance, self.limits.gap * abs(reached) * (1 - 1e-9))
        return reached + tolerance

    def offer(self, support: NDArray[np.intp]) -> None:
        x, objective = on_support(self.A, np.sort(support))
        if objective > self.objective:
            self.x, self.objective, self.support = x, objective, np.sort(support)

    def push(self, bound: float, state: NDArray[np.uint8]) -> None:
        if bound > self.tau:
            heapq.heappush(self.open, (-bound, next(self.numbers), state))

    def run(self, rng: np.random.Generator | None) -> Solution:
        d = len(self.A)
        self.under_way = row_sum_bound(self.A, self.k, self.deadline)
        stopped: Status | None = None
        try:
            self.find_start()
            self.use(self.spectrum or _Spectrum.unknown(self.A))
            self.push(self.under_way, np.zeros(d, dtype=np.uint8))
            self.under_way = -math.inf
            budget = 1
            most = max(1, WORK_AT_ONCE // (min(d, 200) ** 2 * self.k))
            easy = EASY_BUDGET if d > REFRESH_SIZE else 1
            looked = d > SPECTRUM_SIZE
            while self.open and stopped is None:
                stopped = self.stop_reason()
                if stopped is None:
                    if budget > easy and not looked:
                        self.look_harder(rng)
                        looked = True
                    self.explore(budget)
                    budget = min(2 * budget, most)
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        return self.conclude(stopped)

    def use(self, spectrum: _Spectrum) -> None:
        self.root = spectrum
        self.shift = spectrum.defect
        if math.isinf(self.shift):  # Gershgorin: A + shift·I is semidefinite
            self.shift = float((np.abs(self.A).sum(axis=1)).max())

    def find_start(self) -> None:
        """The best row cut to k, power iterations from there, then swaps."""
        self.offer(best_row(self.A, self.k, self.deadline)[0])
        before = -math.inf
        while self.objective > before and not self.deadline.passed():
            before = self.objective
            product = self.x[self.support] @ self.A[self.support]
            self.offer(largest_entries(product, self.k))
        self.swap()

    def look_harder(self, rng: np.random.Generator | None) -> None:
        """Get the eigenvalues and start from many vectors, now that it pays."""
        self.use(_Spectrum.of(self.A))
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
        limits = self.limits
        if self.deadline.passed():
            return Status.TIME_LIMIT
        if limits.nodes is not None and self.nodes >= limits.nodes:
            return Status.NODE_LIMIT
        if limits.memory is not None and len(self.open) * len(self.A) > limits.memory:
            return Status.MEMORY_LIMIT
        return None

    def explore(self, budget: int) -> None:
        """Take the node of the largest bound; explore below it for `budget` nodes."""
        from .._kernels.branch_and_bound import BETTER_SUPPORT, FINISHED, explore

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
            outcome = explore(
                self.A, self.k, self.tau, self.root.defect, self.shift,
                spectrum.weights, spectrum.low, spectrum.span, self.eigen_size,
                budget - counters[1], states, bounds, counters, found,
            )  # fmt: skip
            if outcome == BETTER_SUPPORT:
                self.offer(found[: counters[2]])
            if outcome == FINISHED or counters[1] >= budget:
                break
        self.nodes += int(counters[1])
        for i in range(counters[0]):
            self.push(float(bounds[i]), states[i].copy())
        self.under_way = -math.inf

    def spectrum_of(self, state: NDArray[np.uint8]) -> _Spectrum:
        """That of the features not fixed out, where it is cheap to have."""
        left = np.flatnonzero(state != 2)
        if len(left) == len(self.A) or len(left) > REFRESH_SIZE:
            return self.root
        spectrum = _Spectrum.of(self.A, left)
        self.under_way = min(self.under_way, spectrum.low + spectrum.span)
        return spectrum

    def conclude(self, stopped: Status | None) -> Solution:
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
