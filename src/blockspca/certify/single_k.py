"""One large k by itself: power steps find a support, the named bounds bound it.

For k in the hundreds the chain from k = 1 up is long, while the direction dual is often
within a per cent at once, and its search may prove the support optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..bounds.best import BoundInterrupted, Effort, NamedBound, best_bound, is_sound
from ..bounds.closed_form import ObviousBounds
from ..covariance.covariance import Covariance
from ..heuristics.truncated_power import truncated_power
from ..limits import Budget, Limits
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..progress import Event, Listener, silent
from ..proof_settings import ProofSettings
from ..status import SEARCH_GAP, Status, is_within_gap, status_of_gap
from .compositions import bound_by_compositions
from .steps import CertifiedStep, TreeStatistics


@dataclass(frozen=True)
class _Candidate:
    """A support with its best loadings, and where it comes from."""

    support: NDArray[np.intp]
    loadings: FloatArray
    objective: float
    source: str


def _candidate(
    cov: Covariance,
    support: NDArray[np.intp],
    source: str,
    loadings: FloatArray | None = None,
) -> _Candidate:
    """A support with its objective; the loadings are the best ones, if not given."""
    within = cov.submatrix(support)
    if loadings is None:
        loadings = leading_eigenvector(within)
    return _Candidate(support, loadings, rayleigh(within, loadings), source)


def _better(one: _Candidate, other: _Candidate) -> _Candidate:
    return other if other.objective > one.objective else one


def _target(best: _Candidate, gap: float) -> float:
    """Where a bound is low enough."""
    # Half of what searches leave open is for what rounding adds to a bound: one that
    # ends at the target, and 3e-15 above the gap, has not reached it.
    slack = max(gap - 0.5 * SEARCH_GAP, 0.5 * SEARCH_GAP) * abs(best.objective)
    return best.objective + slack


def _bound_by_parts(
    cov: Covariance, k: int, best: _Candidate, budget: Budget, settings: ProofSettings
) -> tuple[NamedBound, _Candidate]:
    """Bound k by the parts of A; a better set found on the way replaces `best`."""
    nodes = 0
    # A better set raises the target, above which there are fewer compositions.
    while True:
        limits = budget.left()
        if limits.time is not None:
            limits = replace(limits, time=settings.compositions_share * limits.time)
        target = _target(best, limits.gap or 0.0)
        bound = bound_by_compositions(cov, k, best.support, target, limits, settings)
        nodes += bound.nodes
        budget.nodes += bound.nodes
        bound = replace(bound, nodes=nodes)
        if bound.better is None:
            return bound, best
        found = _candidate(cov, bound.better, str(bound.name))
        if not found.objective > best.objective:
            return bound, best
        best = found


def _lesser_bound(one: NamedBound, other: NamedBound) -> NamedBound:
    """The lesser bound, with the nodes of both and a support that either found."""
    better = one.better if other.better is None else other.better
    nodes = one.nodes + other.nodes
    return replace(min(one, other), better=better, nodes=nodes)


def _first_candidate(
    cov: Covariance,
    k: int,
    limits: Limits,
    given: Sequence[int] | NDArray[np.intp] | None,
    settings: ProofSettings,
) -> tuple[_Candidate, bool]:
    """The better of what power steps find and what was given; True if interrupted."""
    share = None if limits.time is None else settings.heuristic_share * limits.time
    # Power steps are no nodes; the limit on these is for the search.
    found = truncated_power(
        cov,
        k,
        limits=replace(limits, time=share, nodes=None),
        n_starts=settings.starts_of(cov.n_varying),
    )
    support = found.support
    best = _candidate(cov, support, "power steps", found.x[support])
    if given is not None and 0 < len(given) <= k:
        best = _better(best, _candidate(cov, np.sort(np.asarray(given)), "given"))
    return best, found.status is Status.INTERRUPTED


def _reporter(
    callback: Listener, k: int, best: _Candidate, budget: Budget
) -> Callable[[float, int, int], None] | None:
    """Return the function that reports bounds; None without a callback."""
    if callback is silent:
        return None

    def report(upper_bound: float, nodes: int, free: int) -> None:
        callback(
            Event(
                "proof",
                done=k - 1,
                total=k,
                k=k,
                objective=best.objective,
                upper_bound=max(upper_bound, best.objective),
                survivors=free,
                nodes=nodes,
                source=best.source,
                elapsed=budget.elapsed(),
            )
        )

    return report


def prove_single_k(
    cov: Covariance,
    k: int,
    limits: Limits,
    given: Sequence[int] | NDArray[np.intp] | None,
    callback: Listener,
    settings: ProofSettings,
) -> CertifiedStep:
    """Solve for k alone, down to the gap of the limits, and bound it without the chain.

    `given` is a support found elsewhere; the callback receives an `Event` for each
    improved bound. If the gap is not reached the status is that of the limit, or
    feasible.
    """
    budget = Budget(limits)
    best, interrupted = _first_candidate(cov, k, limits, given, settings)
    gap, is_timed = limits.gap or 0.0, limits.time is not None
    bound = NamedBound(np.inf, BoundName.NONE)
    status = Status.FEASIBLE
    try:
        if interrupted:
            raise KeyboardInterrupt
        left = budget.remaining()
        seconds = settings.single_k_seconds
        if left is not None:
            seconds = max(settings.bound_share * left, left - settings.reserve)
        bound, best = _bound_by_parts(cov, k, best, budget, settings)
        if not is_within_gap(
            best.objective, max(bound.value, best.objective), max(gap, SEARCH_GAP)
        ):
            searched = best_bound(
                cov,
                k,
                best.support,
                target=_target(best, gap),
                time_limit=seconds,
                effort=Effort(
                    nodes=min(settings.nodes_of_dual(k), budget.nodes_left),
                    entry_nodes=min(
                        settings.nodes_of_entries(k, is_timed), budget.nodes_left
                    ),
                    is_timed=is_timed,
                    gap=gap if gap > SEARCH_GAP else 0.0,
                ),
                memory=limits.memory,
                report=_reporter(callback, k, best, budget),
                settings=settings,
            )
            bound = _lesser_bound(bound, searched)
        left = budget.remaining()
        if limits.time is not None and left is not None and left < limits.time / 2:
            status = Status.TIME_LIMIT  # the chain would need more
    except BoundInterrupted as stopped:
        bound, status = _lesser_bound(bound, stopped.bound), Status.INTERRUPTED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if bound.better is not None:
        best = _better(best, _candidate(cov, bound.better, str(bound.name)))
    objective = best.objective
    # A bound below what is reached is a defect, of which `is_sound` warns: nothing is
    # claimed by it.
    if not is_sound(bound, objective, SEARCH_GAP * abs(objective)):
        bound = NamedBound(np.inf, BoundName.NONE)
    if not is_within_gap(objective, max(bound.value, objective), max(gap, SEARCH_GAP)):
        bound = min(bound, NamedBound(*ObviousBounds(cov).least(k)))
    upper_bound = max(bound.value, objective)
    return CertifiedStep(
        k=k,
        n_features=cov.n_features,
        support=best.support,
        loadings=best.loadings,
        objective=objective,
        upper_bound=upper_bound,
        bound_name=bound.name,
        status=status_of_gap(objective, upper_bound, limits.gap, status),
        source=best.source,
        statistics=TreeStatistics(nodes=bound.nodes),
        time=budget.elapsed(),
        dual=bound.dual,
    )
