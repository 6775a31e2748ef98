"""The certified path as results: each k with its component, bound and certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import joblib

from ..certificate import Certificate, StepClaim, restated
from ..covariance.covariance import Covariance
from ..limits import Budget, Limits
from ..progress import Event, Listener, silent
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings, Prover
from ..result import Result, Status
from ..rules import GroupLimits
from ..stopping import status_of_gap
from .dominated import Contrast, Walk
from .path import certified_path
from .records import CertifiedStep
from .single_k import prove_single_k

_PROVED = (Status.OPTIMAL, Status.GAP_LIMIT)


def certified_results(
    cov: Covariance,
    k_min: int,
    k_max: int,
    limits: Limits,
    incumbents: Mapping[int, Sequence[int]],
    *,
    n_jobs: int | None = None,
    callback: Listener = silent,
    prover: Prover = Prover.CHAIN,
    settings: ProofSettings = DEFAULT_SETTINGS,
    prove: bool = True,
    groups: GroupLimits | None = None,
) -> Mapping[int, Result]:
    """Solve up to k_max, with the provers that were chosen; return all from k_min on.

    With `prove` False, look for good components only, by the chain. With groups, whose
    limits the prover of a single k does not know, by the chain as well. A contrast that
    resists is bounded by its target, too.
    """
    options: dict[str, Any] = {
        "n_jobs": n_jobs,
        "prover": prover if groups is None else Prover.CHAIN,
        "settings": settings,
        "prove": prove,
        "groups": groups,
    }
    own: Walk = partial(_own_results, **options)
    if cov.dominance is None or not prove:
        return own(cov, k_min, k_max, limits, incumbents, callback=callback)
    of_target: Walk = partial(certified_results, **options)
    contrast = Contrast(cov, limits, settings, callback)
    return contrast.solve(range(k_min, k_max + 1), incumbents, own, of_target)


def _own_results(
    cov: Covariance,
    k_min: int,
    k_max: int,
    limits: Limits,
    incumbents: Mapping[int, Sequence[int]],
    *,
    n_jobs: int | None,
    callback: Listener,
    prover: Prover,
    settings: ProofSettings,
    prove: bool,
    groups: GroupLimits | None,
) -> Mapping[int, Result]:
    """As `certified_results`, by what is known of the matrix itself."""
    budget = Budget(limits)
    settled = set()

    def report(event: Event) -> None:
        if event.status is not None:
            settled.add(event.k)
        callback(event)

    def report_proofs(event: Event) -> None:
        """Of a walk that is not the last, limits settle nothing."""
        report(event if event.status in _PROVED else replace(event, status=None))

    # Events are made only where somebody hears of them.
    is_heard = callback is not silent

    def walked(within: Limits, heard: Listener) -> dict[int, CertifiedStep]:
        return certified_path(
            cov,
            k_max,
            limits=within,
            incumbents=incumbents,
            n_jobs=joblib.effective_n_jobs(n_jobs),
            callback=heard if is_heard else silent,
            settings=settings,
            single_k=prover is Prover.CHAIN_THEN_SINGLE_K,
            prove=prove,
            groups=groups,
        )

    def finished(
        steps: Mapping[int, CertifiedStep], direct: CertifiedStep | None, before: int
    ) -> Mapping[int, Result]:
        """Tell of what is not told yet; `before` are the nodes of an earlier walk."""
        nodes = before + sum(step.nodes for step in steps.values())
        last, is_by_chain = _tighter(steps[k_max], direct, limits.gap)
        steps = {**steps, k_max: last}
        with suppress(KeyboardInterrupt):  # all is done but for telling
            for k in range(k_min, k_max + 1):
                if is_heard and k not in settled:  # a limit came first
                    report(steps[k].event(k_max))
        if not is_by_chain:  # k_max is all there is, and its bound needs no chain
            return {k_max: _as_result(cov, last, [_as_claim(last)], limits.gap, nodes)}
        return CertifiedResults(cov, steps, range(k_min, k_max + 1), limits.gap, before)

    if prover not in (Prover.SINGLE_K, Prover.SINGLE_K_THEN_CHAIN):
        return finished(walked(limits, report), None, 0)
    first = None
    if prover is Prover.SINGLE_K_THEN_CHAIN and settings.chain_is_first(k_max, limits):
        part = settings.chain_share(k_max) * (limits.time or 0.0)
        first = walked(replace(limits, time=part), report_proofs)
        if first[k_max].status in (*_PROVED, Status.INTERRUPTED):
            return finished(first, None, 0)
        budget.nodes = sum(step.nodes for step in first.values())
        incumbents = {**incumbents, k_max: first[k_max].support.tolist()}
    before = budget.nodes
    direct = prove_single_k(
        cov,
        k_max,
        budget.left(),
        incumbents.get(k_max),
        report if is_heard else silent,
        settings,
    )
    ends = direct.status is not Status.FEASIBLE or prover is Prover.SINGLE_K
    if ends and first is not None:
        last = replace(first[k_max], status=direct.status)
        return finished({**first, k_max: last}, direct, direct.nodes)
    nodes = before + direct.nodes
    result = _as_result(cov, direct, [_as_claim(direct)], limits.gap, nodes)
    event = direct.event(k_max)
    try:
        report(event if ends else replace(event, done=k_max - 1, status=None))
    except KeyboardInterrupt:
        return {k_max: restated(result, status=Status.INTERRUPTED)}
    if ends:
        return {k_max: result}
    budget.nodes = nodes
    incumbents = {**incumbents, k_max: direct.support.tolist()}
    return finished(walked(budget.left(), report), direct, nodes)


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
        nodes_before: int = 0,
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

    def status(self, k: int) -> Status:
        """The status of a k, without its result."""
        return self._steps[k].status

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

    A chain that a limit has stopped may end with a component that is not as good.
    """
    if direct is None:
        return chained, True
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
    stopped = None if ended in _PROVED else ended
    status = status_of_gap(best.objective, upper_bound, gap, stopped)
    return replace(best, upper_bound=upper_bound, status=status), is_by_chain


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
