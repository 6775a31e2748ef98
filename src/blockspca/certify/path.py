"""The certified path: sparse PCA on the original A, proved, for k = 1, 2, …, K.

Each k costs one incumbent, one screening pass and one depth-first proof on the few
features that survive.  What is proved for k − 1 is what makes k cheap, so the path is
walked upwards; a k that could not be proved exactly passes its bound on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import load
from .._validation import FloatArray, check_sparsity
from ..bound_names import BoundName
from ..bounds.best import BoundInterrupted, Effort, NamedBound, best_bound, is_sound
from ..covariance.covariance import Covariance
from ..heuristics.pool import first_pool
from ..limits import Budget, LimitReached, Limits, StepLimitReached
from ..numerics import cost as _cost
from ..numerics.blas import single_threaded
from ..numerics.linalg import SMALL
from ..numerics.rounding import EPS, above_from_units, above_in_units
from ..numerics.threads import jobs_at_once
from ..progress import Event, silent
from ..proof_settings import Prover
from ..scan.lists import scan_kernels
from ..search.portfolio import Portfolio
from ..search.schur_tree import largest_size
from ..status import Status, status_of_gap
from .adaptive_screening import AdaptiveScreening
from .chain import Chain
from .conclude import conclude, steps_from_variances
from .incumbents import Incumbents
from .provers import BY_CHAIN, ProofOptions
from .single_k import prove_single_k
from .steps import CertifiedStep, TreeStatistics

# Passes over the survivors' submatrix before their tree has opened a node
_SURVIVOR_PASSES = 12


def certified_path(
    cov: Covariance,
    k_max: int,
    *,
    limits: Limits | None = None,
    incumbents: Mapping[int, Sequence[int]] | None = None,
    options: ProofOptions = BY_CHAIN,
) -> dict[int, CertifiedStep]:
    """Solve max x'Ax, ‖x‖₂ = 1, ‖x‖₀ ≤ k, with a proof, for k = 1, …, k_max.

    Parameters
    ----------
    cov : Covariance
        Any symmetric A.
    limits : Limits, optional
        Of the whole path.  With a gap every k is proved to that gap at least; without
        one to 0, by way of coarser gaps if the proof is long.
    incumbents : mapping from k to features, optional
        Supports to start from, for any k; smaller ones are extended.
    options : ProofOptions
        With the prover `CHAIN_THEN_SINGLE_K`, k_max is proved by itself where the chain
        does not at once. Each group has room for one feature at least, and all together
        for k_max.

    Returns
    -------
    dict from k to CertifiedStep
        Always complete: a step that was not reached has a support, the best bound
        that costs nothing, and the status of the limit (or Ctrl-C) that ended the run.

    Notes
    -----
    At most one pass over A, O(d²), then work on the survivors only.  The status is
    optimal if the bound is within `OPTIMAL_GAP` of the objective, relative to that.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> from blockspca.certify.path import certified_path
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    >>> step = certified_path(Covariance.from_matrix(A), k_max=2)[2]
    >>> step.support.tolist(), round(step.objective, 6), str(step.status)
    ([0, 1], 3.0, 'optimal')
    """
    k_max = check_sparsity(k_max, cov.n_features, "k_max")
    budget, ks = Budget(limits), range(1, k_max + 1)
    prover = None
    try:
        budget.wait_for(load, *scan_kernels(cov), "screen", "schur_tree")
        candidates = AdaptiveScreening(
            cov, k_max, budget.check, options.callback, options.settings, options.groups
        )
        with single_threaded():
            prover = PathProver(
                cov, k_max, candidates, incumbents or {}, budget, options
            )
            for k in ks:
                prover.step(k)
            return conclude(prover, None)
    except LimitReached as reached:
        stopped = reached.status
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED

    def concluded(stopped: Status) -> dict[int, CertifiedStep]:
        if prover is None:
            return steps_from_variances(cov, ks, stopped, options.groups)
        return conclude(prover, stopped)

    with single_threaded():
        try:
            return concluded(stopped)
        except KeyboardInterrupt:  # what is known takes a moment to write down
            return concluded(Status.INTERRUPTED)


class PathProver:
    """The state of one run; all values are in units of `candidates.unit`."""

    def __init__(
        self,
        cov: Covariance,
        k_max: int,
        candidates: AdaptiveScreening,
        given: Mapping[int, Sequence[int]],
        budget: Budget,
        options: ProofOptions,
    ) -> None:
        self.cov, self.candidates, self.budget = cov, candidates, budget
        self.settings, self.groups = options.settings, options.groups
        self.n_jobs = jobs_at_once(options.n_jobs)
        self.callback, self.unit = options.callback, candidates.unit
        self.incumbents = Incumbents(
            cov,
            self.unit,
            k_max,
            candidates.initial_pool(first_pool(k_max)),
            given,
            budget.affords,
            options.groups,
        )
        self.values = self.incumbents.values
        self.chain = Chain(cov, candidates, self.values)
        self.statistics = [TreeStatistics() for _ in range(k_max + 1)]
        self.times = [0.0] * (k_max + 1)
        self.stopped_by: dict[int, Status] = {}
        self.gap, self.proves = budget.limits.gap, options.prove
        self.gap_level = 0
        #: the k that is proved by itself where the chain resists
        is_hybrid = options.prover is Prover.CHAIN_THEN_SINGLE_K
        self.single_k = k_max if is_hybrid else 0
        self.defect = ""  # of a bound below what is reached; then nothing is claimed

    def step(self, k: int) -> None:
        """Find and prove k."""
        started = time.perf_counter()
        self.budget.start_step(last=k == len(self.chain.upper) - 1)
        try:
            # The support first, before any limit: whatever ends this step, k has one.
            self.incumbents.start(k)
            self.budget.check()
            if not self.prove_quickly(k):
                self.incumbents.improve(k)
                self.chain.add_cheap_bounds(k)
                if self.proves:
                    self.prove(k)
                else:
                    self.look_further(k)
        except StepLimitReached:
            self.stopped_by[k] = Status.TIME_LIMIT
        finally:
            self.times[k] += time.perf_counter() - started
        if self.callback is not silent:
            survivors = self.chain.proofs[k][2] if k in self.chain.proofs else ()
            self.report(k, len(survivors), self.status(k, None))

    # -- the proof of one k --------------------------------------------------------

    def prove_quickly(self, k: int) -> bool:
        """Prove k with the support that it starts with, if few features survive.

        For the small k of most matrices that is all there is to do; swaps and the
        cheap bounds would cost more than the proof.
        """
        if k == 1:
            self.chain.add_cheap_bounds(k)
            return self.chain.is_proved(k, 0.0)
        # An incumbent without swaps is no reason to read more of A.
        return self.candidates.is_complete and self.attempt(k, 0.0, 0, most=2 * k)

    def prove(self, k: int) -> None:
        """Close k at the wanted gap, by way of coarser ones if that takes long.

        A short attempt at the wanted gap; short ones at coarser gaps, until one fails;
        then, if k is still far off, the bounds that need no chain; then as long as it
        takes. A matrix of few features has these bounds before sets are grown.
        """
        if self.gap is not None and self.tighten_beyond_gap(k, self.gap):
            return
        wanted = self.gap or 0.0
        gaps = [*(gap for gap in self.settings.coarse_gaps if gap > wanted), wanted]
        duals_first = self.settings.duals_before_growth(k, self.cov.n_varying)
        if duals_first:
            if self.attempt(k, wanted, rounds=1, grow=False):
                return
            self.bound_without_chain(k, wanted)
        if self.attempt(k, wanted, rounds=1):
            return
        far = max(wanted, self.settings.chainless_from_gap)
        for gap in sorted({*gaps, far}, reverse=True):
            if not self.attempt(k, gap, rounds=1):
                break
        if k == self.single_k:
            self.prove_by_itself(k, wanted)
        if k != self.single_k and not (duals_first or self.chain.is_proved(k, far)):
            self.bound_without_chain(k, wanted)
        for gap in gaps:
            self.attempt(k, gap)

    def tighten_beyond_gap(self, k: int, gap: float) -> bool:
        """Prove more than the gap where that is cheap.

        A tighter bound for k leaves k + 1 fewer survivors.  The level goes down to a
        smaller gap now and then, and up whenever one takes more than a few nodes.
        """
        levels = [0.0, gap / 8, gap / 4, gap / 2, gap]
        if k % 4 == 0:
            self.gap_level = max(self.gap_level - 1, 0)
        while self.gap_level < len(levels) - 1:
            if self.attempt(k, levels[self.gap_level], rounds=0, most=2 * k + 100):
                if k >= self.settings.spectral_first and self.statistics[k].nodes:
                    self.gap_level += 1  # large trees of large k are slow
                return True
            self.gap_level += 1
        return False

    def look_further(self, k: int) -> None:
        """Where no proof is wanted: attempt a short one, which may find a better set.

        After one without a proof, or a slow one, no more up to the next fourth k.
        """
        if k % 4 == 0:
            self.gap_level = 0
        if self.gap_level == 0:
            is_proved = self.attempt(k, 0.0, rounds=0, most=2 * k + 100)
            is_slow = k >= self.settings.spectral_first and self.statistics[k].nodes > 0
            self.gap_level = int(is_slow or not is_proved)

    def bound_without_chain(self, k: int, gap: float) -> None:
        """Bound k by the duals, which need no chain, for a short time."""
        if self.chain.is_proved(k, gap):
            return
        settings, budget = self.settings, self.budget
        bound = NamedBound(np.inf, BoundName.NONE)
        # With few features the duals are limited by steps, with more by seconds.
        by_steps = settings.duals_before_growth(k, self.cov.n_varying)
        try:
            bound = best_bound(
                self.cov,
                k,
                self.incumbents.best[k].support,
                target=(self.values[k] + gap * abs(self.values[k])) * self.unit,
                time_limit=budget.share(
                    settings.chainless_share, settings.chainless_seconds
                ),
                effort=Effort(
                    min(settings.few_nodes, budget.nodes_left),
                    min(settings.entry_nodes_below, budget.nodes_left),
                    is_timed=budget.limits.time is not None or not by_steps,
                ),
                memory=budget.limits.memory,
                settings=settings,
            )
        except BoundInterrupted as stopped:
            bound = stopped.bound
            raise
        finally:
            self.count_nodes(k, bound.nodes)
        if bound.better is not None and self.groups is None:  # which it may not keep
            self.incumbents.accept(k, bound.better.astype(np.int64), str(bound.name))
        self.add_bound(k, bound)

    def prove_by_itself(self, k: int, gap: float) -> None:
        """Prove k without the chain, as `solve` does for a single k."""
        if self.chain.is_proved(k, gap):
            return
        found = prove_single_k(
            self.cov,
            k,
            self.budget.left(),
            self.incumbents.best[k].support,
            self.callback,
            self.settings,
        )
        self.count_nodes(k, found.nodes)
        if found.objective > self.values[k] * self.unit:
            self.incumbents.accept(k, found.support.astype(np.int64), found.source)
        self.add_bound(
            k, NamedBound(found.upper_bound, found.bound_name, dual=found.dual)
        )
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def count_nodes(self, k: int, nodes: int) -> None:
        self.statistics[k].nodes += nodes
        self.budget.nodes += nodes

    def add_bound(self, k: int, bound: NamedBound) -> None:
        """Keep a bound that needs no chain, unless it is below the objective."""
        value = self.values[k]
        objective, allowed = value * self.unit, self.chain.allowance(k, value)
        if is_sound(bound, objective, allowed * self.unit):
            value = above_in_units(bound.value, self.unit)
            self.chain.lower_to(k, value, bound.name, bound.dual)
        self.report(k, self.cov.n_features)

    def attempt(
        self,
        k: int,
        gap: float,
        rounds: int | None = None,
        most: float = np.inf,
        grow: bool = True,
    ) -> bool:
        """Search for a k-set that beats the incumbent by more than the gap.

        Returns True if there is none.  A better set ends the search; it becomes the
        incumbent and the proof starts again with the higher τ.  For `rounds` and `grow`
        see `Portfolio`; nothing is searched if more than `most` features survive.
        `stopped_by` says if it was time or memory that did not suffice.
        """
        incumbents, chain = self.incumbents, self.chain
        previous = chain.upper[k - 1]
        proof: Portfolio | None = None
        while not chain.is_proved(k, gap):
            tau = chain.target(k, gap)
            assert k == 1 or tau >= previous  # the chain says nothing below it
            if chain.is_hopeless(k, tau) or (rounds == 0 and k > 1 and tau <= previous):
                return False  # the bound would be no better than the one there is
            survivors = self.candidates.survivors(k, tau, previous)
            if len(survivors) < k:
                chain.record_bound(k, tau, survivors, BoundName.SCREENING)
                break
            within = self.only_incumbent(k, survivors, tau)
            if within is not None:
                self.statistics[k].leaves += 1
                chain.record_bound(k, tau, survivors, BoundName.PROOF_TREE, within)
                break
            if len(survivors) > most:
                return False
            # Before memory is checked: a poor incumbent leaves too many survivors.
            many = len(survivors) > 4 * k + self.settings.rows_from
            if many and incumbents.restart_from_rows(k, self.candidates.screening):
                continue
            if len(survivors) ** 2 > self.budget.max_entries:
                self.stopped_by[k] = Status.MEMORY_LIMIT
                return False
            if not self.affords(survivors):
                self.stopped_by[k] = Status.TIME_LIMIT
                return False
            if incumbents.admit(k, survivors):
                continue
            matrix = incumbents.pool.submatrix(survivors)
            proof = proof or self.portfolio(k)
            proof.screening_failed = 2 * len(survivors) > self.cov.n_varying
            proof.grows = grow
            groups = self.groups and self.groups.among(survivors)
            outcome = proof.search(matrix, tau, rounds, groups)
            if outcome.exhausted:
                chain.record_bound(k, tau, survivors, outcome.argument, matrix)
                break
            if outcome.counterexample is None:
                if outcome.out_of_memory:
                    self.stopped_by[k] = Status.MEMORY_LIMIT
                return False
            self.statistics[k].restarts += 1
            if not incumbents.accept(k, survivors[outcome.counterexample]):
                return False
            self.report(k, len(survivors))
        return chain.is_proved(k, gap)

    def affords(self, survivors: NDArray[np.int64]) -> bool:
        """Whether there is time to begin with so many survivors."""
        if self.budget.remaining() is None:  # then there is nothing to estimate
            return True
        seconds = self.incumbents.admission_seconds(survivors)
        seconds += _cost.passes(_SURVIVOR_PASSES, len(survivors) ** 2)
        return self.budget.affords(seconds)

    def portfolio(self, k: int) -> Portfolio:
        return Portfolio(
            k,
            self.chain.upper,
            self.statistics[k],
            self.budget,
            self.n_jobs,
            lambda survivors: self.report(k, survivors),
            self.settings,
        )

    def only_incumbent(
        self, k: int, survivors: NDArray[np.int64], tau: float
    ) -> FloatArray | None:
        """A on the incumbent, if that is the only k-set left, and its λ is below τ.

        By more than LAPACK errs: its eigenvalues are exact for a matrix that differs by
        a modest multiple of eps ‖A_SS‖, for which 8k eps (k max |A_ij|), which is not
        less than 8k eps ‖A_SS‖_F, has room.  Beyond SMALL features the value is a
        Rayleigh quotient, and proves nothing.
        """
        best = self.incumbents.best[k]
        if len(survivors) != k or k > SMALL:
            return None
        if survivors.tolist() != best.support.tolist():
            return None
        within = self.incumbents.pool.within(best.positions)
        size = k * largest_size(within)
        return within if tau - best.value >= 8 * k * EPS * size else None

    # -- events and statuses -------------------------------------------------------

    def report(self, k: int, survivors: int, status: Status | None = None) -> None:
        if self.callback is not silent:  # an event takes longer than a small proof
            total = len(self.chain.upper) - 1
            self.callback(
                Event(
                    "proof",
                    done=k - (status is None),
                    total=total,
                    k=k,
                    survivors=survivors,
                    nodes=self.budget.nodes,
                    objective=self.values[k] * self.unit,
                    upper_bound=self.chain.upper[k] * self.unit,
                    elapsed=self.budget.elapsed(),
                    source=self.incumbents.best[k].source,
                    status=status,
                )
            )

    def status(self, k: int, stopped: Status | None) -> Status:
        """The status of k, by the objective that is reported."""
        if self.defect:
            return Status.FEASIBLE
        # A caller with more to do must know of an interrupt.
        if self.stopped_by and stopped is not Status.INTERRUPTED:
            # A bound of an earlier k that was cut short stands in the way of this one.
            cut = (self.stopped_by[q] for q in range(k, 0, -1) if q in self.stopped_by)
            stopped = next(cut, stopped)
        objective = self.incumbents.objective(k)
        bound = max(above_from_units(self.chain.upper[k], self.unit), objective)
        return status_of_gap(objective, bound, self.budget.limits.gap, stopped)
