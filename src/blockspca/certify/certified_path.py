"""The certified path: sparse PCA on the original A, proved, for k = 1, 2, …, K.

Each k costs one incumbent, one screening pass and one depth-first proof on the few
features that survive.  What is proved for k − 1 is what makes k cheap, so the path is
walked upwards; a k that could not be proved exactly passes its bound on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance
from ..result import Status, relative_gap
from ..scan import scan
from ..solvers.base import Limits
from ._blas import all_threads, single_threaded
from .incumbent import (
    Pool,
    as_support,
    best_supports,
    extended,
    leading_pair,
    swapped,
)
from .proof_tree import (
    Outcome,
    ProofTree,
    TreeStatistics,
    rounding_allowance,
    run_tree,
)
from .screening import Screening
from .spectral import Tightened, eliminate, tighten

#: "Optimal" means proved within this, relative to max(objective, max |A_ij|).
TOLERANCE = 1e-9

# Gaps proved on the way to 0 when the exact proof does not come at once.
COARSE_GAPS = (0.1, 0.02, 0.001)

_DEFAULT_MEMORY = 2**30

# Data with more features than this are scanned by variance, largest first.
_SCAN_ALL = 1000
_FIRST_CANDIDATES = 500
_QUICK_NODES = 5000

# From this k on, a proof longer than a few nodes is worth two eigenvalues.
_SPECTRAL_FROM = 10
_SPECTRAL_FIRST = 40
_SPECTRAL_SIZE = {2: 1500, 3: 600}
_BRIEF_NODES = 40

# Rows tried as starts, and how many of them are improved by swaps.
_N_ROWS = 100
_N_STARTS = 8


@dataclass(frozen=True)
class Progress:
    """One line of the log."""

    k: int
    survivors: int
    nodes: int
    objective: float
    upper_bound: float
    elapsed: float
    source: str
    status: Status | None = None

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.upper_bound)


@dataclass(frozen=True)
class CertifiedStep:
    """What is known about one k, with all that is needed to check it again.

    Attributes
    ----------
    k, n_features : int
    support, loadings : (k,) arrays
        The features, ascending, and the unit eigenvector of A on them.
    objective : float
        x'Ax on the original A.
    upper_bound : float
        No unit vector with at most k nonzeros exceeds it.
    bound_name : str
        "proof tree", "screening", "nested 2×2", "row sums", "variances" or "none".
    status : Status
    source : str
        Where the incumbent came from.
    tau, upper_previous : float
        The proof shows that no k-set exceeds tau, given upper_previous ≥ opt(k − 1).
        NaN unless the bound is "proof tree" or "screening".
    survivors : array of int
        Every feature outside fails the screening inequality at (tau, upper_previous).
    allowance : float
        upper_bound − tau, what is set aside for rounding.
    tolerance : float
        Absolute: the status is optimal if upper_bound − objective is at most this.
    statistics : TreeStatistics
    time : float
        Seconds spent on this k.
    """

    k: int
    n_features: int
    support: NDArray[np.intp]
    loadings: FloatArray
    objective: float
    upper_bound: float
    bound_name: str
    status: Status
    source: str
    tau: float
    upper_previous: float
    survivors: NDArray[np.int64]
    allowance: float
    tolerance: float
    statistics: TreeStatistics = field(default_factory=TreeStatistics)
    time: float = 0.0

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.upper_bound)

    @property
    def nodes(self) -> int:
        return self.statistics.nodes

    @property
    def x(self) -> FloatArray:
        """The component as a vector of length n_features."""
        x = np.zeros(self.n_features)
        x[self.support] = self.loadings
        return x


class _Stop(Exception):
    """A limit was reached."""

    def __init__(self, status: Status) -> None:
        self.status = status


@dataclass
class _Meter:
    """The limits of a run, and what has been used of them."""

    limits: Limits
    started: float = field(default_factory=time.perf_counter)
    nodes: int = 0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def check(self) -> None:
        if self.limits.time is not None and self.elapsed >= self.limits.time:
            raise _Stop(Status.TIME_LIMIT)
        if self.limits.nodes is not None and self.nodes >= self.limits.nodes:
            raise _Stop(Status.NODE_LIMIT)

    def nodes_left(self) -> int:
        if self.limits.nodes is None:
            return 2**62
        return self.limits.nodes - self.nodes

    @property
    def max_entries(self) -> int:
        return (self.limits.memory or _DEFAULT_MEMORY) // 8


@dataclass
class _Bound:
    """The best upper bound for one k and how it was obtained; scaled units."""

    value: float = np.inf
    name: str = "none"
    tau: float = np.nan
    previous: float = np.nan
    survivors: NDArray[np.int64] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64)
    )

    def offer(self, value: float, name: str) -> None:
        if value < self.value:
            self.value, self.name = value, name
            self.tau = self.previous = np.nan


def certified_path(
    cov: Covariance,
    k_max: int,
    *,
    k_min: int = 1,
    limits: Limits | None = None,
    incumbents: Mapping[int, Sequence[int]] | None = None,
    n_jobs: int = 1,
    callback: Callable[[Progress], None] | None = None,
) -> dict[int, CertifiedStep]:
    """Solve max x'Ax, ‖x‖₂ = 1, ‖x‖₀ ≤ k, with a proof, for k = k_min, …, k_max.

    Parameters
    ----------
    cov : Covariance
        Any symmetric A.
    k_max, k_min : int
        The proofs start at 1 whatever k_min is; it says what is returned.
    limits : Limits, optional
        Of the whole path.  With a gap every k is proved to that gap only; without
        one to 0, by way of coarser gaps if the proof is long.
    incumbents : mapping from k to features, optional
        Supports to start from, for any k; smaller ones are extended.
    n_jobs : int
        Threads for a long proof.
    callback : callable, optional
        Receives a `Progress` after each k, each improvement and each slice of a long
        proof.

    Returns
    -------
    dict from k to CertifiedStep
        Always complete: a step that was not reached has a support, the best bound
        that costs nothing, and the status of the limit (or Ctrl-C) that ended the run.

    Notes
    -----
    One pass over A, O(d²), then work on the survivors only.  The status is optimal if
    the bound is within `TOLERANCE`, relative to max(objective, max |A_ij|).
    """
    if not 1 <= k_min <= k_max <= cov.n_features:
        raise ValueError(
            f"k_min = {k_min}, k_max = {k_max}: pass 1 ≤ k_min ≤ k_max ≤ "
            f"{cov.n_features}, the number of features."
        )
    walk = _Walk(cov, k_max, limits or Limits(), incumbents or {}, n_jobs, callback)
    try:
        walk.prepare()
        with single_threaded():
            for k in range(1, k_max + 1):
                walk.step(k)
    except _Stop as stop:
        walk.stopped = stop.status
    except KeyboardInterrupt:
        walk.stopped = Status.INTERRUPTED
    with single_threaded():
        steps = {k: walk.finish(k) for k in range(1, k_max + 1)}
    return {k: step for k, step in steps.items() if k >= k_min}


class _Walk:
    """The state of one run of `certified_path`."""

    def __init__(
        self,
        cov: Covariance,
        k_max: int,
        limits: Limits,
        incumbents: Mapping[int, Sequence[int]],
        n_jobs: int,
        callback: Callable[[Progress], None] | None,
    ) -> None:
        self.cov, self.k_max, self.n_jobs = cov, k_max, n_jobs
        self.callback = callback
        self.given = {k: as_support(support) for k, support in incumbents.items()}
        self.meter = _Meter(limits)
        self.gap = limits.gap
        self.stopped: Status | None = None
        self.unit = 1.0
        self.largest = 1.0
        self.screening: Screening | None = None
        self.bounds = [_Bound() for _ in range(k_max + 1)]
        self.upper = np.full(k_max + 1, np.inf)
        self.supports: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * (k_max + 1)
        self.values = np.full(k_max + 1, -np.inf)
        self.sources = ["none"] * (k_max + 1)
        self.statistics = [TreeStatistics() for _ in range(k_max + 1)]
        self.times = np.zeros(k_max + 1)
        self.status: list[Status | None] = [None] * (k_max + 1)
        self.searched_rows = -1
        self.rung = 0

    # -- preparation ---------------------------------------------------------------

    def prepare(self) -> None:
        """The unit, the scan of A (or of its candidates) and the pool."""
        candidates = None
        d = self.cov.n_features
        if self.cov.known_psd and d > _SCAN_ALL:
            variances = self.cov.diagonal()
            size = min(d, max(_FIRST_CANDIDATES, 6 * self.k_max))
            candidates = np.argpartition(-variances, size - 1)[:size]
        self.scan(candidates)
        assert self.screening is not None
        self.pool = Pool(self.cov, self.unit)
        # A feature is promising if A_ii e_i + its strongest partners weigh a lot.
        weight = self.screening.diagonal**2 + self.screening.prefix[:, -1]
        size = min(len(weight), max(4 * self.k_max, 100))
        start = np.argpartition(-weight, size - 1)[:size]
        if self.screening.candidates is not None:
            start = self.screening.candidates[start]
        best = int(np.argmax(self.cov.diagonal()))
        given = [s for s in self.given.values() if len(s)]
        self.pool.add(as_support(np.concatenate([start, [best], *given])))

    def scan(self, candidates: NDArray[np.int64] | None) -> None:
        """Scan the candidates, or everything."""
        width = max(self.k_max - 1, 1)
        if candidates is not None:
            candidates = np.sort(candidates).astype(np.int64)
        found = scan(self.cov, width, self.meter.check, candidates)
        if self.screening is None:
            # A positive semidefinite A has its largest entry on the diagonal, so the
            # unit does not change when more is scanned.
            largest = found.max_abs
            if largest > 0:
                self.unit = float(2.0 ** np.floor(np.log2(largest)))
            self.largest = largest / self.unit
        self.screening = Screening(found, self.unit, candidates, self.cov.diagonal())

    def widen(self, k: int, tau: float, previous: float) -> None:
        """Scan more features until variances rule out all the others."""
        assert self.screening is not None and self.screening.candidates is not None
        missing = self.screening.unscanned(k, tau, previous)
        if missing == 0:
            return
        size = 2 * len(self.screening.candidates) + missing
        d = self.cov.n_features
        more = None
        if size <= d // 2:
            more = np.argpartition(-self.cov.diagonal(), size - 1)[:size]
        with all_threads():
            self.scan(more)

    # -- one k ---------------------------------------------------------------------

    def step(self, k: int) -> None:
        started = time.perf_counter()
        try:
            self.incumbent(k)
            self.cheap_bounds(k)
            self.meter.check()
            self.prove(k)
        finally:
            self.times[k] += time.perf_counter() - started
        self.report(k, status=self.final_status(k))

    def incumbent(self, k: int) -> None:
        """Extend the support of k − 1, take what was given, improve by swaps."""
        pool = self.pool
        previous = pool.positions(self.supports[k - 1])
        self.offer(k, extended(pool.matrix, previous, k), "extension")
        given = self.given.get(k)
        if given is not None and 0 < len(given) <= k:
            self.offer(k, extended(pool.matrix, pool.positions(given), k), "given")

    def offer(self, k: int, positions: NDArray[np.int64], source: str) -> bool:
        """Improve a support by swaps; keep it if it beats the incumbent of k."""
        if k == 1:
            value = float(self.pool.matrix[positions[0], positions[0]])
        else:
            before = positions
            positions, value = swapped(self.pool.matrix, positions)
            if positions is not before:
                source += " + swaps"
        if value <= self.values[k]:
            return False
        self.values[k] = value
        self.supports[k] = np.sort(self.pool.features[positions])
        self.sources[k] = source
        return True

    def cheap_bounds(self, k: int) -> None:
        """The bounds that need no proof."""
        assert self.screening is not None
        bound = self.bounds[k]
        if k == 1:
            bound.offer(float(self.screening.diagonal.max()), "variances")
        else:
            slack = self.allowance(k)
            nested = self.screening.nested_bound(k, self.upper[k - 1])
            bound.offer(nested + slack, "nested 2×2")
            bound.offer(self.screening.row_sum_bound(k) + slack, "row sums")
            if self.cov.known_psd:
                variances = self.cov.diagonal() / self.unit
                top = np.partition(variances, len(variances) - k)[-k:]
                bound.offer(float(top.sum()) + slack, "variances")
        self.upper[k] = bound.value

    def spread(self, k: int) -> float:
        """What tolerances are relative to."""
        return max(self.values[k], self.largest)

    def allowance(self, k: int) -> float:
        return rounding_allowance(k, self.cov.n_samples) * self.spread(k)

    def is_proved(self, k: int, gap: float) -> bool:
        excess = self.upper[k] - self.values[k]
        return bool(
            excess <= TOLERANCE * self.spread(k) or excess <= gap * abs(self.values[k])
        )

    def prove(self, k: int) -> None:
        """Close k at the wanted gap, by way of coarser ones if that takes long."""
        if self.gap is not None:
            self.prove_to_gap(k, self.gap)
        elif not self.attempt(k, 0.0, _QUICK_NODES):
            for gap in COARSE_GAPS:
                self.attempt(k, gap, None)
            self.attempt(k, 0.0, None)

    def prove_to_gap(self, k: int, gap: float) -> None:
        """Prove the gap, and more than that where it is cheap.

        A tighter bound for k leaves k + 1 fewer survivors.  The ladder goes down a
        rung now and then and up whenever a rung takes more than a few nodes.
        """
        rungs = [0.0, gap / 8, gap / 4, gap / 2, gap]
        if k % 4 == 0:
            self.rung = max(self.rung - 1, 0)
        while self.rung < len(rungs) - 1:
            if self.attempt(k, rungs[self.rung], 2 * _BRIEF_NODES, cheap=True):
                if k >= _SPECTRAL_FIRST and self.statistics[k].nodes:
                    self.rung += 1  # large trees of large k are slow
                return
            self.rung += 1
        self.attempt(k, gap, None)

    def attempt(
        self, k: int, gap: float, max_nodes: int | None, cheap: bool = False
    ) -> bool:
        """Prove that no k-set beats the incumbent by more than the gap.

        A better set ends the search; it becomes the incumbent and the proof starts
        again with the higher τ.  False if the nodes or the memory did not suffice,
        or if the attempt should be `cheap` and the survivors are many.
        """
        assert self.screening is not None
        statistics = self.statistics[k]
        previous = self.upper[k - 1]
        limit = None if max_nodes is None else statistics.nodes + max_nodes
        while not self.is_proved(k, gap):
            delta = self.allowance(k)
            spread = self.spread(k)
            # A little below the gap: where opt(k) = opt(k − 1), the allowances of
            # one k after the other must fit under it.
            wanted = 0.999 * gap * abs(self.values[k]) - delta
            tau = self.values[k] + max(wanted, 0.5 * TOLERANCE * spread)
            if k > 1:
                # Below a bound of k − 1 the chain says nothing.
                tau = max(tau, previous)
            if tau + delta >= self.upper[k]:
                return False
            if cheap and k > 1 and tau <= previous:
                return False
            if self.screening.candidates is not None:
                self.widen(k, tau, previous)
            survivors = self.screening.survivors(k, tau, previous)
            if cheap and len(survivors) > 2 * k + 100:
                return False
            if len(survivors) < k:
                self.settle(k, tau, survivors, "screening")
                break
            if len(survivors) ** 2 > self.meter.max_entries:
                self.status[k] = Status.MEMORY_LIMIT
                return False
            if len(survivors) > 4 * k + 40 and self.restart_from_rows(k):
                continue
            if self.pool.add(survivors) and self.reswap(k):
                continue
            outcome = self.search(k, tau, survivors, limit)
            if outcome.finished:
                self.settle(k, tau, survivors, "proof tree")
                break
            if outcome.found is None:
                return False
            statistics.restarts += 1
            found = self.pool.positions(survivors[outcome.found])
            support = extended(self.pool.matrix, found, k)
            if not self.offer(k, support, "proof tree"):
                return False
            self.report(k, len(survivors))
        return self.is_proved(k, gap)

    def search(
        self, k: int, tau: float, survivors: NDArray[np.int64], limit: int | None
    ) -> Outcome:
        """Look for a k-set above τ; `found` holds positions in the survivors.

        Cheapest first: a few nodes where k is small, then what the leading two or
        three eigenvectors exclude and force, then the tree on what is left.
        """
        matrix = self.pool.submatrix(survivors)
        brief = self.statistics[k].nodes + _BRIEF_NODES
        if k < _SPECTRAL_FROM:
            return self.run(k, tau, matrix, 0, limit)
        outcome = None
        if k < _SPECTRAL_FIRST:
            outcome = self.run(k, tau, matrix, 0, brief)
        for p in (2, 3):
            if outcome is not None and (outcome.finished or outcome.found is not None):
                return outcome
            if len(matrix) > _SPECTRAL_SIZE[p]:
                tightened = Tightened.nothing_known(len(matrix))
            else:
                tightened = tighten(matrix, k, tau, p)
            if len(tightened.kept) < k:
                return Outcome(True, None)
            stop = brief + _BRIEF_NODES if p == 2 else limit
            if limit is not None and stop is not None:
                stop = min(stop, limit)
            outcome = self.run_reduced(k, tau, matrix, tightened, stop)
        assert outcome is not None
        return outcome

    def run_reduced(
        self,
        k: int,
        tau: float,
        matrix: FloatArray,
        tightened: Tightened,
        limit: int | None,
    ) -> Outcome:
        """Run the tree after the forced features have been eliminated."""
        forced = tightened.forced
        rest = np.setdiff1d(tightened.kept, forced)
        if len(forced) == k:
            rest, forced = forced[:1], forced[1:]
        reduced = eliminate(matrix, forced, rest, tau)
        if reduced is None:
            return Outcome(False, forced)
        outcome = self.run(k, tau, reduced, len(forced), limit)
        if outcome.found is None:
            return outcome
        return Outcome(False, np.concatenate([forced, rest[outcome.found]]))

    def run(
        self, k: int, tau: float, matrix: FloatArray, chosen: int, limit: int | None
    ) -> Outcome:
        """Run one tree, `chosen` features having been eliminated already."""
        statistics = self.statistics[k]
        tree = ProofTree(
            matrix,
            k - chosen,
            tau,
            self.upper[chosen : k + 1].copy(),
            self.meter.max_entries,
        )

        before = self.meter.nodes - statistics.nodes

        def may_go_on(nodes: int) -> int:
            self.meter.nodes += nodes
            self.meter.check()
            if nodes:
                self.report(k, len(matrix), self.meter.nodes)
            allowed = self.meter.nodes_left()
            if limit is not None:
                allowed = min(allowed, limit - statistics.nodes - tree.nodes)
            return allowed

        try:
            outcome = run_tree(tree, statistics, may_go_on, self.n_jobs)
        finally:
            self.meter.nodes = before + statistics.nodes
        if outcome.out_of_memory:
            self.status[k] = Status.MEMORY_LIMIT
        return outcome

    def settle(
        self, k: int, tau: float, survivors: NDArray[np.int64], name: str
    ) -> None:
        bound = self.bounds[k]
        value = tau + self.allowance(k)
        if value < bound.value:
            bound.value, bound.name, bound.tau = value, name, tau
            bound.previous, bound.survivors = self.upper[k - 1], survivors
            self.upper[k] = value

    def reswap(self, k: int) -> bool:
        """Swap again after the pool has grown."""
        positions = self.pool.positions(self.supports[k])
        return self.offer(k, positions, self.sources[k])

    def restart_from_rows(self, k: int) -> bool:
        """Truncated rows of A, once for each k that looks hard."""
        assert self.screening is not None
        if self.searched_rows == k or k == 1:
            return False
        self.searched_rows = k
        supports = self.screening.row_supports(k, _N_ROWS)
        if len(supports) == 0:
            return False
        self.pool.add(np.unique(supports))
        starts = best_supports(
            self.pool.matrix, self.pool.positions(supports), _N_STARTS
        )
        better = [self.offer(k, start, "rows") for start in starts]
        return any(better)

    def report(
        self,
        k: int,
        survivors: int | None = None,
        nodes: int = 0,
        status: Status | None = None,
    ) -> None:
        if self.callback is None:
            return
        if survivors is None:
            survivors = len(self.bounds[k].survivors)
        self.callback(
            Progress(
                k=k,
                survivors=survivors,
                nodes=max(nodes, self.statistics[k].nodes),
                objective=self.values[k] * self.unit,
                upper_bound=self.upper[k] * self.unit,
                elapsed=self.meter.elapsed,
                source=self.sources[k],
                status=status,
            )
        )

    # -- results -------------------------------------------------------------------

    def finish(self, k: int) -> CertifiedStep:
        """The record of k; completes a step that was not reached."""
        if self.screening is None:
            return self.without_scan(k)
        if self.values[k] == -np.inf:
            positions = self.pool.positions(self.supports[k - 1])
            support = extended(self.pool.matrix, positions, k)
            self.values[k], _ = leading_pair(self.pool.matrix, support)
            self.supports[k] = np.sort(self.pool.features[support])
            self.sources[k] = "extension"
        if self.upper[k] == np.inf:
            self.cheap_bounds(k)
        bound = self.bounds[k]
        support = self.supports[k]
        block = self.cov.submatrix(support)
        _, vectors = np.linalg.eigh(block / self.unit)
        x = vectors[:, -1]
        x = x / np.linalg.norm(x)
        x = x * np.sign(x[np.argmax(np.abs(x))])
        objective = float(x @ (block / self.unit) @ x)
        unit = self.unit
        return CertifiedStep(
            k=k,
            n_features=self.cov.n_features,
            support=support.astype(np.intp),
            loadings=x,
            objective=objective * unit,
            upper_bound=max(bound.value, objective) * unit,
            bound_name=bound.name,
            status=self.final_status(k),
            source=self.sources[k],
            tau=bound.tau * unit,
            upper_previous=bound.previous * unit,
            survivors=bound.survivors,
            allowance=(bound.value - bound.tau) * unit,
            tolerance=TOLERANCE * self.spread(k) * unit,
            statistics=self.statistics[k],
            time=float(self.times[k]),
        )

    def final_status(self, k: int) -> Status:
        if self.is_proved(k, 0.0):
            return Status.OPTIMAL
        if self.gap is not None and self.is_proved(k, self.gap):
            return Status.GAP_LIMIT
        return self.stopped or self.status[k] or Status.FEASIBLE

    def without_scan(self, k: int) -> CertifiedStep:
        """Stopped before the pass over A ended: the variances are all there is."""
        diagonal = self.cov.diagonal()
        support = np.sort(np.argsort(-diagonal, kind="stable")[:k])
        block = self.cov.submatrix(support)
        values, vectors = np.linalg.eigh(block)
        x = vectors[:, -1]
        upper = np.inf
        if k == 1:
            upper = float(diagonal.max())
        elif self.cov.known_psd:
            upper = float(diagonal[support].sum()) * (1 + 1e-12)
        objective = float(x @ block @ x)
        return CertifiedStep(
            k=k,
            n_features=self.cov.n_features,
            support=support.astype(np.intp),
            loadings=x,
            objective=objective,
            upper_bound=max(upper, objective),
            bound_name="variances" if upper < np.inf else "none",
            status=self.stopped or Status.FEASIBLE,
            source="variances",
            tau=np.nan,
            upper_previous=np.nan,
            survivors=np.empty(0, np.int64),
            allowance=np.nan,
            tolerance=TOLERANCE * float(np.abs(diagonal).max()),
        )
