"""A contrast that is not proved is bounded by the optimum of its target.

No component of A_t − g A_b exceeds the optimum of A_t, for any background that is
positive semidefinite (`covariance.dominance` has the theorem, and what it costs if one
is not quite so). The target is an ordinary problem, often an easy one, and its bounds
do not grow with g, as those of the contrast do. So where the contrast itself is not
proved, a share of the time is for the target. Its claims go into the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ..bound_names import BoundName
from ..bounds.best import NamedBound, is_sound
from ..bounds.closed_form import above_target
from ..bounds.entry_dual.pairs import seconds_of_pass
from ..certificate import StepClaim, TargetClaim, restated
from ..covariance.covariance import Covariance
from ..covariance.dominance import Dominance
from ..limits import Budget, Limits
from ..numerics.linalg import on_support
from ..progress import Event, silent
from ..result import Result
from ..status import PROVED, SEARCH_GAP, Status, is_search_over, status_of_gap
from .alarms import has_alarm
from .provers import ProofOptions

Incumbents = Mapping[int, Sequence[int]]
#: Solves every k of a range for a matrix, within limits, from incumbents.
Walk = Callable[
    [Covariance, range, Limits, Incumbents, ProofOptions], Mapping[int, Result]
]


class Contrast:
    """The results of a contrast, and then of its target, within the same limits."""

    def __init__(self, cov: Covariance, limits: Limits, options: ProofOptions) -> None:
        self.cov, self.options = cov, options
        self.settings, self.callback = options.settings, options.callback
        self.budget = Budget(limits)
        self.withheld: dict[int, Event] = {}
        self.interrupted = False

    def solve(
        self, ks: range, incumbents: Incumbents, own: Walk, of_target: Walk
    ) -> Mapping[int, Result]:
        """Solve all k by `own`, and bound those that are left open by the target."""
        budget = self.budget
        limits = self.settings.beside_target(budget.limits)
        found: Mapping[int, Result] = {}
        if self._is_target_first():
            at_first = self.settings.target_at_first(budget.limits)
            found = self._targets(ks, at_first, {}, of_target)
            limits = budget.left()
            if self.interrupted:
                # Components are still wanted, but no time is to be spent on them.
                limits = replace(limits, time=0.0)
        # Where there is no callback, as `silent` says, provers make no events.
        callback = silent if self.callback is silent else self._report
        options = replace(self.options, callback=callback)
        results = own(self.cov, ks, limits, incumbents, options)
        budget.nodes += results[ks[-1]].nodes
        gap = limits.gap
        left_open = [
            k
            for k, one in results.items()
            if not is_search_over(one.objective, one.upper_bound, gap)
        ]
        if left_open and not found and self._may_help(results[left_open[-1]]):
            limits = self.settings.of_target(budget.left())
            start = {k: results[k].support.tolist() for k in left_open}
            ks = range(left_open[0], left_open[-1] + 1)
            found = self._targets(ks, limits, start, of_target)
        if left_open:
            results = {**results, **self._lowered(results, left_open, found)}
        with suppress(KeyboardInterrupt):  # only events are left
            for k, event in self.withheld.items():
                # Smaller k, on the way to one that was asked for, have no result.
                if k in results:
                    event = self._settled(event, results[k])
                self.callback(event)
        return results

    def _report(self, event: Event) -> None:
        """Pass an event on; a limit does not settle k before the target is tried."""
        if event.status in (None, *PROVED):
            self.callback(event)
        else:
            self.withheld[event.k] = event
            self.callback(replace(event, done=event.done - 1, status=None))

    def _settled(self, event: Event, result: Result) -> Event:
        return replace(
            event,
            upper_bound=result.upper_bound,
            status=result.status,
            nodes=result.nodes,
            elapsed=self.budget.elapsed(),
        )

    def _may_help(self, result: Result) -> bool:
        """Whether there is time, and the target may have an optimum below the bound.

        Not if the features of the component alone reach more of the target.
        """
        dominance = self.cov.dominance
        if dominance is None or self.budget.stop_reason() is not None:
            return False
        is_over = result.status is Status.INTERRUPTED or has_alarm(result)
        if is_over or not self.budget.affords(dominance.seconds):
            return False
        _, reached = on_support(dominance.matrix, result.support)
        # The target's optimum is at least what it has on this support.
        return reached + dominance.excess < result.upper_bound

    def _is_target_first(self) -> bool:
        """Whether to read the contrast, two matrices of data, takes a good part of it.

        The target is one matrix, of which variances often rule out the most.
        """
        seconds, dominance = self.budget.limits.time, self.cov.dominance
        if not seconds or dominance is None or self.cov.in_memory:
            return False
        is_long = seconds_of_pass(self.cov) > self.settings.target_first_from * seconds
        return is_long and self.budget.affords(dominance.seconds)

    def _targets(
        self, ks: range, limits: Limits, start: Incumbents, of_target: Walk
    ) -> Mapping[int, Result]:
        """What is proved of the target; nothing if Ctrl-C came before anything was."""
        dominance = self.cov.dominance
        assert dominance is not None
        try:
            options = replace(self.options, callback=silent)
            found = of_target(dominance.matrix, ks, limits, start, options)
        except KeyboardInterrupt:
            self.interrupted = True
            return {}
        last = found[ks[-1]]
        self.budget.nodes += last.nodes
        self.interrupted = last.status is Status.INTERRUPTED
        return found

    def _lowered(
        self,
        results: Mapping[int, Result],
        left_open: Sequence[int],
        found: Mapping[int, Result],
    ) -> dict[int, Result]:
        """The results that are left open, with the bounds of the target."""
        dominance = self.cov.dominance
        lowered = {k: results[k] for k in left_open}
        if self.interrupted:
            stopped = Status.INTERRUPTED
            lowered = {k: restated(r, status=stopped) for k, r in lowered.items()}
        if dominance is None or not found:
            return lowered
        return {
            k: self._with_target(result, found[k], dominance)
            for k, result in lowered.items()
        }

    def _with_target(
        self, result: Result, of_target: Result, dominance: Dominance
    ) -> Result:
        """The lesser of both bounds, with the claims that prove it."""
        k, objective = result.k, result.objective
        result = replace(
            result,
            nodes=result.nodes + of_target.nodes,
            timings={**result.timings, "target": of_target.time},
        )
        bound = NamedBound(
            above_target(of_target.upper_bound, dominance), BoundName.TARGET
        )
        allowed = SEARCH_GAP * abs(objective) + k * self.cov.entry_error
        certificate, proof = result.certificate, of_target.certificate
        if certificate is None or proof is None or bound.value >= result.upper_bound:
            return result
        if not is_sound(bound, objective, allowed):
            return result
        upper = max(bound.value, objective)
        status = status_of_gap(objective, upper, certificate.gap, result.status)
        proved = TargetClaim(proof.support, proof.steps)
        step = StepClaim(k, upper, bound.name, target=proved)
        return restated(result, upper_bound=upper, status=status, steps=(step,))
