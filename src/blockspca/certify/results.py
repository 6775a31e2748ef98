"""The certified path as results: each k with its component, bound and certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

from ..bound_names import BoundName
from ..certificate import Certificate, StepClaim, restated
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..numerics.threads import proof_threads
from ..progress import Event, Listener, silent
from ..proof_settings import ProofSettings, Prover
from ..result import Result
from ..status import (
    PROVED,
    SEARCH_GAP,
    STOPPED,
    Status,
    is_search_over,
    status_of_gap,
)
from .alarms import alarm
from .conclude import steps_from_variances
from .contrast import Contrast, Incumbents
from .path import certified_path
from .provers import BY_CHAIN, ProofOptions
from .side_by_side import side_by_side
from .single_k import prove_single_k
from .steps import CertifiedStep


def certified_results(
    cov: Covariance,
    ks: range,
    limits: Limits,
    incumbents: Incumbents,
    options: ProofOptions = BY_CHAIN,
) -> Mapping[int, Result]:
    """Solve up to the last of `ks` by the chosen provers; return the results of `ks`.

    Only the chain knows the limits of groups. A contrast that is not proved is bounded
    by its target, too.
    """
    if options.groups is not None:
        options = replace(options, prover=Prover.CHAIN)
    if cov.dominance is None or not options.prove:
        return own_results(cov, ks, limits, incumbents, options)
    contrast = Contrast(cov, limits, options)
    return contrast.solve(ks, incumbents, own_results, certified_results)


def result_from_variances(cov: Covariance, k: int, status: Status) -> Result:
    """Return what costs nothing, for a run that was stopped, with that status."""
    step = steps_from_variances(cov, range(k, k + 1), status)[k]
    step = replace(step, status=status)
    return _as_result(cov, step, [_as_claim(step)], None, 0)


def own_results(
    cov: Covariance,
    ks: range,
    limits: Limits,
    incumbents: Incumbents,
    options: ProofOptions,
) -> Mapping[int, Result]:
    """As `certified_results`, without the target of a contrast."""
    call = _Call(cov, ks, limits, options, dict(incumbents))
    if options.prover in (Prover.SINGLE_K, Prover.SINGLE_K_THEN_CHAIN):
        return call.prove_last()
    return call.as_results(call.walk_chain(limits, call.report))


@dataclass
class _Call:
    """One call: what is asked for, and which k have been reported as settled."""

    cov: Covariance
    ks: range
    limits: Limits
    options: ProofOptions
    incumbents: dict[int, Sequence[int]]
    settled: set[int] = field(default_factory=set)

    @property
    def has_listener(self) -> bool:
        """Whether there is a callback; without one no events are made."""
        return self.options.callback is not silent

    def report(self, event: Event) -> None:
        if event.status is not None:
            self.settled.add(event.k)
        self.options.callback(event)

    def report_if_proved(self, event: Event) -> None:
        """Report an event of a walk that is not the last: no limit settles k."""
        self.report(event if event.status in PROVED else replace(event, status=None))

    def is_over(self, step: CertifiedStep) -> bool:
        """Whether the bound is as low as is aimed at, below what is called optimal."""
        return is_search_over(step.objective, step.upper_bound, self.limits.gap)

    def walk_chain(
        self, within: Limits, callback: Listener, n_jobs: int | None = None
    ) -> dict[int, CertifiedStep]:
        """Walk the chain."""
        return certified_path(
            self.cov,
            self.ks[-1],
            limits=within,
            incumbents=self.incumbents,
            options=replace(
                self.options,
                n_jobs=n_jobs or self.options.n_jobs,
                callback=callback if self.has_listener else silent,
            ),
        )

    def as_results(
        self,
        steps: Mapping[int, CertifiedStep],
        direct: CertifiedStep | None = None,
        before: int = 0,
    ) -> Mapping[int, Result]:
        """Report what is not settled yet; `before` counts nodes of an earlier walk."""
        k, gap = self.ks[-1], self.limits.gap
        nodes = before + sum(step.nodes for step in steps.values())
        last, is_by_chain = _tighter(steps[k], direct, gap)
        steps = {**steps, k: last}
        with suppress(KeyboardInterrupt):  # only events are left
            for q in self.ks:
                if self.has_listener and q not in self.settled:  # a limit came first
                    self.report(steps[q].event(k))
        if not is_by_chain:  # k is all there is, and its bound needs no chain
            return {k: _as_result(self.cov, last, [_as_claim(last)], gap, nodes)}
        return CertifiedResults(self.cov, steps, self.ks, gap, before)

    def prove_without_chain(
        self, within: Limits, callback: Listener, settings: ProofSettings
    ) -> CertifiedStep:
        """Prove the last k without the chain."""
        k = self.ks[-1]
        if not self.has_listener:
            callback = silent
        given = self.incumbents.get(k)
        return prove_single_k(self.cov, k, within, given, callback, settings)

    def may_be_at_once(self) -> bool:
        """Whether two provers may read the matrix at a time, each with a core."""
        if self.cov.dask_source() is not None or self.cov.on_device:
            return False
        allowed = self.options.settings.may_be_at_once(self.limits)
        return allowed and proof_threads() > 1

    def prove_at_once(self, budget: Budget) -> Mapping[int, Result]:
        """Walk the chain and prove the last k by itself, until one has proved it.

        The latter is not begun if the chain has ended within its head start.
        """
        k, settings = self.ks[-1], self.options.settings
        # Both provers send events, and callbacks need not be safe for threads.
        lock = Lock()

        def report(event: Event) -> None:
            with lock:
                self.report_if_proved(event)

        def alone() -> dict[int, CertifiedStep]:
            within, duals = budget.left(), settings.of_duals_alone()
            return {k: self.prove_without_chain(within, report, duals)}

        answers, interrupted = side_by_side(
            # A core each: more threads would take that of the other.
            [lambda: self.walk_chain(self.limits, report, n_jobs=1), alone],
            lambda found: (
                self.is_over(found[k]) or found[k].status is Status.INTERRUPTED
            ),
            settings.head_start_of(self.limits),
        )
        steps = answers[0]
        direct = answers[1][k] if len(answers) > 1 else None
        interrupted |= direct is not None and direct.status is Status.INTERRUPTED
        if interrupted and steps[k].status not in PROVED:
            steps = {**steps, k: replace(steps[k], status=Status.INTERRUPTED)}
        return self.as_results(steps, direct, 0 if direct is None else direct.nodes)

    def prove_last(self) -> Mapping[int, Result]:
        """Prove the last k, the only one, without the chain.

        The chain may have a share of the time or of the nodes first, and goes on where
        the bounds end without a proof, if the prover includes it.
        """
        k, limits, options = self.ks[-1], self.limits, self.options
        budget, first = Budget(limits), None
        with_chain = options.prover is Prover.SINGLE_K_THEN_CHAIN
        part = None
        if with_chain:
            part = options.settings.first_of_chain(k, self.cov.n_varying, limits)
        if part is not None and self.may_be_at_once():
            return self.prove_at_once(budget)
        if part is not None:
            first = self.walk_chain(part, self.report_if_proved)
            # A chain that no limit has ended leaves nothing open but rounding; and
            # after a defect nothing is claimed, by whatever prover.
            ended = (*PROVED, Status.INTERRUPTED, Status.FEASIBLE)
            if first[k].status in ended or first[k].message:
                return self.as_results(first)
            # Nodes of the chain count for the call, and its component is a start.
            budget.nodes = sum(step.nodes for step in first.values())
            self.incumbents[k] = first[k].support.tolist()
        direct = self.prove_without_chain(budget.left(), self.report, options.settings)
        proved = direct.status in PROVED and self.is_over(direct)
        ends = proved or direct.status in STOPPED or not with_chain
        if ends and first is not None:
            last = replace(first[k], status=direct.status)
            return self.as_results({**first, k: last}, direct, direct.nodes)
        budget.nodes += direct.nodes
        result = _as_result(
            self.cov, direct, [_as_claim(direct)], limits.gap, budget.nodes
        )
        event = direct.event(k)
        try:
            self.report(event if ends else replace(event, done=k - 1, status=None))
        except KeyboardInterrupt:
            if first is not None:
                last = replace(first[k], status=Status.INTERRUPTED)
                return self.as_results({**first, k: last}, direct, direct.nodes)
            return {k: restated(result, status=Status.INTERRUPTED)}
        if ends:
            return {k: result}
        self.incumbents[k] = direct.support.tolist()
        return self.walk_chain_again(budget, direct, first)

    def walk_chain_again(
        self,
        budget: Budget,
        direct: CertifiedStep,
        first: Mapping[int, CertifiedStep] | None,
    ) -> Mapping[int, Result]:
        """Walk the chain with what is left; the better of two walks counts."""
        k, gap, left = self.ks[-1], self.limits.gap, budget.left()
        before = 0 if first is None else sum(step.nodes for step in first.values())
        # With no more nodes a second walk would come no further.
        if first is not None and left.nodes is not None and left.nodes <= before:
            last = replace(first[k], status=Status.NODE_LIMIT)
            return self.as_results({**first, k: last}, direct, direct.nodes)
        steps = self.walk_chain(left, self.report)
        if first is None:
            return self.as_results(steps, direct, budget.nodes)
        last, _ = _tighter(first[k], steps[k], gap)
        if last.message:  # one walk has a bound below what the other reaches
            return self.as_results({**steps, k: last}, None, budget.nodes)
        if first[k].upper_bound < steps[k].upper_bound:
            # It had more time before, and what it proved then is proved.
            spent = direct.nodes + sum(step.nodes for step in steps.values())
            last = replace(last, status=steps[k].status)
            return self.as_results({**first, k: last}, direct, spent)
        return self.as_results(steps, direct, budget.nodes)


class CertifiedResults(Mapping[int, Result]):
    """The results of a walk, each made, with its certificate, when it is asked for.

    A result has a vector of length d and a claim for every smaller k; of a long path
    most users look at few. `nodes_before` were opened before the walk.
    """

    # Also of what was pickled before there were these.
    _gap: float | None = None
    _nodes_before = 0

    def __init__(
        self,
        cov: Covariance,
        steps: Mapping[int, CertifiedStep],
        ks: range,
        gap: float | None,
        nodes_before: int,
    ) -> None:
        self._cov, self._steps, self._ks, self._gap = cov, steps, ks, gap
        self._nodes_before = nodes_before
        self._made: dict[int, Result] = {}

    @cached_property
    def _claims(self) -> list[StepClaim]:
        return [_as_claim(step) for step in self._steps.values()]

    def __getitem__(self, k: int) -> Result:
        if k not in self._ks:
            raise KeyError(k)
        if k not in self._made:
            nodes = self._nodes_before
            nodes += sum(step.nodes for q, step in self._steps.items() if q <= k)
            step = self._steps[k]
            self._made[k] = _as_result(self._cov, step, self._claims, self._gap, nodes)
        return self._made[k]

    def step(self, k: int) -> CertifiedStep:
        """What is known of a k, status and gap, without its result."""
        return self._steps[k]

    def __contains__(self, k: object) -> bool:
        return k in self._ks

    def __iter__(self) -> Iterator[int]:
        return iter(self._ks)

    def __len__(self) -> int:
        return len(self._ks)


def _tighter(
    chained: CertifiedStep, direct: CertifiedStep | None, gap: float | None
) -> tuple[CertifiedStep, bool]:
    """Return the better component with the lesser bound; True if that is the chain's.

    A chain that a limit has stopped may end with a component that is not as good. A
    bound of one that is below what the other reaches is a defect: then none is used.
    """
    if direct is None:
        return chained, True
    for bounded, reached in ((chained, direct), (direct, chained)):
        rounding = SEARCH_GAP * abs(reached.objective)
        if not bounded.upper_bound >= reached.objective - rounding:
            return _without_bound(bounded, reached), False
    best = chained
    if direct.objective > chained.objective:
        best = replace(
            best,
            support=direct.support,
            loadings=direct.loadings,
            objective=direct.objective,
            source=direct.source,
        )
    is_by_chain = chained.upper_bound <= direct.upper_bound
    if not is_by_chain:
        best = replace(
            best,
            bound_name=direct.bound_name,
            tau=math.nan,
            statistics=direct.statistics,  # `verify` searches again as far
            dual=direct.dual,
        )
    if best is chained:
        return chained, True
    upper_bound = max(min(chained.upper_bound, direct.upper_bound), best.objective)
    ended = chained.status
    stopped = None if ended in PROVED else ended
    status = status_of_gap(best.objective, upper_bound, gap, stopped)
    return replace(best, upper_bound=upper_bound, status=status), is_by_chain


def _without_bound(bounded: CertifiedStep, reached: CertifiedStep) -> CertifiedStep:
    """The component that a bound is below, and no bound."""
    message = alarm(
        reached.k,
        bounded.upper_bound,
        bounded.bound_name,
        reached.objective,
        reached.source,
    )
    return replace(
        reached,
        upper_bound=math.inf,
        bound_name=BoundName.NONE,
        status=Status.FEASIBLE,
        tau=math.nan,
        dual=None,
        message=message,
    )


def _as_claim(step: CertifiedStep) -> StepClaim:
    searched = not math.isnan(step.tau)
    return StepClaim(
        k=step.k,
        upper_bound=float(step.upper_bound),
        bound_name=step.bound_name,
        tau=step.tau if searched else None,
        upper_previous=step.upper_previous if searched else None,
        survivors=tuple(sorted(step.survivors.tolist())) if searched else (),
        statistics=dict(vars(step.statistics)),
        dual=step.dual,
    )


def _as_result(
    cov: Covariance,
    step: CertifiedStep,
    claims: list[StepClaim],
    gap: float | None,
    nodes: int,
) -> Result:
    certificate = Certificate(
        k=step.k,
        n_features=step.n_features,
        support=tuple(step.support.tolist()),
        loadings=tuple(step.loadings.tolist()),
        objective=step.objective,
        upper_bound=float(step.upper_bound),
        status=step.status,
        tolerance=step.tolerance,
        steps=tuple(claim for claim in claims if claim.k <= step.k),
        gap=gap,
    )
    return certificate.as_result(
        message=step.message,
        nodes=nodes,
        time=step.time,
        timings={"proof": step.time},
        solver="certified path",
        feature_names=cov.feature_names,
    )
