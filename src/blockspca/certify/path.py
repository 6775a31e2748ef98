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
from ..bounds.best import FEW_NODES, BoundInterrupted, NamedBound, best_bound, is_sound
from ..bounds.closed_form import ObviousBounds
from ..certificate import BoundName
from ..covariance.covariance import Covariance
from ..limits import Budget, LimitReached, Limits, StepLimitReached
from ..numerics import cost as _cost
from ..numerics.blas import single_threaded
from ..numerics.linalg import SMALL, rayleigh, with_sign
from ..numerics.rounding import EPS
from ..progress import Event, Listener, silent
from ..result import OPTIMAL_GAP, Status, is_within_gap
from ..scan.lists import scan_kernels
from ..search.portfolio import SPECTRAL_FIRST, StepProof
from ..search.schur_tree import extent, rounding_allowance
from ..stopping import status_of_gap
from .adaptive_screening import Candidates
from .alarms import alarm, is_below_objective, values_of_subsets
from .incumbents import Incumbents
from .records import CertifiedStep, TreeStatistics
from .unscanned import steps_from_variances

# Gaps proved on the way to 0 when the exact proof does not come at once.
_COARSE_GAPS = (0.5, 0.2, 0.1, 0.02, 0.001)

# Seconds for the bounds that do without the chain, for a k that resists.
_NAMED_SECONDS = 2.0
_NAMED_FROM_GAP = 0.005  # they seldom get closer than this


# In units of the largest entry: squares below the normal range err by 2⁻¹⁰⁷⁴ each, so
# that norms, and hence eigenvalues, err by far less than this.
_UNDERFLOW = 1e-150
# Seconds, and part of the limit, for steps that were not reached when time was up
_GRACE, _GRACE_SHARE = 0.2, 0.02
# Passes over the survivors' submatrix before their tree has opened a node
_SURVIVOR_PASSES = 12

_NO_PROOF = (np.nan, np.nan, np.empty(0, dtype=np.int64))


def certified_path(
    cov: Covariance,
    k_max: int,
    *,
    limits: Limits | None = None,
    incumbents: Mapping[int, Sequence[int]] | None = None,
    n_jobs: int = 1,
    callback: Listener = silent,
) -> dict[int, CertifiedStep]:
    """Solve max x'Ax, ‖x‖₂ = 1, ‖x‖₀ ≤ k, with a proof, for k = 1, …, k_max.

    Parameters
    ----------
    cov : Covariance
        Any symmetric A.
    k_max : int
    limits : Limits, optional
        Of the whole path.  With a gap every k is proved to that gap at least; without
        one to 0, by way of coarser gaps if the proof is long.
    incumbents : mapping from k to features, optional
        Supports to start from, for any k; smaller ones are extended.
    n_jobs : int
        Threads for a long proof.
    callback : callable, optional
        Receives an `Event` while A is read, after each k, each improvement and each
        slice of a long proof.

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
    budget = Budget(limits)
    stopped = None
    walk = None
    try:
        budget.wait_for(load, *scan_kernels(cov), "screen", "schur_tree")
        candidates = Candidates(cov, k_max, budget.check, callback)
        with single_threaded():
            walk = _Walk(cov, k_max, candidates, incumbents or {}, budget)
            walk.n_jobs, walk.callback = n_jobs, callback
            for k in range(1, k_max + 1):
                walk.step(k)
            return _finished(cov, k_max, walk, None)
    except LimitReached as reached:
        stopped = reached.status
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    with single_threaded():
        try:
            return _finished(cov, k_max, walk, stopped)
        except KeyboardInterrupt:  # what is known takes a moment to write down
            return _finished(cov, k_max, walk, Status.INTERRUPTED)


def _finished(
    cov: Covariance, k_max: int, walk: _Walk | None, stopped: Status | None
) -> dict[int, CertifiedStep]:
    ks = range(1, k_max + 1)
    if walk is None:
        return steps_from_variances(cov, k_max, stopped or Status.FEASIBLE)
    walk.complete()
    walk.compare_with_subsets()
    return {k: walk.finish(k, stopped) for k in ks}


def _first_pool(k_max: int) -> int:
    """How many features the first supports are made of."""
    return max(4 * k_max, min(10 * k_max, 100))


class _Walk:
    """The state of one run; all values are in units of `candidates.unit`."""

    def __init__(
        self,
        cov: Covariance,
        k_max: int,
        candidates: Candidates,
        given: Mapping[int, Sequence[int]],
        budget: Budget,
    ) -> None:
        self.cov, self.candidates, self.budget = cov, candidates, budget
        self.unit = candidates.unit
        self.entry_error = cov.entry_error / self.unit
        self.incumbents = Incumbents(
            cov,
            self.unit,
            k_max,
            candidates.promising(_first_pool(k_max)),
            given,
            budget.affords,
        )
        self.values = self.incumbents.values
        self.upper = [np.inf] * (k_max + 1)
        self.names = [BoundName.NONE] * (k_max + 1)
        # (τ, bound of k − 1, survivors) of the proof behind upper[k], if there is one
        self.proofs: dict[int, tuple[float, float, NDArray[np.int64]]] = {}
        self.statistics = [TreeStatistics() for _ in range(k_max + 1)]
        self.times = [0.0] * (k_max + 1)
        self.cut_short: dict[int, Status] = {}
        self.rung = 0
        self.defect = ""  # of a bound below what is reached; then nothing is claimed
        self.n_jobs = 1
        self.callback: Listener = silent

    def step(self, k: int) -> None:
        """Find and prove k."""
        started = time.perf_counter()
        self.budget.start_step(last=k == len(self.upper) - 1)
        try:
            self.incumbents.start(k)
            self.budget.check()
            if not self.closes_at_once(k):
                self.incumbents.improve(k)
                self.cheap_bounds(k)
                self.prove(k)
        except StepLimitReached:
            self.cut_short[k] = Status.TIME_LIMIT
        finally:
            self.times[k] += time.perf_counter() - started
        if self.callback is not silent:
            survivors = self.proofs[k][2] if k in self.proofs else ()
            self.report(k, len(survivors), self.status(k, None))

    # -- bounds and tolerances -----------------------------------------------------

    def input_allowance(self, k: int) -> float:
        """What the entries of A, and squares of them that underflow, may be off by."""
        underflow = k * _UNDERFLOW if self.candidates.strongest > 0 else 0.0
        return 2 * k * self.entry_error + underflow

    def allowance(self, k: int, level: float) -> float:
        """What a bound of about `level`, over all features, sets aside for rounding."""
        candidates = self.candidates
        lowest, strongest = candidates.lowest, candidates.strongest
        rounding = rounding_allowance(k, level, lowest, strongest)
        return rounding + self.input_allowance(k)

    def cheap_bounds(self, k: int) -> None:
        for bound, name in self.candidates.bounds(k, self.upper[k - 1]):
            allowance = self.allowance(k, bound) if k > 1 else self.entry_error
            self.lower_to(k, bound + allowance, name)

    def lower_to(self, k: int, value: float, name: BoundName) -> None:
        """Record a bound that needs no proof, if it is the best so far."""
        if value < self.upper[k]:
            self.proofs.pop(k, None)
            self.upper[k], self.names[k] = value, name

    def settle(
        self,
        k: int,
        tau: float,
        survivors: NDArray[np.int64],
        name: BoundName,
        searched: FloatArray | None = None,
    ) -> None:
        """Record that no k-set exceeds τ, by a search of a matrix if there was one."""
        value = tau + self.input_allowance(k)
        if searched is not None:
            value += rounding_allowance(k, tau, *extent(searched))
        if value < self.upper[k]:
            # The bound itself comes last: Ctrl-C may strike between the lines.
            self.proofs[k] = (tau, self.upper[k - 1], survivors)
            self.names[k] = name
            self.upper[k] = value

    def is_proved(self, k: int, gap: float) -> bool:
        # A little less than what is called optimal, which is judged by x'Ax as it is
        # handed out, not by λ.
        value = self.values[k]
        bound = max(self.upper[k], value)
        return is_within_gap(value, bound, max(0.99 * OPTIMAL_GAP, gap))

    # -- the proof of one k --------------------------------------------------------

    def closes_at_once(self, k: int) -> bool:
        """Prove k with the support that it starts with, if few features survive.

        For the small k of most matrices that is all there is to do; swaps and the
        bounds of `cheap_bounds` would cost more than the proof.
        """
        if k == 1:
            self.cheap_bounds(k)
            return self.is_proved(k, 0.0)
        # An incumbent without swaps is no reason to read more of A.
        return self.candidates.is_complete and self.attempt(k, 0.0, 0, most=2 * k)

    def prove(self, k: int) -> None:
        """Close k at the wanted gap, by way of coarser ones if that takes long."""
        wanted = self.budget.limits.gap
        if wanted is not None and self.climb(k, wanted):
            return
        wanted = wanted or 0.0
        gaps = [*(gap for gap in _COARSE_GAPS if gap > wanted), wanted]
        if self.attempt(k, wanted, turns=1):
            return
        for gap in gaps:
            if not self.attempt(k, gap, turns=1):
                break
        if not self.is_proved(k, max(wanted, _NAMED_FROM_GAP)):
            self.named_bound(k, wanted)
        for gap in gaps:
            self.attempt(k, gap)

    def climb(self, k: int, gap: float) -> bool:
        """Prove more than the gap where that is cheap.

        A tighter bound for k leaves k + 1 fewer survivors.  The ladder goes down a
        rung now and then and up whenever a rung takes more than a few nodes.
        """
        rungs = [0.0, gap / 8, gap / 4, gap / 2, gap]
        if k % 4 == 0:
            self.rung = max(self.rung - 1, 0)
        while self.rung < len(rungs) - 1:
            if self.attempt(k, rungs[self.rung], turns=0, most=2 * k + 100):
                if k >= SPECTRAL_FIRST and self.statistics[k].nodes:
                    self.rung += 1  # large trees of large k are slow
                return True
            self.rung += 1
        return False

    def named_bound(self, k: int, gap: float, most: float = _NAMED_SECONDS) -> None:
        """Bound k by itself, without the chain."""
        if self.is_proved(k, gap):
            return
        target = (self.values[k] + gap * abs(self.values[k])) * self.unit
        bound = NamedBound(np.inf, BoundName.NONE)
        try:
            bound = best_bound(
                self.cov,
                k,
                self.incumbents.best[k].support,
                target=target,
                time_limit=self.budget.share(0.2, most),
                nodes=min(FEW_NODES, self.budget.nodes_left),
                memory=self.budget.limits.memory,
            )
        except BoundInterrupted as stopped:
            bound = stopped.bound
            raise
        finally:
            self.statistics[k].nodes += bound.nodes
            self.budget.nodes += bound.nodes
        value = bound.value / self.unit
        objective = self.values[k] * self.unit
        if is_sound(bound, objective, self.allowance(k, self.values[k]) * self.unit):
            self.lower_to(k, value, bound.name)
        self.report(k, self.cov.n_features)

    def attempt(
        self, k: int, gap: float, turns: int | None = None, most: float = np.inf
    ) -> bool:
        """Prove that no k-set beats the incumbent by more than the gap.

        A better set ends the search; it becomes the incumbent and the proof starts
        again with the higher τ.  False if the turns (see `StepProof.search`) or the
        memory did not suffice, or if more than `most` features survive.
        """
        incumbents, previous = self.incumbents, self.upper[k - 1]
        proof: StepProof | None = None
        while not self.is_proved(k, gap):
            tau = self.target(k, gap)
            assert k == 1 or tau >= previous  # the chain says nothing below it
            if tau + rounding_allowance(k, tau, tau, 0.0) >= self.upper[k]:
                return False
            if turns == 0 and k > 1 and tau <= previous:
                return False
            survivors = self.candidates.survivors(k, tau, previous)
            if len(survivors) < k:
                self.settle(k, tau, survivors, BoundName.SCREENING)
                break
            if self.is_incumbent(k, survivors, tau):
                self.statistics[k].leaves += 1
                within = incumbents.pool.submatrix(survivors)
                self.settle(k, tau, survivors, BoundName.PROOF_TREE, within)
                break
            if len(survivors) > most:
                return False
            if len(survivors) ** 2 > self.budget.max_entries:
                self.cut_short[k] = Status.MEMORY_LIMIT
                return False
            many = len(survivors) > 4 * k + 40
            if not self.affords(survivors):
                self.cut_short[k] = Status.TIME_LIMIT
                return False
            if many and incumbents.restart_from_rows(k, self.candidates.screening):
                continue
            if incumbents.admit(k, survivors):
                continue
            matrix = incumbents.pool.submatrix(survivors)
            proof = proof or self.step_proof(k)
            proof.blind = 2 * len(survivors) > self.cov.n_features
            outcome = proof.search(matrix, tau, turns)
            if outcome.finished:
                self.settle(k, tau, survivors, outcome.argument, matrix)
                break
            if outcome.found is None:
                if outcome.out_of_memory:
                    self.cut_short[k] = Status.MEMORY_LIMIT
                return False
            self.statistics[k].restarts += 1
            if not incumbents.accept(k, survivors[outcome.found]):
                return False
            self.report(k, len(survivors))
        return self.is_proved(k, gap)

    def affords(self, survivors: NDArray[np.int64]) -> bool:
        """Whether there is time to begin with so many survivors."""
        seconds = self.incumbents.admission_seconds(survivors)
        seconds += _cost.passes(_SURVIVOR_PASSES, len(survivors) ** 2)
        return self.budget.affords(seconds)

    def step_proof(self, k: int) -> StepProof:
        return StepProof(
            k,
            self.upper,
            self.statistics[k],
            self.budget,
            self.n_jobs,
            lambda survivors: self.report(k, survivors),
        )

    def is_incumbent(self, k: int, survivors: NDArray[np.int64], tau: float) -> bool:
        """Whether the only k-set left is the incumbent, whose λ is below τ.

        By more than LAPACK errs: its eigenvalues are exact for a matrix that differs by
        a modest multiple of eps ‖A_SS‖, for which 8k eps ‖A_SS‖_F has room.  Beyond
        SMALL features the value is a Rayleigh quotient, and proves nothing.
        """
        best = self.incumbents.best[k]
        if len(survivors) != k or k > SMALL or (survivors != best.support).any():
            return False
        size = float(np.linalg.norm(self.incumbents.pool.within(best.positions)))
        return tau - best.value >= 8 * k * EPS * size

    def target(self, k: int, gap: float) -> float:
        """The τ to prove for a gap.

        A little below the gap: where opt(k) = opt(k − 1), the allowances of one k
        after the other must fit under it.  Never below the bound of k − 1, under
        which the chain says nothing.
        """
        value = self.values[k]
        wanted = 0.999 * gap * abs(value) - self.allowance(k, value)
        tau = value + max(wanted, 0.5 * OPTIMAL_GAP * abs(value))
        return tau if k == 1 else max(tau, self.upper[k - 1])

    # -- what is handed out --------------------------------------------------------

    def report(self, k: int, survivors: int, status: Status | None = None) -> None:
        if self.callback is not silent:  # an event takes longer than a small proof
            total = len(self.upper) - 1
            self.callback(
                Event(
                    "proof",
                    done=k - (status is None),
                    total=total,
                    k=k,
                    survivors=survivors,
                    nodes=self.budget.nodes,
                    objective=self.values[k] * self.unit,
                    upper_bound=self.upper[k] * self.unit,
                    elapsed=self.budget.elapsed(),
                    source=self.incumbents.best[k].source,
                    status=status,
                )
            )

    def status(self, k: int, stopped: Status | None) -> Status:
        """What is claimed for k, by the objective as it is handed out."""
        if self.defect:
            return Status.FEASIBLE
        if stopped is not Status.INTERRUPTED:  # a caller with more to do must know
            # A bound of an earlier k that was cut short stands in the way of this one.
            cut = (self.cut_short[q] for q in range(k, 0, -1) if q in self.cut_short)
            stopped = next(cut, stopped)
        objective = self.objective(k)
        bound = max(self.upper[k], objective)
        return status_of_gap(objective, bound, self.budget.limits.gap, stopped)

    def objective(self, k: int) -> float:
        """x'Ax, not λ as LAPACK found it; the pool holds entries of A in units."""
        best = self.incumbents.best[k]
        return rayleigh(self.incumbents.pool.within(best.positions), best.x)

    def complete(self) -> None:
        """Give steps that were not reached a support, and all the best that is known.

        When time is up there is a moment for that, and no more: after it a step keeps
        the component of the one before and gets what costs nothing.  A bound that the
        chain did not bring down far is compared with those that need no chain.
        """
        limit = self.budget.limits.time
        ends = np.inf
        if limit is not None:
            ends = self.budget.elapsed() + _GRACE + _GRACE_SHARE * limit
        obvious = ObviousBounds(self.cov)
        last = len(self.upper) - 1
        for k in range(1, last + 1):
            at_leisure = self.budget.elapsed() < ends
            if self.values[k] == -np.inf:
                if at_leisure:
                    self.incumbents.start(k)
                else:
                    self.incumbents.start_at_once(k)
            if k > 1 and self.objective(k) < self.objective(k - 1):
                # By rounding, where entries differ by 1e15 or more.
                self.incumbents.take_over(k)
            if self.upper[k] == np.inf and (at_leisure or k == last):
                self.cheap_bounds(k)
            if not self.is_proved(k, _NAMED_FROM_GAP):
                bound, name = obvious.least(k)
                self.lower_to(k, bound / self.unit, name)

    def compare_with_subsets(self) -> None:
        """Hold each bound against its component and the parts of larger ones.

        The j largest entries of a component of K > j features are one of the vectors
        that the bound for j is about.
        """
        k_max = len(self.upper) - 1
        for size in range(k_max, 0, -1):
            best = self.incumbents.best[size]
            within = self.incumbents.pool.within(best.positions)
            values, rounding = values_of_subsets(within, best.x)
            for k in range(1, size + 1):
                value, error = float(values[k - 1]), float(rounding[k - 1])
                error += 2 * k * self.entry_error
                if is_below_objective(self.upper[k], value, error):
                    self.defect = alarm(
                        k,
                        self.upper[k] * self.unit,
                        self.names[k],
                        value * self.unit,
                        f"a part of the component of {size} features",
                    )
                    return

    def finish(self, k: int, stopped: Status | None) -> CertifiedStep:
        """The record of k."""
        unit, best = self.unit, self.incumbents.best[k]
        support, x = best.support, with_sign(best.x)
        objective, upper, name = self.objective(k), self.upper[k], self.names[k]
        tau, previous, survivors = self.proofs.get(k, _NO_PROOF)
        if self.defect:
            upper, name = np.inf, BoundName.NONE
            tau, previous, survivors = _NO_PROOF
        return CertifiedStep(
            k=k,
            n_features=self.cov.n_features,
            support=support.astype(np.intp),
            loadings=x,
            objective=objective * unit,
            upper_bound=max(upper, objective) * unit,
            bound_name=name,
            status=self.status(k, stopped),
            source=best.source,
            tau=tau * unit,
            upper_previous=previous * unit,
            survivors=survivors,
            allowance=(upper - tau) * unit,
            tolerance=OPTIMAL_GAP * abs(objective) * unit,
            statistics=self.statistics[k],
            time=self.times[k],
            message=self.defect,
        )
