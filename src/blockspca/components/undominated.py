"""Components found in turn, unless another set clearly dominates them.

One after the other, each component is the best that the earlier ones leave, and proved
to be. The set need not be good: another one may have no less adjusted variance and
predict more of all features, R². Where that is clearly more it is worth a set of which
less is proved; its components have bounds, and those found in turn are kept beside it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._kernels.loading import times_cut_short
from .._kernels.prediction_constants import ROUNDED
from .._validation import FloatArray
from .._warnings import warn_caller
from ..certificate import restated
from ..covariance.covariance import Covariance
from ..limits import Deadline, NotAffordable
from ..result import Result
from ..status import Status
from .in_turn import HALF, Call, bounded, shared_out
from .prediction_search import dominating
from .scheme import BaseScheme
from .schemes import in_turn_only
from .variance import adjusted_variance, predicted, score_covariance


def look_is_due(call: Call, sweeps: int) -> bool:
    """Whether a set that dominates the components in turn is to be looked for.

    Not of one component, under constraints or before sweeps: no set is known that would
    keep the ones, or be kept by the others; and a contrast has no R².
    """
    return (
        call.scheme.unless_dominated is not None
        and len(call.sparsities) > 1
        and not (sweeps or "constraints" in call.options or call.cov.is_contrast)
    )


def unless_dominated(
    call: Call, results: list[Result], sweeps: int
) -> tuple[BaseScheme, list[Result], list[Result]]:
    """Return the components to take, with their scheme and those that they replace.

    Those found in turn replace none, and their scheme is the one that looks for no
    others.
    """
    scheme = call.scheme
    if scheme.unless_dominated is None:
        return scheme, results, []
    found = None
    interrupted = results[-1].status is Status.INTERRUPTED
    if look_is_due(call, sweeps) and not interrupted:
        cut_short = times_cut_short()
        try:
            found = _dominating(call, results, scheme.unless_dominated)
        except KeyboardInterrupt:
            interrupted = True
        except NotAffordable as reason:
            said = _not_looked_for(str(reason), times_cut_short() > cut_short)
            warn_caller(said)
            message = " ".join(filter(None, (results[-1].message, said)))
            results = [*results[:-1], replace(results[-1], message=message)]
    if found is not None and found[-1].status is Status.INTERRUPTED:
        found, interrupted = None, True
    if found is not None:
        return scheme, found, results
    if interrupted:  # the last one says so; what is proved of the others stays proved
        results = [*results[:-1], restated(results[-1], status=Status.INTERRUPTED)]
    return in_turn_only(scheme), results, []


def _not_looked_for(reason: str, compiled: bool) -> str:
    """Say that there was no look, why, and what the components are then."""
    if compiled:
        reason += " (kernels were compiled first, which happens once on a machine)"
    return (
        f"No set that predicts more was looked for: {reason}. These are the components "
        "found one after the other."
    )


def _dominating(call: Call, results: list[Result], share: float) -> list[Result] | None:
    """Return a set that dominates the given one, with an R² larger by the share.

    None if there is none. Raises `NotAffordable` if it could not be looked for.
    """
    cov, memory = call.cov, call.budget.limits.memory
    given = np.array([result.x for result in results])
    added, r2 = _added(cov, given), predicted(cov, given)
    deadline = Deadline(shared_out(call.budget, 1, HALF).time)
    if not (added > 0 and r2 > 0):
        return None
    disjoint = call.scheme.disjoint
    chosen = dominating(cov, given, call.sparsities, disjoint, deadline, memory)
    if not predicted(cov, chosen) > (1 + share) * r2:
        return None
    found = bounded(call, chosen, deadline)
    if found[-1].status is Status.INTERRUPTED:
        return found
    # One that adds nothing is replaced by what its problem leaves: the set may be
    # another one than was chosen.
    taken = np.array([result.x for result in found])
    as_much = _added(cov, taken) >= (1 - ROUNDED) * added
    return found if as_much and predicted(cov, taken) > (1 + share) * r2 else None


def _added(cov: Covariance, components: FloatArray) -> float:
    return float(adjusted_variance(score_covariance(cov, components)).sum())
